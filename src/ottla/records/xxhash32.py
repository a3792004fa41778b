"""XXH32, the checksum inside LZ4 frames, with seed 0.

Frames that Kafka clients write need it for two header bytes only; block checksums are legal and rare. So it is written
for clarity, not speed.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_le
from mypy_extensions import i64

_PRIME_1: Final = 0x9E3779B1
_PRIME_2: Final = 0x85EBCA77
_PRIME_3: Final = 0xC2B2AE3D
_PRIME_4: Final = 0x27D4EB2F
_PRIME_5: Final = 0x165667B1
_MASK: Final = 0xFFFFFFFF


def _multiply(left: i64, right: i64) -> i64:
    """Multiply modulo 2^32 without leaving 63 bits, where both builds count alike."""
    return (((left >> 16) * right & 0xFFFF) << 16) + (left & 0xFFFF) * right & _MASK


def _rotate(value: i64, bits: i64) -> i64:
    return (value << bits | value >> (32 - bits)) & _MASK


def _lane(lane: i64, data: bytes, position: i64) -> i64:
    word = i64(read_i32_le(data, position))
    return _multiply(_rotate((lane + _multiply(word & _MASK, _PRIME_2)) & _MASK, 13), _PRIME_1)


def xxhash32(data: bytes) -> int:
    """Return the unsigned 32-bit hash of `data`."""
    end: i64 = len(data)
    position: i64 = 0
    if end >= 16:
        one: i64 = (_PRIME_1 + _PRIME_2) & _MASK
        two: i64 = _PRIME_2
        three: i64 = 0
        four: i64 = (-_PRIME_1) & _MASK
        while position + 16 <= end:
            one = _lane(one, data, position)
            two = _lane(two, data, position + 4)
            three = _lane(three, data, position + 8)
            four = _lane(four, data, position + 12)
            position += 16
        value: i64 = (_rotate(one, 1) + _rotate(two, 7) + _rotate(three, 12) + _rotate(four, 18)) & _MASK
    else:
        value = _PRIME_5
    value = (value + end) & _MASK
    while position + 4 <= end:
        word = i64(read_i32_le(data, position))
        value = _multiply(_rotate((value + _multiply(word & _MASK, _PRIME_3)) & _MASK, 17), _PRIME_4)
        position += 4
    while position < end:
        value = _multiply(_rotate((value + data[position] * _PRIME_5) & _MASK, 11), _PRIME_1)
        position += 1
    value = _multiply(value ^ (value >> 15), _PRIME_2)
    value = _multiply(value ^ (value >> 13), _PRIME_3)
    return int(value ^ (value >> 16))
