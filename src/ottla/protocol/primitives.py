"""The wire's plain types: a `Reader` over one message's bytes and a `Writer` that makes them.

Kafka's leniencies are kept exactly. Varints of up to 5 bytes are taken also when not minimal, and their bits above 32
are dropped. A negative length is null where the field may be null, and damage elsewhere. Non-zero is true. Bytes that
are not UTF-8 are replaced. Every claimed length or count is compared with the bytes that are left before anything is
made for it.

Reading too far raises `IndexError` here, which `codec` turns into `DecodeError` in one place: the common reads need no
check of their own. Which field has which type is decided by the declarations; `plans` and `flat` call what is here.
"""

from __future__ import annotations

from typing import Any, Final

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
UNLIMITED: Final = 1 << 62
MAX_TAG_COUNT: Final = 10_000
MAX_VARINT_BYTES: Final = 5
UUID_BYTES: Final = 16

WINDOW_BYTES: Final = 4096
"""How much of a large buffer is copied at a time where records, which are not read, are most of it."""
LOW_WINDOW_BYTES: Final = 512
WIDE_WINDOW_BYTES: Final = 256 * 1024
"""The same for a message that is read in steps and has no records: no step copies all of a large one."""
LOW_WIDE_WINDOW_BYTES: Final = 2 * (MAX_STRING_BYTES + 1)


class DecodeError(ValueError):
    """Bytes that are not the message they are said to be."""


class TooManyElements(DecodeError):
    """A message whose arrays have more elements together than the reader was told to take."""


class EncodeError(ValueError):
    """A message that has no form on the wire, for instance null in a field that cannot be null."""


class Reader:
    """A position in the bytes of one message.

    Numbers are read from `data`, a copy of the buffer (or the buffer itself where that is bytes). With a window only so
    many bytes are copied, and the next ones where fewer than `low_bytes` are left behind a records field, or at
    `keep_ahead`: a large Produce request is then read without copying its records. A window that ends too early raises
    `IndexError` like a buffer that does; `is_partial` tells them apart, and whoever decodes starts again without
    windows.

    `most_elements` is how many elements all arrays may have together, as each of them costs time and memory.
    """

    def __init__(
        self,
        buffer: bytes | bytearray | memoryview,
        position: int,
        *,
        window_bytes: i64 = 0,
        low_bytes: i64 = LOW_WINDOW_BYTES,
        most_elements: i64 = UNLIMITED,
    ) -> None:
        """With `window_bytes` 0 there is no window."""
        self.buffer = buffer
        self.window_bytes = window_bytes
        self.low_bytes = low_bytes
        self.room: i64 = most_elements
        self.origin: i64 = 0
        self.position: i64 = position
        self.end: i64 = len(buffer)
        self.is_partial = False
        if isinstance(buffer, bytes):
            self.data = buffer
        elif 0 < window_bytes < self.end - self.position:
            self.data = b""
            self.move_window()
        else:
            self.data = bytes(buffer)

    def move_window(self) -> None:
        """Copy what comes next. `position` and `end` count from `origin`, where the copy begins."""
        self.origin += self.position
        self.end -= self.position
        self.position = 0
        self.is_partial = self.end > self.window_bytes
        self.data = bytes(memoryview(self.buffer)[self.origin : self.origin + self.window_bytes])

    def keep_ahead(self) -> None:
        """Copy more, where there is more and little of it is left to be read in the window."""
        if self.is_partial and self.position + self.low_bytes > len(self.data):
            self.move_window()

    @property
    def absolute_position(self) -> int:
        return int(self.origin + self.position)

    def boolean(self) -> bool:
        value = self.data[self.position]
        self.position += 1
        return value != 0

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
        byte: i64 = self.data[self.position]
        self.position += 1
        value = byte & 0x7F
        shift: i64 = 7
        while byte >= 0x80:
            if shift >= 7 * MAX_VARINT_BYTES:
                raise DecodeError("a varint of more than 5 bytes")
            byte = self.data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        return value & 0xFFFFFFFF

    def varint_int32(self) -> i64:
        """Return the 32 bits of an unsigned varint as Kafka uses them: signed."""
        value = self.unsigned_varint()
        return value - 0x100000000 if value >= 0x80000000 else value

    def nullable_length(self, compact: bool) -> i64:
        """Return a claimed length or count; below zero for null. Compact ones are stored plus one."""
        if not compact:
            return i64(self.int32())
        value = self.unsigned_varint() - 1
        return value - 0x100000000 if value >= 0x80000000 else value

    def length(self, compact: bool) -> i64:
        """Return a claimed length or count. Raises `DecodeError` for null."""
        value = self.nullable_length(compact)
        if value < 0:
            raise DecodeError("null, or a negative length, in a field that cannot be null")
        return value

    def take(self, size_bytes: i64) -> bytes:
        """Return a copy of the next bytes. Raises `DecodeError` when there are not so many."""
        start = self.position
        if size_bytes < 0 or size_bytes > self.end - start:
            raise DecodeError(f"{size_bytes} bytes are claimed where {self.end - start} are left")
        self.position = start + size_bytes
        if self.is_partial and self.position > len(self.data):
            raise IndexError("the window ends")
        return self.data[start : self.position]

    def nullable_string(self, compact: bool) -> str | None:
        length = self.nullable_length(True) if compact else i64(self.int16())
        if length < 0:
            return None
        if length > MAX_STRING_BYTES:
            raise DecodeError(f"a string of {length} bytes")
        return self.take(length).decode("utf-8", "replace")

    def string(self, compact: bool) -> str:
        value = self.nullable_string(compact)
        if value is None:
            raise DecodeError("null, or a negative length, in a string that cannot be null")
        return value

    def nullable_octets(self, compact: bool) -> bytes | None:
        length = self.nullable_length(compact)
        return None if length < 0 else self.take(length)

    def octets(self, compact: bool) -> bytes:
        return self.take(self.length(compact))

    def nullable_records(self, compact: bool) -> memoryview | None:
        size_bytes = self.nullable_length(compact)
        return None if size_bytes < 0 else self.view(size_bytes)

    def records(self, compact: bool) -> memoryview:
        return self.view(self.length(compact))

    def view(self, size_bytes: i64) -> memoryview:
        """Return a view of the next bytes. Raises `DecodeError` when there are not so many."""
        if size_bytes > self.end - self.position:
            raise DecodeError(f"records of {size_bytes} bytes are claimed where {self.end - self.position} are left")
        start = self.origin + self.position
        self.position += size_bytes
        self.keep_ahead()
        buffer = self.buffer
        whole = buffer if isinstance(buffer, memoryview) else memoryview(buffer)
        return whole[start : start + size_bytes]

    def nullable_count(self, compact: bool) -> i64:
        """Return an array's count, below zero for null. Every element takes at least a byte, and so must be there.

        Raises `DecodeError`, and `TooManyElements` where there are more than `most_elements` of all arrays.
        """
        count = self.nullable_length(compact)
        if count > self.end - self.position or count > MAX_ARRAY_COUNT:
            raise DecodeError(f"{count} elements are claimed where {self.end - self.position} bytes are left")
        if count > self.room:
            raise TooManyElements(f"{count} more elements are too many")
        self.room -= max(count, 0)
        return count

    def count(self, compact: bool) -> i64:
        count = self.nullable_count(compact)
        if count < 0:
            raise DecodeError("null, or a negative count, in an array that cannot be null")
        return count

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
        rest = value & 0xFFFFFFFF
        while rest > 0x7F:
            self.merged.append(int(rest & 0x7F | 0x80))
            rest >>= 7
        self.merged.append(int(rest))

    def length(self, value: i64, compact: bool) -> None:
        """Write a length or a count; -1 is null."""
        if compact:
            self.unsigned_varint(value + 1)
        else:
            write_i32_be(self.merged, i32(value))

    def nullable_string(self, value: str | None, compact: bool) -> None:
        if value is not None:
            self.string(value, compact)
        elif compact:
            self.unsigned_varint(0)
        else:
            write_i16_be(self.merged, -1)

    def string(self, value: str | None, compact: bool) -> None:
        if value is None:
            raise EncodeError("null in a string that cannot be null")
        encoded = value.encode("utf-8")
        size_bytes: i64 = len(encoded)
        if size_bytes > MAX_STRING_BYTES:
            raise EncodeError(f"a string of {size_bytes} bytes")
        if compact:
            self.unsigned_varint(size_bytes + 1)
        else:
            write_i16_be(self.merged, i16(size_bytes))
        self.merged.write(encoded)

    def nullable_octets(self, value: bytes | memoryview | None, compact: bool) -> None:
        if value is None:
            self.length(-1, compact)
        else:
            self.octets(value, compact)

    def octets(self, value: bytes | memoryview | None, compact: bool) -> None:
        if value is None:
            raise EncodeError("null in bytes that cannot be null")
        octets = value if isinstance(value, bytes) else bytes(value)
        self.length(len(octets), compact)
        self.merged.write(octets)

    def nullable_records(self, value: Records | None, compact: bool) -> None:
        if value is None:
            self.length(-1, compact)
        else:
            self.records(value, compact)

    def records(self, value: Records | None, compact: bool) -> None:
        """Put record batches between the merged parts, uncopied."""
        if value is None:
            raise EncodeError("null in records that cannot be null")
        self.length(records_size_bytes(value), compact)
        self.parts.append(self.merged.getvalue())
        self.merged = BytesWriter()
        if isinstance(value, (bytes, memoryview)):
            self.parts.append(value)
        else:
            self.parts.extend(value)

    def nullable_count(self, value: list[Any] | None, compact: bool) -> None:
        self.length(-1 if value is None else len(value), compact)

    def count(self, value: list[Any] | None, compact: bool) -> None:
        if value is None:
            raise EncodeError("null in an array that cannot be null")
        self.length(len(value), compact)

    def tag(self, tag: int, content: bytes) -> None:
        """Write one tagged field, whose number of bytes stands before its content."""
        self.unsigned_varint(tag)
        self.unsigned_varint(len(content))
        self.merged.write(content)


def records_size_bytes(value: Records) -> int:
    """Return how many bytes record batches have together, however they are held."""
    if isinstance(value, (bytes, memoryview)):
        return part_size_bytes(value)
    size_bytes = 0
    for part in value:
        size_bytes += part_size_bytes(part)
    return size_bytes


def part_size_bytes(part: bytes | memoryview | Span) -> int:
    if isinstance(part, bytes):
        return len(part)
    if isinstance(part, memoryview):
        return part.nbytes
    return part.size_bytes
