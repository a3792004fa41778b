"""A coordinator without sockets: state shards in memory, time that the test moves, members that are simple objects."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ottla.broker.groups.classic import ClassicGroup
from ottla.broker.groups.coordinator import GroupCoordinator
from ottla.broker.groups.group import MemberClaim
from ottla.broker.groups.offsets import OffsetToCommit
from ottla.broker.groups.rebalance import GroupServices
from ottla.broker.groups.requests import (
    AssignmentProtocol,
    JoinOutcome,
    JoinRequest,
    LeaveOutcome,
    LeavingMember,
    SyncOutcome,
    SyncRequest,
)
from ottla.clock import Timers
from ottla.config.broker_config import BrokerConfig
from ottla.config.current_config import CurrentConfig
from ottla.engine import Shard, StateBatch, StateRecord, StateStore, Ticket
from ottla.errors import KafkaError
from ottla.model import TopicPartition
from ottla.protocol.internal.consumer_protocol import ConsumerProtocolSubscription
from ottla.protocol.internal.framing import CoordinatorRecord, decode_group_record, encode_versioned
from ottla.testing.clock import ManualClock
from tests.broker.metadata.harness import new_ticket, state_of

PARTITIONS = 4
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
}
TOPIC_ID = b"id of the topic."


class MemoryShards:
    """A `StateStore` in memory. Appends are durable at once unless the test wants to say when."""

    def __init__(self) -> None:
        self.batches: dict[Shard, list[StateBatch]] = {}
        self.tickets: list[Ticket] = []
        self.is_slow = False
        self.failure: KafkaError | None = None

    def load(self, shard: Shard) -> Iterator[StateBatch]:
        yield from self.batches.get(shard, [])

    def append(self, shard: Shard, records: Sequence[StateRecord], epoch: int) -> Ticket:
        if self.failure is not None:
            raise self.failure
        stored = self.batches.setdefault(shard, [])
        base_offset = sum(len(batch.records) for batch in stored)
        stored.append(StateBatch(base_offset, 0, list(records)))
        ticket = new_ticket(base_offset, len(records))
        self.tickets.append(ticket)
        if not self.is_slow:
            ticket.settle()
        return ticket

    def snapshot(self, shard: Shard, records: Iterator[StateRecord]) -> None:
        raise AssertionError("groups have no snapshots")

    def settle(self, error: KafkaError | None = None) -> None:
        """All that was appended is durable now, or will never be."""
        for ticket in self.tickets:
            if not ticket.is_durable and ticket.error is None:
                ticket.settle(error)

    def records(self) -> list[CoordinatorRecord]:
        """Everything that was ever appended, decoded."""
        found = []
        for batches in self.batches.values():
            for batch in batches:
                for record in batch.records:
                    assert record.key is not None
                    decoded = decode_group_record(record.key, record.value)
                    assert isinstance(decoded, CoordinatorRecord)
                    found.append(decoded)
        return found


def subscription(*topics: str) -> bytes:
    """What a consumer says that it wants."""
    return encode_versioned(ConsumerProtocolSubscription(topics=list(topics)), 1)


@dataclass(eq=False)
class Member:
    """A member as its client sees it: what it says, and the answers that it got."""

    bench: Bench
    group_id: str = "g"
    member_id: str = ""
    instance_id: str | None = None
    protocols: list[tuple[str, bytes]] = field(default_factory=lambda: [("range", subscription("t"))])
    protocol_type: str = "consumer"
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    must_know_member_id: bool = False
    can_skip_assignment: bool = True
    joins: list[JoinOutcome] = field(default_factory=list)
    syncs: list[SyncOutcome] = field(default_factory=list)

    def join(self) -> Member:
        """Ask to be in the next generation; an id that is given is kept."""
        self.bench.coordinator.join(
            JoinRequest(
                group_id=self.group_id,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                client_id="client",
                client_host="/127.0.0.1",
                session_timeout_ms=self.session_timeout_ms,
                rebalance_timeout_ms=self.rebalance_timeout_ms,
                protocol_type=self.protocol_type,
                protocols=[AssignmentProtocol(*protocol) for protocol in self.protocols],
                must_know_member_id=self.must_know_member_id,
                can_skip_assignment=self.can_skip_assignment,
            ),
            self._joined,
        )
        return self

    def _joined(self, outcome: JoinOutcome) -> None:
        self.joins.append(outcome)
        self.member_id = outcome.member_id or self.member_id

    @property
    def joined(self) -> JoinOutcome:
        """The latest answer to a join."""
        return self.joins[-1]

    @property
    def is_leader(self) -> bool:
        return self.joined.leader == self.member_id

    def sync(self, **assignments: bytes) -> Member:
        """Ask for the assignment; the leader brings one for each member, by default its id."""
        brought = dict(assignments)
        if self.is_leader and not brought:
            brought = {member.member_id: member.member_id.encode() for member in self.joined.members}
        self.bench.coordinator.sync(
            SyncRequest(
                group_id=self.group_id,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                generation_id=self.joined.generation_id,
                protocol_type=None,
                protocol_name=None,
                assignments=brought,
            ),
            self.syncs.append,
        )
        return self

    def heartbeat(self) -> KafkaError | None:
        """Report; returns what the member hears."""
        try:
            self.bench.coordinator.heartbeat(self.group_id, self.member_id, self.instance_id, self.joined.generation_id)
        except KafkaError as error:
            return error
        return None

    def leave(self) -> KafkaError | None:
        """Go; returns what the member hears."""
        outcomes: list[LeaveOutcome] = []
        leaving = [LeavingMember(self.member_id, self.instance_id)]
        self.bench.coordinator.leave(self.group_id, leaving, outcomes.extend)
        return outcomes[0].error

    @property
    def claim(self) -> MemberClaim:
        return MemberClaim(self.member_id, self.joined.generation_id, self.instance_id)


def make_coordinator(
    store: StateStore, timers: Timers, clock: ManualClock, settings: CurrentConfig
) -> GroupCoordinator:
    """A coordinator whose member ids can be told in advance; it has no shards yet."""
    numbers = itertools.count(1)
    services = GroupServices(timers, clock, settings, new_uuid=lambda: f"uuid{next(numbers)}")
    return GroupCoordinator(store=store, services=services, metadata=state_of(), lead=lambda shard: 5)


class Bench:
    """One coordinator."""

    def __init__(self, store: MemoryShards | None = None, clock: ManualClock | None = None, **settings: str) -> None:
        self.store = store or MemoryShards()
        self.clock = clock or ManualClock()
        self.timers = Timers()
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.settings = CurrentConfig(BrokerConfig.from_properties({**SETTINGS, **named}))
        self.coordinator = make_coordinator(self.store, self.timers, self.clock, self.settings)
        self.coordinator.open(PARTITIONS)

    def restart(self, **settings: str) -> Bench:
        """Another coordinator on the same records, at the same time."""
        return Bench(self.store, self.clock, **settings)

    def member(self, **said: object) -> Member:
        return Member(self, **said)  # type: ignore[arg-type]

    def advance(self, seconds: float, *, lag_seconds: float = 0.0) -> None:
        """Move the time and run what falls due, `lag_seconds` late."""
        self.clock.advance(seconds)
        self.timers.lag_seconds = lag_seconds
        while self.timers.run_due(self.clock.monotonic()):
            self.timers.lag_seconds = 0.0

    def pass_time(self, seconds: float, *beating: Member, step: float = 1.0) -> None:
        """Let time go by in steps; these members report at each."""
        for _ in range(round(seconds / step)):
            self.advance(step)
            for member in beating:
                member.heartbeat()

    def group(self, group_id: str = "g") -> ClassicGroup:
        return self.coordinator.describe_classic(group_id)

    def states(self) -> dict[str, str]:
        """All groups with their states."""
        return {group.group_id: group.state_name for group in self.coordinator.groups()}

    def stable_group(self, count: int, **said: object) -> list[Member]:
        """Have so many new members make a stable group; the first one leads."""
        members = [self.member(**said).join() for _ in range(count)]
        self.advance(0)
        for member in members:
            member.sync()
        assert self.group(members[0].group_id).state_name == "Stable"
        return members

    def commit(
        self,
        *offsets: tuple[str, int, int],
        group_id: str = "g",
        claim: MemberClaim | None = None,
        metadata: str = "",
        expire_timestamp_ms: int = -1,
    ) -> list[KafkaError | None]:
        """Commit `(topic, partition, offset)`s. Returns what is answered so far, one for each."""
        answers: list[KafkaError | None] = []
        self.coordinator.commit_offsets(
            group_id,
            claim or MemberClaim(),
            [
                OffsetToCommit(TopicPartition(topic, partition), offset, -1, metadata, TOPIC_ID)
                for topic, partition, offset in offsets
            ],
            answers.extend,
            expire_timestamp_ms=expire_timestamp_ms,
        )
        return answers

    def committed(self, group_id: str = "g") -> dict[tuple[str, int], int]:
        """All offsets of a group."""
        return {
            (topic, partition): committed.offset
            for topic, partitions in self.coordinator.committed_offsets(group_id).items()
            for partition, committed in partitions.items()
        }

    def delete_group(self, group_id: str = "g") -> list[KafkaError | None]:
        answers: list[KafkaError | None] = []
        self.coordinator.delete_group(group_id, answers.append)
        return answers
