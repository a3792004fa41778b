"""Produce requests get the same answers and leave the same log whichever of the two ways they go.

A request with a tagged field that nobody knows is not of the usual form, and means the same (KIP-482). So one session
is sent requests as they are, cut anywhere, and another one the same with such a field, one by one.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from ottla.broker.metadata.create_topics import NewTopic
from ottla.protocol.apis import ApiKey
from ottla.protocol.connection import SCRATCH_BYTES
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from tests.dialects.handlers.harness import Bench
from tests.dialects.kafka.test_session import Conversation

TOPICS = (
    ("plain", ()),
    ("timed", (("message.timestamp.type", "LogAppendTime"),)),
    ("keyed", (("cleanup.policy", "compact"),)),
)
PARTITIONS = 2
UNKNOWN_TAG = b"\x01\x63\x00"
"""One tagged field, number 99, without bytes; in place of the byte that says that there is none."""
TOPIC_ID_FROM = 13


class Side:
    """A broker and a connection to it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        bench = Bench(directory)
        bench.controller.create_topics([NewTopic(name, PARTITIONS, 1, configs=configs) for name, configs in TOPICS])
        self.talk = Conversation(bench)
        self.topic_ids = {topic: known.topic_id for topic, _ in TOPICS if (known := bench.broker.find_topic(topic))}

    def frame(self, version: int, acks: int, topic: str, partition: int, records: bytes) -> bytes:
        data = [PartitionProduceData(index=partition, records=records)]
        if version >= TOPIC_ID_FROM:
            named = TopicProduceData(topic_id=self.topic_ids.get(topic, b"id of no topic.."), partition_data=data)
        else:
            named = TopicProduceData(name=topic, partition_data=data)
        request = ProduceRequest(acks=acks, timeout_ms=5, topic_data=[named])
        return self.talk.frame(ApiKey.PRODUCE, version, request, has_answer=acks != 0)

    def rows(self) -> list[tuple[Any, ...]]:
        """What was answered since the last call, without ids, which differ from side to side."""
        rows = []
        for answer in self.talk.answers():
            assert isinstance(answer.message, ProduceResponse)
            for topic in answer.message.responses:
                assert topic.name or topic.topic_id in {*self.topic_ids.values(), b"id of no topic.."}
                rows += [(answer.correlation_id, topic.name, repr(row)) for row in topic.partition_responses]
        return rows

    def logs(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.directory)): path.read_bytes() for path in self.directory.rglob("*.log")}


def tagged(frame: bytes) -> bytes:
    assert frame.endswith(b"\0")
    return (len(frame) - 4 + 2).to_bytes(4, "big") + frame[4:-1] + UNKNOWN_TAG


def random_batch(random: Random, next_sequence: dict[int, int], *, is_sound: bool = False) -> bytes:
    producer_id = -1 if is_sound else random.choice((-1, -1, 7, 8))
    sequence = -1
    if producer_id >= 0:
        sequence = max(0, next_sequence.get(producer_id, 0) + random.choice((0, 0, 0, 0, 0, 0, -1, 1)))
    builder = BatchBuilder(
        codec=random.choice((Codec.NONE,) * 6 + (Codec.GZIP,)),
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=sequence,
    )
    count = random.choice((1, 1, 3))
    for _ in range(count):
        key = random.choice((b"k", b"k", b"k", None))
        builder.append(1_750_000_000_000, key, bytes(random.choice((5, 300, 20_000, SCRATCH_BYTES))))
    if producer_id >= 0:
        next_sequence[producer_id] = sequence + count
    records = bytearray(builder.build())
    if not is_sound and random.random() < 0.1:
        records[random.randrange(len(records))] ^= 1 << random.randrange(8)
    return bytes(records)


def choose_request(random: Random, next_sequence: dict[int, int]) -> tuple[int, int, str, int, bytes]:
    is_odd = random.random() < 0.1
    version = random.choice((9, 10, 13))
    if random.random() < 0.05:  # what goes wrong with acks=0 ends the connection
        return version, 0, "plain", 0, random_batch(random, {}, is_sound=True)
    acks = random.choice((1, 5)) if is_odd else random.choice((1, 1, -1))
    topic = random.choice(("nowhere", "timed", "keyed") if is_odd else ("plain", "plain", "plain", "timed", "keyed"))
    partition = random.choice((0, 1, PARTITIONS, -1)) if is_odd else random.choice((0, 0, 0, 1))
    return version, acks, topic, partition, random_batch(random, next_sequence)


@pytest.mark.parametrize("seed", range(20))
def test_both_ways_answer_and_append_alike(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    usual, general = Side(tmp_path / "usual"), Side(tmp_path / "general")
    next_sequence: dict[int, int] = {}
    stream = bytearray()
    expected: list[tuple[Any, ...]] = []
    while len(expected) < 150:
        request = choose_request(random, next_sequence)
        stream += usual.frame(*request)
        general.talk.send(tagged(general.frame(*request)))
        expected += general.rows()

    while stream:
        size_bytes = random.choice((3, 100, 5_000, 100_000, 1_000_000))
        usual.talk.send(bytes(stream[:size_bytes]))
        del stream[:size_bytes]

    assert usual.rows() == expected
    assert not usual.talk.carrier.is_closed
    assert usual.logs() == general.logs()
    assert sum("error_code=0" in row[2] for row in expected) > 50, "many were taken"
