"""Every administrative call that the broker serves, made by our own client."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ottla.client import Admin, Producer, TopicPartition, admin
from ottla.client.configs import ConfigResource, ResourceType
from ottla.client.quorum import UpgradeType
from ottla.client.replicas import LogDirectory
from ottla.client.users import DEFAULT_ENTITY, QuotaEntity, ScramCredential, ScramMechanism, salted
from ottla.dialects.kafka.router import Router
from ottla.errors import (
    BrokerIdNotRegistered,
    ElectionNotNeeded,
    InvalidUpdateVersion,
    KafkaError,
    LogDirNotFound,
    ResourceNotFound,
    UnknownTopicOrPartition,
)
from ottla.model import NO_PRODUCER_ID
from ottla.protocol.apis import ApiKey
from ottla.testing.cluster import RunningBroker, running_broker

T0 = TopicPartition("t", 0)


def with_admin(work: Callable[[Admin, RunningBroker], Coroutine[Any, Any, None]]) -> None:
    """Run `work` with an admin client of a broker that has topic `t`."""

    async def main() -> None:
        async with running_broker() as running, Admin(running.address) as client:
            await client.create_topic("t", partitions=1, configs={"retention.ms": "5"})
            await work(client, running)

    asyncio.run(main())


def test_log_directories_with_what_lies_in_them() -> None:
    async def work(client: Admin, running: RunningBroker) -> None:
        async with Producer(running.address) as producer:
            await producer.send_and_wait("t", b"x" * 100)
        for found in (await client.replicas.log_dirs(), await client.replicas.log_dirs(1, [T0])):
            (directory,) = found.values()
            assert isinstance(directory, LogDirectory)
            assert directory.path == running.directory
            assert directory.replicas[T0].size_bytes > 100
            assert not directory.replicas[T0].is_future
            assert directory.usable_bytes is not None

    with_admin(work)


def test_moving_to_a_directory_that_is_none_is_refused() -> None:
    async def work(client: Admin, running: RunningBroker) -> None:
        assert isinstance((await client.replicas.move_to_directories(1, {T0: "/nowhere"}))[T0], LogDirNotFound)

    with_admin(work)


def test_elections_and_reassignments_that_change_nothing() -> None:
    async def work(client: Admin, running: RunningBroker) -> None:
        outcomes = await client.replicas.elect_leaders([T0, TopicPartition("nope", 0)])
        assert isinstance(outcomes[T0], ElectionNotNeeded)
        assert isinstance(outcomes[TopicPartition("nope", 0)], UnknownTopicOrPartition)
        await client.replicas.elect_leaders()
        assert await client.replicas.reassign({T0: [1]}) == {T0: None}
        assert await client.replicas.reassignments() == {}
        assert await client.replicas.reassignments([T0]) == {}

    with_admin(work)


def test_the_producers_that_a_partition_remembers() -> None:
    async def work(client: Admin, running: RunningBroker) -> None:
        async with Producer(running.address) as producer:
            await producer.send_and_wait("t", b"a")
            await producer.send_and_wait("t", b"b")
        found = (await client.replicas.producers([T0]))[T0]
        assert isinstance(found, list)
        (one,) = found
        assert one.producer_id != NO_PRODUCER_ID
        assert (one.producer_epoch, one.last_sequence, one.txn_start_offset) == (0, 1, -1)

    with_admin(work)


def test_quotas_are_set_found_and_taken_away() -> None:
    ann = QuotaEntity(user="ann", client_id=DEFAULT_ENTITY)

    async def work(client: Admin, running: RunningBroker) -> None:
        everybody = QuotaEntity(user=DEFAULT_ENTITY)
        changed = await client.users.alter_quotas(
            {ann: {"producer_byte_rate": 1000.0, "request_percentage": 50.0}, everybody: {"consumer_byte_rate": 7.0}}
        )
        assert changed == {ann: None, everybody: None}
        assert await client.users.quotas() == {
            ann: {"producer_byte_rate": 1000.0, "request_percentage": 50.0},
            everybody: {"consumer_byte_rate": 7.0},
        }
        assert (await client.users.quotas(QuotaEntity(user="ann"))).keys() == {ann}
        assert await client.users.quotas(QuotaEntity(user="ann"), strict=True) == {}
        await client.users.alter_quotas({ann: {"producer_byte_rate": None, "request_percentage": None}})
        assert (await client.users.quotas()).keys() == {everybody}
        (error,) = (await client.users.alter_quotas({ann: {"nonsense": 1.0}}, validate_only=True)).values()
        assert isinstance(error, KafkaError)

    with_admin(work)


def test_scram_passwords_are_kept_as_salted_hashes() -> None:
    async def work(client: Admin, running: RunningBroker) -> None:
        await client.users.set_scram_password("ann", "secret", ScramMechanism.SHA_256, 4096)
        assert await client.users.scram_credentials() == {"ann": [ScramCredential(ScramMechanism.SHA_256, 4096)]}
        found = await client.users.scram_credentials(["ann", "bob"])
        assert isinstance(found["bob"], ResourceNotFound)
        await client.users.remove_scram_password("ann", ScramMechanism.SHA_256)
        with pytest.raises(ResourceNotFound):
            await client.users.remove_scram_password("ann", ScramMechanism.SHA_256)

    with_admin(work)


def test_the_hash_is_that_of_rfc_7677() -> None:
    """Its example: password `pencil`, and what a server proves with it that it knows the hash."""
    password = salted("pencil", base64.b64decode(b"W22ZaJ0SNY7soEsUEjb6gQ=="), ScramMechanism.SHA_256, 4096)
    server_key = hmac.digest(password, b"Server Key", hashlib.sha256)
    said = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = hmac.digest(server_key, said, hashlib.sha256)
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_quorum_its_features_and_its_brokers() -> None:
    async def work(client: Admin, running: RunningBroker) -> None:
        quorum = await client.quorum.describe()
        assert (quorum.leader_id, [voter.replica_id for voter in quorum.voters]) == (1, [1])
        assert quorum.high_watermark == quorum.voters[0].log_end_offset > 0
        assert await client.quorum.update_features({"group.version": 1}, validate_only=True) == {"group.version": None}
        with pytest.raises(InvalidUpdateVersion):
            await client.quorum.update_features({"group.version": 9}, UpgradeType.UPGRADE)
        with pytest.raises(BrokerIdNotRegistered):
            await client.quorum.unregister_broker(77)

    with_admin(work)


def test_what_has_settings_of_its_own() -> None:
    async def work(client: Admin, running: RunningBroker) -> None:
        assert ConfigResource.topic("t") in await client.list_config_resources()
        assert await client.list_config_resources([ResourceType.TOPIC]) == [ConfigResource.topic("t")]

    with_admin(work)


REFUSED = {
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.CREATE_ACLS,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.UNREGISTER_CONTROLLER,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
}
"""Served with nothing but the reason why not."""

OTHERS = {
    ApiKey.ALTER_CONFIGS,  # takes back what it does not name; IncrementalAlterConfigs is what clients shall use
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,  # Metadata tells the same
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}


def test_no_administrative_call_is_missing() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in Path(admin.__file__).parent.glob("*.py"))
    missing = [ApiKey(key).name for key in Router().served() if f"ApiKey.{ApiKey(key).name}" not in source]
    assert sorted(missing) == sorted(key.name for key in REFUSED | OTHERS)
