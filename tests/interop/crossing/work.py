"""What is done to a broker, Apache Kafka or Ottla, before the other one takes its directory over.

Records have timestamps of their own, a second apart, where a topic's `segment.ms` is less: then every batch begins a
segment, and little data makes many.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs forget to export them
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from ottla.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from tests.interop.clients import Codec
from tests.interop.crossing.seen import WAIT_SECONDS
from tests.wire import room_at

CODECS: Final[tuple[Codec, ...]] = ("none", "gzip", "snappy", "lz4", "zstd")
START_MS: Final = int(time.time()) * 1_000 - 3_600_000
"""An hour ago: brokers forget producers whose last record is older than a day."""
STEP_MS: Final = 1_000
KEYS: Final = 5
ROLLS: Final = {"segment.ms": "500", "retention.ms": "-1"}
COMPACTS: Final = {
    **ROLLS,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "3600000",
}
TOPICS: Final[Mapping[str, tuple[int, Mapping[str, str]]]] = {
    "codecs": (1, {"retention.ms": "-1", "max.message.bytes": "2000000"}),
    "several": (3, {**ROLLS, "index.interval.bytes": "100"}),
    "compacted": (1, COMPACTS),
    "both": (1, {**COMPACTS, "cleanup.policy": "compact,delete"}),
    "txn": (2, ROLLS),
    "txn-compacted": (1, COMPACTS),
    "trimmed": (1, ROLLS),
    "aged": (1, ROLLS),
    "stamped": (1, {"message.timestamp.type": "LogAppendTime", "retention.ms": "-1"}),
    "empty": (2, {}),
}
"""Name, partitions, settings."""

Pair = tuple[str, str | None]


def admin_of(address: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": address})


def create_topics(address: str, topics: Mapping[str, tuple[int, Mapping[str, str]]]) -> None:
    new = [NewTopic(name, number, 1, config=dict(configs)) for name, (number, configs) in topics.items()]
    admin = admin_of(address)  # its futures do not outlive it
    for future in admin.create_topics(new).values():
        future.result(WAIT_SECONDS)


class Writer:
    """Produces batch by batch, each a second later than the last by its records' own time."""

    def __init__(self, address: str, **settings: Any) -> None:
        self.producer = Producer({"bootstrap.servers": address, "linger.ms": 5, **settings})
        self._errors: list[Any] = []

    def send(self, topic: str, at_s: int, pairs: Iterable[Pair], partition: int = 0, **headers: bytes | None) -> None:
        """Send one batch and wait until it is acknowledged."""
        for key, value in pairs:
            self.producer.produce(
                topic,
                None if value is None else value.encode(),
                key.encode(),
                partition,
                timestamp=START_MS + at_s * STEP_MS,
                headers=list(headers.items()),
                on_delivery=self._note,
            )
        assert self.producer.flush(WAIT_SECONDS) == 0
        if self._errors:
            raise KafkaException(self._errors[0])

    def _note(self, error: Any, _: Any) -> None:
        if error is not None:
            self._errors.append(error)


def write_codecs(address: str, at_s: int) -> None:
    for codec in CODECS:
        writer = Writer(address, **{"compression.type": codec, "enable.idempotence": codec in ("none", "zstd")})
        pairs = [(f"{codec}-{number}", f"{number} " * number) for number in range(40)]
        writer.send("codecs", at_s, pairs, codec=codec.encode(), nothing=None)
        writer.send("stamped", at_s, pairs[:3])


def write_plain(address: str, first_s: int, batches: int) -> None:
    """Append to every topic that has no transactions: keys again and again, some of them deleted."""
    writer = Writer(address, **{"compression.type": "lz4"})
    for at_s in range(first_s, first_s + batches):
        pairs: list[Pair] = [(f"k{number}", f"{at_s}-{number}") for number in range(KEYS)]
        for topic in ("compacted", "both", "trimmed", "aged"):
            writer.send(topic, at_s, [*pairs, (f"gone-{at_s % 3}", None)])
        for partition in range(3):
            writer.send("several", at_s, pairs, partition)


def write_transactions(address: str, first_s: int, transactions: int) -> None:
    """Commit and abort by turns, with another producer's records in between."""
    writer = Writer(address, **{"transactional.id": "t"})
    other = Writer(address)
    writer.producer.init_transactions(WAIT_SECONDS)
    for at_s in range(first_s, first_s + transactions):
        writer.producer.begin_transaction()
        pairs: list[Pair] = [(f"k{number}", f"{at_s}-{number}") for number in range(KEYS)]
        for topic, partition in (("txn", 0), ("txn", 1), ("txn-compacted", 0)):
            writer.send(topic, at_s, pairs, partition)
            other.send(topic, at_s, [("k0", f"between {at_s}")], partition)
        if at_s % 2:
            writer.producer.abort_transaction(WAIT_SECONDS)
        else:
            writer.producer.commit_transaction(WAIT_SECONDS)


def read_in_group(address: str, group: str, protocol: str) -> None:
    """Join a group, read `several` to its end, commit and leave."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["several"])
    deadline = time.monotonic() + WAIT_SECONDS
    try:
        while not consumer.consume(1000, 0.3) or len(consumer.assignment()) < 3:
            assert time.monotonic() < deadline, f"{group} got nothing"
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def commit_alone(address: str, group: str, offset: int) -> None:
    """Commit without members, as tools do."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    consumer.commit(offsets=[TopicPartition("codecs", 0, offset, metadata="note")], asynchronous=False)
    consumer.close()


def open_transaction(address: str, at_s: int) -> None:
    """Leave a transaction without an end, and a record behind it that waits for that."""
    writer = Writer(address, **{"transactional.id": "open", "transaction.timeout.ms": 600_000, "log_level": 0})
    writer.producer.init_transactions(WAIT_SECONDS)
    writer.producer.begin_transaction()
    writer.send("txn", at_s, [("open", "1")])
    Writer(address).send("txn", at_s, [("behind", "1")])


def set_rule(address: str) -> None:
    """Only a broker that has an authorizer takes one."""
    admin = admin_of(address)
    rule = AclBinding(
        ResourceType.TOPIC,
        "several",
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    for made in admin.create_acls([rule]).values():
        made.result(WAIT_SECONDS)


def describe_rules(address: str) -> set[str]:
    admin = admin_of(address)
    of_any = (ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)
    every = AclBindingFilter(*of_any)  # type: ignore[arg-type]  # None means any
    return {str(rule) for rule in admin.describe_acls(every).result(WAIT_SECONDS)}


async def _set_quota(address: str) -> None:
    async with room_at(address) as room:
        entity = [EntityData(entity_type="user", entity_name="alice")]
        change = OpData(key="producer_byte_rate", value=1e9)
        entry = AlterClientQuotasRequestEntryData(entity=entity, ops=[change])
        answer = await room.ask(AlterClientQuotasRequest(entries=[entry]), 1)
        assert answer.entries[0].error_code == 0, answer.entries[0].error_message


def administer(address: str, run: Callable[[Any], object]) -> None:
    """Set a user and a quota; delete a topic, and the front of a partition."""
    admin = admin_of(address)
    secret = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    for told in admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", secret, b"p")]).values():
        told.result(WAIT_SECONDS)
    run(_set_quota(address))
    create_topics(address, {"dropped": (1, {})})
    admin.delete_topics(["dropped"])["dropped"].result(WAIT_SECONDS)
    delete_before(address, "trimmed", 7)


def delete_before(address: str, topic: str, offset: int) -> None:
    admin = admin_of(address)
    (future,) = admin.delete_records([TopicPartition(topic, 0, offset)]).values()
    assert future.result(WAIT_SECONDS).low_watermark == offset


def set_config(address: str, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = admin_of(address)
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(WAIT_SECONDS)


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"not so after {WAIT_SECONDS} s: {what}"
        time.sleep(0.1)
