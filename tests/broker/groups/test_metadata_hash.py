"""The hash of a group's topics: values that Kafka 4.4 stored for known topics."""

from __future__ import annotations

from ottla.broker.groups.metadata_hash import NO_TOPICS, hash_group, hash_topic
from ottla.model import parse_uuid

EVENTS = hash_topic(parse_uuid("hvXiWQMuRlGTwl68ruGSAw"), "events", [[]] * 3)
ORDERS = hash_topic(parse_uuid("Jqia6ZZ_Qsenyq21tv_bLg"), "orders", [[]] * 4)


def test_hashes_are_those_that_kafka_stored() -> None:
    assert hash_group([("events", EVENTS)]) == 5454233074232418721
    assert hash_group([("orders", ORDERS)]) == 6783709875059152854
    assert hash_group([("orders", ORDERS), ("events", EVENTS)]) == -7136119917484516084


def test_no_topics_is_zero() -> None:
    assert hash_group([]) == NO_TOPICS


def test_partitions_racks_and_ids_each_change_it() -> None:
    topic_id = bytes(range(16))
    hashes = [
        hash_topic(topic_id, "t", [[]]),
        hash_topic(topic_id, "t", [[], []]),
        hash_topic(topic_id, "t", [["a"], []]),
        hash_topic(topic_id, "t", [["a", "b"], []]),
        hash_topic(topic_id, "t", [["a"], ["b"]]),
        hash_topic(bytes(16), "t", [[]]),
    ]

    assert len(set(hashes)) == len(hashes)


def test_the_order_of_racks_does_not_matter() -> None:
    assert hash_topic(bytes(16), "t", [["a", "b"]]) == hash_topic(bytes(16), "t", [["b", "a"]])
