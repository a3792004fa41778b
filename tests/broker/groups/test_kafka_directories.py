"""Groups and offsets in `__consumer_offsets` logs that Apache Kafka wrote, as Kafka itself then listed them."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ottla.broker.groups.classic import ClassicGroup
from ottla.broker.groups.coordinator import GroupCoordinator
from ottla.broker.groups.shard import encode_group_record
from ottla.clock import Timers
from ottla.config.broker_config import BrokerConfig
from ottla.config.current_config import CurrentConfig
from ottla.engine import Shard, StateRecord
from ottla.errors import KafkaError
from ottla.model import OFFSETS_TOPIC
from ottla.protocol.internal.consumer_protocol import ConsumerProtocolAssignment
from ottla.protocol.internal.framing import CoordinatorRecord, decode_group_record, decode_versioned
from ottla.storage.state_store import LocalStateStore
from ottla.testing.clock import ManualClock
from tests.broker.groups.harness import make_coordinator
from tests.storage.harness import GOLDEN, start_manager

CASES = ("groups", "transactions", "older", "two-nodes", "unclean")
DIRECTORIES = GOLDEN / "directories"


def expectation(case: str) -> Mapping[str, Any]:
    with gzip.open(DIRECTORIES / f"{case}.json.gz", "rt") as file:
        found: Mapping[str, Any] = json.load(file)
    return found


def classic_groups(case: str) -> dict[str, Any]:
    return {name: group for name, group in expectation(case)["groups"].items() if group["type"] == "Classic"}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def store(case: str, tmp_path_factory: pytest.TempPathFactory) -> LocalStateStore:
    """The state shards of a case."""
    folder = tmp_path_factory.mktemp(case)
    with tarfile.open(DIRECTORIES / f"{case}.tar.gz") as archive:
        archive.extractall(folder, filter="fully_trusted")
    logs = next(path for path in sorted(folder.glob("kafka-logs*")) if (path / f"{OFFSETS_TOPIC}-0").exists())
    return LocalStateStore(start_manager(logs), ManualClock())


@pytest.fixture(scope="module")
def coordinator(case: str, store: LocalStateStore) -> GroupCoordinator:
    """A coordinator that has replayed them."""
    settings = CurrentConfig(BrokerConfig.from_properties({}))
    made = make_coordinator(store, Timers(), ManualClock(), settings)
    made.open(shard_count(case))
    return made


def assignment_of(data: bytes) -> list[str]:
    if not data:
        return []
    assigned = decode_versioned(ConsumerProtocolAssignment, data).assigned_partitions
    return sorted(f"{topic.topic}-{partition}" for topic in assigned for partition in topic.partitions)


def describe(group: ClassicGroup) -> dict[str, Any]:
    """A group as the reference data shows it."""
    return {
        "state": group.state_name,
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol_name or "",
        "members": sorted(
            (
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                assignment_of(member.assignment),
            )
            for member in group.members.values()
        ),
    }


def test_the_groups_are_those_that_kafka_lists(case: str, coordinator: GroupCoordinator) -> None:
    """Of all kinds, those that are not served included."""
    listed = {
        group.group_id: (group.group_type.value, group.protocol_type, group.state_name)
        for group in coordinator.list_groups()
    }
    assert listed == {
        name: (group["type"].lower(), group["protocol"], group["state"])
        for name, group in expectation(case)["groups"].items()
    }
    classic = {group.group_id for group in coordinator.list_groups(types=["classic"])}
    assert classic == set(classic_groups(case))


def test_groups_that_are_not_served_are_not_deleted(case: str, coordinator: GroupCoordinator) -> None:
    others = [name for name, group in expectation(case)["groups"].items() if group["type"] in ("Share", "Streams")]
    answers: list[KafkaError | None] = []
    for name in others:
        before = dict(coordinator.committed_offsets(name))
        coordinator.delete_group(name, answers.append)
        assert coordinator.committed_offsets(name) == before
        assert coordinator.find(name) is not None
    assert None not in answers and len(answers) == len(others)


def test_states_protocols_members_and_assignments_are_kafkas(case: str, coordinator: GroupCoordinator) -> None:
    for name, expected in classic_groups(case).items():
        facts = expected["describe"]
        assert describe(coordinator.describe_classic(name)) == {
            "state": facts["state"],
            "protocol_type": facts["protocol_type"],
            "protocol_data": facts["protocol_data"],
            "members": sorted(
                (one["member_id"], one["instance_id"], one["client_id"], one["host"], sorted(one["assignment"]))
                for one in facts["members"]
            ),
        }, name


def test_offsets_with_metadata_and_leader_epochs_are_kafkas(case: str, coordinator: GroupCoordinator) -> None:
    """Of all kinds of groups; share groups have none of these."""
    for name, expected in expectation(case)["groups"].items():
        found = {
            f"{topic}-{partition}": (
                committed.offset,
                committed.metadata,
                None if committed.leader_epoch < 0 else committed.leader_epoch,
            )
            for topic, partitions in coordinator.committed_offsets(name).items()
            for partition, committed in partitions.items()
        }
        assert found == {
            partition: (facts["offset"], facts["metadata"], facts["leader_epoch"])
            for partition, facts in (expected.get("offsets") or {}).items()
        }, name


def shard_count(case: str) -> int:
    return len(expectation(case)["topics"][OFFSETS_TOPIC]["partitions"])


def stored_records(store: LocalStateStore, count: int) -> Iterator[tuple[bytes, bytes | None]]:
    for number in range(count):
        for batch in store.load(Shard(OFFSETS_TOPIC, number)):
            for record in batch.records:
                assert record.key is not None
                yield record.key, record.value


def test_every_record_is_written_as_kafka_wrote_it(case: str, store: LocalStateStore) -> None:
    stored = list(stored_records(store, shard_count(case)))
    assert stored
    for key, value in stored:
        record = decode_group_record(key, value)
        assert isinstance(record, CoordinatorRecord), key
        assert encode_group_record(record) == StateRecord(key, value), record


def test_what_classic_groups_would_write_again_is_what_kafka_wrote(case: str, coordinator: GroupCoordinator) -> None:
    """The last record of each stable group, byte for byte but for the order of its members."""
    for name, expected in classic_groups(case).items():
        if expected["state"] != "Stable":
            continue
        group = coordinator.describe_classic(name)
        record = group.record(group.assignments())
        encoded = encode_group_record(record)
        assert encoded.value is not None and encoded.key is not None
        back = decode_group_record(encoded.key, encoded.value)
        assert isinstance(back, CoordinatorRecord)
        assert back == record
