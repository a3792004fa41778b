"""What stands in front of stored records: types and versions, so that a reader knows what follows.

* Records of the metadata log and of remote log metadata: three varints (frame version, record type, version), then the
  message. No key.
* Records of the group, transaction and share coordinators: a key with its record type (int16) in front, a value with
  its version (int16) in front. A null value is a tombstone.
* Consumer subscriptions and assignments, and forwarded principals: the version (int16) in front.

Types and versions that are not known come back as `RawRecord` and `RawCoordinatorRecord` with their bytes, so that a
state machine can carry them unread. Control records' bodies have nothing in front: plain `codec` serves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Final, NamedTuple, TypeVar

from ottla.protocol.codec import decode, encode
from ottla.protocol.primitives import DecodeError, Reader, Writer
from ottla.protocol.schema import Message

METADATA_FRAME_VERSION: Final = 1
KEY_VERSION: Final = 0
"""No coordinator key has a second version."""
INT16_BYTES: Final = 2

M = TypeVar("M", bound=Message)


class RawRecord(NamedTuple):
    """A framed record whose type or version is not known. `data` is all of it, frame included."""

    record_type: int
    version: int
    data: bytes


class CoordinatorRecord(NamedTuple):
    """One record of a coordinator's log. `value` is None for a tombstone, and `version` then -1."""

    key: Message
    value: Message | None
    version: int


class RawCoordinatorRecord(NamedTuple):
    """One record of a coordinator's log whose type or version is not known."""

    record_type: int
    key: bytes
    value: bytes | None


def encode_metadata_record(record: Message, version: int) -> bytes:
    """Return a record of `__cluster_metadata`, or of remote log metadata, with its frame."""
    writer = Writer()
    writer.unsigned_varint(METADATA_FRAME_VERSION)
    writer.unsigned_varint(_record_type(record))
    writer.unsigned_varint(version)
    return writer.merged.getvalue() + encode(record, version)


def decode_metadata_record(data: bytes | memoryview) -> Message | RawRecord:
    """Return a record of `__cluster_metadata`. Raises `DecodeError` for another frame version or damaged bytes."""
    return _decode_framed("metadata_records", data)


def decode_remote_log_record(data: bytes | memoryview) -> Message | RawRecord:
    """Return a record of `__remote_log_metadata`. Raises as `decode_metadata_record`."""
    return _decode_framed("remote_log_records", data)


def _decode_framed(module: str, data: bytes | memoryview) -> Message | RawRecord:
    reader = Reader(data, 0)
    try:
        frame_version = reader.unsigned_varint()
        record_type, version = int(reader.unsigned_varint()), int(reader.unsigned_varint())
    except IndexError:
        raise DecodeError("a record that ends within its frame") from None
    if frame_version != METADATA_FRAME_VERSION:
        raise DecodeError(f"a record of frame version {frame_version}")
    cls = _types(module).get(record_type)
    if cls is None or version not in cls.SCHEMA.versions:
        return RawRecord(record_type, version, bytes(data))
    return decode(cls, version, data, reader.position)


def encode_coordinator_key(key: Message) -> bytes:
    """Return a key with its record type in front."""
    return _record_type(key).to_bytes(INT16_BYTES, "big") + encode(key, KEY_VERSION)


def encode_versioned(message: Message, version: int) -> bytes:
    """Return a message with its version in front: a coordinator's value, a subscription, an assignment, a principal."""
    return version.to_bytes(INT16_BYTES, "big") + encode(message, version)


def decode_versioned(cls: type[M], data: bytes | memoryview) -> M:
    """Return a message that has its version in front.

    A version above the highest is read as the highest, as Kafka does with group members that are newer than itself.
    Raises `DecodeError` for damaged bytes and `UnsupportedVersion` for a version below the lowest.
    """
    return decode(cls, min(_int16(data), cls.SCHEMA.versions.highest), data, INT16_BYTES)


def decode_group_record(key: bytes, value: bytes | None) -> CoordinatorRecord | RawCoordinatorRecord:
    """Return a record of `__consumer_offsets`. Raises `DecodeError` for damaged bytes."""
    return _decode_coordinator(("group_records", "share_group_records", "streams_group_records"), key, value)


def decode_transaction_record(key: bytes, value: bytes | None) -> CoordinatorRecord | RawCoordinatorRecord:
    """Return a record of `__transaction_state`. Raises `DecodeError` for damaged bytes."""
    return _decode_coordinator(("transaction_records",), key, value)


def decode_share_record(key: bytes, value: bytes | None) -> CoordinatorRecord | RawCoordinatorRecord:
    """Return a record of `__share_group_state`. Raises `DecodeError` for damaged bytes."""
    return _decode_coordinator(("share_state_records",), key, value)


def _decode_coordinator(
    modules: tuple[str, ...], key: bytes, value: bytes | None
) -> CoordinatorRecord | RawCoordinatorRecord:
    record_type = _int16(key)
    types = _coordinator_types(modules).get(record_type)
    if types is None:
        return RawCoordinatorRecord(record_type, key, value)
    key_type, value_type = types
    if value is None:
        return CoordinatorRecord(decode(key_type, KEY_VERSION, key, INT16_BYTES), None, -1)
    version = _int16(value)
    if version not in value_type.SCHEMA.versions:
        return RawCoordinatorRecord(record_type, key, value)
    return CoordinatorRecord(
        decode(key_type, KEY_VERSION, key, INT16_BYTES), decode(value_type, version, value, INT16_BYTES), version
    )


def _record_type(record: Message) -> int:
    record_type = type(record).SCHEMA.key
    assert record_type is not None, f"{type(record).__name__} has no record type"
    return record_type


def _int16(data: bytes | memoryview) -> int:
    if len(data) < INT16_BYTES:
        raise DecodeError("a record that ends within its type or version")
    return int.from_bytes(data[:INT16_BYTES], "big", signed=True)


@cache
def _types(module: str) -> Mapping[int, type[Message]]:
    """Return the messages of a module by record type."""
    return {cls.SCHEMA.key: cls for cls in _messages(module) if cls.SCHEMA.key is not None}


@cache
def _coordinator_types(modules: tuple[str, ...]) -> Mapping[int, tuple[type[Message], type[Message]]]:
    """Return the key and the value of each record type in some modules."""
    messages = [cls for module in modules for cls in _messages(module)]
    keys = {cls.SCHEMA.key: cls for cls in messages if cls.__name__.endswith("Key")}
    values = {cls.SCHEMA.key: cls for cls in messages if cls.__name__.endswith("Value")}
    return {key: (keys[key], values[key]) for key in keys if key is not None}


def _messages(module: str) -> list[type[Message]]:
    found = vars(import_module(f"ottla.protocol.internal.{module}")).values()
    return [cls for cls in found if isinstance(cls, type) and issubclass(cls, Message) and cls is not Message]
