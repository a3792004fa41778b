"""The handlers that administrators' tools ask, beside the recordings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.broker import Broker
from ottla.broker.metadata.alter_configs import ConfigAlteration
from ottla.broker.metadata.create_topics import NewTopic
from ottla.config.resource_type import ResourceType
from ottla.dialects.kafka.answers import RequestContext
from ottla.dialects.kafka.errors import CloseConnection
from ottla.dialects.kafka.handlers import (
    access_rules,
    add_raft_voter,
    alter_client_quotas,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    delegation_tokens,
    describe_client_quotas,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_user_scram_credentials,
    elect_leaders,
    get_telemetry_subscriptions,
    list_partition_reassignments,
    push_telemetry,
    remove_raft_voter,
    unregister_broker,
    unregister_controller,
    update_features,
)
from ottla.dialects.kafka.router import Router
from ottla.dialects.session import Peer
from ottla.errors import KafkaStorageError
from ottla.model import TopicPartition, format_uuid
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest
from ottla.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.messages.describe_acls import DescribeAclsRequest
from ottla.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from ottla.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from ottla.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.protocol.messages.push_telemetry import PushTelemetryRequest
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest
from ottla.protocol.messages.unregister_controller import UnregisterControllerRequest
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.testing.cluster import running_broker
from tests.broker.harness import batch
from tests.dialects.handlers.harness import LISTENER, Bench
from tests.storage.harness import make_batch

UNKNOWN_TOPIC, INVALID_TOPIC, SECURITY_DISABLED, STORAGE_ERROR, NO_SUCH_DIRECTORY = 3, 17, 54, 56, 57


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.controller.create_topics([NewTopic("a", 2, 1), NewTopic("b", 1, 1)])
    return bench


def settled_with_failure(bench: Bench, module: Any, request: Any, version: int) -> Any:
    """Return the answer to a request whose records never became durable."""
    later = module.handle(request, bench.context(version))
    bench.store.tickets[-1].settle(KafkaStorageError("the disk is gone"))
    return later.response


def user_quota(rate: float) -> AlterClientQuotasRequest:
    entry = AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type="user", entity_name="u")],
        ops=[OpData(key="producer_byte_rate", value=rate)],
    )
    return AlterClientQuotasRequest(entries=[entry])


def user_credential() -> AlterUserScramCredentialsRequest:
    upsertion = ScramCredentialUpsertion(name="u", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p")
    return AlterUserScramCredentialsRequest(upsertions=[upsertion])


# -- log directories ----------------------------------------------------------------------------------------------


def test_log_directories_have_the_sizes_of_what_was_appended(bench: Bench) -> None:
    records = batch(b"one", b"two")
    bench.broker.append(bench.broker.partition("a", 1), records)
    response = bench.ask(describe_log_dirs, DescribeLogDirsRequest(topics=None), 5)
    (directory,) = response.results
    assert {
        (topic.name, row.partition_index): row.partition_size for topic in directory.topics for row in topic.partitions
    } == {("a", 0): 0, ("a", 1): len(records), ("b", 0): 0}
    assert 0 < directory.usable_bytes <= directory.total_bytes


def test_sizes_are_told_of_logs_that_are_not_open(tmp_path: Path) -> None:
    """Whoever looks at ten thousand partitions shall not open them all."""
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "00000000000000000000.log").write_bytes(bytes(100))
    (tmp_path / "t-0" / "00000000000000000005.log").write_bytes(bytes(11))
    (tmp_path / "t-0" / "00000000000000000005.index").write_bytes(bytes(8))
    (tmp_path / ".kafka_cleanshutdown").touch()
    bench = Bench(tmp_path)
    assert bench.broker.administration.size_bytes(TopicPartition("t", 0)) == 111


def test_partitions_that_are_not_here_are_left_out(bench: Bench) -> None:
    asked = [DescribableLogDirTopic(topic="b", partitions=[0, 7]), DescribableLogDirTopic(topic="nope", partitions=[0])]
    (directory,) = bench.ask(describe_log_dirs, DescribeLogDirsRequest(topics=asked), 4).results
    assert [(topic.name, [row.partition_index for row in topic.partitions]) for topic in directory.topics] == [
        ("b", [0])
    ]


def test_a_log_is_kept_where_it_is(bench: Bench, tmp_path: Path) -> None:
    def ask(path: str, topic: str, number: int) -> int:
        asked = AlterReplicaLogDirTopic(name=topic, partitions=[number])
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[asked])])
        (row,) = bench.ask(alter_replica_log_dirs, request, 2).results
        return int(row.partitions[0].error_code)

    (directory,) = bench.broker.administration.log_directories()
    assert ask(directory.path, "a", 0) == 0
    assert ask(directory.path, "a", 7) == UNKNOWN_TOPIC
    assert ask(f"{directory.path}/", "a", 0) == NO_SUCH_DIRECTORY
    assert ask("/nope", "nope", 0) == NO_SUCH_DIRECTORY


def test_of_a_partition_that_is_asked_for_twice_the_last_directory_counts(bench: Bench) -> None:
    (directory,) = bench.broker.administration.log_directories()
    asked = AlterReplicaLogDirTopic(name="a", partitions=[0, 0])
    request = AlterReplicaLogDirsRequest(
        dirs=[AlterReplicaLogDir(path=directory.path, topics=[asked]), AlterReplicaLogDir(path="/nope", topics=[asked])]
    )
    (topic,) = bench.ask(alter_replica_log_dirs, request, 2).results
    assert [(row.partition_index, row.error_code) for row in topic.partitions] == [(0, NO_SUCH_DIRECTORY)]


def test_producers_are_told_of_as_kafka_does(bench: Bench) -> None:
    asked = [
        TopicRequest(name="a", partition_indexes=[0, 9]),
        TopicRequest(name="nope", partition_indexes=[0]),
        TopicRequest(name="..", partition_indexes=[0]),
        TopicRequest(name="b"),
    ]
    response = bench.ask(describe_producers, DescribeProducersRequest(topics=asked), 0)
    rows = [[(row.error_code, row.error_message is None) for row in topic.partitions] for topic in response.topics]
    assert rows == [[(0, True), (UNKNOWN_TOPIC, True)], [(UNKNOWN_TOPIC, False)], [(INVALID_TOPIC, False)], []]


# -- leaders and replicas -----------------------------------------------------------------------------------------


def test_no_election_is_needed(bench: Bench) -> None:
    asked = [TopicPartitions(topic="a", partitions=[0, 9])]
    (topic,) = bench.ask(elect_leaders, ElectLeadersRequest(topic_partitions=asked), 2).replica_election_results
    assert [(row.partition_id, row.error_code) for row in topic.partition_result] == [(0, 84), (9, 3)]
    every = bench.ask(elect_leaders, ElectLeadersRequest(topic_partitions=None), 2).replica_election_results
    assert sorted((topic.topic, topic.partition_result) for topic in every) == [("a", []), ("b", [])]


def test_an_unknown_kind_of_election_is_refused_unless_nobody_shall_be_elected(bench: Bench) -> None:
    assert bench.ask(elect_leaders, ElectLeadersRequest(election_type=7, topic_partitions=[]), 2).error_code == 0
    refused = bench.ask(elect_leaders, ElectLeadersRequest(election_type=7, topic_partitions=None), 2)
    assert (refused.error_code, refused.replica_election_results) == (42, [])


def test_partitions_stay_where_they_are(bench: Bench) -> None:
    asked = ReassignableTopic(
        name="a",
        partitions=[ReassignablePartition(partition_index=0, replicas=[1]), ReassignablePartition(partition_index=1)],
    )
    request = AlterPartitionReassignmentsRequest(topics=[asked, ReassignableTopic(name="e")])
    topic, empty = bench.ask(alter_partition_reassignments, request, 1).responses
    assert [(row.error_code, row.error_message) for row in topic.partitions] == [(0, None), (85, None)]
    assert (empty.name, empty.partitions) == ("e", [])
    assert bench.ask(list_partition_reassignments, ListPartitionReassignmentsRequest(), 0).topics == []


# -- the cluster --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_quorum_is_shown_to_whoever_asks_for_it_alone(bench: Bench, version: int) -> None:
    def ask(*partitions: int) -> Any:
        rows = [DescribeQuorumRequestPartitionData(partition_index=number) for number in partitions]
        topic = DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=rows)
        return bench.ask(describe_quorum, DescribeQuorumRequest(topics=[topic]), version)

    response = ask(0)
    (row,) = response.topics[0].partitions
    assert (row.error_code, row.leader_id, [voter.replica_id for voter in row.current_voters]) == (0, 1, [1])
    assert len(response.nodes) == (1 if version >= 2 else 0)
    assert [one.error_code for one in ask(0, 1).topics[0].partitions] == [UNKNOWN_TOPIC, UNKNOWN_TOPIC]
    assert ask().topics[0].partitions == []


def test_features_are_updated_and_named_where_kafka_names_them(bench: Bench) -> None:
    update = FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2)
    same = FeatureUpdateKey(feature="metadata.version", max_version_level=33)
    response = bench.ask(update_features, UpdateFeaturesRequest(feature_updates=[update, same]), 1)
    assert [(row.feature, row.error_code, row.error_message) for row in response.results] == [
        ("transaction.version", 0, "NONE")
    ]
    assert bench.broker.features["transaction.version"] == 1


def test_a_feature_is_only_looked_at_where_that_was_asked(bench: Bench) -> None:
    update = FeatureUpdateKey(feature="transaction.version", max_version_level=0, upgrade_type=2)
    bench.ask(update_features, UpdateFeaturesRequest(feature_updates=[update], validate_only=True), 2)
    assert bench.broker.features["transaction.version"] == 2


@pytest.mark.parametrize(("allowed", "code"), [(False, 95), (True, 0)])
def test_the_first_version_allows_downgrades_with_a_flag(bench: Bench, allowed: bool, code: int) -> None:
    update = FeatureUpdateKey(feature="transaction.version", max_version_level=1, allow_downgrade=allowed)
    assert bench.ask(update_features, UpdateFeaturesRequest(feature_updates=[update]), 0).error_code == code


def test_nodes_and_voters_stay(bench: Bench) -> None:
    assert bench.ask(unregister_broker, UnregisterBrokerRequest(broker_id=9), 0).error_code == 102
    assert bench.ask(unregister_broker, UnregisterBrokerRequest(broker_id=1), 0).error_code == 42
    assert bench.ask(unregister_controller, UnregisterControllerRequest(controller_id=9), 0).error_code == 136
    assert bench.ask(unregister_controller, UnregisterControllerRequest(controller_id=1), 0).error_code == 42
    assert bench.ask(add_raft_voter, AddRaftVoterRequest(cluster_id="wrong"), 1).error_code == 104
    removal = RemoveRaftVoterRequest(cluster_id="a-cluster", voter_id=1, voter_directory_id=b"d" * 16)
    assert bench.ask(remove_raft_voter, removal, 0).error_code == 127


# -- users, quotas, rules -----------------------------------------------------------------------------------------


def test_a_quota_is_set_and_found(bench: Bench) -> None:
    (row,) = bench.ask(alter_client_quotas, user_quota(5.0), 1).entries
    assert (row.error_code, row.error_message) == (0, None)
    asked = DescribeClientQuotasRequest(components=[ComponentData(entity_type="user", match_type=0, match="u")])
    (entry,) = bench.ask(describe_client_quotas, asked, 1).entries
    assert [(value.key, value.value) for value in entry.values] == [("producer_byte_rate", 5.0)]


def test_a_credential_is_set_and_described_without_its_secret(bench: Bench) -> None:
    (row,) = bench.ask(alter_user_scram_credentials, user_credential(), 0).results
    assert (row.user, row.error_code) == ("u", 0)
    (user,) = bench.ask(describe_user_scram_credentials, DescribeUserScramCredentialsRequest(users=None), 0).results
    assert [(one.mechanism, one.iterations) for one in user.credential_infos] == [(1, 4096)]


def test_what_never_became_durable_is_told_so(bench: Bench) -> None:
    assert settled_with_failure(bench, alter_client_quotas, user_quota(5.0), 1).entries[0].error_code == STORAGE_ERROR
    scram = settled_with_failure(bench, alter_user_scram_credentials, user_credential(), 0)
    assert [(row.user, row.error_code) for row in scram.results] == [("u", STORAGE_ERROR)]
    update = FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2)
    features = settled_with_failure(bench, update_features, UpdateFeaturesRequest(feature_updates=[update]), 2)
    assert features.error_code == STORAGE_ERROR


def test_rules_need_an_authorizer(bench: Bench) -> None:
    context = bench.context(2)
    described = access_rules.describe(
        DescribeAclsRequest(resource_type_filter=2, operation=3, permission_type=3), context
    )
    assert described.error_code == SECURITY_DISABLED
    creation = AclCreation(resource_type=2, operation=3, permission_type=3)
    created = access_rules.create(CreateAclsRequest(creations=[creation]), context)
    assert [row.error_code for row in created.results] == [SECURITY_DISABLED]
    deletion = DeleteAclsFilter(resource_type_filter=2, operation=3, permission_type=3)
    deleted = access_rules.delete(DeleteAclsRequest(filters=[deletion]), context)
    assert [row.error_code for row in deleted.filter_results] == [SECURITY_DISABLED]


def test_rules_of_no_kind_end_the_connection(bench: Bench) -> None:
    context = bench.context(2)
    with pytest.raises(CloseConnection):
        access_rules.describe(DescribeAclsRequest(), context)
    with pytest.raises(CloseConnection):
        access_rules.create(CreateAclsRequest(creations=[AclCreation(resource_type=2)]), context)
    with pytest.raises(CloseConnection):
        access_rules.delete(DeleteAclsRequest(filters=[DeleteAclsFilter(operation=3)]), context)


@pytest.mark.parametrize(("version", "requester"), [(2, ""), (3, "ANONYMOUS")])
def test_nobody_gets_a_token(bench: Bench, version: int, requester: str) -> None:
    response = delegation_tokens.create(CreateDelegationTokenRequest(), bench.context(version))
    assert (response.error_code, response.principal_name, response.token_requester_principal_name) == (
        64,
        "ANONYMOUS",
        requester,
    )


# -- telemetry ----------------------------------------------------------------------------------------------------


def test_telemetry_is_answered_and_not_announced(bench: Bench) -> None:
    found = bench.ask(get_telemetry_subscriptions, GetTelemetrySubscriptionsRequest(), 0)
    assert (found.error_code, found.requested_metrics) == (0, [])
    push = PushTelemetryRequest(
        client_instance_id=found.client_instance_id, subscription_id=found.subscription_id, metrics=b"x"
    )
    assert bench.ask(push_telemetry, push, 0).error_code == 0
    assert ApiKey.PUSH_TELEMETRY in Router().served()


def test_a_log_on_its_way_is_a_future_replica_and_the_metadata_knows_where_it_arrived(tmp_path: Path) -> None:
    throttle = "replica.alter.log.dirs.io.max.bytes.per.second"

    def limit(broker: Broker, rate: int) -> None:
        broker.alter_configs([ConfigAlteration(ResourceType.BROKER, "1", [(throttle, 0, str(rate))])])

    def ask(broker: Broker, path: Path, topic: str) -> int:
        asked = [AlterReplicaLogDir(path=str(path), topics=[AlterReplicaLogDirTopic(name=topic, partitions=[0])])]
        context = RequestContext(broker, Peer(LISTENER, "localhost", 50_000), api_version=2)
        (row,) = alter_replica_log_dirs.handle(AlterReplicaLogDirsRequest(dirs=asked), context).results
        return row.partitions[0].error_code

    def replicas(broker: Broker) -> dict[str, list[tuple[int, int, bool]]]:
        context = RequestContext(broker, Peer(LISTENER, "localhost", 50_000), api_version=4)
        results = describe_log_dirs.handle(DescribeLogDirsRequest(topics=None), context).results
        return {
            Path(directory.log_dir).name: [
                (row.partition_size, row.offset_lag, row.is_future_key)
                for topic in directory.topics
                for row in topic.partitions
            ]
            for directory in results
        }

    async def scenario() -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        async with running_broker({"log.dirs": f"{one},{two}"}) as running:
            broker = running.broker
            assert ask(broker, two, "t") == UNKNOWN_TOPIC  # and yet it is made there
            broker.metadata.create_topics([NewTopic("t", 1, 1)])
            assert (two / "t-0").exists()
            for _ in range(5):
                broker.append(broker.partition("t", 0), memoryview(make_batch(value=b"x" * 100_000)))
            ((size_bytes, _, _),) = replicas(broker)["two"]
            limit(broker, 1)
            assert ask(broker, one, "t") == 0
            assert replicas(broker) == {"one": [(0, 5, True)], "two": [(size_bytes, 0, False)]}
            limit(broker, 10**9)
            while (two / "t-0").exists() or not (one / "t-0").exists():
                await asyncio.sleep(0.01)
            assert replicas(broker) == {"one": [(size_bytes, 0, False)], "two": []}
            where = broker.image.topic("t")
            assert where is not None
            (directory_id,) = where.partitions[0].directories
            assert format_uuid(directory_id) in (one / "meta.properties").read_text()

    asyncio.run(scenario())


def test_a_cordoned_directory_is_told_from_the_others(tmp_path: Path) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")

    async def scenario() -> None:
        async with running_broker({"log.dirs": f"{one},{two}", "cordoned.log.dirs": two}) as running:
            context = RequestContext(running.broker, Peer(LISTENER, "localhost", 50_000), api_version=5)
            results = describe_log_dirs.handle(DescribeLogDirsRequest(topics=None), context).results
            assert {result.log_dir: result.is_cordoned for result in results} == {one: False, two: True}

    asyncio.run(scenario())
