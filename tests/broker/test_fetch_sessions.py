"""Incremental fetch sessions (KIP-227) keep what was said, and tell only news."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ottla.broker.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    LAST_EPOCH,
    NO_SESSION,
    FetchContext,
    FetchEntry,
    FetchSessions,
    PartitionKey,
    next_epoch,
)
from ottla.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from ottla.model import ZERO_TOPIC_ID
from ottla.testing.clock import ManualClock

EVICTION_SECONDS = 120.0


def sessions(clock: ManualClock | None = None, *, slots: int = 10) -> FetchSessions:
    ids = iter(range(100, 1000))
    return FetchSessions(clock or ManualClock(), lambda: next(ids), slots=slots, eviction_seconds=EVICTION_SECONDS)


def asked(*partitions: int, offset: int = 0) -> dict[PartitionKey, FetchEntry]:
    return {("t", number): FetchEntry("t", ZERO_TOPIC_ID, number, offset, 1000) for number in partitions}


def told(
    context: FetchContext, *, high_watermark: int = 5, records: Sequence[int] = (), errors: Sequence[int] = ()
) -> list[int]:
    """Answer every partition and return which ones the answer names."""
    named = []
    for key, entry in list(context.entries.items()):
        if context.should_answer(
            key,
            entry,
            high_watermark=high_watermark,
            log_start_offset=0,
            size_bytes=10 if entry.partition in records else 0,
            is_error=entry.partition in errors,
            is_diverging=False,
        ):
            named.append(entry.partition)
    return named


def test_a_full_request_opens_a_session_and_is_answered_in_full() -> None:
    context = sessions().resume(NO_SESSION, INITIAL_EPOCH, asked(0, 1))

    assert context.session_id == 100
    assert told(context) == [0, 1]


def test_an_incremental_request_names_only_partitions_with_news() -> None:
    cache = sessions()
    told(cache.resume(NO_SESSION, INITIAL_EPOCH, asked(0, 1)))

    assert told(cache.resume(100, 1, {})) == []
    assert told(cache.resume(100, 2, {}), records=[1]) == [1]
    assert told(cache.resume(100, 3, {}), high_watermark=6) == [0, 1]


def test_an_error_is_told_every_time_and_so_is_its_end() -> None:
    cache = sessions()
    told(cache.resume(NO_SESSION, INITIAL_EPOCH, asked(0)))

    assert told(cache.resume(100, 1, {}), errors=[0]) == [0]
    assert told(cache.resume(100, 2, {}), errors=[0]) == [0]
    assert told(cache.resume(100, 3, {})) == [0]
    assert told(cache.resume(100, 4, {})) == []


def test_a_partition_with_records_is_read_last_next_time() -> None:
    cache = sessions()
    told(cache.resume(NO_SESSION, INITIAL_EPOCH, asked(0, 1, 2)))
    told(cache.resume(100, 1, {}), records=[0])

    assert [entry.partition for entry in cache.resume(100, 2, {}).entries.values()] == [1, 2, 0]


def test_an_incremental_request_adds_moves_and_forgets() -> None:
    cache = sessions()
    told(cache.resume(NO_SESSION, INITIAL_EPOCH, asked(0, 1)))

    context = cache.resume(100, 1, asked(1, 2, offset=7), [("t", 0)])

    assert {entry.partition: entry.fetch_offset for entry in context.entries.values()} == {1: 7, 2: 7}


def test_a_wrong_epoch_is_refused_and_does_not_advance_the_session() -> None:
    cache = sessions()
    cache.resume(NO_SESSION, INITIAL_EPOCH, asked(0))

    with pytest.raises(InvalidFetchSessionEpoch):
        cache.resume(100, 2, {})

    assert cache.resume(100, 1, {}).session_id == 100


def test_an_unknown_session_is_not_found() -> None:
    with pytest.raises(FetchSessionIdNotFound):
        sessions().resume(7, 1, {})


def test_the_final_epoch_closes_a_session() -> None:
    cache = sessions()
    cache.resume(NO_SESSION, INITIAL_EPOCH, asked(0))

    assert cache.resume(100, FINAL_EPOCH, {}).session_id == NO_SESSION
    with pytest.raises(FetchSessionIdNotFound):
        cache.resume(100, 1, {})


def test_a_session_that_forgot_everything_is_closed() -> None:
    cache = sessions()
    cache.resume(NO_SESSION, INITIAL_EPOCH, asked(0))

    assert cache.resume(100, 1, {}, [("t", 0)]).session_id == NO_SESSION
    assert len(cache) == 0


def test_a_session_does_not_change_between_names_and_ids() -> None:
    cache = sessions()
    cache.resume(NO_SESSION, INITIAL_EPOCH, asked(0), uses_topic_ids=False)

    with pytest.raises(FetchSessionTopicIdError):
        cache.resume(100, 1, {}, uses_topic_ids=True)


def test_a_request_for_nothing_opens_no_session() -> None:
    assert sessions().resume(NO_SESSION, INITIAL_EPOCH, {}).session_id == NO_SESSION


def test_a_full_cache_answers_without_a_session() -> None:
    cache = sessions(slots=1)
    cache.resume(NO_SESSION, INITIAL_EPOCH, asked(0))

    context = cache.resume(NO_SESSION, INITIAL_EPOCH, asked(0, 1, 2))

    assert context.session_id == NO_SESSION
    assert told(context) == [0, 1, 2]


def test_a_session_unused_for_the_eviction_time_gives_up_its_slot() -> None:
    clock = ManualClock()
    cache = sessions(clock, slots=1)
    cache.resume(NO_SESSION, INITIAL_EPOCH, asked(0, 1, 2))
    clock.advance(EVICTION_SECONDS + 1)

    assert cache.resume(NO_SESSION, INITIAL_EPOCH, asked(0)).session_id == 101


def test_a_larger_session_takes_the_slot_of_a_smaller_one_that_had_its_time() -> None:
    clock = ManualClock()
    cache = sessions(clock, slots=1)
    told(cache.resume(NO_SESSION, INITIAL_EPOCH, asked(0)))
    clock.advance(EVICTION_SECONDS + 1)
    cache.resume(100, 1, {})  # in use, so not stale

    assert cache.resume(NO_SESSION, INITIAL_EPOCH, asked(0)).session_id == NO_SESSION
    assert cache.resume(NO_SESSION, INITIAL_EPOCH, asked(0, 1)).session_id == 101


def test_without_slots_there_are_no_sessions() -> None:
    assert sessions(slots=0).resume(NO_SESSION, INITIAL_EPOCH, asked(0)).session_id == NO_SESSION


def test_the_epoch_after_the_last_is_1() -> None:
    """0 would ask for a new session."""
    assert next_epoch(LAST_EPOCH) == 1
