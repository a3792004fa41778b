"""Damaged requests to a whole broker over TCP: it answers or hangs up, logs no fault of its own, and serves others.

Changing settings is left out: a good one may well tell the broker under test to take no more connections.
"""

from __future__ import annotations

import logging
import random
import socket
from collections.abc import Iterator

import pytest
from hypothesis import strategies as st

from ottla.model import format_uuid
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.messages.produce import ProduceResponse
from ottla.testing.cluster import RunningBroker, broker_in_thread
from tests.fuzz.corpus import batches, request_frames
from tests.fuzz.mutation import fuzz, mutated
from tests.wire import batch, fetch_request, frame, produce_request, read_answer

TOPIC = "fuzzed"
KEPT = "kept-by-another"
SECONDS = 60.0
LEFT_OUT = {ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS}


class Faults(logging.Handler):
    """Remembers what the broker logged as its own fault."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def faults() -> Iterator[Faults]:
    handler = Faults()
    logging.getLogger("ottla").addHandler(handler)
    yield handler
    logging.getLogger("ottla").removeHandler(handler)


class Neighbour:
    """A connection that works all the time, and knows how much it has written."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), SECONDS)
        self._correlation_id = 0
        self._written = 0

    def ask(self, data: bytes) -> bytes:
        self._socket.sendall(data)
        size = int.from_bytes(self._take(4), "big")
        return self._take(size)

    def _take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self._socket.recv(count - len(data))
            assert piece, "the neighbour was hung up on"
            data += piece
        return data

    def create(self, name: str) -> None:
        topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        self.ask(frame(CreateTopicsRequest(topics=[topic]), 7))

    def work(self) -> None:
        """Append one record, which must get the next offset."""
        self._correlation_id += 1
        data = self.ask(frame(produce_request({KEPT: {0: batch(b"v")}}), 12, self._correlation_id))
        answer = read_answer(data, ProduceResponse, 12, self._correlation_id)
        (row,) = answer.responses[0].partition_responses
        assert (row.error_code, row.base_offset) == (0, self._written)
        self._written += 1

    def topic_id(self, name: str) -> bytes:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        answer = read_answer(self.ask(frame(request, 12, 1)), MetadataResponse, 12, 1)
        topic_id: bytes = answer.topics[0].topic_id
        return topic_id

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def running() -> Iterator[RunningBroker]:
    with broker_in_thread({"num.partitions": "2"}) as running:
        yield running


@pytest.fixture
def neighbour(running: RunningBroker) -> Iterator[Neighbour]:
    neighbour = Neighbour(running.address)
    neighbour.create(KEPT)
    neighbour.create(TOPIC)
    yield neighbour
    neighbour.close()


def deep_frames(topic_id: bytes) -> list[bytes]:
    """Requests that get far: they name a topic that exists."""
    assert format_uuid(topic_id)
    offsets = [ListOffsetsPartition(partition_index=p, timestamp=t) for p in (0, 1) for t in (-1, -2, -3, 5)]
    deleted = [DeleteRecordsPartition(partition_index=1, offset=-1)]
    frames = []
    for records in random.Random(1).sample(batches(), 150):
        produce = produce_request({TOPIC: {0: records, 1: batch(b"good")}})
        fetch = fetch_request({TOPIC: {0: 0, 1: 1}}, max_wait_ms=1)
        fetch.topics[0].topic_id = produce.topic_data[0].topic_id = topic_id
        frames += [frame(produce, version) for version in (3, 7, 9, 12, 13)]
        frames += [frame(fetch, version) for version in (4, 7, 11, 12, 13, 17)]
    for version in range(1, 12):
        topics = [ListOffsetsTopic(name=TOPIC, partitions=offsets)]
        frames.append(frame(ListOffsetsRequest(replica_id=-1, topics=topics), version))
    for version in range(3):
        topics_to_trim = [DeleteRecordsTopic(name=TOPIC, partitions=deleted)]
        frames.append(frame(DeleteRecordsRequest(topics=topics_to_trim, timeout_ms=100), version))
    grown = CreatePartitionsTopic(name=TOPIC, count=3, assignments=None)
    frames += [frame(CreatePartitionsRequest(topics=[grown], timeout_ms=100), version) for version in range(4)]
    return frames


def sized_frames() -> list[bytes]:
    return [len(data).to_bytes(4, "big") + data for data in request_frames() if is_fuzzed(data)]


def is_fuzzed(data: bytes) -> bool:
    return int.from_bytes(data[:2], "big") not in LEFT_OUT


def with_right_size(data: bytes) -> bytes:
    """The same bytes, where the size in front counts them: most damage should be behind it."""
    return (max(len(data) - 4, 0)).to_bytes(4, "big") + data[4:]


def test_damaged_requests_disturb_nobody(running: RunningBroker, neighbour: Neighbour, faults: Faults) -> None:
    host, port = running.address.rsplit(":", 1)

    def check(stream: bytes) -> None:
        with socket.create_connection((host, int(port)), SECONDS) as stranger:
            try:
                stranger.sendall(stream)
                stranger.shutdown(socket.SHUT_WR)
                while stranger.recv(65536):
                    pass
            except ConnectionError:
                pass
        neighbour.work()
        assert not faults.records, faults.records[0].getMessage()

    seeds = sized_frames() + deep_frames(neighbour.topic_id(TOPIC))
    damaged = mutated(seeds)
    whole = damaged.map(with_right_size).filter(lambda data: is_fuzzed(data[4:]))
    streams = st.one_of(
        damaged.filter(lambda data: is_fuzzed(data[4:])), whole, st.lists(whole, max_size=4).map(b"".join)
    )
    fuzz(streams, check)
