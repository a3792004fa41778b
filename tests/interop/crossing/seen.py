"""What a client sees of a broker, as values that can be compared: the same from Apache Kafka and from Ottla.

Records are compared twice: batches by their bytes and offsets, as a raw Fetch gives them, and records as librdkafka
gives them to a consumer, with and without `read_committed`. Of the topics that brokers keep their own state in, only
what they mean is compared: offsets of groups, quotas, users, rules.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from ottla.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, MAX_TIMESTAMP
from ottla.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.records.batch import split_batches
from tests.wire import Room, fetch_request, room_at

READ_COMMITTED: Final = 1
TOPIC_RESOURCE: Final = 2
TOPIC_SOURCE: Final = 1
"""Of a setting: that it was set on the topic itself."""
FETCH_BYTES: Final = 16 << 20
WAIT_SECONDS: Final = 30.0


class BatchSeen(NamedTuple):
    base_offset: int
    last_offset: int
    digest: str


class RecordSeen(NamedTuple):
    offset: int
    timestamp: tuple[int, int]
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class PartitionSeen:
    """One partition. `times` answers ListOffsets by timestamp: offset and timestamp of what was found."""

    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    times: tuple[tuple[int, int, int], ...]
    batches: tuple[BatchSeen, ...]
    aborted: frozenset[tuple[int, int]]
    producers: frozenset[tuple[int, int, int]]
    """Id, epoch and last sequence."""
    uncommitted: tuple[RecordSeen, ...]
    committed: tuple[RecordSeen, ...]


@dataclass(frozen=True)
class TopicSeen:
    topic_id: bytes
    configs: tuple[tuple[str, str | None], ...]
    partitions: dict[int, PartitionSeen]


@dataclass(frozen=True)
class Seen:
    """A whole broker."""

    cluster_id: str
    topics: dict[str, TopicSeen]
    offsets: dict[str, dict[tuple[str, int], tuple[int, int, str | None]]]
    """By group and partition: offset, leader epoch, metadata."""
    quotas: frozenset[tuple[tuple[tuple[str, str | None], ...], tuple[tuple[str, float], ...]]]
    users: frozenset[tuple[str, int, int]]
    """Name, mechanism, iterations."""


def look(address: str, groups: Sequence[str], timestamps_ms: Sequence[int]) -> Seen:
    """Look at everything: the offsets of these groups, and which records come first from these times on."""
    return asyncio.run(_look(address, groups, timestamps_ms))


def count_records(address: str, topic: str) -> int:
    """Return how many records partition 0 has, markers not among them."""

    async def count() -> int:
        async with room_at(address) as room:
            batches, _ = await _read_batches(room, topic, 0, (await room.bounds(topic))[0])
            return sum(one.count for one in batches if not one.is_control)

    return asyncio.run(count())


async def _look(address: str, groups: Sequence[str], timestamps_ms: Sequence[int]) -> Seen:
    async with room_at(address) as room:
        metadata = await room.ask(MetadataRequest(topics=None), 12)
        known = {row.name: row for row in metadata.topics if not row.is_internal}
        everything = [(name, one.partition_index) for name, row in known.items() for one in row.partitions]
        uncommitted = _read_records(address, everything, "read_uncommitted")
        committed = _read_records(address, everything, "read_committed")
        topics = {}
        for name, row in known.items():
            partitions = {}
            for one in row.partitions:
                number = one.partition_index
                rows = tuple(uncommitted[name, number]), tuple(committed[name, number])
                partitions[number] = await _look_at_partition(room, name, number, timestamps_ms, *rows)
            topics[name] = TopicSeen(row.topic_id, await _topic_configs(room, name), partitions)
        return Seen(
            metadata.cluster_id,
            topics,
            {group: await _offsets_of(room, group) for group in groups},
            await _quotas(room),
            await _users(room),
        )


async def _look_at_partition(
    room: Room,
    topic: str,
    number: int,
    timestamps_ms: Sequence[int],
    uncommitted: tuple[RecordSeen, ...],
    committed: tuple[RecordSeen, ...],
) -> PartitionSeen:
    start = (await room.list_offset(topic, EARLIEST_TIMESTAMP, partition=number)).offset
    end = (await room.list_offset(topic, LATEST_TIMESTAMP, partition=number)).offset
    stable = await room.list_offset(topic, LATEST_TIMESTAMP, partition=number, isolation_level=READ_COMMITTED)
    times = []
    for asked in (MAX_TIMESTAMP, *timestamps_ms):
        found = await room.list_offset(topic, asked, partition=number)
        times.append((asked, found.offset, found.timestamp))
    batches, aborted = await _read_batches(room, topic, number, start)
    digests = [
        BatchSeen(one.base_offset, one.last_offset, hashlib.sha256(one.buffer).hexdigest()[:12]) for one in batches
    ]
    return PartitionSeen(
        start,
        end,
        stable.offset,
        tuple(times),
        tuple(digests),
        frozenset(aborted),
        await _producers(room, topic, number),
        uncommitted,
        committed,
    )


async def _read_batches(room: Room, topic: str, number: int, start: int) -> tuple[list[Any], set[tuple[int, int]]]:
    """Return all batches up to the high watermark, and the aborted transactions that came with them."""
    batches: list[Any] = []
    aborted = set[tuple[int, int]]()
    position = start
    while True:
        wanted = fetch_request({topic: {number: position}}, max_bytes=FETCH_BYTES, partition_max_bytes=FETCH_BYTES)
        wanted.isolation_level = READ_COMMITTED
        row = (await room.ask(wanted, 12)).responses[0].partitions[0]
        assert row.error_code == 0, (topic, number, position, row.error_code)
        found = list(split_batches(bytes(row.records or b"")))
        if not found:
            return batches, aborted
        assert all(one.is_crc_valid() for one in found)
        batches += found
        aborted |= {(one.producer_id, one.first_offset) for one in row.aborted_transactions or ()}
        position = found[-1].next_offset


async def _producers(room: Room, topic: str, number: int) -> frozenset[tuple[int, int, int]]:
    answer = await room.ask(DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[number])]), 0)
    (row,) = answer.topics[0].partitions
    assert row.error_code == 0, (topic, number, row.error_message)
    return frozenset((one.producer_id, one.producer_epoch, one.last_sequence) for one in row.active_producers)


async def _topic_configs(room: Room, topic: str) -> tuple[tuple[str, str | None], ...]:
    wanted = DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=None)
    answer = await room.ask(DescribeConfigsRequest(resources=[wanted]), 4)
    found = answer.results[0].configs
    return tuple(sorted((one.name, one.value) for one in found if one.config_source == TOPIC_SOURCE))


async def _offsets_of(room: Room, group: str) -> dict[tuple[str, int], tuple[int, int, str | None]]:
    answer = await room.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)]), 9)
    (found,) = answer.groups
    assert found.error_code == 0, (group, found.error_code)
    return {
        (topic.name, one.partition_index): (one.committed_offset, one.committed_leader_epoch, one.metadata)
        for topic in found.topics
        for one in topic.partitions
    }


async def _quotas(room: Room) -> frozenset[Any]:
    answer = await room.ask(DescribeClientQuotasRequest(), 1)
    assert answer.error_code == 0, answer.error_message
    return frozenset(
        (
            tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)),
            tuple(sorted((value.key, value.value) for value in entry.values)),
        )
        for entry in answer.entries
    )


async def _users(room: Room) -> frozenset[tuple[str, int, int]]:
    answer = await room.ask(DescribeUserScramCredentialsRequest(users=None), 0)
    assert answer.error_code == 0, answer.error_message
    return frozenset(
        (row.user, info.mechanism, info.iterations) for row in answer.results for info in row.credential_infos
    )


def _read_records(
    address: str, partitions: Sequence[tuple[str, int]], isolation: str
) -> dict[tuple[str, int], list[RecordSeen]]:
    """Read every partition to its end, as a consumer that was given all of them."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "looks",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "check.crcs": True,
            "fetch.wait.max.ms": 10,
        }
    )
    found: dict[tuple[str, int], list[RecordSeen]] = {one: [] for one in partitions}
    unfinished = set(partitions)
    deadline = time.monotonic() + WAIT_SECONDS
    try:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for topic, number in partitions])
        while unfinished:
            assert time.monotonic() < deadline, f"the end did not come: {unfinished}"
            for message in consumer.consume(1000, 0.2):
                where = message.topic() or "", message.partition() or 0
                error = message.error()
                if error is None:
                    found[where].append(_describe(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    unfinished.discard(where)
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
    return found


def _describe(message: Any) -> RecordSeen:
    headers = tuple((name, value) for name, value in message.headers() or ())
    return RecordSeen(message.offset(), message.timestamp(), message.key(), message.value(), headers)


def differences(expected: Seen, found: Seen) -> Iterator[str]:
    """Yield a line for each thing that is not the same, so that a failed test can be read."""
    for what in ("cluster_id", "offsets", "quotas", "users"):
        if getattr(expected, what) != getattr(found, what):
            yield f"{what}: {getattr(found, what)}, not {getattr(expected, what)}"
    if expected.topics.keys() != found.topics.keys():
        yield f"topics: {sorted(found.topics)}, not {sorted(expected.topics)}"
    for name in expected.topics.keys() & found.topics.keys():
        before, after = expected.topics[name], found.topics[name]
        for what in ("topic_id", "configs"):
            if getattr(before, what) != getattr(after, what):
                yield f"{name}: {what}: {getattr(after, what)}, not {getattr(before, what)}"
        if before.partitions.keys() != after.partitions.keys():
            yield f"{name}: partitions {sorted(after.partitions)}, not {sorted(before.partitions)}"
        for number in before.partitions.keys() & after.partitions.keys():
            one, other = before.partitions[number], after.partitions[number]
            if one.log_start_offset:
                # Kafka looks for a time only in the first segment that is new enough, and finds nothing when what it
                # finds there lies below the log's start; Ottla goes on.
                pairs = zip(one.times, other.times, strict=True)
                one = replace(one, times=tuple(row if row[1] >= 0 else ours for row, ours in pairs))
            for what in PartitionSeen.__dataclass_fields__:
                if getattr(one, what) != getattr(other, what):
                    yield f"{name}-{number}: {what}: {getattr(other, what)!r:.600}, not {getattr(one, what)!r:.600}"
