"""Which partitions a consumer reads and how far it is: pure state, no requests.

Each partition has two offsets: `fetch_offset`, from where the broker is asked next, runs ahead of `position`, the next
record that the application gets. A seek moves both and raises `seek_count`, by which answers to earlier requests are
recognized as outdated. While `reset_timestamp_ms` is set the partition has no offset yet and must ask its leader.
`position_epoch` is the leader epoch of the last record before the position, by which a new leader can tell whether its
log has that record too; `leader_epoch` is the one under which that is known to be so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.errors import NotAssigned
from ottla.model import NO_LEADER_EPOCH, NO_OFFSET, TopicPartition


class PartitionState:
    """One assigned partition. Watermarks are -1 until the first answer."""

    __slots__ = (
        "buffered_bytes",
        "failing_since",
        "failures",
        "fetch_offset",
        "high_watermark",
        "is_paused",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "partition",
        "position",
        "position_epoch",
        "preferred_replica",
        "preferred_until",
        "reset_timestamp_ms",
        "retry_at",
        "seek_count",
    )

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.position = NO_OFFSET
        self.fetch_offset = NO_OFFSET
        self.reset_timestamp_ms: int | None = None
        self.seek_count = 0
        self.is_paused = False
        self.leader_epoch = NO_LEADER_EPOCH
        self.position_epoch = NO_LEADER_EPOCH
        self.preferred_replica: int | None = None
        """The follower that the leader sent us to (KIP-392), until the loop's time `preferred_until`."""
        self.preferred_until = 0.0
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.buffered_bytes = 0
        self.failures = 0
        """In a row, the first of which was at the loop's time `failing_since`."""
        self.failing_since = 0.0
        self.retry_at = 0.0

    def seek(self, offset: int, leader_epoch: int = NO_LEADER_EPOCH) -> None:
        """Go on at an offset; what was fetched before is outdated. `leader_epoch` is that of the record before it."""
        self.position = self.fetch_offset = offset
        self.position_epoch = leader_epoch
        self.leader_epoch = NO_LEADER_EPOCH
        self.reset_timestamp_ms = None
        self.seek_count += 1
        self.buffered_bytes = 0
        self.failures = 0
        self.retry_at = 0.0

    def seek_to_time(self, timestamp_ms: int) -> None:
        """Go on where the leader says that the timestamp (possibly a special one) is; no position until then."""
        self.seek(NO_OFFSET)
        self.reset_timestamp_ms = timestamp_ms

    @property
    def has_position(self) -> bool:
        return self.position != NO_OFFSET

    @property
    def is_drained(self) -> bool:
        """True when the application has everything that was fetched."""
        return self.position == self.fetch_offset

    def must_validate(self, leader_epoch: int) -> bool:
        """True when the present leader has to say first whether it has what was read (KIP-320)."""
        return self.position_epoch >= 0 and leader_epoch >= 0 and self.leader_epoch != leader_epoch

    def forget_replica(self) -> bool:
        """Read from the leader again; False when that was so before."""
        had_one, self.preferred_replica = self.preferred_replica is not None, None
        return had_one

    @property
    def lag(self) -> int | None:
        """Records between the position and the high watermark; never negative, None while either is unknown.

        Counted from the log's start when retention overtook the position.
        """
        if not self.has_position or self.high_watermark < 0:
            return None
        return max(0, self.high_watermark - max(self.position, self.log_start_offset))


class Subscription:
    """The assigned partitions, in the order given."""

    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: dict[TopicPartition, PartitionState] = {}

    @property
    def states(self) -> Mapping[TopicPartition, PartitionState]:
        return self._states

    def assign(self, partitions: Iterable[TopicPartition]) -> Sequence[PartitionState]:
        """Read exactly these partitions. Those that stay keep their position; returns those that are new."""
        old = self._states
        self._states = {partition: old.get(partition) or PartitionState(partition) for partition in partitions}
        for partition in old.keys() - self._states.keys():
            old[partition].seek(NO_OFFSET)  # outdates what is buffered or under way
        return [state for partition, state in self._states.items() if partition not in old]

    def state(self, partition: TopicPartition) -> PartitionState:
        """Raises `NotAssigned`."""
        try:
            return self._states[partition]
        except KeyError:
            raise NotAssigned(f"{partition} is not assigned to this consumer") from None

    def chosen(self, partitions: Iterable[TopicPartition]) -> list[PartitionState]:
        """Return the states of these partitions, of all when none is named. Raises `NotAssigned`."""
        named = list(partitions)
        return [self.state(partition) for partition in named] if named else list(self._states.values())

    def without_position(self) -> list[PartitionState]:
        return [state for state in self._states.values() if state.reset_timestamp_ms is not None]
