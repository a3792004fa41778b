"""Any bytes as a request of Jafka's clients, as a set that they produce, and as the segment of a log."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest

from ottla.dialects.jafka.codec import Malformed, decode_request
from ottla.errors import KafkaError
from ottla.records.builder import BatchBuilder
from ottla.records.jafka import SetWalk
from ottla.records.jafka_reading import count_records, fill_batch
from ottla.records.reading import decode
from tests.fuzz.mutation import fuzz, memory_within, mutated
from tests.turns import finish

MEMORY_BYTES = 256 * 1024
INFLATED_BYTES = 64 * 1024


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def message(payload: bytes, attributes: int = 0) -> bytes:
    return struct.pack(">ibBI", 6 + len(payload), 1, attributes, zlib.crc32(payload)) + payload


def sets() -> list[bytes]:
    plain = [message(bytes(size)) for size in (0, 1, 7, 200)]
    packed = [message(gzip.compress(b"".join(plain[:count]), mtime=0), 1) for count in (1, 3)]
    return [*plain, *packed, b"".join(plain + packed), message(gzip.compress(packed[1], mtime=0), 1)]


def requests() -> list[bytes]:
    topic = struct.pack(">h", 1) + b"t"
    fetch = topic + struct.pack(">iqi", 0, 5, 100)
    bodies = [(0, topic + struct.pack(">ii", 0, len(one)) + one) for one in sets()]
    bodies += [(1, fetch), (2, struct.pack(">h", 2) + fetch * 2), (4, topic + struct.pack(">iqi", 0, -1, 9))]
    bodies += [(3, struct.pack(">h", 1) + bodies[0][1]), (5, topic + struct.pack(">ib", 3, 0)), (6, topic + topic)]
    return [struct.pack(">h", kind) + body for kind, body in bodies]


def test_any_bytes_are_a_request_or_refused() -> None:
    def check(frame: bytes) -> None:
        with memory_within(MEMORY_BYTES + 200 * len(frame)):
            try:
                finish(decode_request(frame))
            except Malformed:
                return

    fuzz(mutated(requests()), check)


def test_any_set_is_taken_or_refused_within_bounds() -> None:
    def check(data: bytes) -> None:
        with memory_within(MEMORY_BYTES + 4 * INFLATED_BYTES + 200 * len(data)):
            try:
                walk = SetWalk(data, 1 << 20, max_inflated_bytes=INFLATED_BYTES)
                payload_count = 0
                while not walk.is_over:
                    payload_count += len(walk.take())
            except KafkaError as error:
                assert error.code > 0
                return
        assert count_records(data[: walk.end]) == (walk.end, payload_count, False)

    fuzz(mutated(sets()), check)


def test_any_segment_is_read_as_far_as_it_is_whole() -> None:
    def check(data: bytes) -> None:
        try:
            counted = count_records(data)
        except KafkaError as error:
            assert error.code > 0
            return
        batch = BatchBuilder()
        assert fill_batch(batch, data, 0, 1 << 30, 1 << 30, at_least_one=True) == counted
        assert batch.count == counted.records
        if batch.count:
            assert len(decode(batch.build(), 0, 1 << 40).records) == batch.count

    fuzz(mutated(sets()), check)
