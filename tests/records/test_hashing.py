"""Keys and group ids land where Kafka's clients and coordinators put them."""

from __future__ import annotations

from ottla.records.hashing import (
    coordinator_partition,
    java_string_hash,
    murmur2,
    partition_for_key,
    share_partition_key,
)
from tests.records.golden import partitions, rows


def test_keys_hash_and_land_as_in_kafka() -> None:
    for row in rows("murmur2"):
        key = bytes.fromhex(row["key_hex"])
        assert murmur2(key) == int(row["murmur2"]), row
        for count, partition in partitions(row):
            assert partition_for_key(key, count) == partition, row


def test_group_ids_find_the_coordinator_that_kafka_finds() -> None:
    for row in rows("group-partition"):
        group_id = row["id"].replace("\\t", "\t").replace("\\n", "\n")
        assert java_string_hash(group_id) == int(row["java_hash"]), row
        for count, partition in partitions(row):
            assert coordinator_partition(group_id, count) == partition, row


def test_share_partitions_find_the_coordinator_that_kafka_finds() -> None:
    for row in rows("share-partition"):
        key = share_partition_key(row["group"], row["topicId"], int(row["partition"]))
        assert (key, java_string_hash(key)) == (row["key"], int(row["java_hash"])), row
        for count, partition in partitions(row):
            assert coordinator_partition(key, count) == partition, row


def test_the_smallest_hash_lands_in_partition_0() -> None:
    """Java's absolute value of -2^31 is itself, which Kafka turns into 0."""
    text = "polygenelubricants"
    assert java_string_hash(text) == -(1 << 31)

    assert coordinator_partition(text, 50) == 0
