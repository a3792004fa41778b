"""The one fetch rule for every dialect: read many partitions within limits, or wait until there is enough.

A plan is read in its order. Each partition gets at most its own limit and what is left of the plan's; the first batch
of the first partition that has one is returned even when it exceeds both, so that a reader always gets on. The answer
is due at once when the reader does not wait, when enough bytes are there, or when any partition is in error or
diverges. Otherwise the plan waits until an append brings the missing bytes or its time is over, and is then read
afresh: nothing is held meanwhile. All of this is as Kafka does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

from ottla.broker.fetch_sessions import FetchEntry
from ottla.broker.partition import NO_OFFSETS, Partition, PartitionRead, unknown_read
from ottla.broker.purgatory import Purgatory, Waiting
from ottla.clock import Clock
from ottla.errors import KafkaError, NotLeaderOrFollower
from ottla.model import NO_LEADER_EPOCH, IsolationLevel, TopicPartition

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


Reply = Callable[[list[PartitionRead]], None]
"""Takes one read per entry of the plan, in its order, and owns their spans."""


class FetchWaiter:
    """A plan that waits for bytes. Keeps how many each partition could give, so that a wake looks at one only."""

    __slots__ = ("_fetching", "_plan", "_reply", "_sizes", "_total_bytes")

    def __init__(self, fetching: Fetching, plan: FetchPlan, reads: Sequence[PartitionRead], reply: Reply) -> None:
        self._fetching = fetching
        self._plan = plan
        self._reply = reply
        self._sizes = [read.size_bytes for read in reads]
        self._total_bytes = sum(self._sizes)

    def is_done(self, key: TopicPartition) -> bool:
        """Whether `key` can give the bytes that were missing, or is in error now."""
        plan = self._plan
        for i, entry in enumerate(plan.entries):
            if entry.partition == key.partition and entry.topic == key.topic:
                read = self._fetching.read_entry(entry, plan, min(entry.max_bytes, plan.max_bytes), True)
                read.release()
                self._total_bytes += read.size_bytes - self._sizes[i]
                self._sizes[i] = read.size_bytes
                if read.error is not None or read.diverging_epoch is not None:
                    return True
        return self._total_bytes >= plan.min_bytes

    def finish(self) -> None:
        """Answer with what is there."""
        self._reply(self._fetching.read(self._plan))


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
        if plan.max_wait_ms <= 0 or not reads:
            return reads
        size_bytes = 0
        for read in reads:
            if read.error is not None or read.diverging_epoch is not None:
                return reads
            size_bytes += read.size_bytes
        if size_bytes >= plan.min_bytes:
            return reads
        for read in reads:
            read.release()
        waiter = FetchWaiter(self, plan, reads, reply)
        keys = [TopicPartition(entry.topic or "", entry.partition) for entry in plan.entries]
        return self._purgatory.wait(waiter, keys, self._clock.monotonic() + plan.max_wait_ms / 1000)

    def read(self, plan: FetchPlan) -> list[PartitionRead]:
        """Read every entry of the plan now, within the plan's limits."""
        left_bytes = plan.max_bytes
        at_least_one_batch = True
        reads: list[PartitionRead] = []
        for entry in plan.entries:
            read = self.read_entry(entry, plan, min(entry.max_bytes, left_bytes), at_least_one_batch)
            if read.size_bytes:
                at_least_one_batch = False
                left_bytes = max(0, left_bytes - read.size_bytes)
            reads.append(read)
        return reads

    def read_entry(self, entry: FetchEntry, plan: FetchPlan, max_bytes: int, at_least_one_batch: bool) -> PartitionRead:
        """Read one partition; an error becomes part of the answer."""
        try:
            partition = self._find_partition(entry)
        except KafkaError as error:
            return unknown_read(error)
        try:
            if plan.is_follower:
                raise NotLeaderOrFollower("there are no followers here")
            partition.check_leader_epoch(entry.current_leader_epoch)
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
