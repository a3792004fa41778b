"""OffsetCommit v2 to v10: keep how far a group has read; the answer leaves when that is durable.

Topics are named by id from v10 on. What is wrong with a partition or with its topic is said of it alone; what is wrong
with the group or the member stands at every partition that could have been committed.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.groups.group import MemberClaim
from ottla.broker.groups.offsets import NO_EXPIRY, OffsetToCommit
from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
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


def handle(request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse | LaterAnswer:
    commit = _Commit(request, context)
    if not commit.offsets:
        return commit.response
    claim = MemberClaim(
        request.member_id,
        request.generation_id_or_member_epoch,
        request.group_instance_id,
        knows_member_epochs=context.api_version >= MEMBER_EPOCHS_FROM_VERSION,
    )
    expire_timestamp_ms = NO_EXPIRY
    if request.retention_time_ms != NO_RETENTION:
        expire_timestamp_ms = context.broker.clock.wall_ms() + request.retention_time_ms
    later = LaterAnswer()

    def reply(outcomes: list[KafkaError | None]) -> None:
        commit.fill(outcomes)
        later.complete(commit.response)

    try:
        context.broker.groups.commit_offsets(
            request.group_id, claim, commit.offsets, reply, expire_timestamp_ms=expire_timestamp_ms
        )
    except KafkaError as error:
        return commit.refuse(error)
    return later


class _Commit:
    """One request on its way: the offsets to commit, and the response with a row for each partition."""

    __slots__ = ("_context", "_rows", "offsets", "response")

    def __init__(self, request: OffsetCommitRequest, context: RequestContext) -> None:
        self._context = context
        self._rows: list[OffsetCommitResponsePartition] = []  # those of `offsets`
        self.offsets: list[OffsetToCommit] = []
        self.response = OffsetCommitResponse(topics=[self._topic(topic) for topic in request.topics])

    def fill(self, outcomes: list[KafkaError | None]) -> None:
        """Take over what became of `offsets`."""
        for row, outcome in zip(self._rows, outcomes, strict=True):
            row.error_code = code_of(outcome)

    def refuse(self, error: KafkaError) -> OffsetCommitResponse:
        self.fill([error] * len(self.offsets))
        return self.response

    def _topic(self, asked: OffsetCommitRequestTopic) -> OffsetCommitResponseTopic:
        broker = self._context.broker
        if self._context.api_version >= TOPIC_IDS_FROM_VERSION:
            topic, unknown = broker.find_topic_by_id(asked.topic_id), UnknownTopicId.code
        else:
            topic, unknown = broker.find_topic(asked.name), UnknownTopicOrPartition.code
        rows = []
        for partition in asked.partitions:
            row = OffsetCommitResponsePartition(partition_index=partition.partition_index)
            rows.append(row)
            if topic is None:
                row.error_code = unknown
            elif not 0 <= partition.partition_index < len(topic.partitions):
                row.error_code = UnknownTopicOrPartition.code
            else:
                self.offsets.append(_offset(topic.name, topic.topic_id, partition))
                self._rows.append(row)
        return OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id, partitions=rows)


def _offset(topic: str, topic_id: bytes, asked: OffsetCommitRequestPartition) -> OffsetToCommit:
    return OffsetToCommit(
        TopicPartition(topic, asked.partition_index),
        asked.committed_offset,
        asked.committed_leader_epoch,
        asked.committed_metadata or "",
        topic_id,
    )
