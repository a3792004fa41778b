"""The one fetch rule for every dialect: read many partitions within limits, or wait until there is enough.

A plan is read in its order. Each partition gets at most its own limit and what is left of the plan's; the first batch
of the first partition that has one is returned even when it exceeds both, so that a reader always gets on. The answer
is due at once when the reader does not wait, when enough bytes are there, when any partition is in error or diverges,
or when there is more behind what was read of one, which waiting would not bring. Partitions that are unknown from the
beginning end no wait for others: whoever asks for one asks time and again, and would never wait. Bytes count that are
there for a partition within its own limit, also when none were left for it of the plan's. Otherwise the plan waits
until an append brings the missing bytes or its time is over, and is then read afresh: nothing is held meanwhile. All of
this is as Kafka does it.

A plan of many partitions (`is_long`) is read in steps, some partitions each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from ottla.broker.fetch_sessions import FetchEntry
from ottla.broker.partition import NO_OFFSETS, Partition, PartitionRead, unknown_read
from ottla.broker.purgatory import Purgatory, Waiting
from ottla.broker.turns import Steps
from ottla.clock import Clock
from ottla.errors import InconsistentTopicId, KafkaError, NotLeaderOrFollower, UnknownLeaderEpoch
from ottla.model import NO_LEADER_EPOCH, IsolationLevel, TopicPartition

LONG_ENTRIES: Final = 256
ENTRIES_A_STEP: Final = 32

FindPartition = Callable[[FetchEntry], Partition]
"""Returns the partition that an entry names, or raises why there is none."""


@final
class FetchPlan:
    """What to read, in this order, and how long to wait for how much."""

    __slots__ = ("entries", "is_follower", "isolation", "max_bytes", "max_wait_ms", "min_bytes")

    def __init__(
        self,
        entries: Sequence[FetchEntry],
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        *,
        is_follower: bool = False,
    ) -> None:
        self.entries = entries
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation = isolation
        self.is_follower = is_follower

    @property
    def is_long(self) -> bool:
        """Whether there is so much to read that it had better be read in steps."""
        return len(self.entries) > LONG_ENTRIES


Reply = Callable[[list[PartitionRead]], None]
"""Takes one read per entry of the plan, in its order, and owns their spans."""
WaitReply = Callable[[list[PartitionRead] | None], None]
"""Called once a wait is over, with all that is to be answered where that was read to tell that it is."""


@final
class _Reads:
    """What was read of a plan so far, and what its limits leave for the rest."""

    __slots__ = ("at_least_one_batch", "found", "left_bytes")

    def __init__(self, plan: FetchPlan) -> None:
        self.found: list[PartitionRead] = []
        self.left_bytes = plan.max_bytes
        self.at_least_one_batch = True

    def add(self, read: PartitionRead) -> None:
        if read.size_bytes:
            self.at_least_one_batch = False
            self.left_bytes = max(0, self.left_bytes - read.size_bytes)
        self.found.append(read)


class FetchWaiter:
    """A plan that waits for bytes. Keeps how many each partition could give, so that a wake looks at one only."""

    __slots__ = ("_fetching", "_found", "_places", "_plan", "_reply", "_sizes", "_total_bytes")

    def __init__(self, fetching: Fetching, plan: FetchPlan, reads: Sequence[PartitionRead], reply: WaitReply) -> None:
        self._fetching = fetching
        self._plan = plan
        self._reply = reply
        self._found: list[PartitionRead] | None = None
        self._sizes = [_could_give(entry, read) for entry, read in zip(plan.entries, reads, strict=True)]
        self._total_bytes = sum(self._sizes)
        self._places: dict[tuple[str | None, int], list[int]] | None = None
        if plan.is_long:  # where each partition stands, so that an append costs no look through all of them
            self._places = {}
            for i, entry in enumerate(plan.entries):
                self._places.setdefault((entry.topic, entry.partition), []).append(i)

    def is_done(self, key: TopicPartition) -> bool:
        """Whether `key` can give the bytes that were missing, or what there is of it ends the wait anyhow."""
        plan = self._plan
        for i in self._places_of(key):
            entry = plan.entries[i]
            read = self._fetching.read_entry(entry, plan, min(entry.max_bytes, plan.max_bytes), True)
            self._total_bytes += read.size_bytes - self._sizes[i]
            self._sizes[i] = read.size_bytes
            ends_wait = _ends_wait(read)
            if len(plan.entries) == 1 and (ends_wait or self._total_bytes >= plan.min_bytes):
                self._found = [read]  # with nothing else to read this is the answer
                return True
            read.release()
            if ends_wait:
                return True
        return self._total_bytes >= plan.min_bytes

    def _places_of(self, key: TopicPartition) -> Sequence[int]:
        if self._places is not None:
            return self._places.get((key.topic, key.partition), ())
        return [
            i
            for i, entry in enumerate(self._plan.entries)
            if entry.partition == key.partition and entry.topic == key.topic
        ]

    def finish(self) -> None:
        """Answer with what is there."""
        self._reply(self._found)


class Fetching:
    """Reads plans, and lets those wait that find too little."""

    __slots__ = ("_clock", "_find_partition", "_node_id", "_purgatory")

    def __init__(
        self, node_id: int, find_partition: FindPartition, purgatory: Purgatory[TopicPartition], clock: Clock
    ) -> None:
        self._node_id = node_id
        self._find_partition = find_partition
        self._purgatory = purgatory
        self._clock = clock

    def fetch(self, plan: FetchPlan, reply: Reply) -> list[PartitionRead] | Waiting[TopicPartition]:
        """Return what was read, or the wait after which `reply` is called with it."""
        reads = self.read(plan)
        if _is_enough(plan, reads):
            return reads
        return self._wait(plan, reads, lambda found: reply(self.read(plan) if found is None else found))

    def fetch_in_steps(
        self, plan: FetchPlan, ready: Callable[[], None]
    ) -> Steps[list[PartitionRead] | Waiting[TopicPartition]]:
        """Return what was read, or the wait after which `ready` is called: then is the time for `read_in_steps`.

        An append between two steps, to what was read already, would wake nobody: such are looked at again.
        """
        wakes = self._purgatory.note_wakes()
        try:
            reads = yield from self.read_in_steps(plan)
        finally:
            self._purgatory.forget_wakes(wakes)
        if _is_enough(plan, reads):
            return reads
        waiting = self._wait(plan, reads, lambda _: ready())
        if not any(waiting.waiter.is_done(key) for key in wakes.keys):
            return waiting
        waiting.cancel()
        return (yield from self.read_in_steps(plan))

    def _wait(self, plan: FetchPlan, reads: Sequence[PartitionRead], reply: WaitReply) -> Waiting[TopicPartition]:
        for read in reads:
            read.release()
        waiter = FetchWaiter(self, plan, reads, reply)
        keys = [TopicPartition(entry.topic or "", entry.partition) for entry in plan.entries]
        return self._purgatory.wait(waiter, keys, self._clock.monotonic() + plan.max_wait_ms / 1000)

    def read(self, plan: FetchPlan) -> list[PartitionRead]:
        """Read every entry of the plan now, within the plan's limits."""
        reads = _Reads(plan)
        for entry in plan.entries:
            reads.add(self.read_entry(entry, plan, min(entry.max_bytes, reads.left_bytes), reads.at_least_one_batch))
        return reads.found

    def read_in_steps(self, plan: FetchPlan) -> Steps[list[PartitionRead]]:
        """As `read`, some entries at a time."""
        reads = _Reads(plan)
        for number, entry in enumerate(plan.entries, 1):
            reads.add(self.read_entry(entry, plan, min(entry.max_bytes, reads.left_bytes), reads.at_least_one_batch))
            if number % ENTRIES_A_STEP == 0:
                yield
        return reads.found

    def read_entry(self, entry: FetchEntry, plan: FetchPlan, max_bytes: int, at_least_one_batch: bool) -> PartitionRead:
        """Read one partition; an error becomes part of the answer."""
        try:
            partition = self._find_partition(entry)
        except KafkaError as error:
            return unknown_read(error)
        try:
            partition.check_leader_epoch(entry.current_leader_epoch)
            if plan.is_follower:
                raise _no_follower(entry.current_leader_epoch)
            if entry.last_fetched_epoch != NO_LEADER_EPOCH:
                diverging = partition.find_divergence(entry.last_fetched_epoch, entry.fetch_offset)
                if diverging is not None:
                    read = PartitionRead(partition.offsets())
                    read.diverging_epoch = diverging
                    return read
            return partition.read(entry.fetch_offset, max_bytes, plan.isolation, at_least_one_batch=at_least_one_batch)
        except KafkaError as error:
            read = PartitionRead(NO_OFFSETS, error)
            read.leader_id, read.leader_epoch = self._node_id, partition.leader_epoch
            return read


def _no_follower(current_leader_epoch: int) -> KafkaError:
    """There are none; as to Kafka, one that knows an epoch may know a later one than this broker does."""
    if current_leader_epoch != NO_LEADER_EPOCH:
        return UnknownLeaderEpoch("there are no followers here")
    return NotLeaderOrFollower("there are no followers here")


def _is_enough(plan: FetchPlan, reads: Sequence[PartitionRead]) -> bool:
    """Whether the answer is due at once. A partition that is unknown is told beside the others when they are."""
    if plan.max_wait_ms <= 0:
        return True
    size_bytes = 0
    is_any_known = False
    for entry, read in zip(plan.entries, reads, strict=True):
        if read.is_unknown and not isinstance(read.error, InconsistentTopicId):
            continue
        if _ends_wait(read):
            return True
        is_any_known = True
        size_bytes += _could_give(entry, read)
    return size_bytes >= plan.min_bytes or not is_any_known


def _ends_wait(read: PartitionRead) -> bool:
    """Whether nothing is waited for, however little was read."""
    return read.error is not None or read.diverging_epoch is not None or read.is_behind


def _could_give(entry: FetchEntry, read: PartitionRead) -> int:
    """How many bytes of a partition count, be it that the plan had no room for them."""
    return max(read.size_bytes, min(read.available_bytes, entry.max_bytes))
