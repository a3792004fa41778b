"""A client made for misuse, and a whole broker to try it on: what the tests of public bugs share.

`Peer` is one TCP connection that can say anything, in frames or in raw bytes. `Room` is a broker in this process with
verbs for what most tests do: create a topic, produce a batch, fetch, look at offsets. `on_broker` gives a test its own.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from ottla.clock import Clock
from ottla.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from ottla.protocol.apis import API
from ottla.protocol.codec import decode_with_end, encode
from ottla.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from ottla.protocol.schema import Message
from ottla.records.batch import RecordBatch, split_batches
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.records.crc32c import crc32c
from ottla.testing.cluster import RunningBroker, running_broker

SECONDS: Final = 10.0
"""No answer takes longer; a test that waits that long has failed."""

PRODUCE_VERSION: Final = 12
FETCH_VERSION: Final = 12
LIST_OFFSETS_VERSION: Final = 10
CREATE_TOPICS_VERSION: Final = 7

NONE: Final = 0
ACKS_ALL: Final = -1


class Peer:
    """One connection to the broker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._correlation_ids = itertools.count(1)

    @classmethod
    async def connect(cls, address: str) -> Peer:
        host, port = address.rsplit(":", 1)
        return cls(*await asyncio.open_connection(host, int(port)))

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(data)

    def send(self, request: Message, version: int, *, client_id: str | None = "test") -> int:
        """Send a request without waiting for its answer; returns its correlation id."""
        correlation_id = next(self._correlation_ids)
        self.write(frame(request, version, correlation_id, client_id=client_id))
        return correlation_id

    async def receive(self) -> bytes:
        """Return the next frame without its size. Raises when the broker hangs up first."""
        async with asyncio.timeout(SECONDS):
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            return await self.reader.readexactly(size)

    async def receive_answer(self, response: type[Message], version: int, correlation_id: int) -> Any:
        """Return the next answer, which must be the one to `correlation_id` and fill its frame."""
        return read_answer(await self.receive(), response, version, correlation_id)

    async def ask(self, request: Message, version: int, *, client_id: str | None = "test") -> Any:
        """Send a request and return its answer."""
        correlation_id = self.send(request, version, client_id=client_id)
        key = type(request).SCHEMA.key
        assert key is not None
        return await self.receive_answer(API[key].response, version, correlation_id)

    @property
    def has_received(self) -> bool:
        """Whether bytes have come that nobody took."""
        return bool(self.reader._buffer)  # type: ignore[attr-defined]  # asyncio has no other way to ask

    async def is_ended(self) -> bool:
        """Return whether the broker hangs up without a word; False when it answers."""
        try:
            async with asyncio.timeout(SECONDS):
                return not await self.reader.read(1)
        except ConnectionError:
            return True

    async def close(self) -> None:
        """Hang up, whatever the broker has done meanwhile."""
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


def frame(request: Message, version: int, correlation_id: int = 1, *, client_id: str | None = "test") -> bytes:
    """Return a whole request frame, size first."""
    key = type(request).SCHEMA.key
    assert key is not None
    header = encode_request_header(RequestHeader(key, version, correlation_id, client_id))
    return sized(header + encode(request, version))


def sized(body: bytes) -> bytes:
    """Return bytes with their size in front."""
    return len(body).to_bytes(4, "big") + body


def read_answer(data: bytes, response: type[Message], version: int, correlation_id: int) -> Any:
    """Decode a frame that must be the answer to `correlation_id` and hold nothing behind it."""
    key = response.SCHEMA.key
    assert key is not None
    answered, position = decode_response_header(memoryview(data), API[key].response_header_version(version))
    assert answered == correlation_id
    message, end = decode_with_end(response, version, memoryview(data), position)
    assert end == len(data), f"{len(data) - end} bytes follow the {response.__name__} of version {version}"
    return message


class Room:
    """A broker, and a connection to it that most steps use."""

    def __init__(self, address: str, peer: Peer, running: RunningBroker | None = None) -> None:
        self.address = address
        self.peer = peer
        self._peers = [peer]
        self._running = running

    @property
    def running(self) -> RunningBroker:
        """The broker where it is in this process."""
        assert self._running is not None
        return self._running

    async def connect(self) -> Peer:
        """Open another connection; it is closed at the end."""
        peer = await Peer.connect(self.address)
        self._peers.append(peer)
        return peer

    async def close(self) -> None:
        for peer in self._peers:
            await peer.close()

    async def ask(self, request: Message, version: int) -> Any:
        return await self.peer.ask(request, version)

    async def create(self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> bytes:
        """Create a topic and return its id."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        answer = await self.ask(CreateTopicsRequest(topics=[topic]), CREATE_TOPICS_VERSION)
        (row,) = answer.topics
        assert row.error_code == NONE, row.error_message
        topic_id: bytes = row.topic_id
        return topic_id

    async def produce(
        self, topic: str, records: bytes | None, *, partition: int = 0, acks: int = ACKS_ALL, version: int = 12
    ) -> PartitionProduceResponse:
        """Produce to one partition and return its row."""
        answer = await self.ask(produce_request({topic: {partition: records}}, acks=acks), version)
        row: PartitionProduceResponse = answer.responses[0].partition_responses[0]
        return row

    async def append(self, topic: str, *values: bytes, partition: int = 0, **of_batch: Any) -> int:
        """Produce one batch that must be taken; returns its base offset."""
        row = await self.produce(topic, batch(*values, **of_batch), partition=partition)
        assert row.error_code == NONE, (row.error_code, row.error_message)
        return row.base_offset

    async def fetch(
        self,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        max_bytes: int = 1 << 20,
        max_wait_ms: int = 0,
        leader_epoch: int = -1,
        isolation_level: int = 0,
    ) -> PartitionData:
        """Fetch from one partition and return its row."""
        wanted = {topic: {partition: offset}}
        request = fetch_request(wanted, max_wait_ms=max_wait_ms, max_bytes=max_bytes, leader_epoch=leader_epoch)
        request.isolation_level = isolation_level
        answer = await self.ask(request, FETCH_VERSION)
        row: PartitionData = answer.responses[0].partitions[0]
        return row

    async def read_all(self, topic: str, *, partition: int = 0, start: int = 0) -> list[tuple[int, bytes | None]]:
        """Return offset and value of every record from an offset on."""
        found: list[tuple[int, bytes | None]] = []
        position = start
        while True:
            row = await self.fetch(topic, position, partition=partition)
            assert row.error_code == NONE, row.error_code
            batches = batches_of(row)
            if not batches:
                return found
            for one in batches:
                found += [(r.offset, r.value) for r in one.records() if r.offset >= position]
            position = batches[-1].next_offset

    async def list_offset(
        self,
        topic: str,
        timestamp: int,
        *,
        partition: int = 0,
        version: int = LIST_OFFSETS_VERSION,
        isolation_level: int = 0,
        leader_epoch: int = -1,
    ) -> ListOffsetsPartitionResponse:
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=leader_epoch)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
        )
        answer = await self.ask(request, version)
        row: ListOffsetsPartitionResponse = answer.topics[0].partitions[0]
        return row

    async def bounds(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """Return the partition's first offset and its end."""
        start = await self.list_offset(topic, EARLIEST_TIMESTAMP, partition=partition)
        end = await self.list_offset(topic, LATEST_TIMESTAMP, partition=partition)
        assert (start.error_code, end.error_code) == (NONE, NONE)
        return start.offset, end.offset

    async def delete_records(self, topic: str, before: int, partition: int = 0) -> tuple[int, int]:
        """Delete records below an offset; returns error code and low watermark."""
        rows = [DeleteRecordsPartition(partition_index=partition, offset=before)]
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=rows)], timeout_ms=5000)
        answer = await self.ask(request, 2)
        row = answer.topics[0].partitions[0]
        return row.error_code, row.low_watermark

    def wall_ms(self) -> int:
        """The broker's idea of now."""
        return self.running.server.clock.wall_ms()


@asynccontextmanager
async def open_room(settings: Mapping[str, str] | None = None, *, clock: Clock | None = None) -> AsyncIterator[Room]:
    """Start a broker and connect to it."""
    async with running_broker(settings, clock=clock) as running, room_at(running.address, running) as room:
        yield room


@asynccontextmanager
async def room_at(address: str, running: RunningBroker | None = None) -> AsyncIterator[Room]:
    """Connect to a broker that is there already."""
    room = Room(address, await Peer.connect(address), running)
    try:
        yield room
    finally:
        await room.close()


def on_broker(
    settings: Mapping[str, str] | None = None, *, clock: Callable[[], Clock] | None = None
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Give an asynchronous test a `Room` of its own as its first argument; the others stay pytest's."""

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        async def run(*arguments: Any, **named: Any) -> None:
            async with open_room(settings, clock=None if clock is None else clock()) as room:
                await test(room, *arguments, **named)

        @functools.wraps(test)
        def wrapper(*arguments: Any, **named: Any) -> None:
            asyncio.run(run(*arguments, **named))

        signature = inspect.signature(test)
        parameters = list(signature.parameters.values())[1:]
        wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return wrapper

    return decorate


def batch(
    *values: bytes | None,
    keys: Sequence[bytes | None] = (),
    timestamps: Sequence[int] = (),
    headers: tuple[tuple[str, bytes | None], ...] = (),
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] | None = None,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """Return a batch of these values. `producer` is id, epoch and base sequence; the time is now unless given."""
    now_ms = int(time.time() * 1000)
    producer_id, producer_epoch, base_sequence = producer or (-1, -1, -1)
    builder = BatchBuilder(
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
    )
    for number, value in enumerate(values):
        timestamp = timestamps[number] if timestamps else now_ms
        builder.append(timestamp, keys[number] if keys else None, value, headers)
    return builder.build()


def sign(records: bytes | bytearray) -> bytes:
    """Return one batch with a checksum that fits its bytes as they are now."""
    whole = bytearray(records)
    whole[17:21] = crc32c(whole[21:]).to_bytes(4, "big")
    return bytes(whole)


def batches_of(row: PartitionData) -> list[RecordBatch]:
    """Return the batches of a fetched partition, each of which must have a right checksum."""
    records = row.records
    if records is None:
        return []
    assert isinstance(records, memoryview)
    found = list(split_batches(records))
    assert all(one.is_crc_valid() for one in found)
    return found


def produce_request(
    wanted: Mapping[str, Mapping[int, bytes | None]], *, acks: int = ACKS_ALL, transactional_id: str | None = None
) -> ProduceRequest:
    """Return a request that carries these records, by topic and partition."""
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=5000,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[PartitionProduceData(index=number, records=data) for number, data in rows.items()],
            )
            for topic, rows in wanted.items()
        ],
    )


def fetch_request(
    wanted: Mapping[str, Mapping[int, int]],
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    session: tuple[int, int] = (0, -1),
    leader_epoch: int = -1,
) -> FetchRequest:
    """Return a request that reads from these offsets, by topic and partition. `session` is its id and epoch."""
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=number,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        current_leader_epoch=leader_epoch,
                    )
                    for number, offset in rows.items()
                ],
            )
            for topic, rows in wanted.items()
        ],
    )
