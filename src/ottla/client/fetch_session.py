"""The consumer's side of incremental fetch sessions (KIP-227): say only what changed since the last request.

Pure state: what the broker remembers about us, and the difference to what we want next. One session belongs to one
connection's worth of requests to one broker; after any doubt it starts anew with a full request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.model import TopicId, TopicPartition
from ottla.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

FULL_EPOCH: Final = 0
"""Names every partition, and asks the broker to remember them."""

MAX_EPOCH: Final = 2**31 - 1


class FetchPosition(NamedTuple):
    """What a fetch asks of one partition."""

    topic_id: TopicId
    offset: int
    leader_epoch: int
    max_bytes: int


class SessionRequest(NamedTuple):
    """The session part of a Fetch request. `forgotten` are partitions with the topic id they were named under."""

    session_id: int
    session_epoch: int
    positions: Sequence[tuple[TopicPartition, FetchPosition]]
    forgotten: Sequence[tuple[TopicPartition, TopicId]]


class FetchSession:
    """What one broker remembers of our partitions."""

    __slots__ = ("_epoch", "_id", "_known")

    def __init__(self) -> None:
        self._id = 0
        self._epoch = FULL_EPOCH
        self._known: dict[TopicPartition, FetchPosition] = {}

    def plan(self, wanted: Mapping[TopicPartition, FetchPosition]) -> SessionRequest:
        """Return what to say so that the broker reads exactly `wanted`."""
        known = self._known
        self._known = dict(wanted)
        if self._epoch == FULL_EPOCH:
            return SessionRequest(self._id, FULL_EPOCH, list(wanted.items()), ())
        changed = [(partition, position) for partition, position in wanted.items() if known.get(partition) != position]
        forgotten = [
            (partition, position.topic_id)
            for partition, position in known.items()
            if partition not in wanted or wanted[partition].topic_id != position.topic_id
        ]
        return SessionRequest(self._id, self._epoch, changed, forgotten)

    def accept(self, session_id: int) -> None:
        """The broker answered without an error of the session; id 0 means that it keeps none."""
        if session_id == 0:
            self._id, self._epoch = 0, FULL_EPOCH
        elif self._epoch == FULL_EPOCH or session_id != self._id:
            self._id, self._epoch = session_id, 1
        else:
            self._epoch = 1 if self._epoch == MAX_EPOCH else self._epoch + 1

    def reset(self, *, is_forgotten: bool = False) -> None:
        """Name everything in the next request; the broker replaces the session unless it forgot it already."""
        self._epoch = FULL_EPOCH
        if is_forgotten:
            self._id = 0


def topic_rows(said: SessionRequest) -> list[FetchTopic]:
    """Return the positions as a Fetch request has them."""
    topics: dict[str, FetchTopic] = {}
    for partition, position in said.positions:
        topic = topics.get(partition.topic)
        if topic is None:
            topic = topics[partition.topic] = FetchTopic(
                topic=partition.topic, topic_id=position.topic_id, partitions=[]
            )
        topic.partitions.append(
            FetchPartition(
                partition=partition.partition,
                current_leader_epoch=position.leader_epoch,
                fetch_offset=position.offset,
                partition_max_bytes=position.max_bytes,
            )
        )
    return list(topics.values())


def forgotten_rows(said: SessionRequest) -> list[ForgottenTopic]:
    """Return what is forgotten as a Fetch request has it."""
    topics: dict[tuple[str, TopicId], ForgottenTopic] = {}
    for partition, topic_id in said.forgotten:
        topic = topics.setdefault(
            (partition.topic, topic_id), ForgottenTopic(topic=partition.topic, topic_id=topic_id, partitions=[])
        )
        topic.partitions.append(partition.partition)
    return list(topics.values())
