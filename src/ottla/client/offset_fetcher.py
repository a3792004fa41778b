"""Finds out where to read: offsets for partitions that have no position, and whether a new leader has what was read.

Positions that are not known are asked of the leaders. A new leader is asked where the epoch of the last record that was
read ended in its log (KIP-320); where it was cut off before the position, reading goes on from the first offset that
differs, or the application hears of it. How the questions are put is in `offsets` and `truncation`.
"""

from __future__ import annotations

from ottla.client.cluster import Cluster
from ottla.client.errors import LogTruncated
from ottla.client.fetch_buffer import FetchBuffer
from ottla.client.fetch_errors import FetchErrors
from ottla.client.offset_reset import OffsetReset
from ottla.client.offsets import OffsetAndTimestamp, list_offsets
from ottla.client.subscription import PartitionState, Subscription
from ottla.client.truncation import EpochEnd, find_epoch_ends
from ottla.errors import KafkaError, LeaderNotAvailable, UnknownServerError, UnsupportedVersion
from ottla.model import LATEST_TIMESTAMP, IsolationLevel


class OffsetFetcher:
    """Looks for positions for one consumer."""

    def __init__(
        self,
        cluster: Cluster,
        subscription: Subscription,
        isolation_level: IsolationLevel,
        reset: OffsetReset,
        buffer: FetchBuffer,
        errors: FetchErrors,
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._isolation_level = isolation_level
        self._reset = reset
        self._buffer = buffer
        self._errors = errors

    def must_validate(self, state: PartitionState) -> bool:
        """True when the leader has to say first whether it has what was read. The topic's metadata must be known."""
        return state.has_position and state.must_validate(self._cluster.leader_epoch_of(state.partition))

    async def find_positions(self) -> None:
        """Find leaders, ask for the offsets of partitions that have no position, and validate those that have one."""
        states = self._subscription.without_position()
        asked = {state.partition: state.seek_count for state in states}
        timestamps = {state.partition: state.reset_timestamp_ms or 0 for state in states}
        try:
            topics = {state.partition.topic for state in self._subscription.states.values()}
            if any(self._cluster.leader_of(partition) is None for partition in self._subscription.states):
                self._cluster.want(topics)
                await self._cluster.refresh()
            answers = await list_offsets(self._cluster, timestamps, self._isolation_level)
            for state in states:
                if state.seek_count == asked[state.partition]:
                    self._take_position(state, answers[state.partition], timestamps[state.partition])
            await self._validate()
            for state in self._subscription.states.values():
                if self._cluster.leader_of(state.partition) is None:
                    self._errors.fail(state, LeaderNotAvailable(f"{state.partition} has no leader"))
        except KafkaError as error:
            for state in self._subscription.states.values():
                self._errors.fail(state, error)

    def _take_position(self, state: PartitionState, answer: OffsetAndTimestamp | KafkaError, asked_ms: int) -> None:
        if isinstance(answer, KafkaError):
            self._errors.fail(state, answer)
        elif answer.offset < 0:  # no record is that late: go on at the end
            assert asked_ms != LATEST_TIMESTAMP
            state.seek_to_time(LATEST_TIMESTAMP)
        else:
            state.seek(answer.offset)
            self._buffer.wake()

    async def _validate(self) -> None:
        """Ask new leaders whether they have what was read before."""
        states = [
            state
            for state in self._subscription.states.values()
            if self._cluster.leader_of(state.partition) is not None and state.is_drained and self.must_validate(state)
        ]
        asked = {
            state.partition: (state.seek_count, self._cluster.leader_epoch_of(state.partition)) for state in states
        }
        ends = await find_epoch_ends(self._cluster, {state.partition: state.position_epoch for state in states})
        for state in states:
            seek_count, leader_epoch = asked[state.partition]
            if state.seek_count == seek_count:
                missing = UnknownServerError("the broker's answer about leader epochs leaves it out")
                self._take_epoch_end(state, ends.get(state.partition, missing), leader_epoch)

    def _take_epoch_end(self, state: PartitionState, end: EpochEnd | KafkaError, leader_epoch: int) -> None:
        """Go on, or where the log was cut off, from the first offset that differs (as Kafka's consumer does)."""
        reset = self._reset.timestamp_ms()
        if isinstance(end, UnsupportedVersion):  # a broker that cannot tell
            state.leader_epoch = leader_epoch
        elif isinstance(end, KafkaError):
            self._errors.take(state, end)
        elif end.leader_epoch >= 0 and state.position <= end.end_offset:
            state.failures = 0
            state.leader_epoch = leader_epoch
        elif reset is None:
            known = f"from offset {end.end_offset} on" if end.leader_epoch >= 0 else "but cannot tell from where on"
            what = f"{state.partition}: the log of the new leader differs {known}, before position {state.position}"
            self._errors.fail(state, LogTruncated(what, end.end_offset))
        elif end.leader_epoch < 0:
            state.seek_to_time(reset)
        else:
            state.seek(end.end_offset, end.leader_epoch)
            state.leader_epoch = leader_epoch
