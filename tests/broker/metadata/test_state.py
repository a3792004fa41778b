"""The state machine: what replay makes of records, and what a snapshot makes of the state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.metadata.image import PartitionImage
from ottla.broker.metadata.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    TopicRecord,
    encode_record,
)
from ottla.broker.metadata.refusal import MetadataRefused
from ottla.broker.metadata.scram_users import ScramMechanism
from ottla.broker.metadata.state import MetadataState
from ottla.config.resource_type import ResourceType
from ottla.model import format_uuid
from ottla.records.batch import split_batches
from ottla.storage.metadata_snapshots import parse_snapshot_name
from tests.broker.metadata.harness import CASES, LEVEL, NODE_ID, expectation, state_of, topic_id, unpack_metadata

T1 = topic_id(1)
TOPIC = TopicRecord(name="t", topic_id=T1)


def partition(number: int = 0, *, leader: int = 1, leader_epoch: int = 0) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=T1,
        replicas=[1],
        isr=[1],
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=leader_epoch,
        directories=[bytes(16)],
    )


def stored_values(directory: Path) -> Iterator[bytes]:
    """The record values of a metadata log that Kafka wrote: its newest snapshot and what comes after."""
    snapshots = sorted(filter(None, (parse_snapshot_name(path.name) for path in directory.iterdir())))
    start = snapshots[-1].end_offset if snapshots else 0
    files = [directory / snapshots[-1].file_name] if snapshots else []
    for path in [*files, *sorted(directory.glob("*.log"))]:
        for batch in split_batches(path.read_bytes()):
            if not batch.is_control and (path in files or batch.base_offset >= start):
                yield from (record.value for record in batch.records() if record.value is not None)


@pytest.fixture(scope="module", params=CASES)
def taken_over(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[MetadataState, Any]]:
    """The states of every metadata log of a case, with what a client must see."""
    case: str = request.param
    expected = expectation(case)
    found = []
    for directory in unpack_metadata(case, tmp_path_factory.mktemp(case)):
        state = MetadataState(expected["cluster"]["cluster_id"], NODE_ID)
        for value in stored_values(directory):
            state.replay(value)
        found.append((state, expected))
    assert found
    return found


def test_topics_of_kafkas_directories_are_all_there(taken_over: list[tuple[MetadataState, Any]]) -> None:
    for state, expected in taken_over:
        assert {topic.name: format_uuid(topic.topic_id) for topic in state.topics()} == {
            name: topic["id"] for name, topic in expected["topics"].items()
        }
        assert {topic.name: dict(topic.configs) for topic in state.topics()} == {
            name: topic["configs"] for name, topic in expected["topics"].items()
        }
        assert {topic.name: len(topic.partitions) for topic in state.topics()} == {
            name: len(topic["partitions"]) for name, topic in expected["topics"].items()
        }


def test_features_of_kafkas_directories_are_kept(taken_over: list[tuple[MetadataState, Any]]) -> None:
    """kraft.version is not among the records: it stands in the log's control records."""
    for state, expected in taken_over:
        wanted = {name: level for name, level in expected["cluster"]["features"].items() if name != "kraft.version"}
        assert state.features == wanted


def test_a_start_raises_leader_epochs_as_kafkas_start_does(taken_over: list[tuple[MetadataState, Any]]) -> None:
    """The answers were taken from a Kafka that was started once more on the directory."""
    for state, expected in taken_over:
        state.raise_leader_epochs()
        compared = 0
        for name, offsets in expected["list_offsets"].items():
            topic, _, number = name.rpartition("-")
            latest_epoch = offsets["-1"][2]
            if latest_epoch >= 0:
                found = state.topic(topic)
                assert found is not None
                assert found.partitions[int(number)].leader_epoch == latest_epoch, name
                compared += 1
        assert compared


def test_a_snapshot_of_kafkas_directories_replays_to_the_same_state(
    taken_over: list[tuple[MetadataState, Any]],
) -> None:
    for state, _ in taken_over:
        values = list(state.snapshot_records())
        again = MetadataState(state.cluster_id, NODE_ID)
        for value in values:
            again.replay(value)
        assert list(again.snapshot_records()) == values


@pytest.fixture(scope="module")
def metadata_case(tmp_path_factory: pytest.TempPathFactory) -> tuple[MetadataState, list[bytes]]:
    """Kafka's directory in which everything was set that metadata can hold, with its stored records."""
    (directory,) = unpack_metadata("metadata", tmp_path_factory.mktemp("metadata"))
    values = list(stored_values(directory))
    state = MetadataState("c", NODE_ID)
    for value in values:
        state.replay(value)
    return state, values


def test_users_quotas_and_rules_come_back_byte_for_byte(metadata_case: tuple[MetadataState, list[bytes]]) -> None:
    """ACLs, quotas, SCRAM users and the controller of `metadata` are in our snapshot as they were in Kafka's log."""
    kept_types = {11, 14, 18, 27}
    state, values = metadata_case
    kept = {value for value in state.snapshot_records() if value[1] in kept_types}
    assert len(kept) > 20
    assert kept == {value for value in values if value[1] in kept_types}


def test_quotas_of_kafkas_directory_are_those_it_answered(metadata_case: tuple[MetadataState, list[bytes]]) -> None:
    state, _ = metadata_case
    quotas = state.client_quotas
    found = [{"entity": dict(one), "values": quotas.of(one)} for one in quotas.matching([], strict=False)]
    assert len(found) == len(expectation("metadata")["client_quotas"])
    for wanted in expectation("metadata")["client_quotas"]:
        assert wanted in found


def test_scram_users_of_kafkas_directory_are_those_it_answered(
    metadata_case: tuple[MetadataState, list[bytes]],
) -> None:
    state, _ = metadata_case
    names = {ScramMechanism.SCRAM_SHA_256: "SCRAM-SHA-256", ScramMechanism.SCRAM_SHA_512: "SCRAM-SHA-512"}
    found = {
        user: [
            {"mechanism": names[ScramMechanism(mechanism)], "iterations": credential.iterations}
            for mechanism, credential in sorted(state.scram_users.of(user).items())
        ]
        for user in state.scram_users
    }
    assert found == expectation("metadata")["scram_users"]


def test_access_rules_of_kafkas_directory_are_those_it_answered(
    metadata_case: tuple[MetadataState, list[bytes]],
) -> None:
    state, _ = metadata_case
    found = sorted((rule.principal, rule.resource_name, rule.host) for rule in state.access_rules)
    wanted = [(rule["principal"], rule["resource_name"], rule["host"]) for rule in expectation("metadata")["acls"]]
    assert found == sorted(wanted)


def test_settings_of_kafkas_directory_are_those_it_answered(metadata_case: tuple[MetadataState, list[bytes]]) -> None:
    state, _ = metadata_case
    for resource, wanted in expectation("metadata")["dynamic_configs"].items():
        kind, _, name = resource.partition(":")
        assert state.configs(ResourceType[kind], "" if name == "<default>" else name) == wanted, resource


def test_an_unknown_record_type_is_refused() -> None:
    with pytest.raises(MetadataRefused, match="type 99, version 0"):
        state_of().replay(bytes([1, 99, 0]))


def test_an_unknown_record_version_is_refused() -> None:
    with pytest.raises(MetadataRefused, match="type 2, version 9"):
        state_of().replay(bytes([1, 2, 9]))


@pytest.mark.parametrize(
    "record",
    [
        FeatureLevelRecord(name="metadata.version", feature_level=34),
        FeatureLevelRecord(name="metadata.version", feature_level=6),
        FeatureLevelRecord(name="group.version", feature_level=2),
        FeatureLevelRecord(name="brand.new.version", feature_level=1),
    ],
)
def test_a_feature_level_that_we_cannot_keep_is_refused(record: FeatureLevelRecord) -> None:
    state = state_of()
    with pytest.raises(MetadataRefused):
        state.replay(encode_record(record, LEVEL))
    assert state.features == {}


def test_a_feature_at_level_0_is_as_if_absent() -> None:
    state = state_of(FeatureLevelRecord(name="group.version", feature_level=1))
    state.replay(encode_record(FeatureLevelRecord(name="group.version", feature_level=0), LEVEL))
    assert "group.version" not in state.features


def test_removing_a_topic_removes_its_settings() -> None:
    setting = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="5")
    state = state_of(TOPIC, partition(), setting, RemoveTopicRecord(topic_id=T1))
    assert state.topic("t") is None
    assert state.topic_by_id(T1) is None
    assert state.configs(ResourceType.TOPIC, "t") == {}


def test_a_setting_without_a_value_is_removed() -> None:
    state = state_of(
        ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="5"),
        ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value=None),
    )
    assert list(state.config_resources(ResourceType.BROKER)) == []


def test_naming_a_leader_raises_the_leader_epoch_even_when_it_stays() -> None:
    state = state_of(TOPIC, partition(), PartitionChangeRecord(partition_id=0, topic_id=T1, leader=1))
    topic = state.topic("t")
    assert topic is not None
    assert (topic.partitions[0].leader_epoch, topic.partitions[0].partition_epoch) == (1, 1)


def test_a_change_without_a_leader_keeps_the_leader_epoch() -> None:
    state = state_of(TOPIC, partition(), PartitionChangeRecord(partition_id=0, topic_id=T1, isr=[]))
    topic = state.topic("t")
    assert topic is not None
    assert (topic.partitions[0].leader_epoch, topic.partitions[0].partition_epoch) == (0, 1)
    assert topic.partitions[0].isr == ()


@pytest.mark.parametrize(("recorded_leader", "raised"), [(1, 2), (-1, 1)])
def test_a_raised_epoch_is_served_and_not_stored(recorded_leader: int, raised: int) -> None:
    """From a leader two changes lie between the stops; after Kafka's clean stop one of them is written."""
    registered = RegisterBrokerRecord(broker_id=1, broker_epoch=5)
    state = state_of(registered, TOPIC, partition(leader=recorded_leader, leader_epoch=7))
    before = list(state.snapshot_records())
    state.raise_leader_epochs()
    topic = state.topic("t")
    assert topic is not None
    assert (topic.partitions[0].leader, topic.partitions[0].leader_epoch) == (1, 7 + raised)
    assert state.has_unwritten_epoch(T1, 0)
    assert list(state.snapshot_records()) == before


@pytest.mark.parametrize(("recorded_leader", "epoch"), [(1, 7), (-1, 8)])
def test_a_broker_that_was_never_registered_leads_what_the_records_say(recorded_leader: int, epoch: int) -> None:
    state = state_of(TOPIC, partition(leader=recorded_leader, leader_epoch=7))
    state.raise_leader_epochs()
    topic = state.topic("t")
    assert topic is not None
    assert (topic.partitions[0].leader, topic.partitions[0].leader_epoch) == (1, epoch)


def test_eligible_leaders_are_cleared_for_one_topic_or_all() -> None:
    elected = PartitionChangeRecord(partition_id=0, topic_id=T1, eligible_leader_replicas=[1], last_known_elr=[1])
    for name in ("t", ""):
        state = state_of(TOPIC, partition(), elected, ClearElrRecord(topic_name=name))
        topic = state.topic("t")
        assert topic is not None
        assert topic.partitions[0].eligible_leader_replicas == ()
    other = state_of(TOPIC, partition(), elected, ClearElrRecord(topic_name="other")).topic("t")
    assert other is not None
    assert other.partitions[0].eligible_leader_replicas == (1,)


def test_a_transaction_takes_effect_at_its_end_or_not_at_all() -> None:
    state = state_of(BeginTransactionRecord(name="x"), TOPIC, partition())
    assert state.is_in_transaction
    assert state.topic("t") is None
    state.replay(encode_record(EndTransactionRecord(), LEVEL))
    assert state.topic("t") is not None

    aborted = state_of(BeginTransactionRecord(), TOPIC, AbortTransactionRecord(reason="stopped"))
    assert aborted.topic("t") is None
    assert not aborted.is_in_transaction


def test_a_broker_keeps_its_registration_through_changes() -> None:
    state = state_of(
        RegisterBrokerRecord(broker_id=1, broker_epoch=5, fenced=True, rack="r"),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1),
    )
    broker = state.broker(1)
    assert broker is not None
    assert (broker.is_fenced, broker.rack, broker.broker_epoch) == (False, "r", 5)


def test_removed_records_of_unserved_features_are_gone() -> None:
    acl = AccessControlEntryRecord(id=T1, resource_name="x")
    quota = ClientQuotaRecord(key="producer_byte_rate", value=5.0)
    state = state_of(
        acl, quota, RemoveAccessControlEntryRecord(id=T1), ClientQuotaRecord(key="producer_byte_rate", remove=True)
    )
    assert not [value for value in state.snapshot_records() if value[1] in (14, 18)]


@pytest.mark.parametrize(
    "record",
    [
        RemoveTopicRecord(topic_id=T1),
        partition(),
        PartitionChangeRecord(partition_id=0, topic_id=T1),
        BrokerRegistrationChangeRecord(broker_id=1),
        EndTransactionRecord(),
    ],
)
def test_a_record_about_something_unknown_is_refused(record: Any) -> None:
    with pytest.raises(MetadataRefused):
        state_of().replay(encode_record(record, LEVEL))


def test_topics_that_differ_in_dots_and_underscores_collide() -> None:
    state = state_of(TopicRecord(name="a.b", topic_id=T1))
    assert state.colliding_topics("a_b") == ["a.b"]
    assert state.colliding_topics("a.b") == []
    state.replay(encode_record(RemoveTopicRecord(topic_id=T1), LEVEL))
    assert state.colliding_topics("a_b") == []


def test_partitions_stand_in_order_whatever_the_order_of_records() -> None:
    topic = state_of(TOPIC, partition(2), partition(0), partition(1)).topic("t")
    assert topic is not None
    assert [one.partition for one in topic.partitions] == [0, 1, 2]
    assert topic.find_partition(3) is None
    assert isinstance(topic.find_partition(2), PartitionImage)
