"""Message sets of Kafka 0.7 and Jafka."""

from __future__ import annotations

import gzip
import struct
import zlib
from random import Random

import pytest

from ottla.errors import CorruptMessage, InvalidRecord, MessageTooLarge
from ottla.records.compression import MAX_INFLATED_BYTES
from ottla.records.jafka import MESSAGE_COST_BYTES, PIECE_BYTES, STEP_MESSAGES, Piece, SetWalk, build_set, entry_size

HELLO = bytes.fromhex("0000000b01003610a68668656c6c6f")
LIMIT = 1000


def message(payload: bytes, *, attributes: int = 0) -> bytes:
    return struct.pack(">ibBI", 6 + len(payload), 1, attributes, zlib.crc32(payload)) + payload


def check_produced(
    data: bytes | memoryview, max_payload_bytes: int, *, max_inflated_bytes: int = MAX_INFLATED_BYTES
) -> tuple[bytes, list[bytes]]:
    """Go through all of a set; returns its good part, and the payloads."""
    walk = SetWalk(data, max_payload_bytes, max_inflated_bytes=max_inflated_bytes)
    payloads: list[bytes] = []
    while not walk.is_over:
        payloads += walk.take()
    assert sum(piece.payload_count for piece in walk.pieces) == len(payloads)
    return bytes(data[: walk.end]), payloads


def packed(data: bytes) -> bytes:
    return message(gzip.compress(data), attributes=1)


def test_a_message_is_what_jafka_writes() -> None:
    assert build_set([b"hello"]) == HELLO
    assert build_set([]) == b""


def test_payloads_come_out_in_order_from_any_depth() -> None:
    data = HELLO + packed(message(b"a") + packed(message(b"") + message(b"b"))) + message(b"c", attributes=0x80)

    assert check_produced(data, LIMIT) == (data, [b"hello", b"a", b"", b"b", b"c"])


def test_a_last_entry_that_is_cut_is_left_out_wherever_it_is_cut() -> None:
    data = HELLO + HELLO
    for cut in range(len(HELLO), len(data)):
        assert check_produced(data[:cut], LIMIT) == (HELLO, [b"hello"]), cut


def test_a_set_of_which_nothing_is_whole_is_refused() -> None:
    for cut in range(1, len(HELLO)):
        with pytest.raises(CorruptMessage):
            check_produced(HELLO[:cut], LIMIT)
    assert check_produced(b"", LIMIT) == (b"", [])


@pytest.mark.parametrize("size", [-1, 0, 5])
def test_sizes_that_no_message_has_are_refused(size: int) -> None:
    for front in (b"", HELLO):
        with pytest.raises(CorruptMessage):
            check_produced(front + struct.pack(">i", size) + bytes(20), LIMIT)


def test_the_limit_is_for_outer_payloads() -> None:
    large = bytes(LIMIT + 1)
    with pytest.raises(MessageTooLarge):
        check_produced(message(large), LIMIT)
    assert check_produced(packed(message(large)), LIMIT)[1] == [large]


def test_a_bomb_costs_bounded_memory() -> None:
    bombs = [packed(message(bytes(10_000))), packed(message(bytes(4000)) * 3), packed(packed(message(bytes(9_990))))]
    bombs.append(packed(message(bytes(6000))) * 2)
    for bomb in bombs:
        with pytest.raises(InvalidRecord):
            check_produced(bomb, LIMIT, max_inflated_bytes=10_000)


def test_many_messages_that_deflate_to_nothing_are_a_bomb_too() -> None:
    few, many = packed(message(b"") * 100), packed(message(b"") * 10_000)
    room = 101 * (10 + MESSAGE_COST_BYTES)
    assert len(many) < 300
    assert len(check_produced(few, LIMIT, max_inflated_bytes=room)[1]) == 100
    assert len(check_produced(message(b"") * 10_000, LIMIT, max_inflated_bytes=room)[1]) == 10_000
    for bomb in (many, few * 2):
        with pytest.raises(InvalidRecord):
            check_produced(bomb, LIMIT, max_inflated_bytes=room)


def test_depth_has_an_end() -> None:
    data = message(b"x")
    for _ in range(20):
        data = packed(data)
    with pytest.raises(CorruptMessage, match="depth"):
        check_produced(data, LIMIT)


def test_a_message_says_how_large_it_is() -> None:
    assert entry_size(HELLO[:4]) == len(HELLO)
    with pytest.raises(CorruptMessage):
        entry_size(bytes(4))


def test_a_set_is_gone_through_in_steps_whatever_is_within_what() -> None:
    inner = packed(message(b"a") * 1000) + message(b"b") * 1000
    walk = SetWalk(memoryview(packed(inner) + message(b"c") * 1000), 1 << 20)
    steps: list[list[bytes]] = []
    while not walk.is_over:
        steps.append(walk.take())
    assert b"".join(payload for step in steps for payload in step) == b"a" * 1000 + b"b" * 1000 + b"c" * 1000
    assert max(len(step) for step in steps) <= STEP_MESSAGES
    assert all(isinstance(payload, bytes) for step in steps for payload in step)


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_large_set_has_pieces_that_end_with_a_message(is_packed: bool) -> None:
    noise = Random(1).randbytes(1000)
    one = packed(message(noise) + message(noise[::-1])) if is_packed else message(noise)
    data = one * (2 * PIECE_BYTES // len(one) + 20)
    walk = SetWalk(data + one[:-1], 1 << 20)
    while not walk.is_over:
        walk.take()
    ends = [piece.end for piece in walk.pieces]
    assert ends[-1] == len(data) and len(ends) == 3
    for piece, start in zip(walk.pieces, [0, *ends[:-1]], strict=True):
        assert piece == Piece(piece.end, len(check_produced(data[start : piece.end], 1 << 20)[1]))
        assert piece.end - start < PIECE_BYTES + len(one)
