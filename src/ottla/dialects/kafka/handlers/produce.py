"""Produce v3 to v13: check, append, answer per partition.

Topics come by name up to v12 and by id from v13 on. Checks run in Kafka's order, since the first one that fails is what
a client sees:

1. the whole request: transactional batches need a transactional id;
2. each partition: is it there, has its request one batch of the current format;
3. acks; 4. internal topics; 5. what the log finds (`Broker.append`).

With acks=0 there is no answer; an error ends the connection, which is how such a producer learns of it. With acks=1 the
answer does not wait for the disk, with acks=all it does. A partition that is named twice counts once
(`produce_repeats`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, cast

from librt.strings import BytesWriter

from ottla.broker.broker import Topic
from ottla.broker.partition import Partition
from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import LaterAnswer, RequestContext, Settled
from ottla.dialects.kafka.errors import CloseConnection, error_code
from ottla.dialects.kafka.handlers.produce_repeats import OnceEach, is_sound
from ottla.dialects.session import Part
from ottla.engine import Ticket
from ottla.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTopicException,
    InvalidTxnState,
    KafkaError,
    KafkaStorageError,
    MessageTooLarge,
    NotLeaderOrFollower,
    PolicyViolation,
    RecordListTooLarge,
    RecordValidationFailed,
    TransactionAbortable,
    TransactionalIdAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedForMessageFormat,
)
from ottla.model import NO_OFFSET, NO_TIMESTAMP_MS
from ottla.protocol.connection import FrameReader
from ottla.protocol.flat.produce import (
    new_partition_produce_response,
    new_produce_response,
    new_topic_produce_response,
)
from ottla.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.protocol.one_batch import OneBatch, read_one_batch
from ottla.records.validation import check_request, has_transactional_batch

TOPIC_IDS_FROM_VERSION: Final = 13
ZSTD_FROM_VERSION: Final = 7
ABORTABLE_FROM_VERSION: Final = 11
"""From here on a client knows TRANSACTION_ABORTABLE (KIP-890)."""

ACKS_NONE: Final = 0
ACKS_LEADER: Final = 1
ACKS_ALL: Final = -1
VALID_ACKS: Final = (ACKS_NONE, ACKS_LEADER, ACKS_ALL)

LOOKED_AT_ONCE: Final = 256
RUN_REQUESTS: Final = 16
"""Requests whose batches go to the disk with one write, at most."""

ADMIN_CLIENT_ID: Final = "__admin_client"
"""Kafka lets this client id, and no other, write to internal topics."""

WITHOUT_LOG_START: Final = (
    UnknownTopicOrPartition,
    NotLeaderOrFollower,
    MessageTooLarge,
    RecordListTooLarge,
    CorruptMessage,
    KafkaStorageError,
)
"""Errors of an append that Kafka answers without the log's start."""

TOLD_WHY: Final = (PolicyViolation, UnsupportedForMessageFormat)
"""Errors that no broker of Kafka's raises here, so that clients are told in words what is meant."""


def handle(request: ProduceRequest, context: RequestContext) -> Settled | Steps[Settled]:
    produce = _Produce(request, context)
    if context.is_long:
        return produce.do_in_steps(request)
    topics = request.topic_data
    for topic in topics:
        if not produce.look_at(topic.partition_data):
            break
    if len(topics) > 1 or (topics and len(topics[0].partition_data) > 1):
        once = produce.merge()
        for topic in topics:
            once.add(topic, topic.partition_data)
        topics = once.topics()
    for topic in topics:
        if topic.partition_data:
            produce.add(topic, [produce.append(topic, data) for data in topic.partition_data])
    return produce.answer()


class _Produce:
    """One request on its way: why all of it is refused, if it is, and the response with a row for each partition."""

    __slots__ = (
        "_acks",
        "_context",
        "_has_transactional_id",
        "_is_transactional",
        "_once",
        "_refusal",
        "_response",
        "_undurable",
    )

    def __init__(self, request: ProduceRequest, context: RequestContext) -> None:
        self._acks = request.acks
        self._context = context
        self._has_transactional_id = request.transactional_id is not None
        self._refusal: KafkaError | None = None
        self._is_transactional = False
        self._undurable: list[tuple[PartitionProduceResponse, Ticket]] = []
        self._response = new_produce_response()
        self._once: OnceEach | None = None

    def look_at(self, rows: Sequence[PartitionProduceData]) -> bool:
        """Look for a transactional batch, and what no batch can begin with, which refuses all.

        Returns False once there is either, as Kafka then looks no further.
        """
        try:
            for data in rows:
                if data.records is not None and has_transactional_batch(cast(memoryview, data.records)):
                    self._is_transactional = True
                    return False
        except KafkaError as error:
            self._refusal = error
        return self._refusal is None

    def merge(self) -> OnceEach:
        """Return what takes in the rows of a request that has several, and says what is appended of them."""
        self._once = OnceEach(_is_zstd_allowed(self._context))
        return self._once

    def append(self, topic: TopicProduceData, data: PartitionProduceData) -> PartitionProduceResponse:
        """Append one partition's records and return its row."""
        row = self._append(topic, data)
        instead = None if self._once is None else self._once.answered_for(topic, data)
        return row if instead is None else self._append(topic, instead)

    def _append(self, topic: TopicProduceData, data: PartitionProduceData) -> PartitionProduceResponse:
        if self._refusal is None and self._is_transactional and not self._has_transactional_id:
            self._refusal = TransactionalIdAuthorizationFailed()
        if self._refusal is not None:
            return _refused_with_all(data.index, self._refusal)
        return _append(topic, data, self._acks, self._context, self._undurable, is_transactional=self._is_transactional)

    def add(self, topic: TopicProduceData, rows: list[PartitionProduceResponse]) -> None:
        self._response.responses.append(
            new_topic_produce_response(name=topic.name, topic_id=topic.topic_id, partition_responses=rows)
        )

    def do_in_steps(self, request: ProduceRequest) -> Steps[Settled]:
        """Look at all, then append a partition at a time."""
        for _, some in _some_at_once(request.topic_data):
            if not self.look_at(some):
                break
            yield
        once = self.merge()
        for topic, some in _some_at_once(request.topic_data):
            once.add(topic, some)
            yield
        for topic in once.topics():
            rows: list[PartitionProduceResponse] = []
            for data in topic.partition_data:
                rows.append(self.append(topic, data))
                yield
            if rows:
                self.add(topic, rows)
        return self.answer()

    def answer(self) -> Settled:
        if self._acks == ACKS_NONE:
            _check_silence(self._response)
            return None
        if not self._undurable:
            return self._response
        return _DurableAnswer(self._response, self._undurable).later


def _some_at_once(
    topics: Sequence[TopicProduceData],
) -> Iterator[tuple[TopicProduceData, Sequence[PartitionProduceData]]]:
    """Yield a request's rows, as many of one topic at once as are looked at in one step."""
    for topic in topics:
        for start in range(0, len(topic.partition_data), LOOKED_AT_ONCE):
            yield topic, topic.partition_data[start : start + LOOKED_AT_ONCE]


def answer_usual(reader: FrameReader, context: RequestContext, out: list[Part]) -> tuple[int, bool]:
    """Append what Produce requests of the usual form bring that come next and are for one partition.

    Their answers' frames go to `out`. Returns how many they were, and whether the frame behind them, if there is one,
    is for the general way, which also says what is wrong with a batch that was not taken.
    """
    asked = read_one_batch(reader)
    if asked is None or (asked.acks != ACKS_LEADER and not context.broker.acknowledges_at_once):
        return 0, True
    partition = _find_partition(asked, context)
    if partition is None:
        return 0, True
    run = _read_run(asked, reader)
    answered = _answer_run(run, partition, reader, context, out)
    return answered, answered < len(run)


def _find_partition(asked: OneBatch, context: RequestContext) -> Partition | None:
    """Return what a request is for; None where that is for the general way."""
    topic_id = asked.topic_id
    if topic_id is not None:
        topic = context.broker.find_topic_by_id(topic_id)
    else:
        name = asked.topic
        topic = None if name is None else context.broker.find_topic(name)
    if topic is None or topic.is_internal or not 0 <= asked.partition < len(topic.partitions):
        return None
    partition = topic.partitions[asked.partition]
    # A batch that was given its time can't be looked at once more.
    return None if partition.rules.is_append_time else partition


def _read_run(asked: OneBatch, reader: FrameReader) -> list[OneBatch]:
    """Return this request and those behind it that were received and are like it."""
    run = [asked]
    behind_bytes = asked.frame_bytes
    while len(run) < RUN_REQUESTS:
        also = read_one_batch(reader, behind_bytes)
        if also is None or not also.is_like(asked):
            break
        run.append(also)
        behind_bytes += also.frame_bytes
    return run


def _answer_run(
    run: list[OneBatch], partition: Partition, reader: FrameReader, context: RequestContext, out: list[Part]
) -> int:
    """Append a run of requests, with one write as far as that goes; returns how many were taken."""
    broker = context.broker
    is_zstd_allowed = run[0].api_version >= ZSTD_FROM_VERSION
    several = [reader.view(asked.records_at, asked.records_end) for asked in run]
    tickets: Sequence[Ticket] = ()
    if len(run) > 1:
        try:
            tickets = broker.append_together(partition, several, is_zstd_allowed=is_zstd_allowed)
        except KafkaStorageError:  # which the first of them will be told
            tickets = ()
    answers = BytesWriter()
    answered = 0
    while answered < len(run):
        asked = run[answered]
        try:
            if answered < len(tickets):
                ticket = tickets[answered]
            elif answered and _find_partition(asked, context) is not partition:
                break  # whom the batches before it woke had the topic deleted, or made anew
            else:
                ticket = broker.append(partition, several[answered], is_zstd_allowed=is_zstd_allowed)
        except KafkaError:
            break
        asked.write_answer(answers, ticket.base_offset, ticket.log_append_time_ms, ticket.log_start_offset)
        answered += 1
    if answered:
        out.append(answers.getvalue())
        for asked in run[:answered]:
            reader.skip(asked.frame_bytes)
    return answered


def _append(
    topic: TopicProduceData,
    data: PartitionProduceData,
    acks: int,
    context: RequestContext,
    undurable: list[tuple[PartitionProduceResponse, Ticket]],
    *,
    is_transactional: bool,
) -> PartitionProduceResponse:
    """Append one partition's records and return its row; a row that must wait for the disk goes to `undurable` too."""
    records = cast("memoryview | None", data.records)
    is_zstd_allowed = _is_zstd_allowed(context)
    partition: Partition | None = None
    refusal: KafkaError | None = None
    try:
        found = _find_topic(topic, context)
        partition = found.partition(data.index)
        if records is None:
            raise InvalidRecord
        refusal = _refusal(found, acks, context, is_transactional=is_transactional)
        if refusal is not None:
            check_request(records, is_zstd_allowed)
            raise refusal
        ticket = context.broker.append(partition, records, is_zstd_allowed=is_zstd_allowed)
    except KafkaError as error:
        has_reached_log = records is not None and refusal is None and is_sound(records, is_zstd_allowed)
        return _refused(data.index, error, partition if has_reached_log else None)
    row = new_partition_produce_response(
        index=data.index,
        base_offset=ticket.base_offset,
        log_append_time_ms=ticket.log_append_time_ms,
        log_start_offset=ticket.log_start_offset,
    )
    if acks == ACKS_ALL and not ticket.is_durable:
        undurable.append((row, ticket))
    return row


def _is_zstd_allowed(context: RequestContext) -> bool:
    return context.api_version >= ZSTD_FROM_VERSION


def _refusal(topic: Topic, acks: int, context: RequestContext, *, is_transactional: bool) -> KafkaError | None:
    """Why records for a topic that is there may not be appended, whatever they are."""
    if acks not in VALID_ACKS:
        return InvalidRequiredAcks()
    if topic.is_internal and context.client_id != ADMIN_CLIENT_ID:
        return InvalidTopicException()
    if is_transactional:
        return InvalidTxnState() if context.api_version < ABORTABLE_FROM_VERSION else TransactionAbortable()
    return None


def _find_topic(topic: TopicProduceData, context: RequestContext) -> Topic:
    if context.api_version >= TOPIC_IDS_FROM_VERSION:
        found = context.broker.find_topic_by_id(topic.topic_id)
        if found is None:
            raise UnknownTopicId
        return found
    found = context.broker.find_topic(topic.name)
    if found is None:
        raise UnknownTopicOrPartition
    return found


def _refused(index: int, error: KafkaError, refusing: Partition | None) -> PartitionProduceResponse:
    """The row of a partition that took nothing; `refusing` when it was its log that did not take it.

    Only errors of single records carry their texts to the client, as in Kafka, and `TOLD_WHY`.
    """
    row = PartitionProduceResponse(index=index, error_code=error_code(error), base_offset=NO_OFFSET)
    if refusing is not None and not isinstance(error, WITHOUT_LOG_START):
        with suppress(KafkaStorageError):  # nor can its log be opened
            row.log_start_offset = refusing.offsets().log_start_offset
    if isinstance(error, RecordValidationFailed):
        row.error_message = str(error)
        row.record_errors = [
            BatchIndexAndErrorMessage(batch_index=batch_index, batch_index_error_message=text)
            for batch_index, text in error.record_errors
        ]
    elif isinstance(error, TOLD_WHY):
        row.error_message = error.message
    return row


def _refused_with_all(index: int, error: KafkaError) -> PartitionProduceResponse:
    """The row of a partition whose whole request was refused."""
    row = _refused(index, error, None)
    row.error_message = error.message
    return row


def _check_silence(response: ProduceResponse) -> None:
    """With acks=0 silence is success; an error can only be told by ending the connection."""
    for topic in response.responses:
        for row in topic.partition_responses:
            if row.error_code:
                raise CloseConnection


class _DurableAnswer:
    """A response whose rows are there and wait for the disk."""

    __slots__ = ("_response", "_undurable", "_waiting_count", "later")

    def __init__(self, response: ProduceResponse, undurable: Sequence[tuple[PartitionProduceResponse, Ticket]]) -> None:
        self.later = LaterAnswer()
        self._response = response
        self._undurable = undurable
        self._waiting_count = len(undurable)
        for _, ticket in undurable:
            ticket.on_done(self._one_done)

    def _one_done(self) -> None:
        self._waiting_count -= 1
        if self._waiting_count:
            return
        for row, ticket in self._undurable:
            if ticket.error is not None:
                row.error_code = error_code(ticket.error)
                row.base_offset = NO_OFFSET
                row.log_append_time_ms = NO_TIMESTAMP_MS
                row.log_start_offset = NO_OFFSET
        self.later.complete(self._response)
