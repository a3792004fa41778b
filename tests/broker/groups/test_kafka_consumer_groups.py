"""Consumer groups in a `__consumer_offsets` log that Apache Kafka wrote, as Kafka described them after a start."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.groups.consumer_description import AssignedTopic
from ottla.broker.groups.coordinator import GroupCoordinator
from ottla.broker.groups.rebalance import GroupServices
from ottla.broker.groups.shard import encode_group_record
from ottla.broker.metadata.records import FeatureLevelRecord, TopicRecord
from ottla.clock import Timers
from ottla.config.broker_config import BrokerConfig
from ottla.config.current_config import CurrentConfig
from ottla.engine import Shard, StateRecord
from ottla.model import OFFSETS_TOPIC, parse_uuid
from ottla.protocol.internal.framing import CoordinatorRecord, decode_group_record
from ottla.storage.state_store import LocalStateStore
from ottla.testing.clock import ManualClock
from tests.broker.metadata.harness import state_of
from tests.storage.harness import GOLDEN, start_manager

DIRECTORIES = GOLDEN / "directories"


@pytest.fixture(scope="module")
def listed() -> Mapping[str, Any]:
    with gzip.open(DIRECTORIES / "groups.json.gz", "rt") as file:
        found: Mapping[str, Any] = json.load(file)
    return found


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> LocalStateStore:
    folder: Path = tmp_path_factory.mktemp("groups")
    with tarfile.open(DIRECTORIES / "groups.tar.gz") as archive:
        archive.extractall(folder, filter="fully_trusted")
    return LocalStateStore(start_manager(folder / "kafka-logs"), ManualClock())


@pytest.fixture(scope="module")
def coordinator(listed: Mapping[str, Any], store: LocalStateStore) -> GroupCoordinator:
    topics = [TopicRecord(name=name, topic_id=parse_uuid(topic["id"])) for name, topic in listed["topics"].items()]
    served = FeatureLevelRecord(name="group.version", feature_level=1)
    settings = CurrentConfig(BrokerConfig.from_properties({}))
    services = GroupServices(Timers(), ManualClock(), settings, new_uuid=lambda: "")
    made = GroupCoordinator(store=store, services=services, metadata=state_of(*topics, served), lead=lambda shard: 0)
    made.open(len(listed["topics"][OFFSETS_TOPIC]["partitions"]))
    return made


def flat(topics: Iterable[AssignedTopic]) -> list[str]:
    return sorted(f"{topic.name}-{partition}" for topic in topics for partition in topic.partitions)


def test_the_consumer_groups_are_those_that_kafka_lists(
    listed: Mapping[str, Any], coordinator: GroupCoordinator
) -> None:
    expected = {name: group["state"] for name, group in listed["groups"].items() if group["type"] == "Consumer"}

    assert {group.group_id: group.state_name for group in coordinator.list_groups(types=["consumer"])} == expected


def test_epochs_members_and_assignments_are_kafkas(listed: Mapping[str, Any], coordinator: GroupCoordinator) -> None:
    for name, group in listed["groups"].items():
        if group["type"] != "Consumer":
            continue
        described = coordinator.describe_consumer(name)
        assert {
            "state": described.group.state_name,
            "assignor": described.assignor_name,
            "group_epoch": described.group.group_epoch,
            "target_assignment_epoch": described.group.assignment_epoch,
            "members": sorted(
                (
                    {
                        "member_id": one.member.member_id,
                        "instance_id": one.member.instance_id,
                        "client_id": one.member.client_id,
                        "host": one.member.client_host,
                        "epoch": one.member.member_epoch,
                        "assignment": flat(one.assigned),
                        "target_assignment": flat(one.target),
                    }
                    for one in described.members
                ),
                key=str,
            ),
        } == {**group["describe"], "members": sorted(group["describe"]["members"], key=str)}, name


def test_what_a_group_would_write_of_itself_is_what_kafka_wrote(
    listed: Mapping[str, Any], store: LocalStateStore, coordinator: GroupCoordinator
) -> None:
    """Byte for byte, but for the order of topics in an assignment, which is that of Kafka's hash tables."""
    newest: dict[bytes, bytes | None] = {}
    for partition in range(len(listed["topics"][OFFSETS_TOPIC]["partitions"])):
        for batch in store.load(Shard(OFFSETS_TOPIC, partition)):
            newest.update((record.key, record.value) for record in batch.records if record.key is not None)
    checked = 0
    for name, facts in listed["groups"].items():
        if facts["type"] != "Consumer":
            continue
        for record in coordinator.describe_consumer(name).group.records():
            written = encode_group_record(record)
            assert written.key is not None
            stored = newest.get(written.key)
            assert stored is not None and written.value is not None, (name, record)
            assert in_order(written) == in_order(StateRecord(written.key, stored)), (name, record)
            checked += 1
    assert checked > 25


def in_order(record: StateRecord) -> bytes | None:
    """The record with the topics of assignments in order of their ids."""
    assert record.key is not None
    decoded = decode_group_record(record.key, record.value)
    assert isinstance(decoded, CoordinatorRecord)
    for field in ("topic_partitions", "assigned_partitions"):
        topics = getattr(decoded.value, field, None)
        if topics:
            topics.sort(key=lambda topic: bytes(topic.topic_id))
    return encode_group_record(decoded).value
