"""OffsetCommit v2 to v10: keep how far a group has read; the answer leaves when that is durable.

Topics are named by id from v10 on. What is wrong with a partition or with its topic is said of it alone; what is wrong
with the group or the member stands at every partition that could have been committed. More than any group has of
partitions are committed by several batches, each in a turn of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from ottla.broker.broker import Topic
from ottla.broker.groups.group import MemberClaim
from ottla.broker.groups.offsets import NO_EXPIRY, OffsetToCommit
from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import LaterAnswer, RequestContext, Settled, rows_in_steps
from ottla.dialects.kafka.handlers.group_rows import code_of
from ottla.errors import (
    KafkaError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from ottla.model import TopicPartition
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

MEMBER_EPOCHS_FROM_VERSION: Final = 9
TOPIC_IDS_FROM_VERSION: Final = 10
NO_RETENTION: Final = -1
OFFSETS_AT_ONCE: Final = 2000
"""Offsets that are committed by one batch of records, at most. The outcome is each one's own in any case."""


def handle(request: OffsetCommitRequest, context: RequestContext) -> Steps[Settled]:
    commit = _Commit(context)
    response = OffsetCommitResponse()
    for topic in request.topics:
        response.topics.append((yield from commit.add(topic)))
    if not commit.offsets:
        return response
    claim = MemberClaim(
        request.member_id,
        request.generation_id_or_member_epoch,
        request.group_instance_id,
        knows_member_epochs=context.api_version >= MEMBER_EPOCHS_FROM_VERSION,
    )
    expire_timestamp_ms = NO_EXPIRY
    if request.retention_time_ms != NO_RETENTION:
        expire_timestamp_ms = context.broker.clock.wall_ms() + request.retention_time_ms
    for start in range(0, len(commit.offsets), OFFSETS_AT_ONCE):
        end = start + OFFSETS_AT_ONCE
        reply = partial(commit.fill, start)
        try:
            context.broker.groups.commit_offsets(
                request.group_id, claim, commit.offsets[start:end], reply, expire_timestamp_ms=expire_timestamp_ms
            )
        except KafkaError as error:
            reply([error] * len(commit.offsets[start:end]))
        if end < len(commit.offsets):
            yield
    return commit.answer(response)


class _Commit:
    """One request on its way: the offsets to commit, the row of each, and how many have no outcome yet."""

    __slots__ = ("_context", "_later", "_left", "_response", "_rows", "offsets")

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._rows: list[OffsetCommitResponsePartition] = []  # those of `offsets`
        self._left = 0
        self._later: LaterAnswer | None = None
        self._response: OffsetCommitResponse | None = None
        self.offsets: list[OffsetToCommit] = []

    def add(self, asked: OffsetCommitRequestTopic) -> Steps[OffsetCommitResponseTopic]:
        """Take the offsets of a topic; returns its rows, in which what is wrong with them stands already."""
        broker = self._context.broker
        if self._context.api_version >= TOPIC_IDS_FROM_VERSION:
            topic, unknown = broker.find_topic_by_id(asked.topic_id), UnknownTopicId.code
        else:
            topic, unknown = broker.find_topic(asked.name), UnknownTopicOrPartition.code
        rows = yield from rows_in_steps(asked.partitions, partial(self._add, topic, unknown))
        return OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id, partitions=rows)

    def _add(
        self, topic: Topic | None, unknown: int, asked: OffsetCommitRequestPartition
    ) -> OffsetCommitResponsePartition:
        row = OffsetCommitResponsePartition(partition_index=asked.partition_index)
        if topic is None:
            row.error_code = unknown
        elif not 0 <= asked.partition_index < len(topic.partitions):
            row.error_code = UnknownTopicOrPartition.code
        else:
            self.offsets.append(_offset(topic.name, topic.topic_id, asked))
            self._rows.append(row)
            self._left += 1
        return row

    def fill(self, start: int, outcomes: Sequence[KafkaError | None]) -> None:
        """Take over what became of some of the offsets, those from `start` on."""
        for row, outcome in zip(self._rows[start : start + len(outcomes)], outcomes, strict=True):
            row.error_code = code_of(outcome)
        self._left -= len(outcomes)
        if self._later is not None and not self._left:
            self._later.complete(self._response)

    def answer(self, response: OffsetCommitResponse) -> Settled:
        """The response, once all have an outcome."""
        if not self._left:
            return response
        self._response = response
        self._later = LaterAnswer()
        return self._later


def _offset(topic: str, topic_id: bytes, asked: OffsetCommitRequestPartition) -> OffsetToCommit:
    return OffsetToCommit(
        TopicPartition(topic, asked.partition_index),
        asked.committed_offset,
        asked.committed_leader_epoch,
        asked.committed_metadata or "",
        topic_id,
    )
