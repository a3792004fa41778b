"""The door of the room: messages from bytes and to bytes.

    request = decode(ProduceRequest, 13, body)
    parts = encode_parts(FetchResponse(...), 18)

One schema-driven codec serves every message and version; for the few hot APIs the modules of `flat/`, made from the
same declarations, take its place unseen. Headers and the size in front of a frame are `headers`' affair.
"""

from __future__ import annotations

from collections.abc import Generator
from importlib import import_module
from typing import Final, TypeVar, cast

from ottla.errors import UnsupportedVersion
from ottla.protocol.plans import Codec, StructCodec
from ottla.protocol.primitives import (
    LOW_WIDE_WINDOW_BYTES,
    UNLIMITED,
    WIDE_WINDOW_BYTES,
    WINDOW_BYTES,
    DecodeError,
    EncodeError,
    Reader,
    TooManyElements,
    Writer,
)
from ottla.protocol.schema import Message, Span, StructType

__all__ = [
    "DecodeError",
    "EncodeError",
    "Message",
    "TooManyElements",
    "decode",
    "decode_in_steps",
    "decode_with_end",
    "encode",
    "encode_parts",
    "encode_parts_in_steps",
]

M = TypeVar("M", bound=Message)

_plans: Final[dict[StructType, dict[int, Codec]]] = {}
_divisible_plans: Final[dict[tuple[StructType, int], Codec]] = {}
"""Of the messages that have flat codecs, which do all at once."""

FLAT: Final = {
    "ottla.protocol.messages.fetch": "ottla.protocol.flat.fetch",
    "ottla.protocol.messages.produce": "ottla.protocol.flat.produce",
}
"""Modules whose messages have codecs made by `flatten`."""


def decode(
    cls: type[M],
    version: int,
    buffer: bytes | bytearray | memoryview,
    position: int = 0,
    most_elements: int = UNLIMITED,
) -> M:
    """Return the message that starts at `position`; bytes after it are ignored, as Kafka ignores them.

    Record fields are memoryviews of `buffer`; everything else is copied. Raises `DecodeError` for bytes that are no
    such message, `TooManyElements` where all arrays together have more than `most_elements`, and `UnsupportedVersion`
    for a version that the message does not have.
    """
    message, _ = _read(_plan(cls, version), buffer, position, windowed=True, most_elements=most_elements)
    return cast(M, message)


def decode_with_end(
    cls: type[M], version: int, buffer: bytes | bytearray | memoryview, position: int = 0
) -> tuple[M, int]:
    """Return the message that starts at `position`, and the position after it. Raises as `decode`."""
    message, end = _read(_plan(cls, version), buffer, position, windowed=True, most_elements=UNLIMITED)
    return cast(M, message), end


def _read(
    plan: Codec, buffer: bytes | bytearray | memoryview, position: int, *, windowed: bool, most_elements: int
) -> tuple[object, int]:
    window_bytes = WINDOW_BYTES if windowed and plan.holds_records else 0
    reader = Reader(buffer, position, window_bytes=window_bytes, most_elements=most_elements)
    try:
        message = plan.read(reader)
    except IndexError:
        if reader.is_partial:
            return _read(plan, buffer, position, windowed=False, most_elements=most_elements)
        raise DecodeError("the message ends too early") from None
    return message, reader.absolute_position


def decode_in_steps(
    cls: type[M], version: int, buffer: bytes | bytearray | memoryview, position: int, most_elements: int
) -> Generator[None, None, M]:
    """As `decode`, some elements of an array at a time: others may do theirs at each yield."""
    plan = _divisible_plan(cls, version)
    reader = (
        Reader(buffer, position, window_bytes=WINDOW_BYTES, most_elements=most_elements)
        if plan.holds_records
        else Reader(
            buffer,
            position,
            window_bytes=WIDE_WINDOW_BYTES,
            low_bytes=LOW_WIDE_WINDOW_BYTES,
            most_elements=most_elements,
        )
    )
    try:
        return cast(M, (yield from plan.read_in_steps(reader)))
    except IndexError:
        if not reader.is_partial:
            raise DecodeError("the message ends too early") from None
    reader = Reader(buffer, position, most_elements=most_elements)
    try:
        return cast(M, (yield from plan.read_in_steps(reader)))
    except IndexError:
        raise DecodeError("the message ends too early") from None


def encode(message: Message, version: int) -> bytes:
    """Return the message as bytes. Records held elsewhere (`Span`) need `encode_parts`.

    Raises `UnsupportedVersion` for a version that the message does not have, or that lacks a field which is set and
    must not be dropped; `EncodeError` for null where it cannot be; `ValueError` for a number out of its type's range.
    """
    parts = encode_parts(message, version)
    return b"".join(cast("list[bytes]", parts))


def encode_parts(message: Message, version: int) -> list[bytes | memoryview | Span]:
    """Return the message as parts in order: record fields as they came, everything else merged. Raises as `encode`."""
    writer = Writer()
    _plan(type(message), version).write(writer, message)
    return writer.finish()


def encode_parts_in_steps(message: Message, version: int) -> Generator[None, None, list[bytes | memoryview | Span]]:
    """As `encode_parts`, some elements of an array at a time: others may do theirs at each yield."""
    writer = Writer()
    yield from _divisible_plan(type(message), version).write_in_steps(writer, message)
    return writer.finish()


def _plan(cls: StructType, version: int) -> Codec:
    versions = _plans.get(cls)
    if versions is None:
        versions = _plans.setdefault(cls, {})
    plan = versions.get(version)
    if plan is None:
        plan = versions[version] = _new_plan(cls, version)
    return plan


def _new_plan(cls: StructType, version: int) -> Codec:
    if version not in cls.SCHEMA.versions:
        raise UnsupportedVersion(f"{cls.__name__} has no version {version}")
    flat = FLAT.get(cls.__module__)
    if flat is None:
        return _struct_plan(cls, version)
    made: Codec = getattr(import_module(flat), cls.__name__ + "Codec")(version)
    return made


def _divisible_plan(cls: StructType, version: int) -> Codec:
    if cls.__module__ not in FLAT:
        return _plan(cls, version)
    plan = _divisible_plans.get((cls, version))
    if plan is None:
        _plan(cls, version)  # raises for a version that the message does not have
        plan = _divisible_plans[cls, version] = _struct_plan(cls, version)
    return plan


def _struct_plan(cls: StructType, version: int) -> Codec:
    return StructCodec(cls, version, flexible=version in cls.SCHEMA.flexible)
