"""A cluster that does what a test says, in memory, on a loop whose time is moved instead of waited for.

    cluster = ScriptedCluster(brokers=2, partitions=1)
    cluster.reply(ApiKey.PRODUCE, refuse(NotLeaderOrFollower))   # the next Produce; after it, the usual answer
    cluster.run(work)                                            # `work` is a coroutine function of a test

Requests and answers go through the real codecs and frames; only sockets are missing. Brokers keep what is produced to
them in one log for each partition, with Kafka's checks of sequence and epoch, so that a test sees what was written, how
often, and in which order.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

from ottla.client import ClusterSettings, ConnectionSettings
from ottla.errors import KafkaError
from ottla.model import TopicPartition
from ottla.protocol.apis import API, ApiKey
from ottla.protocol.codec import Message, decode
from ottla.protocol.headers import decode_request_header
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from ottla.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.records.batch import RecordBatch, split_batches, stamp
from ottla.records.builder import BatchBuilder
from tests.client.scripted_loop import ScriptedLoop, Wire

TOPIC: Final = "t"
TOPIC_ID: Final = bytes(15) + b"\x01"
BOOTSTRAP: Final = "boot:9092"
PRODUCER_ID: Final = 7000
SERVED: Final = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.API_VERSIONS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
)

T = TypeVar("T")


# ---- brokers


class Silence(Exception):
    """A broker that gets this as its answer never answers."""


class HangUp(Exception):
    """A broker that gets this as its answer closes the connection."""


Answer = Callable[["ScriptedBroker", Any], Message]
"""What a broker makes of a request. It may call `usual` for the answer without a script."""


@dataclass(slots=True)
class ScriptedLog:
    """One partition: who leads it, and what was written."""

    leader: int
    leader_epoch: int = 0
    batches: list[bytes] = field(default_factory=list)
    start_offset: int = 0
    next_sequences: dict[int, tuple[int, int]] = field(default_factory=dict)
    epoch_ends: dict[int, int] = field(default_factory=dict)
    """Where each leader epoch of the past ended."""

    @property
    def end_offset(self) -> int:
        return RecordBatch(self.batches[-1]).next_offset if self.batches else self.start_offset

    @property
    def values(self) -> list[bytes]:
        return [record.value or b"" for batch in self.batches for record in RecordBatch(batch).decode()]

    def append(self, data: bytes) -> tuple[int, int]:
        """Write a batch unless its producer's epoch or sequence forbids it; returns error code and base offset."""
        batch = RecordBatch(data)
        if batch.producer_id >= 0:
            epoch, expected = self.next_sequences.get(batch.producer_id, (batch.producer_epoch, 0))
            if batch.producer_epoch > epoch:
                epoch, expected = batch.producer_epoch, 0
            if batch.producer_epoch < epoch:
                return 47, -1
            if batch.base_sequence != expected:
                known = [RecordBatch(one) for one in self.batches]
                for one in known:
                    if (one.producer_id, one.producer_epoch, one.base_sequence) == (
                        batch.producer_id,
                        batch.producer_epoch,
                        batch.base_sequence,
                    ):
                        return 0, one.base_offset
                return 45, -1
            self.next_sequences[batch.producer_id] = (epoch, expected + batch.count)
        base_offset = self.end_offset
        stamped = bytearray(data)
        stamp(stamped, base_offset, self.leader_epoch)
        self.batches.append(bytes(stamped))
        return 0, base_offset

    def move(self, leader: int) -> None:
        """Let another broker lead, under the next epoch."""
        self.epoch_ends[self.leader_epoch] = self.end_offset
        self.leader = leader
        self.leader_epoch += 1


class ScriptedBroker:
    """One broker: answers each request by the cluster's script, else as usual."""

    served: tuple[ApiKey, ...] = SERVED

    def __init__(self, cluster: ScriptedCluster, node_id: int, address: str) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.address = address
        self.wires: list[Wire] = []

    def stop(self) -> None:
        """Refuse connections and close those there are."""
        self.cluster.stopped.add(self.node_id)
        for wire in list(self.wires):
            wire.close()

    def receive(self, wire: Wire, frame: memoryview) -> None:
        header, body_at = decode_request_header(frame)
        request = decode(API[header.api_key].request, header.api_version, frame, body_at)
        key = ApiKey(header.api_key)
        self.cluster.requests.append((self.node_id, request))
        script = self.cluster.scripts[key]
        answer: Answer = script.popleft() if script else ScriptedBroker.usual
        try:
            response = answer(self, request)
        except Silence:
            return
        except HangUp:
            wire.close()
            return
        if isinstance(request, FetchRequest) and not any(
            row.records or row.error_code
            for topic in cast(FetchResponse, response).responses
            for row in topic.partitions
        ):
            asyncio.get_running_loop().call_later(request.max_wait_ms / 1000, wire.deliver, header, response)
        elif not (isinstance(request, ProduceRequest) and request.acks == 0):
            wire.deliver(header, response)

    # ---- the usual answers

    def usual(self, request: Message) -> Message:
        """Answer as a broker does that has no trouble."""
        return getattr(self, f"_{_snake(type(request).__name__.removesuffix('Request'))}")(request)  # type: ignore[no-any-return]

    def _api_versions(self, request: Message) -> Message:
        rows = [
            ApiVersion(api_key=key, min_version=API[key].min_version, max_version=API[key].announced[1])
            for key in self.served
        ]
        return ApiVersionsResponse(api_keys=rows)

    def _metadata(self, request: MetadataRequest) -> Message:
        rows = [
            MetadataResponsePartition(
                error_code=0 if log.leader >= 0 else 5,
                partition_index=number,
                leader_id=log.leader,
                leader_epoch=log.leader_epoch,
                replica_nodes=sorted(self.cluster.brokers),
                isr_nodes=sorted(self.cluster.brokers),
                offline_replicas=[],
            )
            for number, log in enumerate(self.cluster.logs)
        ]
        names = None if request.topics is None else {row.name for row in request.topics}
        topics = [MetadataResponseTopic(error_code=0, name=TOPIC, topic_id=TOPIC_ID, partitions=rows)]
        return MetadataResponse(
            brokers=self.cluster.broker_rows(),
            cluster_id="scripted",
            controller_id=1,
            topics=topics if names is None or TOPIC in names else [],
        )

    def _init_producer_id(self, request: Message) -> Message:
        self.cluster.producer_ids += 1
        return InitProducerIdResponse(
            error_code=0,
            producer_id=PRODUCER_ID + self.cluster.producer_ids,
            producer_epoch=self.cluster.first_producer_epoch if self.cluster.producer_ids == 1 else 0,
        )

    def _produce(self, request: ProduceRequest) -> Message:
        def row(number: int, data: Any) -> PartitionProduceResponse:
            log = self.cluster.logs[number]
            if log.leader != self.node_id:
                return PartitionProduceResponse(index=number, error_code=6, base_offset=-1)
            code, base_offset = log.append(bytes(data))
            return PartitionProduceResponse(index=number, error_code=code, base_offset=base_offset)

        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[row(part.index, part.records) for part in topic.partition_data],
                )
                for topic in request.topic_data
            ]
        )

    def _fetch(self, request: FetchRequest) -> Message:
        def row(number: int, offset: int, leader_epoch: int) -> PartitionData:
            log = self.cluster.logs[number]
            found = PartitionData(
                partition_index=number, error_code=0, high_watermark=log.end_offset, aborted_transactions=None
            )
            if log.leader != self.node_id and number not in self.cluster.followed_by[self.node_id]:
                found.error_code = 6
            elif leader_epoch != log.leader_epoch:
                found.error_code = 74 if leader_epoch < log.leader_epoch else 75
            elif not log.start_offset <= offset <= log.end_offset:
                found.error_code = 1
            else:
                found.records = b"".join(b for b in log.batches if RecordBatch(b).next_offset > offset)
            return found

        return FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic_id=topic.topic_id,
                    partitions=[row(p.partition, p.fetch_offset, p.current_leader_epoch) for p in topic.partitions],
                )
                for topic in request.topics
            ]
        )

    def _list_offsets(self, request: ListOffsetsRequest) -> Message:
        def row(number: int, timestamp: int) -> ListOffsetsPartitionResponse:
            log = self.cluster.logs[number]
            offset = log.end_offset if timestamp == -1 else log.start_offset
            code = 0 if log.leader == self.node_id else 6
            return ListOffsetsPartitionResponse(
                partition_index=number, error_code=code, offset=offset, leader_epoch=log.leader_epoch
            )

        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name, partitions=[row(part.partition_index, part.timestamp) for part in topic.partitions]
                )
                for topic in request.topics
            ]
        )

    def _offset_for_leader_epoch(self, request: OffsetForLeaderEpochRequest) -> Message:
        def row(number: int, leader_epoch: int) -> EpochEndOffset:
            log = self.cluster.logs[number]
            end_offset = log.epoch_ends.get(leader_epoch, log.end_offset)
            return EpochEndOffset(error_code=0, partition=number, leader_epoch=leader_epoch, end_offset=end_offset)

        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic=topic.topic, partitions=[row(part.partition, part.leader_epoch) for part in topic.partitions]
                )
                for topic in request.topics
            ]
        )

    def _find_coordinator(self, request: FindCoordinatorRequest) -> Message:
        broker = self.cluster.brokers[self.cluster.coordinator]
        host, port = broker.address.split(":")
        rows = [
            Coordinator(key=key, node_id=broker.node_id, host=host, port=int(port), error_code=0, error_message=None)
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=rows)

    def _offset_commit(self, request: OffsetCommitRequest) -> Message:
        is_coordinator = self.cluster.coordinator == self.node_id
        for topic in request.topics if is_coordinator else ():
            for row in topic.partitions:
                self.cluster.committed[row.partition_index] = (row.committed_offset, row.committed_leader_epoch)
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=row.partition_index, error_code=0 if is_coordinator else 16
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("_")


class ScriptedCluster:
    """Brokers 1 to `brokers`, each at `node-N:9092`; the bootstrap address leads to broker 1. Topic `t`."""

    broker_type: type[ScriptedBroker] = ScriptedBroker

    def __init__(self, brokers: int = 1, partitions: int = 1) -> None:
        self.brokers = {
            number: self.broker_type(self, number, f"node-{number}:9092") for number in range(1, brokers + 1)
        }
        self.logs = [ScriptedLog(leader=1 + number % brokers) for number in range(partitions)]
        self.scripts: defaultdict[ApiKey, deque[Answer]] = defaultdict(deque)
        self.requests: list[tuple[int, Message]] = []
        self.stopped: set[int] = set()
        self.entrances: dict[str, int] = {BOOTSTRAP: 1}
        """Addresses that are in no metadata, and which broker answers there."""
        self.attempts: list[str] = []
        """Every address that the client tried to reach."""
        self.producer_ids = 0
        self.first_producer_epoch = 0
        self.coordinator = 1
        self.committed: dict[int, tuple[int, int]] = {}
        self.followed_by: defaultdict[int, set[int]] = defaultdict(set)

    # ---- what a test says

    def reply(self, key: ApiKey, *answers: Answer) -> None:
        """Script the next answers to requests of one kind, whichever broker gets them."""
        self.scripts[key].extend(answers)

    def fill(self, partition: int, *values: bytes) -> None:
        """Write one batch to a partition."""
        builder = BatchBuilder()
        for value in values:
            builder.append(1, None, value)
        self.logs[partition].append(builder.build())

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a test's coroutine to its end on a scripted loop."""
        with asyncio.Runner(loop_factory=lambda: ScriptedLoop(self)) as runner:
            return runner.run(work())

    # ---- what a test asks

    def sent(self, request_type: type[T]) -> list[tuple[int, T]]:
        """Return who was asked what, of one kind."""
        return [(node_id, request) for node_id, request in self.requests if isinstance(request, request_type)]

    # ---- within

    def at(self, address: str) -> ScriptedBroker | None:
        self.attempts.append(address)
        node_id = self.entrances.get(address)
        known = [one for one in self.brokers.values() if one.address == address or one.node_id == node_id]
        return next((one for one in known if one.node_id not in self.stopped), None)

    def broker_rows(self) -> list[MetadataResponseBroker]:
        rows = []
        for broker in self.brokers.values():
            host, port = broker.address.split(":")
            if broker.node_id not in self.stopped:
                rows.append(MetadataResponseBroker(node_id=broker.node_id, host=host, port=int(port), rack=None))
        return rows


# ---- answers to script


def refuse(error: type[KafkaError]) -> Answer:
    """Produce or Fetch: refuse every partition."""

    def answer(broker: ScriptedBroker, request: Any) -> Message:
        if isinstance(request, ProduceRequest):
            return produced(request, PartitionProduceResponse(error_code=error.code, base_offset=-1))
        assert isinstance(request, FetchRequest)
        return FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic_id=topic.topic_id,
                    partitions=[
                        PartitionData(
                            partition_index=row.partition,
                            error_code=error.code,
                            high_watermark=-1,
                            aborted_transactions=None,
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return answer


def produced(request: ProduceRequest, row: PartitionProduceResponse) -> ProduceResponse:
    """Return an answer in which one row stands for every partition of the request."""
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=part.index,
                        error_code=row.error_code,
                        base_offset=row.base_offset,
                        record_errors=row.record_errors,
                        error_message=row.error_message,
                        current_leader=row.current_leader,
                    )
                    for part in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def silence(broker: ScriptedBroker, request: Any) -> Message:
    """Never answer."""
    raise Silence


def hang_up(broker: ScriptedBroker, request: Any) -> Message:
    """Close the connection instead of answering."""
    raise HangUp


def write_and_hang_up(broker: ScriptedBroker, request: Any) -> Message:
    """Do what was asked, and close the connection before the answer."""
    broker.usual(request)
    raise HangUp


def batches_of(request: ProduceRequest) -> list[RecordBatch]:
    """Return what a Produce brings, in the order of its partitions."""
    found = []
    for topic in request.topic_data:
        for part in topic.partition_data:
            found += list(split_batches(cast(memoryview, part.records)))
    return found


def settings(**said: Any) -> ClusterSettings:
    """Return settings without automatic creation."""
    request_timeout_ms = said.pop("request_timeout_ms", 30_000)
    return ClusterSettings(
        connection=ConnectionSettings(request_timeout_ms=request_timeout_ms), allow_auto_create_topics=False, **said
    )


T0: Final = TopicPartition(TOPIC, 0)
T1: Final = TopicPartition(TOPIC, 1)


def refuse_to_find(code: int) -> Any:
    """An answer to FindCoordinator that names none."""

    def answer(broker: ScriptedBroker, request: FindCoordinatorRequest) -> Message:
        rows = [
            Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=None)
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=rows)

    return answer
