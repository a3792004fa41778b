"""What the generations of a classic group were: who was assigned what in each, as `__consumer_offsets` has it."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

from ottla.protocol.internal.consumer_protocol import ConsumerProtocolAssignment
from ottla.protocol.internal.framing import RawCoordinatorRecord, decode_group_record, decode_versioned
from ottla.protocol.internal.group_records import GroupMetadataKey, GroupMetadataValue

OFFSETS_TOPIC = "__consumer_offsets"
SECONDS = 30.0

Generation = tuple[int, dict[str, list[int]]]
"""Its number, and the partitions of each member."""


def read_generations(address: str, group: str) -> list[Generation]:
    """Return the generations of a group of one topic, in the order in which they were stored."""
    found: list[Generation] = []
    for key, value in _read_all(address):
        record = decode_group_record(key, value)
        if isinstance(record, RawCoordinatorRecord) or not isinstance(record.key, GroupMetadataKey):
            continue
        if record.key.group == group and isinstance(record.value, GroupMetadataValue):
            owned = {member.member_id: _partitions(member.assignment) for member in record.value.members}
            found.append((record.value.generation, owned))
    return found


def check_nothing_is_assigned_twice(address: str, group: str) -> None:
    """Raises when a partition has two owners in one generation, or a number is given to two generations."""
    generations = read_generations(address, group)
    assert generations
    seen: dict[int, dict[str, list[int]]] = {}
    for number, owned in generations:
        flat = [partition for one in owned.values() for partition in one]
        assert len(set(flat)) == len(flat), f"generation {number} has a partition twice: {owned}"
        assert seen.setdefault(number, owned) == owned, f"two generations are number {number}: {owned}, {seen[number]}"


def _partitions(assignment: bytes) -> list[int]:
    if not assignment:
        return []
    topics = decode_versioned(ConsumerProtocolAssignment, assignment).assigned_partitions
    return [number for topic in topics for number in topic.partitions]


def _read_all(address: str) -> list[tuple[bytes, bytes | None]]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.partition.eof": True})
    try:
        numbers = list(consumer.list_topics(OFFSETS_TOPIC, SECONDS).topics[OFFSETS_TOPIC].partitions)
        consumer.assign([TopicPartition(OFFSETS_TOPIC, number, 0) for number in numbers])
        rows: list[tuple[bytes, bytes | None]] = []
        ended: set[int | None] = set()
        while len(ended) < len(numbers):
            record = consumer.poll(SECONDS)
            assert record is not None, f"nothing came in {SECONDS} s"
            if record.error() is not None:  # the end of a partition
                ended.add(record.partition())
                continue
            key = record.key()
            assert key is not None
            rows.append((key, record.value()))
        return rows
    finally:
        consumer.close()
