"""The challenge's requests, and the answers of a real Kafka to them, in bytes.

All requests have a header of version 2. Answers to ApiVersions have one without tags, the others one with.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ottla.records.builder import BatchBuilder
from tests.codecrafters.files import MESSAGE_TIMESTAMP_MS, TopicFiles

CORRELATION_ID: Final = 0x605A05CD
MAX_INT: Final = 2**31 - 1
OPERATIONS: Final = bytes.fromhex("00000df8")
"""What everybody may do with a topic where nothing is forbidden, as Kafka tells it."""
Produced = Sequence[tuple[str, Sequence[tuple[int, bytes]]]]
"""Batches by topic and partition."""


def plain(text: str) -> bytes:
    """Bytes from hex with blanks."""
    return bytes.fromhex(text)


def compact(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


def _sized(data: bytes) -> bytes:
    """Put a length before bytes, one more than they are, in two bytes of a varint at most."""
    size = len(data) + 1
    return (bytes([size]) if size < 0x80 else bytes([size & 0x7F | 0x80, size >> 7])) + data


# -- requests


def _request(api_key: int, version: int, body: bytes, correlation_id: int = CORRELATION_ID) -> bytes:
    return struct.pack(">hhih", api_key, version, correlation_id, 12) + b"kafka-tester\x00" + body


def api_versions(correlation_id: int = CORRELATION_ID, version: int = 4) -> bytes:
    return _request(18, version, b"\x0akafka-cli\x040.1\x00", correlation_id)


def describe_topics(names: Sequence[str], limit: int) -> bytes:
    listed = b"".join(compact(name) + b"\x00" for name in names)
    return _request(75, 0, bytes([len(names) + 1]) + listed + struct.pack(">i", limit) + b"\xff\x00")


def fetch(topic_id: bytes | None) -> bytes:
    """Ask for partition 0 of a topic from its beginning, or for nothing."""
    partition = struct.pack(">iiqiqi", 0, -1, 0, -1, -1, MAX_INT)
    topics = b"\x01" if topic_id is None else b"\x02" + topic_id + b"\x02" + partition + b"\x00\x00"
    return _request(1, 16, struct.pack(">iiibii", 500, 1, MAX_INT, 0, 0, 0) + topics + b"\x01\x01\x00")


def produce(topics: Produced) -> bytes:
    body = b"\x00" + struct.pack(">hi", -1, 30000) + bytes([len(topics) + 1])
    for name, partitions in topics:
        rows = [struct.pack(">i", index) + _sized(batch) + b"\x00" for index, batch in partitions]
        body += compact(name) + bytes([len(rows) + 1]) + b"".join(rows) + b"\x00"
    return _request(0, 11, body + b"\x00")


def batch_of(*texts: str) -> bytes:
    """Return a batch as the challenge produces it: with the producer id 0, which nobody was given."""
    builder = BatchBuilder(leader_epoch=0, producer_id=0, producer_epoch=0, base_sequence=0)
    for text in texts:
        builder.append(MESSAGE_TIMESTAMP_MS, None, text.encode())
    return builder.build()


# -- answers, behind their size


def versions_in(answer: bytes, correlation_id: int = CORRELATION_ID) -> dict[int, tuple[int, int]]:
    """Return which versions of which requests an answer to ApiVersions tells."""
    assert answer[:6] == struct.pack(">ih", correlation_id, 0)
    rows = [struct.unpack_from(">hhhb", answer, 7 + 7 * index) for index in range(answer[6] - 1)]
    assert all(tags == 0 for *_, tags in rows)
    assert answer[7 + 7 * len(rows) :][:4] == bytes(4), "throttle time"
    return {key: (low, high) for key, low, high, _ in rows}


def described(*topics: TopicFiles) -> bytes:
    return _answer(bytes(4) + bytes([len(topics) + 1]) + b"".join(map(_described_topic, topics)) + b"\xff\x00")


def _described_topic(topic: TopicFiles) -> bytes:
    one_node = plain("02 00000001")
    rows = [
        plain("0000") + struct.pack(">iii", index, 1, 0) + one_node + one_node + plain("01 01 01 00")
        for index in range(len(topic.partitions))
    ]
    front = plain("0000") + compact(topic.name) + topic.topic_id + b"\x00"
    return front + bytes([len(rows) + 1]) + b"".join(rows) + OPERATIONS + b"\x00"


def described_unknown(name: str) -> bytes:
    return _answer(bytes(4) + plain("02 0003") + compact(name) + bytes(17) + b"\x01" + OPERATIONS + plain("00 ff 00"))


def without_session(answer: bytes) -> bytes:
    """Take the session's number out of an answer to Fetch: behind correlation id, tags, throttle time and error."""
    return answer[:11] + answer[15:]


def fetched(topic_id: bytes, records: bytes, count: int) -> bytes:
    """The answer to a fetch, without its session: so many records, all of a log that begins at 0."""
    offsets = struct.pack(">qqq", count, count, 0)
    row = plain("02 00000000 0000") + offsets + plain("00 ffffffff") + _sized(records) + bytes(2)
    return _answer(bytes(6) + b"\x02" + topic_id + row + b"\x00")


def fetched_unknown(topic_id: bytes) -> bytes:
    row = plain("02 00000000 0064") + b"\xff" * 24 + plain("01 ffffffff 01") + bytes(2)
    return _answer(bytes(6) + b"\x02" + topic_id + row + b"\x00")


def fetched_nothing() -> bytes:
    return _answer(bytes(6) + b"\x01\x00")


def produced(topics: Produced, error_code: int = 0) -> bytes:
    """The answer to a produce to new logs, in the order of the request."""
    body = bytes([len(topics) + 1])
    place = -1 if error_code else 0
    for name, partitions in topics:
        rows = [
            struct.pack(">ihqqq", index, error_code, place, -1, place) + plain("01 00 00") for index, _ in partitions
        ]
        body += compact(name) + bytes([len(rows) + 1]) + b"".join(rows) + b"\x00"
    return _answer(body + bytes(4) + b"\x00")


def _answer(body: bytes) -> bytes:
    return struct.pack(">i", CORRELATION_ID) + b"\x00" + body
