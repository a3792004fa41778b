"""Consumer groups without sockets: topics that the test makes, time that it moves, members that are simple objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from ottla.broker.groups.assignors import TopicIdPartition
from ottla.broker.groups.consumer import ConsumerGroup
from ottla.broker.groups.consumer_requests import Heartbeat, HeartbeatOutcome
from ottla.broker.groups.coordinator import GroupCoordinator
from ottla.broker.groups.group import MemberClaim
from ottla.broker.groups.rebalance import GroupServices
from ottla.broker.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    encode_record,
)
from ottla.clock import Timers
from ottla.config.broker_config import BrokerConfig
from ottla.config.current_config import CurrentConfig
from ottla.config.resource_type import ResourceType
from ottla.errors import KafkaError
from ottla.testing.clock import ManualClock
from tests.broker.groups.harness import Bench, MemoryShards
from tests.broker.metadata.harness import LEVEL, NODE_ID, state_of, topic_id

SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.session.timeout.ms": "45000",
    "group.initial.rebalance.delay.ms": "0",
}
DIRECTORY_ID = bytes(15) + b"d"


class ConsumerBench(Bench):
    """One coordinator with a view of topics."""

    def __init__(self, store: MemoryShards | None = None, clock: ManualClock | None = None, **settings: str) -> None:
        self.store = store or MemoryShards()
        self.clock = clock or ManualClock(wall_ms=1_700_000_000_000)
        self.timers = Timers()
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.settings = CurrentConfig(BrokerConfig.from_properties({**SETTINGS, **named}))
        self.metadata = state_of(FeatureLevelRecord(name="group.version", feature_level=1))
        self.topic_ids: dict[str, bytes] = {}
        self._uuids = 0
        services = GroupServices(self.timers, self.clock, self.settings, self._new_uuid)
        self.coordinator = GroupCoordinator(
            store=self.store, services=services, metadata=self.metadata, lead=lambda shard: 0
        )
        self.coordinator.open(4)

    def restarted(self, **settings: str) -> ConsumerBench:
        """Another coordinator on the same records and topics."""
        bench = ConsumerBench(self.store, self.clock, **settings)
        for name, number in self.topic_ids.items():
            topic = self.metadata.topic(name)
            assert topic is not None
            bench.topic(name, len(topic.partitions), number=int.from_bytes(number, "big"))
        return bench

    def _new_uuid(self) -> str:
        self._uuids += 1
        return str(UUID(int=self._uuids))

    def topic(self, name: str, partitions: int, *, number: int = 0) -> bytes:
        """Create a topic, or give it more partitions; returns its id."""
        new_id = self.topic_ids.get(name) or topic_id(number or len(self.topic_ids) + 1)
        known = self.metadata.topic(name)
        first = 0 if known is None else len(known.partitions)
        self.replay(
            *([TopicRecord(name=name, topic_id=new_id)] if known is None else []),
            *(
                PartitionRecord(
                    partition_id=partition,
                    topic_id=new_id,
                    replicas=[NODE_ID],
                    isr=[NODE_ID],
                    leader=NODE_ID,
                    directories=[DIRECTORY_ID],
                )
                for partition in range(first, partitions)
            ),
        )
        self.topic_ids[name] = new_id
        self.coordinator.on_topics_changed(are_new=True)
        return new_id

    def delete_topic(self, name: str) -> None:
        self.replay(RemoveTopicRecord(topic_id=self.topic_ids.pop(name)))
        self.coordinator.on_topics_changed(are_new=False)
        self.coordinator.forget_topics([name])

    def set_group_config(self, group_id: str, name: str, value: str) -> None:
        self.replay(ConfigRecord(resource_type=ResourceType.GROUP, resource_name=group_id, name=name, value=value))

    def replay(self, *records: MetadataRecord) -> None:
        for record in records:
            self.metadata.replay(encode_record(record, LEVEL))

    def consumer(self, member_id: str, *topics: str, **said: object) -> Consumer:
        return Consumer(self, member_id, list(topics), **said)  # type: ignore[arg-type]

    def consumer_group(self, group_id: str = "g") -> ConsumerGroup:
        return self.coordinator.describe_consumer(group_id).group

    def beat(self, *consumers: Consumer, rounds: int = 4) -> None:
        """Let members report and follow what they are told, a few times each."""
        for _ in range(rounds):
            for consumer in consumers:
                consumer.beat()
            self.advance(0)


@dataclass(eq=False)
class Consumer:
    """A member of the new protocol as its client sees it."""

    bench: ConsumerBench
    member_id: str
    topics: list[str]
    group_id: str = "g"
    instance_id: str | None = None
    rack_id: str | None = None
    pattern: str | None = None
    assignor: str | None = None
    rebalance_timeout_ms: int = 60_000
    brings_own_id: bool = True
    epoch: int = 0
    owned: frozenset[TopicIdPartition] = frozenset()
    answers: list[HeartbeatOutcome | KafkaError] = field(default_factory=list)

    def join(self) -> Consumer:
        """Join, or start anew."""
        self.epoch, self.owned = 0, frozenset()
        return self.send(
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            subscribed_topics=self.topics,
            subscribed_pattern=self.pattern,
            server_assignor=self.assignor,
            rack_id=self.rack_id,
            owned=frozenset(),
        )

    def beat(self) -> Consumer:
        """Report what it owns."""
        return self.send(owned=self.owned)

    def leave(self, epoch: int = -1) -> Consumer:
        return self.send(member_epoch=epoch)

    def send(self, **said: object) -> Consumer:
        """Send one heartbeat and do what the answer says: give up at once what is not assigned any more."""
        said = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance_id,
            "rack_id": None,
            "client_id": "client",
            "client_host": "/127.0.0.1",
            "rebalance_timeout_ms": None,
            "subscribed_topics": None,
            "subscribed_pattern": None,
            "server_assignor": None,
            "owned": None,
            "brings_own_id": self.brings_own_id,
            **said,
        }
        self.bench.coordinator.consumer_heartbeat(Heartbeat(**said), self._answered)  # type: ignore[arg-type]
        return self

    def _answered(self, outcome: HeartbeatOutcome | KafkaError) -> None:
        self.answers.append(outcome)
        if isinstance(outcome, HeartbeatOutcome):
            self.member_id, self.epoch = outcome.member_id, outcome.member_epoch
            if outcome.assigned is not None:
                self.owned = frozenset(outcome.assigned)

    @property
    def answer(self) -> HeartbeatOutcome:
        """The latest answer, which must be no error."""
        latest = self.answers[-1]
        assert isinstance(latest, HeartbeatOutcome), latest
        return latest

    @property
    def error(self) -> KafkaError:
        """The latest answer, which must be an error."""
        latest = self.answers[-1]
        assert isinstance(latest, KafkaError), latest
        return latest

    @property
    def claim(self) -> MemberClaim:
        return MemberClaim(self.member_id, self.epoch, self.instance_id)

    def reads(self, topic: str) -> list[int]:
        """The partitions of a topic that it owns."""
        return sorted(one.partition for one in self.owned if one.topic_id == self.bench.topic_ids.get(topic))


def owners(consumers: Sequence[Consumer], topic: str) -> dict[int, str]:
    """Who owns which partition of a topic. Nobody may own what another does."""
    found: dict[int, str] = {}
    for consumer in consumers:
        for partition in consumer.reads(topic):
            assert partition not in found, f"{topic}-{partition} belongs to {found[partition]} and {consumer.member_id}"
            found[partition] = consumer.member_id
    return found


def first_heartbeat(group_id: str) -> Heartbeat:
    """What somebody sends who would join."""
    return Heartbeat(
        group_id=group_id,
        member_id="m",
        member_epoch=0,
        instance_id=None,
        rack_id=None,
        client_id="",
        client_host="",
        rebalance_timeout_ms=1000,
        subscribed_topics=["t"],
        subscribed_pattern=None,
        server_assignor=None,
        owned=frozenset(),
        brings_own_id=True,
    )
