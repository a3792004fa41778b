"""OffsetFetch v1 to v10: how far groups have read. Several groups from v8 on, topics by id from v10 on.

An offset that is not there is -1, without an error, as is everything of a group that is not there. What is wrong with
a group as a whole stands on top of its answer; in v1, which has no place for it, at every partition (KAFKA-19246).
Nothing is told that a power cut could take back: the answer waits until what was committed before is durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from ottla.broker.broker import Broker
from ottla.broker.groups.group import MemberClaim
from ottla.broker.groups.offsets import NO_COMMITTED_OFFSET, CommittedOffset
from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import ROWS_A_STEP, LaterAnswer, RequestContext, Settled, rows_in_steps
from ottla.errors import KafkaError, UnknownTopicId, UnstableOffsetCommit
from ottla.model import TopicPartition
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

GROUP_ERROR_FROM_VERSION: Final = 2
SEVERAL_GROUPS_FROM_VERSION: Final = 8
TOPIC_IDS_FROM_VERSION: Final = 10


def handle(request: OffsetFetchRequest, context: RequestContext) -> Steps[Settled]:
    fetch = _Fetch(request, context)
    yield from fetch.find()
    return fetch.later


class _Fetch:
    """One request on its way: an answer for each group, which leave together once all of them are durable."""

    __slots__ = ("_answers", "_asked", "_broker", "_require_stable", "_version", "_waits_for", "later")

    def __init__(self, request: OffsetFetchRequest, context: RequestContext) -> None:
        self._broker: Broker = context.broker
        self._version = context.api_version
        self._require_stable = request.require_stable
        self.later = LaterAnswer()
        groups = request.groups if self._version >= SEVERAL_GROUPS_FROM_VERSION else [_only_group(request)]
        self._asked = groups
        self._answers = [OffsetFetchResponseGroup(group_id=group.group_id) for group in groups]
        self._waits_for = len(groups) + 1

    def find(self) -> Steps[None]:
        """Find all offsets."""
        for number, (asked, answer) in enumerate(zip(self._asked, self._answers, strict=True), 1):
            yield from self._answer(asked, answer)
            if number % ROWS_A_STEP == 0:
                yield
        self._settle(None, None)

    def _answer(self, asked: OffsetFetchRequestGroup, answer: OffsetFetchResponseGroup) -> Steps[None]:
        claim = MemberClaim(asked.member_id or "", asked.member_epoch)
        try:
            self._broker.groups.check_offset_fetch(asked.group_id, claim)
            topics = self._all_topics(asked) if asked.topics is None else self._topics(asked, asked.topics)
            answer.topics = yield from topics
            self._broker.groups.when_durable(asked.group_id, lambda error: self._settle(answer, error))
        except KafkaError as error:
            self._settle(answer, error)

    def _settle(self, answer: OffsetFetchResponseGroup | None, error: KafkaError | None) -> None:
        if answer is not None and error is not None:
            answer.topics = []
            answer.error_code = error.code
        self._waits_for -= 1
        if not self._waits_for:
            self.later.go_on(self._response())

    def _response(self) -> Steps[OffsetFetchResponse]:
        if self._version >= SEVERAL_GROUPS_FROM_VERSION:
            return OffsetFetchResponse(groups=self._answers)
        answer = self._answers[0]
        if answer.error_code and self._version < GROUP_ERROR_FROM_VERSION:
            answer.topics = yield from _refused_topics(self._asked[0].topics or (), answer.error_code)
        return (yield from _old_response(answer))

    # -- rows -----------------------------------------------------------------------------------------------------

    def _topics(
        self, asked: OffsetFetchRequestGroup, topics: Sequence[OffsetFetchRequestTopics]
    ) -> Steps[list[OffsetFetchResponseTopics]]:
        rows = []
        for topic in topics:
            rows.append((yield from self._topic(asked.group_id, topic)))
            if len(rows) % ROWS_A_STEP == 0:
                yield
        return rows

    def _topic(self, group_id: str, asked: OffsetFetchRequestTopics) -> Steps[OffsetFetchResponseTopics]:
        name: str | None = asked.name
        if self._version >= TOPIC_IDS_FROM_VERSION:
            name = self._broker.topic_name(asked.topic_id)
        rows = yield from rows_in_steps(
            asked.partition_indexes,
            partial(_unknown_row, UnknownTopicId.code) if name is None else partial(self._partition, group_id, name),
        )
        return OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id, partitions=rows)

    def _all_topics(self, asked: OffsetFetchRequestGroup) -> Steps[list[OffsetFetchResponseTopics]]:
        rows = []
        for name, partitions in list(self._broker.groups.committed_offsets(asked.group_id).items()):
            topic = self._broker.find_topic(name)
            if topic is None and self._version >= TOPIC_IDS_FROM_VERSION:
                continue
            rows.append(
                OffsetFetchResponseTopics(
                    name=name,
                    topic_id=bytes(16) if topic is None else topic.topic_id,
                    partitions=(
                        yield from rows_in_steps(list(partitions), partial(self._partition, asked.group_id, name))
                    ),
                )
            )
        return rows

    def _partition(self, group_id: str, topic: str, number: int) -> OffsetFetchResponsePartitions:
        groups = self._broker.groups
        partition = TopicPartition(topic, number)
        if self._require_stable and groups.is_offset_pending(group_id, partition):
            return _row(partition.partition, NO_COMMITTED_OFFSET, UnstableOffsetCommit.code)
        return _row(partition.partition, groups.committed_offset(group_id, partition) or NO_COMMITTED_OFFSET)


def _row(partition: int, committed: CommittedOffset, error_code: int = 0) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=error_code,
    )


def _unknown_row(error_code: int, partition: int) -> OffsetFetchResponsePartitions:
    return _row(partition, NO_COMMITTED_OFFSET, error_code)


def _only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """What a request from before several groups asks."""
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _refused_topics(
    asked: Sequence[OffsetFetchRequestTopics], error_code: int
) -> Steps[list[OffsetFetchResponseTopics]]:
    topics = []
    for topic in asked:
        rows = yield from rows_in_steps(topic.partition_indexes, partial(_unknown_row, error_code))
        topics.append(OffsetFetchResponseTopics(name=topic.name, partitions=rows))
    return topics


def _old_response(answer: OffsetFetchResponseGroup) -> Steps[OffsetFetchResponse]:
    topics = []
    for topic in answer.topics:
        rows = yield from rows_in_steps(topic.partitions, _old_row)
        topics.append(OffsetFetchResponseTopic(name=topic.name, partitions=rows))
    return OffsetFetchResponse(error_code=answer.error_code, topics=topics)


def _old_row(row: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=row.partition_index,
        committed_offset=row.committed_offset,
        committed_leader_epoch=row.committed_leader_epoch,
        metadata=row.metadata,
        error_code=row.error_code,
    )
