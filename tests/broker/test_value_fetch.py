"""Fetches of values: all that is there in whatever files, others in between, and nothing looked at in vain."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from ottla.broker.metadata.create_topics import NewTopic
from ottla.broker.metadata.delete_topics import TopicReference
from ottla.broker.value_fetch import ValueFetch
from ottla.broker.visible import STRETCH_BYTES
from ottla.errors import CorruptMessage, KafkaError, UnknownTopicOrPartition
from ottla.model import TopicPartition
from ottla.records.builder import BatchBuilder
from ottla.testing.clock import ManualClock
from ottla.testing.cluster import RunningBroker, running_broker

TP = TopicPartition("t", 0)
MIB = 1 << 20
ALL = 1 << 40


class Asked:
    """A fetch, what it was answered, and how many values it opened each time that it did."""

    def __init__(
        self,
        running: RunningBroker,
        start_offset: int = 0,
        *,
        max_bytes: int = ALL,
        min_count: int = 0,
        max_wait_ms: int = 0,
    ) -> None:
        self.answers: list[tuple[int, bytes | KafkaError]] = []
        self.opened: list[int] = []
        self.fetch = ValueFetch(
            running.broker,
            TP,
            start_offset,
            max_bytes=max_bytes,
            min_count=min_count,
            max_wait_ms=max_wait_ms,
            encode=self._encode,
            on_done=lambda count, found: self.answers.append((count, found)),
        )

    def _encode(self, values: Sequence[bytes]) -> bytes:
        self.opened.append(len(values))
        return b"".join(values)


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Callable[[RunningBroker], Awaitable[None]]], None]:
    """Run a test with a broker that has a topic of small files, and whose time stands still."""

    def runner(test: Callable[[RunningBroker], Awaitable[None]]) -> None:
        async def main() -> None:
            async with running_broker({"log.dirs": str(tmp_path)}, clock=ManualClock()) as running:
                running.broker.metadata.create_topics([NewTopic("t", 1, configs=[("segment.bytes", str(MIB))])])
                await test(running)

        asyncio.run(main())

    return runner


def append(running: RunningBroker, *values: bytes) -> None:
    builder = BatchBuilder()
    for value in values:
        builder.append(running.broker.clock.wall_ms(), None, value)
    running.broker.append(running.broker.partition("t", 0), memoryview(bytearray(builder.build())))


def take_turns(running: RunningBroker, asked: Asked) -> int:
    """Let time's callbacks run until there is an answer; returns how often that took."""
    turns = 0
    while not asked.answers:
        running.advance(0)
        turns += 1
        assert turns < 100
    return turns


def test_all_there_is_comes_from_as_many_files_as_there_are_a_turn_for_each_stretch(run: Callable[..., None]) -> None:
    async def test(running: RunningBroker) -> None:
        for number in range(300):
            append(running, *[b"%010d" % number * 100] * 10)
        asked = Asked(running, 10)
        assert take_turns(running, asked) >= 3 * MIB // STRETCH_BYTES - 1
        assert asked.answers == [(2990, b"".join(b"%010d" % number * 1000 for number in range(1, 300)))]
        assert max(asked.opened) <= STRETCH_BYTES / 1000

    run(test)


def test_an_answer_has_as_many_bytes_as_are_wanted_and_at_least_one_value(run: Callable[..., None]) -> None:
    async def test(running: RunningBroker) -> None:
        append(running, b"one", b"two")
        append(running, b"three")
        wanted = {0: (1, b"one"), 13: (1, b"one"), 14: (2, b"onetwo"), 22: (2, b"onetwo"), 23: (3, b"onetwothree")}
        for max_bytes, answer in wanted.items():
            assert Asked(running, max_bytes=max_bytes).answers == [answer], max_bytes
        assert Asked(running, min_count=9, max_wait_ms=1000, max_bytes=14).answers == [(2, b"onetwo")]

    run(test)


def test_values_that_came_before_and_during_a_wait_are_opened_twice_at_most(run: Callable[..., None]) -> None:
    async def test(running: RunningBroker) -> None:
        append(running, b"a", b"b")
        asked = Asked(running, 1, min_count=4, max_wait_ms=1000)
        for value in (b"c", b"d"):
            append(running, value)
            running.advance(0)
        assert (asked.answers, asked.opened) == ([], [1, 1, 1])
        append(running, b"e", b"f")
        running.advance(0)
        assert asked.answers == [(5, b"bcdef")]
        assert asked.opened == [1, 1, 1, 2, 5]

    run(test)


def test_what_came_when_the_time_is_over_is_the_answer(run: Callable[..., None]) -> None:
    async def test(running: RunningBroker) -> None:
        append(running, b"a")
        asked = Asked(running, min_count=4, max_wait_ms=1000)
        append(running, b"b")
        running.advance(0.9)
        assert not asked.answers
        running.advance(0.2)
        assert asked.answers == [(2, b"ab")]

    run(test)


def test_a_start_beyond_the_end_is_answered_at_once_and_one_below_the_start_with_the_first(
    run: Callable[..., None],
) -> None:
    async def test(running: RunningBroker) -> None:
        append(running, b"a", b"b")
        assert Asked(running, 3, min_count=1, max_wait_ms=1000).answers == [(0, b"")]
        assert Asked(running, (1 << 64) - 1, min_count=1, max_wait_ms=1000).answers == [(0, b"")]
        running.broker.delete_records("t", 0, 1)
        assert Asked(running).answers == [(1, b"b")]

    run(test)


def test_whoever_hurries_is_answered_and_whoever_is_gone_is_not(run: Callable[..., None]) -> None:
    async def test(running: RunningBroker) -> None:
        append(running, b"a")
        hurried, gone = (Asked(running, min_count=2, max_wait_ms=1000) for _ in range(2))
        hurried.fetch.hurry()
        gone.fetch.cancel()
        running.advance(2)
        assert (hurried.answers, gone.answers) == ([(1, b"a")], [])
        for _ in range(1000):
            append(running, bytes(1000))
        leaving = Asked(running)
        leaving.fetch.cancel()
        running.advance(0)
        assert (leaving.answers, len(leaving.opened)) == ([], 1)

    run(test)


def test_a_topic_that_is_not_there_or_goes_meanwhile_is_told(run: Callable[..., None]) -> None:
    async def test(running: RunningBroker) -> None:
        asked = Asked(running, min_count=1, max_wait_ms=1000)
        running.broker.metadata.delete_topics([TopicReference(name="t")])
        running.advance(2)
        for told in (asked, Asked(running)):
            ((count, error),) = told.answers
            assert count == 0 and isinstance(error, UnknownTopicOrPartition)

    run(test)


def test_damage_is_told_to_whoever_begins_with_it(run: Callable[..., None], tmp_path: Path) -> None:
    async def test(running: RunningBroker) -> None:
        append(running, b"a")
        size = (tmp_path / "t-0" / f"{0:020d}.log").stat().st_size
        append(running, b"b")
        with (tmp_path / "t-0" / f"{0:020d}.log").open("r+b") as file:
            file.seek(size + 30)
            file.write(b"\xff")
        assert Asked(running, min_count=2, max_wait_ms=1000).answers == [(1, b"a")]
        ((_, error),) = Asked(running, 1).answers
        assert isinstance(error, CorruptMessage)

    run(test)
