"""Varints as Kafka writes them: zigzag, at most 5 bytes for 32 bits and 10 bytes for 64.

Readers are Kafka's: useless bytes are taken, bits above the type are dropped, a further byte is refused. They raise
`IndexError` where the data ends too early and `VarintError` where the number has too many bytes.

These are the innermost steps of the room: short enough for the C compiler to lay them into its loops, with both results
in registers; numbers of several bytes are read apart. Arithmetic never leaves 64 bits, so that the interpreted and the
compiled build agree.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

MAX_VARINT_BYTES: Final = 5
MAX_VARLONG_BYTES: Final = 10


class VarintError(ValueError):
    """A number with more bytes than its type can have."""


def read_unsigned_varint(data: bytes, position: i64) -> tuple[i64, i64]:
    """Return the 32 bits (0 to 2^32 - 1) at `position`, and the position after them."""
    byte: i64 = data[position]
    if byte < 0x80:
        return byte, position + 1
    return _read_long_varint(data, position)


def read_varint(data: bytes, position: i64) -> tuple[i64, i64]:
    """Return the zigzag-coded signed 32-bit number at `position`, and the position after it."""
    value: i64 = data[position]
    if value >= 0x80:
        second: i64 = data[position + 1]
        if second >= 0x80:
            value, position = _read_long_varint(data, position)
            return (value >> 1) ^ -(value & 1), position
        value = value & 0x7F | second << 7
        position += 1
    return (value >> 1) ^ -(value & 1), position + 1


def read_varlong(data: bytes, position: i64) -> tuple[i64, i64]:
    """Return the zigzag-coded signed 64-bit number at `position`, and the position after it."""
    value: i64 = data[position]
    if value >= 0x80:
        second: i64 = data[position + 1]
        if second >= 0x80:
            return _read_long_varlong(data, position)
        value = value & 0x7F | second << 7
        position += 1
    return (value >> 1) ^ -(value & 1), position + 1


def _read_long_varint(data: bytes, position: i64) -> tuple[i64, i64]:
    value: i64 = 0
    shift: i64 = 0
    while shift < 7 * MAX_VARINT_BYTES:
        byte: i64 = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, position
        shift += 7
    raise VarintError("a varint of more than 5 bytes")


def _read_long_varlong(data: bytes, position: i64) -> tuple[i64, i64]:
    value: i64 = 0
    shift: i64 = 0
    while shift < 63:
        byte: i64 = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    byte = data[position]
    if byte >= 0x80:
        raise VarintError("a varlong of more than 10 bytes")
    # Only one bit of the tenth byte fits; it is set below the sign that zigzag gives, to stay within 64 bits.
    return ((value >> 1) | ((byte & 1) << 62)) ^ -(value & 1), position + 1


def varint_size(value: i64) -> i64:
    """Number of bytes that a signed 32- or 64-bit number takes."""
    magnitude: i64 = value if value >= 0 else ~value  # zigzag needs one bit more than the magnitude
    size: i64 = 1
    magnitude >>= 6
    while magnitude > 0:
        size += 1
        magnitude >>= 7
    return size


def unsigned_varint_size(value: i64) -> i64:
    """Number of bytes that a number from 0 to 2^63 - 1 takes."""
    size: i64 = 1
    value >>= 7
    while value > 0:
        size += 1
        value >>= 7
    return size


def write_unsigned_varint(out: BytesWriter, value: i64) -> None:
    """Append a number from 0 to 2^63 - 1."""
    while value >= 0x80:
        out.append(int((value & 0x7F) | 0x80))
        value >>= 7
    out.append(int(value))


def write_varint(out: BytesWriter, value: i64) -> None:
    """Append a signed 32- or 64-bit number, zigzag-coded."""
    magnitude: i64 = value if value >= 0 else ~value
    sign: i64 = 0 if value >= 0 else 1
    # The low seven bits of the zigzag form are six bits of magnitude and the sign; the rest is magnitude alone.
    low: i64 = ((magnitude & 0x3F) << 1) | sign
    magnitude >>= 6
    if magnitude == 0:
        out.append(int(low))
        return
    out.append(int(low | 0x80))
    write_unsigned_varint(out, magnitude)
