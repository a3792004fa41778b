"""Stored sets of Jafka's messages, walked: counted, and made into a batch."""

from __future__ import annotations

import pytest

from ottla.errors import KafkaError
from ottla.records.builder import BatchBuilder
from ottla.records.jafka_reading import Walked, count_records, fill_batch
from ottla.records.reading import decode
from tests.records.test_jafka import HELLO, message, packed

INNER = packed(message(b"a") + message(b"") + message(b"c"))
DATA = HELLO + INNER + message(b"last", attributes=0x80)
ENDS = [len(HELLO), len(HELLO) + len(INNER), len(DATA)]
VALUES = [b"hello", b"a", b"", b"c", b"last"]
LARGE = 1 << 20


def fill(data: bytes, skipped: int, max_bytes: int = LARGE, max_count: int = LARGE) -> tuple[list[bytes], Walked]:
    """Return the values that a batch got, and how far the walk came."""
    batch = BatchBuilder(base_offset=skipped)
    walked = fill_batch(batch, data, skipped, max_bytes, max_count, at_least_one=True)
    if not batch.count:
        return [], walked
    return [record.value or b"" for record in decode(batch.build(), 0, LARGE).records], walked


def test_records_are_counted_as_far_as_messages_are_whole() -> None:
    assert count_records(b"") == Walked(0, 0, False)
    counts = [1, 4, 5]
    for cut in range(len(DATA) + 1):
        whole = sum(end <= cut for end in ENDS)
        expected = Walked(ENDS[whole - 1], counts[whole - 1], False) if whole else Walked(0, 0, False)
        assert count_records(DATA[:cut]) == expected, cut


def test_counting_stops_before_the_message_that_would_be_too_much() -> None:
    assert count_records(DATA, 0) == Walked(0, 0, True)
    for wanted in (1, 2, 3):
        assert count_records(DATA, wanted) == Walked(ENDS[0], 1, True)
    assert count_records(DATA, 4) == Walked(ENDS[1], 4, True)
    assert count_records(DATA, 5) == Walked(ENDS[2], 5, False)


def test_a_batch_gets_the_values_behind_those_that_are_skipped() -> None:
    for skipped in range(6):
        assert fill(DATA, skipped) == (VALUES[skipped:], Walked(len(DATA), 5, False))


def test_a_batch_that_is_full_ends_the_walk_before_the_message_of_its_last_record() -> None:
    assert fill(DATA, 0, max_count=1) == (VALUES[:1], Walked(0, 0, True))
    assert fill(DATA, 0, max_count=3) == (VALUES[:3], Walked(ENDS[0], 1, True))
    assert fill(DATA, 2, max_count=2) == (VALUES[2:4], Walked(ENDS[0], 1, True))
    assert fill(DATA, 1, max_count=4) == (VALUES[1:5], Walked(ENDS[1], 4, True))
    assert fill(DATA, 0, max_bytes=61 + 12 + 8) == (VALUES[:2], Walked(ENDS[0], 1, True))
    assert fill(DATA, 0, max_bytes=0) == (VALUES[:1], Walked(ENDS[0], 1, True))


def test_a_batch_may_stay_empty_where_that_is_allowed() -> None:
    batch = BatchBuilder()
    assert fill_batch(batch, DATA, 1, 0, 10, at_least_one=False) == Walked(ENDS[0], 1, True)
    assert batch.count == 0


@pytest.mark.parametrize(
    "damaged",
    [
        bytes(20),
        b"\xff" * 20,
        message(b"x")[:-1] + b"y",
        message(b"x", attributes=2),
        message(b"no gzip", attributes=1),
        packed(message(b"x")[:-1]),
        b"\x00\x00\x00\x07\x00" + message(b"x")[5:],
    ],
    ids=["zeros", "ones", "checksum", "codec", "no gzip", "cut in gzip", "magic"],  # gzip has the time in it
)
def test_damage_ends_a_walk_and_is_told_to_one_that_begins_with_it(damaged: bytes) -> None:
    assert count_records(HELLO + damaged) == Walked(len(HELLO), 1, False)
    assert fill(HELLO + damaged, 0) == ([b"hello"], Walked(len(HELLO), 1, False))
    for walk in (count_records, lambda data: fill(data, 0)):
        with pytest.raises(KafkaError):
            walk(damaged)
