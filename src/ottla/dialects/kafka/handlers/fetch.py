"""Fetch v4 to v18: session, plan, wait, answer with record bytes untouched.

Topics come by name up to v12 and by id from v13 on. A session's answer leaves out what has no news (KIP-227). The
answer comes at once when there is enough, else from the broker's purgatory. Followers do not exist here: whoever claims
to be one is told that we are not its leader. Many partitions are read, and answered, in steps.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Final

from ottla.broker.broker import Broker
from ottla.broker.fetch_sessions import FetchContext, FetchEntry, PartitionKey
from ottla.broker.fetching import FetchPlan
from ottla.broker.partition import PartitionRead, unknown_read
from ottla.broker.purgatory import Waiting
from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import ROWS_A_STEP, LaterAnswer, RequestContext, Settled
from ottla.dialects.kafka.errors import error_code
from ottla.errors import (
    FencedLeaderEpoch,
    InvalidFetchSessionEpoch,
    InvalidRequest,
    KafkaError,
    NotLeaderOrFollower,
)
from ottla.model import NO_LEADER_EPOCH, IsolationLevel, TopicId, TopicPartition
from ottla.protocol.flat.fetch import new_fetch_response, new_fetchable_topic_response, new_partition_data
from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    PartitionData,
)

TOPIC_IDS_FROM_VERSION: Final = 13
REPLICA_STATE_FROM_VERSION: Final = 15
ERROR_FROM_VERSION: Final = 7
LEADER_FROM_VERSION: Final = 16
LEADER_ERRORS: Final = (NotLeaderOrFollower, FencedLeaderEpoch)
"""Errors that name the leader beside them (KIP-951)."""

CONSUMER_REPLICA_ID: Final = -1
ASKED_A_STEP: Final = 256

Asked = dict[PartitionKey, FetchEntry]
"""What a request lists, by partition: of a repeated one the last counts, in the first one's place."""

_ISOLATION_LEVELS: Final = (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED)
"""By their numbers on the wire."""


def handle(request: FetchRequest, context: RequestContext) -> Settled | Steps[Settled]:
    if context.is_long:
        return _handle_in_steps(request, context)
    asked: Asked = {}
    for topic in request.topics:
        _ask(topic, topic.partitions, asked, context)
    return _fetch(request, context, asked)


def _handle_in_steps(request: FetchRequest, context: RequestContext) -> Steps[Settled]:
    asked: Asked = {}
    for topic in request.topics:
        for start in range(0, len(topic.partitions), ASKED_A_STEP):
            _ask(topic, topic.partitions[start : start + ASKED_A_STEP], asked, context)
            yield
    answer = _fetch(request, context, asked)
    return (yield from answer) if isinstance(answer, Generator) else answer


def _fetch(request: FetchRequest, context: RequestContext, asked: Asked) -> Settled | Steps[Settled]:
    broker = context.broker
    uses_topic_ids = context.api_version >= TOPIC_IDS_FROM_VERSION
    try:
        fetch_context = broker.fetch_sessions.resume(
            request.session_id,
            request.session_epoch,
            asked,
            _forgotten(request.forgotten_topics_data, uses_topic_ids),
            uses_topic_ids=uses_topic_ids,
        )
    except KafkaError as error:
        return FetchResponse(error_code=error_code(error))
    answer = _Answer(fetch_context, context.api_version)
    if not 0 <= request.isolation_level < len(_ISOLATION_LEVELS):
        return answer.refusal(InvalidRequest())
    plan = FetchPlan(
        list(fetch_context.entries.values()),
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        _ISOLATION_LEVELS[request.isolation_level],
        is_follower=_replica_id(request, context) > CONSUMER_REPLICA_ID,
    )
    if plan.is_long:
        return _in_steps(plan, answer, broker)
    result = broker.fetch(plan, answer.complete)
    if isinstance(result, list):
        return answer.response(result)
    return _wait(answer, result)


def _in_steps(plan: FetchPlan, answer: _Answer, broker: Broker) -> Steps[Settled]:
    result = yield from broker.fetch_in_steps(plan, lambda: answer.later.go_on(_after_wait(plan, answer, broker)))
    if isinstance(result, list):
        return (yield from answer.response_in_steps(result))
    return _wait(answer, result)


def _after_wait(plan: FetchPlan, answer: _Answer, broker: Broker) -> Steps[Settled]:
    reads = yield from broker.read_in_steps(plan)
    return (yield from answer.response_in_steps(reads))


def _wait(answer: _Answer, waiting: Waiting[TopicPartition]) -> LaterAnswer:
    answer.later.cancel = waiting.cancel
    answer.later.hurry = waiting.finish_now
    return answer.later


class _Answer:
    """Makes the response once the reads are there, now or later."""

    __slots__ = ("_api_version", "_context", "_rows", "_topic_key", "later")

    def __init__(self, context: FetchContext, api_version: int) -> None:
        self._context = context
        self._api_version = api_version
        self._rows = list(context.entries.items())  # a session's may change while we wait
        self._topic_key: TopicId | str | None = None  # of the last topic in the response
        self.later = LaterAnswer()

    def complete(self, reads: list[PartitionRead]) -> None:
        self.later.complete(self.response(reads))

    def response(self, reads: list[PartitionRead]) -> FetchResponse:
        """Rows in the order of the plan, unknown partitions last; neighbours of one topic stand together."""
        if self._context.is_overtaken:
            return self._overtaken(reads)
        response = new_fetch_response(session_id=self._context.session_id)
        for (key, entry), read in self._in_order(reads):
            self._add(response, key, entry, read)
        return response

    def response_in_steps(self, reads: list[PartitionRead]) -> Steps[FetchResponse]:
        if self._context.is_overtaken:
            return self._overtaken(reads)
        response = new_fetch_response(session_id=self._context.session_id)
        for number, ((key, entry), read) in enumerate(self._in_order(reads), 1):
            self._add(response, key, entry, read)
            if number % ROWS_A_STEP == 0:
                yield
        return response

    def _overtaken(self, reads: list[PartitionRead]) -> FetchResponse:
        """Nobody waits any more for what was read, and the session does not count it as told."""
        for read in reads:
            read.release()
        return FetchResponse(error_code=InvalidFetchSessionEpoch.code, session_id=self._context.session_id)

    def _in_order(self, reads: list[PartitionRead]) -> list[tuple[tuple[PartitionKey, FetchEntry], PartitionRead]]:
        if len(reads) == 1:  # as for most
            return [(self._rows[0], reads[0])]
        rows = list(zip(self._rows, reads, strict=True))
        rows.sort(key=_is_unknown)
        return rows

    def _add(self, response: FetchResponse, key: PartitionKey, entry: FetchEntry, read: PartitionRead) -> None:
        offsets = read.offsets
        if not self._context.should_answer(
            key,
            entry,
            high_watermark=offsets.high_watermark,
            log_start_offset=offsets.log_start_offset,
            size_bytes=read.size_bytes,
            is_error=read.error is not None,
            is_diverging=read.diverging_epoch is not None,
        ):
            return
        topics = response.responses
        if not topics or key[0] != self._topic_key:
            self._topic_key = key[0]
            topics.append(new_fetchable_topic_response(topic=entry.topic or "", topic_id=entry.topic_id))
        row = _row(entry.partition, read)
        if self._api_version >= LEADER_FROM_VERSION and isinstance(read.error, LEADER_ERRORS):
            row.current_leader = LeaderIdAndEpoch(leader_id=read.leader_id, leader_epoch=read.leader_epoch)
        topics[-1].partitions.append(row)

    def refusal(self, error: KafkaError) -> FetchResponse:
        """The whole request is refused: told once where the version can, else in every row."""
        if self._api_version >= ERROR_FROM_VERSION:
            return FetchResponse(error_code=error_code(error))
        return self.response([unknown_read(error) for _ in self._rows])


def _is_unknown(row: tuple[tuple[PartitionKey, FetchEntry], PartitionRead]) -> bool:
    return row[1].is_unknown


def _row(partition: int, read: PartitionRead) -> PartitionData:
    offsets = read.offsets
    row = new_partition_data(
        partition_index=partition,
        high_watermark=offsets.high_watermark,
        last_stable_offset=offsets.last_stable_offset,
        log_start_offset=offsets.log_start_offset,
        records=read.spans,
    )
    if read.error is not None:
        row.error_code = error_code(read.error)
    if read.diverging_epoch is not None:
        row.diverging_epoch = EpochEndOffset(
            epoch=read.diverging_epoch.leader_epoch, end_offset=read.diverging_epoch.end_offset
        )
    aborted_transactions = read.aborted_transactions
    row.aborted_transactions = (
        None
        if aborted_transactions is None
        else [
            AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
            for aborted in aborted_transactions
        ]
    )
    return row


def _ask(topic: FetchTopic, partitions: Sequence[FetchPartition], asked: Asked, context: RequestContext) -> None:
    """Add some of a topic's partitions to what is asked. Every epoch below 0 is none, unlike in other requests."""
    uses_topic_ids = context.api_version >= TOPIC_IDS_FROM_VERSION
    topic_id = TopicId(topic.topic_id)
    name = context.broker.topic_name(topic_id) if uses_topic_ids else topic.topic
    for partition in partitions:
        asked[topic_id if uses_topic_ids else topic.topic, partition.partition] = FetchEntry(
            name,
            topic_id,
            partition.partition,
            partition.fetch_offset,
            partition.partition_max_bytes,
            max(partition.current_leader_epoch, NO_LEADER_EPOCH),
            max(partition.last_fetched_epoch, NO_LEADER_EPOCH),
        )


def _forgotten(topics: Iterable[ForgottenTopic], uses_topic_ids: bool) -> list[PartitionKey]:
    return [
        (TopicId(topic.topic_id) if uses_topic_ids else topic.topic, partition)
        for topic in topics
        for partition in topic.partitions
    ]


def _replica_id(request: FetchRequest, context: RequestContext) -> int:
    if context.api_version >= REPLICA_STATE_FROM_VERSION:
        return request.replica_state.replica_id
    return request.replica_id
