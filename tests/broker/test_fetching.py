"""The fetch rule: limits, the first batch, and who waits for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ottla.broker.fetch_sessions import FetchEntry
from ottla.broker.fetching import Fetching, FetchPlan
from ottla.broker.metadata.create_topics import NewTopic
from ottla.broker.metadata.delete_topics import TopicReference
from ottla.broker.partition import Partition, PartitionRead
from ottla.broker.purgatory import Purgatory, Waiting
from ottla.errors import (
    InconsistentTopicId,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from ottla.model import IsolationLevel, TopicId, TopicPartition
from ottla.testing.cluster import RunningBroker
from tests.broker.harness import TOPIC, append, batch, broker_with_topic, entry
from tests.turns import finish

Reads = list[PartitionRead]


def run(test: Callable[[RunningBroker], Awaitable[None]], *, partitions: int = 1) -> None:
    async def main() -> None:
        async with broker_with_topic(partitions=partitions) as running:
            await test(running)

    asyncio.run(main())


def plan(*entries: FetchEntry, max_wait_ms: int = 500, min_bytes: int = 1, max_bytes: int = 1 << 20) -> FetchPlan:
    return FetchPlan(list(entries), max_wait_ms, min_bytes, max_bytes)


def now(running: RunningBroker, wanted: FetchPlan) -> Reads:
    """Fetch what must be answered at once."""
    result = running.broker.fetch(wanted, _never)
    assert isinstance(result, list)
    return result


def later(running: RunningBroker, wanted: FetchPlan) -> tuple[list[Reads], Waiting[TopicPartition]]:
    """Fetch what must wait; the list gets the answer."""
    answers: list[Reads] = []
    result = running.broker.fetch(wanted, answers.append)
    assert isinstance(result, Waiting)
    return answers, result


def _never(reads: Reads) -> None:
    raise AssertionError("answered twice")


def sizes(reads: Reads) -> list[int]:
    for read in reads:
        read.release()
    return [read.size_bytes for read in reads]


SIZE = len(batch(b"one"))


def test_what_is_there_is_answered_at_once() -> None:
    async def test(running: RunningBroker) -> None:
        append(running, b"one")

        (read,) = now(running, plan(entry(0)))

        assert read.size_bytes == SIZE
        assert read.offsets.high_watermark == 1
        read.release()

    run(test)


def test_the_first_batch_is_returned_whole_even_beyond_every_limit() -> None:
    async def test(running: RunningBroker) -> None:
        append(running, b"one")

        assert sizes(now(running, plan(entry(0, max_bytes=10), max_bytes=0, min_bytes=0))) == [SIZE]

    run(test)


def test_only_the_first_partition_that_has_a_batch_may_exceed_the_limit() -> None:
    async def test(running: RunningBroker) -> None:
        append(running, b"one", partition=1)
        append(running, b"two", partition=2)
        entries = [entry(0, partition=number) for number in range(3)]

        assert sizes(now(running, plan(*entries, max_bytes=1))) == [0, SIZE, 0]

    run(test, partitions=3)


def test_a_plan_is_cut_where_its_bytes_are_spent() -> None:
    async def test(running: RunningBroker) -> None:
        append(running, b"one", partition=0)
        append(running, b"two", partition=1)
        entries = [entry(0, partition=number) for number in range(2)]

        assert sizes(now(running, plan(*entries, max_bytes=SIZE))) == [SIZE, 0]
        assert sizes(now(running, plan(*entries, max_bytes=2 * SIZE))) == [SIZE, SIZE]

    run(test, partitions=2)


def test_bytes_count_that_are_there_though_the_plan_has_no_room_for_them() -> None:
    async def test(running: RunningBroker) -> None:
        append(running, b"one", partition=0)
        append(running, b"two", partition=1)
        entries = [entry(0, partition=number) for number in range(2)]

        wanted = plan(*entries, min_bytes=2 * SIZE - 1, max_bytes=2 * SIZE - 1)
        assert sizes(now(running, wanted)) == [SIZE, 0]

    run(test, partitions=2)


def test_of_a_batch_that_the_plan_has_no_room_for_no_aborted_transactions_are_told() -> None:
    async def test(running: RunningBroker) -> None:
        for number in range(2):
            append(running, b"one", partition=number)
        entries = [entry(0, partition=0), entry(0, partition=1, max_bytes=SIZE - 1), entry(1, partition=0)]
        wanted = FetchPlan(entries, 500, 1, 1 << 20, IsolationLevel.READ_COMMITTED)

        reads = now(running, wanted)

        assert [read.aborted_transactions for read in reads] == [(), None, ()]
        assert sizes(reads) == [SIZE, 0, 0]

    run(test, partitions=2)


def test_partitions_that_are_unknown_end_no_wait_for_others() -> None:
    async def test(running: RunningBroker) -> None:
        (read,) = now(running, plan(entry(0, partition=7)))
        assert isinstance(read.error, UnknownTopicOrPartition)

        answers, _ = later(running, plan(entry(0, partition=7), entry(0)))
        append(running, b"one")
        ((unknown, read),) = answers
        assert isinstance(unknown.error, UnknownTopicOrPartition)
        assert sizes([read]) == [SIZE]

        answers, _ = later(running, plan(entry(0, partition=7), entry(1)))
        running.advance(1.0)
        assert len(answers) == 1

    run(test)


def test_a_topic_that_has_another_id_ends_the_wait_for_others() -> None:
    async def test(running: RunningBroker) -> None:
        another = FetchEntry(TOPIC, TopicId(bytes(15) + b"\1"), 0, 0, 1 << 20)
        reads = now(running, plan(another, entry(0)))
        assert isinstance(reads[0].error, InconsistentTopicId)

    run(test)


def test_who_reads_a_segment_that_is_over_waits_for_nothing() -> None:
    """What is missing stands in the next one, which the next read brings."""

    async def test(running: RunningBroker) -> None:
        configs = (("internal.segment.bytes", str(2 * SIZE)),)
        running.broker.metadata.create_topics([NewTopic("rolling", 1, 1, configs=configs)])
        partition = running.broker.partition("rolling", 0)
        for _ in range(3):
            running.broker.append(partition, batch(b"one"))

        assert sizes(now(running, plan(entry(0, topic="rolling"), min_bytes=3 * SIZE))) == [2 * SIZE]
        assert sizes(now(running, plan(entry(1, topic="rolling"), min_bytes=3 * SIZE))) == [SIZE]
        answers, _ = later(running, plan(entry(2, topic="rolling"), min_bytes=3 * SIZE))
        running.broker.append(partition, batch(b"one"))
        assert answers == []
        running.broker.append(partition, batch(b"one"))
        assert [sizes(reads) for reads in answers] == [[2 * SIZE]]

    run(test)


def test_what_was_read_to_tell_that_a_wait_is_over_is_the_answer() -> None:
    async def test(running: RunningBroker) -> None:
        asked: list[FetchEntry] = []

        def find(wanted: FetchEntry) -> Partition:
            asked.append(wanted)
            return running.broker.partition(TOPIC, wanted.partition)

        purgatory: Purgatory[TopicPartition] = Purgatory(running.broker.timers)
        fetching = Fetching(running.broker.node_id, find, purgatory, running.broker.clock)
        answers: list[Reads] = []
        assert isinstance(fetching.fetch(plan(entry(0), min_bytes=2 * SIZE), answers.append), Waiting)
        for number in (1, 2):
            append(running, b"one")
            purgatory.wake(TopicPartition(TOPIC, 0))
            assert len(asked) == 1 + number

        assert [sizes(reads) for reads in answers] == [[2 * SIZE]]

    run(test)


def test_a_fetch_at_the_end_waits_until_something_is_appended() -> None:
    async def test(running: RunningBroker) -> None:
        answers, _ = later(running, plan(entry(0)))
        assert answers == []

        append(running, b"one")

        assert [sizes(reads) for reads in answers] == [[SIZE]]
        running.advance(10.0)
        assert len(answers) == 1

    run(test)


def test_a_fetch_waits_no_longer_than_it_said() -> None:
    async def test(running: RunningBroker) -> None:
        answers, _ = later(running, plan(entry(0), max_wait_ms=500))
        running.advance(0.499)
        assert answers == []

        running.advance(0.001)

        assert [sizes(reads) for reads in answers] == [[0]]

    run(test)


def test_a_fetch_waits_until_all_its_partitions_together_have_enough() -> None:
    async def test(running: RunningBroker) -> None:
        wanted = plan(entry(0, partition=0), entry(0, partition=1), min_bytes=3 * SIZE)
        append(running, b"one", partition=0)
        answers, _ = later(running, wanted)
        append(running, b"two", partition=1)
        assert answers == []

        append(running, b"six", partition=0)

        assert [sizes(reads) for reads in answers] == [[2 * SIZE, SIZE]]

    run(test, partitions=2)


def test_more_than_the_maximum_is_never_waited_for() -> None:
    async def test(running: RunningBroker) -> None:
        append(running, b"one")

        assert sizes(now(running, plan(entry(0), min_bytes=1 << 30, max_bytes=SIZE))) == [SIZE]

    run(test)


def test_who_does_not_wait_gets_nothing_at_once() -> None:
    async def test(running: RunningBroker) -> None:
        assert sizes(now(running, plan(entry(0), max_wait_ms=0))) == [0]
        assert sizes(now(running, plan(entry(0), max_wait_ms=-1))) == [0]
        assert now(running, plan()) == []

    run(test)


def test_an_error_in_one_partition_is_told_at_once_with_the_data_of_the_others() -> None:
    async def test(running: RunningBroker) -> None:
        append(running, b"one")
        wanted = plan(entry(0), entry(0, partition=7), entry(9), min_bytes=1 << 20)

        reads = now(running, wanted)

        assert [type(read.error) for read in reads] == [type(None), UnknownTopicOrPartition, OffsetOutOfRange]
        assert sizes(reads) == [SIZE, 0, 0]

    run(test)


def test_a_waiting_fetch_is_answered_when_its_topic_is_deleted() -> None:
    async def test(running: RunningBroker) -> None:
        answers, _ = later(running, plan(entry(0)))

        running.broker.metadata.delete_topics([TopicReference(TOPIC)])

        assert [type(read.error) for read in answers[0]] == [UnknownTopicOrPartition]

    run(test)


def test_a_cancelled_fetch_is_not_answered() -> None:
    async def test(running: RunningBroker) -> None:
        answers, waiting = later(running, plan(entry(0)))

        waiting.cancel()
        append(running, b"one")
        running.advance(10.0)

        assert answers == []

    run(test)


def test_a_later_leader_epoch_is_unknown() -> None:
    async def test(running: RunningBroker) -> None:
        wanted = entry(0)
        wanted.current_leader_epoch = 3

        (read,) = now(running, plan(wanted))

        assert isinstance(read.error, UnknownLeaderEpoch)

    run(test)


def test_a_reader_of_an_epoch_that_ended_earlier_is_told_where() -> None:
    async def test(running: RunningBroker) -> None:
        append(running, b"one")
        wanted = entry(4)
        wanted.last_fetched_epoch = 0

        (read,) = now(running, plan(wanted))

        assert read.diverging_epoch == (0, 1)

    run(test)


def test_followers_are_sent_away() -> None:
    async def test(running: RunningBroker) -> None:
        wanted = plan(entry(0))
        wanted.is_follower = True

        (read,) = now(running, wanted)

        assert isinstance(read.error, NotLeaderOrFollower)
        assert (read.leader_id, read.leader_epoch) == (running.broker.node_id, 0)

    run(test)


def test_a_follower_that_names_the_leader_epoch_is_told_that_it_is_unknown() -> None:
    async def test(running: RunningBroker) -> None:
        wanted = entry(0)
        wanted.current_leader_epoch = 0
        followers = plan(wanted)
        followers.is_follower = True

        (read,) = now(running, followers)

        assert isinstance(read.error, UnknownLeaderEpoch)

    run(test)


def test_what_is_appended_while_a_long_plan_is_read_ends_its_wait() -> None:
    async def test(running: RunningBroker) -> None:
        wanted = plan(*(entry(0, partition=number) for number in range(300)), max_wait_ms=30_000)
        steps = running.broker.fetch_in_steps(wanted, lambda: None)

        next(steps)
        append(running, b"one")
        reads, _ = finish(steps)

        assert isinstance(reads, list)
        assert sum(sizes(reads)) == SIZE

    run(test, partitions=300)


def test_a_long_plan_waits_on_where_too_little_is_appended_while_it_is_read() -> None:
    async def test(running: RunningBroker) -> None:
        wanted = plan(*(entry(0, partition=number) for number in range(300)), min_bytes=2 * SIZE)
        ready: list[bool] = []
        steps = running.broker.fetch_in_steps(wanted, lambda: ready.append(True))

        next(steps)
        append(running, b"one")
        waiting, _ = finish(steps)
        assert isinstance(waiting, Waiting)
        assert not ready

        append(running, b"one", partition=299)
        assert ready

    run(test, partitions=300)
