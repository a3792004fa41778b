"""Whether what a consumer has read is still there after another broker took the lead (KIP-320).

Asks the leaders where the leader epoch of the last record that was read ended in their logs: an end before the position
means that records which were read have been cut off. What follows from that is decided by
`offset_fetcher`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.errors import KafkaError, LeaderNotAvailable, error_for_code
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


class EpochEnd(NamedTuple):
    """The largest epoch that is not above the asked one, and the offset after its last record; -1 where unknown."""

    leader_epoch: int
    end_offset: int


EpochEnds = dict[TopicPartition, "EpochEnd | KafkaError"]


async def find_epoch_ends(cluster: Cluster, epochs: Mapping[TopicPartition, int]) -> EpochEnds:
    """Return for each partition where the leader epoch ended, or why that cannot be told. Asks once."""
    by_leader: defaultdict[int | None, dict[TopicPartition, int]] = defaultdict(dict)
    for partition, epoch in epochs.items():
        by_leader[cluster.leader_of(partition)][partition] = epoch
    ends: EpochEnds = {
        partition: LeaderNotAvailable(f"{partition} has no leader") for partition in by_leader.pop(None, ())
    }
    asked = [_ask(cluster, node_id, rows) for node_id, rows in by_leader.items() if node_id is not None]
    for rows in await asyncio.gather(*asked):
        ends.update(rows)
    return ends


async def _ask(cluster: Cluster, node_id: int, epochs: Mapping[TopicPartition, int]) -> EpochEnds:
    topics: defaultdict[str, list[OffsetForLeaderPartition]] = defaultdict(list)
    for partition, epoch in epochs.items():
        topics[partition.topic].append(
            OffsetForLeaderPartition(
                partition=partition.partition,
                current_leader_epoch=cluster.leader_epoch_of(partition),
                leader_epoch=epoch,
            )
        )
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=name, partitions=rows) for name, rows in topics.items()]
    )
    try:
        connection = await cluster.connection_to(node_id)
        response = await connection.call(ApiKey.OFFSET_FOR_LEADER_EPOCH, request, OffsetForLeaderEpochResponse)
    except KafkaError as error:
        return dict.fromkeys(epochs, error)
    return {
        TopicPartition(topic.topic, row.partition): error_for_code(row.error_code)
        or EpochEnd(row.leader_epoch, row.end_offset)
        for topic in response.topics
        for row in topic.partitions
    }
