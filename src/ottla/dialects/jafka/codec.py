"""Jafka's requests from bytes, and its answers to bytes. Integers are signed and big-endian.

A request is `i32 size ‖ i16 type ‖ body`, an answer `i32 size ‖ i16 error ‖ body`; a size counts what follows it. A
string is `i16 length ‖ UTF-8`, -1 for null. There are no versions, no correlation ids and no client ids. What follows a
request's body within its size means nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeVar

from ottla.broker.turns import Steps

PARTS_A_STEP: Final = 64

PartT = TypeVar("PartT")

_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_I64: Final = struct.Struct(">q")
_ANSWER: Final = struct.Struct(">ih")


class RequestType(IntEnum):
    """The first two bytes of a request."""

    PRODUCE = 0
    FETCH = 1
    MULTIFETCH = 2
    MULTIPRODUCE = 3
    OFFSETS = 4
    CREATE = 5
    DELETE = 6


class ErrorCode(IntEnum):
    """What may stand in an answer to a fetch; any other request that fails ends the connection."""

    UNKNOWN = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    WRONG_PARTITION = 3
    INVALID_FETCH_SIZE = 4


class Malformed(ValueError):
    """Bytes that are no request: the connection is closed."""


@dataclass(frozen=True, slots=True)
class Produce:
    topic: str
    partition: int
    """-1: any."""
    messages: bytes | memoryview
    """A view where it is large."""


@dataclass(frozen=True, slots=True)
class Fetch:
    topic: str
    partition: int
    offset: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class MultiProduce:
    produces: Sequence[Produce]


@dataclass(frozen=True, slots=True)
class MultiFetch:
    fetches: Sequence[Fetch]


@dataclass(frozen=True, slots=True)
class Offsets:
    topic: str
    partition: int
    time_ms: int
    max_count: int


@dataclass(frozen=True, slots=True)
class Create:
    topic: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Delete:
    topic: str
    password: str


Request = Produce | Fetch | MultiProduce | MultiFetch | Offsets | Create | Delete


class _Reader:
    """Takes fields off the front of a request. Raises `Malformed` where it is too short for one."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = data
        self._position = 0

    def number(self, form: struct.Struct) -> int:
        (value,) = form.unpack(self.take(form.size))
        return int(value)

    def text(self) -> str:
        size = self.number(_I16)
        try:
            return bytes(self.take(size)).decode()
        except UnicodeDecodeError:
            raise Malformed("a string is not UTF-8") from None

    def take(self, size: int) -> bytes | memoryview:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise Malformed(f"{size} bytes are not there")
        piece = self._data[self._position : end]
        self._position = end
        return piece


def decode_request(frame: bytes | memoryview) -> Steps[Request]:
    """Decode what follows a request's size. Raises `Malformed`."""
    reader = _Reader(frame)
    kind = reader.number(_I16)
    if kind == RequestType.PRODUCE:
        return _produce(reader)
    if kind == RequestType.FETCH:
        return _fetch(reader)
    if kind == RequestType.MULTIPRODUCE:
        return MultiProduce((yield from _parts(reader, _produce)))
    if kind == RequestType.MULTIFETCH:
        return MultiFetch((yield from _parts(reader, _fetch)))
    if kind == RequestType.OFFSETS:
        return Offsets(reader.text(), reader.number(_I32), reader.number(_I64), reader.number(_I32))
    if kind == RequestType.CREATE:
        create = Create(reader.text(), reader.number(_I32))
        reader.take(1)  # whether to enlarge, which is done in any case
        return create
    if kind == RequestType.DELETE:
        return Delete(reader.text(), reader.text())
    raise Malformed(f"there is no request of type {kind}")


def _parts(reader: _Reader, read: Callable[[_Reader], PartT]) -> Steps[list[PartT]]:
    parts: list[PartT] = []
    for _ in range(reader.number(_I16)):
        parts.append(read(reader))
        if len(parts) % PARTS_A_STEP == 0:
            yield
    return parts


def _produce(reader: _Reader) -> Produce:
    return Produce(reader.text(), reader.number(_I32), reader.take(reader.number(_I32)))


def _fetch(reader: _Reader) -> Fetch:
    return Fetch(reader.text(), reader.number(_I32), reader.number(_I64), reader.number(_I32))


def encode_messages(error: ErrorCode, messages: bytes) -> bytes:
    """Encode the answer to a fetch, which is a part of that to several, too."""
    return _ANSWER.pack(2 + len(messages), error) + messages


def encode_several(answers: Sequence[bytes]) -> bytes:
    """Encode the answer to a MULTIFETCH from those to its fetches."""
    return encode_messages(ErrorCode.NONE, b"".join(answers))


def encode_offsets(offsets: Sequence[int]) -> bytes:
    return encode_messages(ErrorCode.NONE, struct.pack(f">i{len(offsets)}q", len(offsets), *offsets))


def encode_count(count: int) -> bytes:
    """Encode the answer to CREATE and DELETE."""
    return encode_messages(ErrorCode.NONE, struct.pack(">ii", 1, count))
