"""Offsets by time, asked of the leaders: beginnings, ends, and the first record at or after a moment.

Consumer and admin share this. Partitions are grouped by leader and asked at once; those whose leader moved are asked
again after fresh metadata, until the time for a call is over.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.retry import Reaction, reaction_to
from ottla.errors import KafkaError, LeaderNotAvailable, UnknownTopicOrPartition, error_for_code
from ottla.model import IsolationLevel, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)


class OffsetAndTimestamp(NamedTuple):
    """An answer; `offset` is -1 when no record is that late, `timestamp_ms` and `leader_epoch` -1 when not told."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


OffsetAnswers = dict[TopicPartition, "OffsetAndTimestamp | KafkaError"]


async def list_offsets(
    cluster: Cluster,
    timestamps_ms: Mapping[TopicPartition, int],
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> OffsetAnswers:
    """Return for each partition the offset for its timestamp, or why there is none.

    A timestamp may be one of `model`'s special ones (`LATEST_TIMESTAMP`, `EARLIEST_TIMESTAMP`, ...). Under
    READ_COMMITTED the end is the last stable offset. Raises `ClusterUnreachable`.
    """
    answers: OffsetAnswers = {}
    left = dict(timestamps_ms)
    deadline = cluster.deadline()
    attempt = 0
    while left:
        by_leader: defaultdict[int | None, dict[TopicPartition, int]] = defaultdict(dict)
        for partition, timestamp_ms in left.items():
            by_leader[cluster.leader_of(partition)][partition] = timestamp_ms
        answers.update((partition, _missing(cluster, partition)) for partition in by_leader.get(None, ()))
        asked = await asyncio.gather(
            *(_ask(cluster, node, rows, isolation_level) for node, rows in by_leader.items() if node is not None)
        )
        for rows in asked:
            answers.update(rows)
        left = {partition: left[partition] for partition in left if _is_worth_asking_again(answers[partition], attempt)}
        if left:
            attempt += 1
            error = next(answer for answer in map(answers.__getitem__, left) if isinstance(answer, KafkaError))
            try:
                if attempt > 1 or None not in by_leader:
                    await cluster.pause(attempt, deadline, error)
            except KafkaError:
                return answers
            cluster.want({partition.topic for partition in left})
            await cluster.refresh()
    return answers


async def _ask(
    cluster: Cluster, node_id: int, timestamps_ms: Mapping[TopicPartition, int], isolation_level: IsolationLevel
) -> OffsetAnswers:
    topics: defaultdict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for partition, timestamp_ms in timestamps_ms.items():
        topics[partition.topic].append(
            ListOffsetsPartition(partition_index=partition.partition, timestamp=timestamp_ms)
        )
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=name, partitions=rows) for name, rows in topics.items()],
        timeout_ms=cluster.settings.connection.request_timeout_ms,
    )
    try:
        response = await cluster.call(ApiKey.LIST_OFFSETS, request, ListOffsetsResponse, node_id)
    except KafkaError as error:
        return dict.fromkeys(timestamps_ms, error)
    return {
        TopicPartition(topic.name, row.partition_index): _named_error(topic.name, row.partition_index, row.error_code)
        or OffsetAndTimestamp(row.offset, row.timestamp, row.leader_epoch)
        for topic in response.topics
        for row in topic.partitions
    }


def _named_error(topic: str, partition: int, code: int) -> KafkaError | None:
    error = error_for_code(code)
    return None if error is None else type(error)(f"{topic}-{partition}: {error.sentence}")


def _missing(cluster: Cluster, partition: TopicPartition) -> KafkaError:
    error = cluster.topic_errors.get(partition.topic)
    if error is not None:
        return error
    topic = cluster.topics.get(partition.topic)
    if topic is not None and not 0 <= partition.partition < len(topic.partitions):
        return UnknownTopicOrPartition(f"{partition} does not exist; the topic has {len(topic.partitions)} partitions")
    return LeaderNotAvailable(f"{partition} has no leader")


def _is_worth_asking_again(answer: OffsetAndTimestamp | KafkaError, attempt: int) -> bool:
    """A topic that is unknown after fresh metadata does not exist; other troubles may pass."""
    if not isinstance(answer, KafkaError):
        return False
    is_missing = isinstance(answer, UnknownTopicOrPartition)
    return reaction_to(answer) is not Reaction.GIVE_UP and (attempt < 2 or not is_missing)
