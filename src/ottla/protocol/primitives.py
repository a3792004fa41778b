"""The wire's plain types: a `Reader` over one message's bytes and a `Writer` that makes them.

Kafka's leniencies are kept exactly. Varints of up to 5 bytes are taken also when not minimal, and their bits above 32
are dropped. A negative length is null where the field may be null, and damage elsewhere. Non-zero is true. Bytes that
are not UTF-8 are replaced. Every claimed length or count is compared with the bytes that are left before anything is
made for it.

Reading too far raises `IndexError` here, which `codec` turns into `DecodeError` in one place: the common reads need no
check of their own. Which field has which type is `plans`' affair.
"""

from __future__ import annotations

from typing import Final

from librt.strings import (
    BytesWriter,
    read_f64_be,
    read_i16_be,
    read_i32_be,
    read_i64_be,
    write_f64_be,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)
from mypy_extensions import i16, i32, i64

from ottla.protocol.schema import Records, Span

MAX_STRING_BYTES: Final = 32767
MAX_ARRAY_COUNT: Final = 1_000_000
MAX_TAG_COUNT: Final = 10_000
MAX_VARINT_BYTES: Final = 5
UUID_BYTES: Final = 16


class DecodeError(ValueError):
    """Bytes that are not the message they are said to be."""


class EncodeError(ValueError):
    """A message that has no form on the wire, for instance null in a field that cannot be null."""


class Reader:
    """A position in the bytes of one message."""

    def __init__(self, buffer: bytes | bytearray | memoryview, position: int) -> None:
        """A buffer other than bytes is copied once; records stay views of the buffer itself."""
        self.buffer = buffer
        self.data = buffer if isinstance(buffer, bytes) else bytes(buffer)
        self.end: i64 = len(self.data)
        self.position: i64 = position

    def boolean(self) -> bool:
        return self.int8() != 0

    def int8(self) -> i64:
        value: i64 = self.data[self.position]
        self.position += 1
        return value - 0x100 if value >= 0x80 else value

    def int16(self) -> i16:
        value = read_i16_be(self.data, self.position)
        self.position += 2
        return value

    def uint16(self) -> int:
        return int(self.int16()) & 0xFFFF

    def int32(self) -> i32:
        value = read_i32_be(self.data, self.position)
        self.position += 4
        return value

    def uint32(self) -> int:
        return int(self.int32()) & 0xFFFFFFFF

    def int64(self) -> i64:
        value = read_i64_be(self.data, self.position)
        self.position += 8
        return value

    def float64(self) -> float:
        value = read_f64_be(self.data, self.position)
        self.position += 8
        return value

    def uuid(self) -> bytes:
        return self.take(UUID_BYTES)

    def unsigned_varint(self) -> i64:
        """Return the 32 bits as an unsigned number."""
        value: i64 = 0
        shift: i64 = 0
        while shift < 7 * MAX_VARINT_BYTES:
            byte: i64 = self.data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFF
            shift += 7
        raise DecodeError("a varint of more than 5 bytes")

    def varint_int32(self) -> i64:
        """Return the 32 bits of an unsigned varint as Kafka uses them: signed."""
        value = self.unsigned_varint()
        return value - 0x100000000 if value >= 0x80000000 else value

    def compact_length(self) -> i64:
        """Return a length that is stored plus one; below zero for null."""
        value = self.unsigned_varint() - 1
        return value - 0x100000000 if value >= 0x80000000 else value

    def take(self, size_bytes: i64) -> bytes:
        """Return a copy of the next bytes. Raises `DecodeError` when there are not so many."""
        if size_bytes < 0 or size_bytes > self.end - self.position:
            raise DecodeError(f"{size_bytes} bytes are claimed where {self.end - self.position} are left")
        start = self.position
        self.position = start + size_bytes
        return self.data[start : self.position]

    def string(self, length_bytes: i64) -> str:
        if length_bytes > MAX_STRING_BYTES:
            raise DecodeError(f"a string of {length_bytes} bytes")
        return self.take(length_bytes).decode("utf-8", "replace")

    def records(self, size_bytes: i64) -> memoryview:
        """Return a view of the next bytes. Raises `DecodeError` when there are not so many."""
        if size_bytes > self.end - self.position:
            raise DecodeError(f"records of {size_bytes} bytes are claimed where {self.end - self.position} are left")
        start = self.position
        self.position = start + size_bytes
        return memoryview(self.buffer)[start : self.position]

    def check_count(self, count: i64) -> None:
        """Check an array's claimed count: every element takes at least a byte."""
        if count > self.end - self.position or count > MAX_ARRAY_COUNT:
            raise DecodeError(f"{count} elements are claimed where {self.end - self.position} bytes are left")

    def tag_count(self) -> i64:
        count = self.varint_int32()
        if count < 0 or count > MAX_TAG_COUNT:
            raise DecodeError(f"{count} tagged fields")
        return count

    def skip_tags(self) -> None:
        """Pass over tagged fields, none of which is known."""
        for _ in range(self.tag_count()):
            self.varint_int32()
            self.take(self.varint_int32())


class Writer:
    """Bytes in the making: merged where they are ours, with records between them as they came."""

    def __init__(self) -> None:
        self.merged = BytesWriter()
        self.parts: list[bytes | memoryview | Span] = []

    def finish(self) -> list[bytes | memoryview | Span]:
        """Return all parts in order."""
        if len(self.merged):
            self.parts.append(self.merged.getvalue())
        return self.parts

    def boolean(self, value: object) -> None:
        self.merged.append(1 if value else 0)

    def int8(self, value: i64) -> None:
        if value < -0x80 or value > 0x7F:
            raise EncodeError(f"{value} is no int8")
        self.merged.append(int(value & 0xFF))

    def int16(self, value: i16) -> None:
        write_i16_be(self.merged, value)

    def uint16(self, value: i32) -> None:
        if value < 0 or value > 0xFFFF:
            raise EncodeError(f"{value} is no uint16")
        write_i16_be(self.merged, i16(value - 0x10000 if value > 0x7FFF else value))

    def int32(self, value: i32) -> None:
        write_i32_be(self.merged, value)

    def uint32(self, value: i64) -> None:
        if value < 0 or value > 0xFFFFFFFF:
            raise EncodeError(f"{value} is no uint32")
        write_i32_be(self.merged, i32(value - 0x100000000 if value > 0x7FFFFFFF else value))

    def int64(self, value: i64) -> None:
        write_i64_be(self.merged, value)

    def float64(self, value: float) -> None:
        write_f64_be(self.merged, value)

    def uuid(self, value: bytes) -> None:
        if len(value) != UUID_BYTES:
            raise EncodeError(f"a uuid of {len(value)} bytes")
        self.merged.write(value)

    def unsigned_varint(self, value: i64) -> None:
        """Write the low 32 bits, so that a negative number takes 5 bytes."""
        value &= 0xFFFFFFFF
        while value > 0x7F:
            self.merged.append(int(value & 0x7F | 0x80))
            value >>= 7
        self.merged.append(int(value))

    def raw(self, value: bytes) -> None:
        self.merged.write(value)

    def records(self, value: Records) -> None:
        """Put record batches between the merged parts, uncopied."""
        if len(self.merged):
            self.parts.append(self.merged.getvalue())
            self.merged = BytesWriter()
        if isinstance(value, (bytes, memoryview)):
            self.parts.append(value)
        else:
            self.parts.extend(value)


def records_size_bytes(value: Records) -> int:
    """Return how many bytes record batches have together, however they are held."""
    if isinstance(value, (bytes, memoryview)):
        return part_size_bytes(value)
    return sum([part_size_bytes(part) for part in value])


def part_size_bytes(part: bytes | memoryview | Span) -> int:
    if isinstance(part, bytes):
        return len(part)
    if isinstance(part, memoryview):
        return part.nbytes
    return part.size_bytes
