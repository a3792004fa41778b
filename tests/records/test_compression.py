"""The codecs both ways, what damage does, and the bound on what comes out. Kafka's own streams are in the verdicts."""

from __future__ import annotations

import gzip
import zlib

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.errors import InvalidRecord, UnsupportedCompressionType
from ottla.records.compression import Codec, deflate, inflate
from ottla.records.lz4_frame import inflate_lz4
from ottla.records.snappy_stream import inflate_snappy
from ottla.records.xxhash32 import xxhash32
from ottla.records.zstd_frame import inflated_bound

PACKING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
LEVELS = [
    *[(Codec.GZIP, level) for level in (-1, 1, 9)],
    *[(Codec.LZ4, level) for level in (1, 9, 17)],
    *[(Codec.ZSTD, level) for level in (-131072, 1, 3, 22)],
]
TEXT = b"the quick brown fox " * 20_000  # 400,000 bytes: several blocks of every codec

DATA = st.binary(max_size=1_000) | st.binary(min_size=1, max_size=20).map(lambda piece: piece * 10_000)


@given(data=DATA, codec=st.sampled_from(list(Codec)))
@settings(max_examples=100, deadline=None)
def test_what_is_packed_comes_out_again(data: bytes, codec: Codec) -> None:
    assert inflate(codec, memoryview(deflate(codec, data))) == data


@pytest.mark.parametrize(("codec", "level"), LEVELS)
def test_levels_are_kafkas(codec: Codec, level: int) -> None:
    assert inflate(codec, memoryview(deflate(codec, TEXT, level))) == TEXT


@pytest.mark.parametrize("codec", PACKING)
def test_nothing_comes_out_above_the_bound(codec: Codec) -> None:
    packed = memoryview(deflate(codec, TEXT))

    assert len(inflate(codec, packed, len(TEXT))) == len(TEXT)
    with pytest.raises(InvalidRecord):
        inflate(codec, packed, len(TEXT) - 1)


@given(cut=st.integers(1, 200), flip=st.integers(0, 199), codec=st.sampled_from(PACKING))
@settings(max_examples=200, deadline=None)
def test_damage_is_invalid_and_nothing_else(cut: int, flip: int, codec: Codec) -> None:
    packed = bytearray(deflate(codec, bytes(range(256)) * 2))
    packed[flip % len(packed)] ^= 0xFF
    for damaged in (packed, packed[:-cut]):
        try:
            inflate(codec, memoryview(damaged), 1 << 20)
        except InvalidRecord:
            continue


@pytest.mark.parametrize("number", [5, 6, 7])
def test_numbers_without_a_codec_are_unsupported(number: int) -> None:
    with pytest.raises(UnsupportedCompressionType):
        Codec.of(number)


def test_codecs_have_the_names_of_settings() -> None:
    names = ("none", "uncompressed", "gzip", "snappy", "lz4", "zstd")
    assert [Codec.named(name) for name in names] == [0, 0, 1, 2, 3, 4]


def test_gzip_members_are_read_one_after_the_other() -> None:
    packed = gzip.compress(b"one") + zlib.compress(b"two", wbits=31)

    assert inflate(Codec.GZIP, memoryview(packed)) == b"onetwo"


def test_many_tiny_gzip_members_cost_no_more_than_their_length() -> None:
    """Read as one stream after the other, a megabyte of them would be copied fifty thousand times."""
    assert inflate(Codec.GZIP, memoryview(gzip.compress(b"x") * 50_000)) == b"x" * 50_000


@pytest.mark.parametrize("size", [1, 100_000, 4 * 1024 * 1024])
def test_an_lz4_block_inflates_to_up_to_what_its_frame_declares(size: int) -> None:
    block = bytes(cramjam.lz4.compress_block(bytes(size), store_size=False))
    descriptor = b"\x60\x70"  # independent blocks of up to 4 MiB
    header = b"\x04\x22\x4d\x18" + descriptor + bytes([xxhash32(descriptor) >> 8 & 0xFF])
    frame = header + len(block).to_bytes(4, "little") + block + bytes(4)

    assert inflate_lz4(memoryview(frame), size) == bytes(size)


def test_lz4_frames_of_the_reference_library_are_read() -> None:
    """Linked blocks, which Kafka refuses, are refused; independent ones are read, with all checksums."""
    compressor = cramjam.lz4.Compressor(content_checksum=True, block_linked=False)
    compressor.compress(TEXT)
    assert inflate_lz4(memoryview(bytes(compressor.finish())), 1 << 20) == TEXT

    linked = cramjam.lz4.Compressor(block_linked=True)
    linked.compress(TEXT)
    with pytest.raises(InvalidRecord):
        inflate_lz4(memoryview(bytes(linked.finish())), 1 << 20)


def test_our_lz4_frames_are_read_by_the_reference_library() -> None:
    assert bytes(cramjam.lz4.decompress(deflate(Codec.LZ4, TEXT))) == TEXT


def test_snappy_without_framing_is_read() -> None:
    assert inflate_snappy(memoryview(bytes(cramjam.snappy.compress_raw(TEXT))), 1 << 20) == TEXT


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"Nobody inspects the spammish repetition", 0xE2293B2F),
    ],
)
def test_xxhash32_has_the_published_values(data: bytes, expected: int) -> None:
    assert xxhash32(data) == expected


@given(st.binary(max_size=300), st.integers(1, 60), st.sampled_from([-5, 3, 19]))
@settings(max_examples=100, deadline=None)
def test_no_zstd_stream_exceeds_its_counted_bound(piece: bytes, times: int, level: int) -> None:
    packed = deflate(Codec.ZSTD, piece * times, level) * 2

    assert inflated_bound(packed, 1 << 40) >= 2 * len(piece) * times
