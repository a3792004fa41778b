"""A consumer in its group: follows what the membership says, and keeps what the group has read.

New partitions begin where the group has committed, else at the consumer's default. Positions are committed when the
application asks for its next record, since it has then done with those before: every `auto_commit_interval_ms`, before
partitions go to others, and at the end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from ottla.client.classic_membership import ClassicMembership
from ottla.client.cluster import Cluster
from ottla.client.committed import OffsetAndMetadata, commit_offsets, fetch_committed
from ottla.client.consumer_membership import ConsumerMembership
from ottla.client.coordinator import GroupLink
from ottla.client.membership import CLASSIC, GroupSettings, Membership, PollGate, RebalanceListener
from ottla.client.offset_reset import OffsetReset
from ottla.client.subscription import PartitionState, Subscription
from ottla.errors import KafkaError, OffsetOutOfRange, StaleMemberEpoch
from ottla.model import TopicPartition

_log = logging.getLogger(__name__)

STALE_EPOCH_ATTEMPTS = 10
"""The epoch of a member may rise while a request of its is under way; it then asks again in the new one."""


class GroupReading:
    """The group side of one consumer (`membership.Assigner`)."""

    def __init__(
        self,
        cluster: Cluster,
        settings: GroupSettings,
        subscription: Subscription,
        *,
        read_exactly: Callable[[Sequence[TopicPartition]], Sequence[PartitionState]],
        kick: Callable[[], None],
        wake: Callable[[], None],
        reset: OffsetReset,
    ) -> None:
        """`read_exactly` changes what is read and returns what is new, `kick` starts fetching, `wake` ends a wait.

        `reset` says where to begin without a committed offset.
        """
        self._cluster = cluster
        self._settings = settings
        self._subscription = subscription
        self._read_exactly = read_exactly
        self._kick = kick
        self._wake = wake
        self._reset = reset
        self._link = GroupLink(cluster, settings.group_id)
        self._gate = PollGate(wake, settings.max_poll_interval_ms)
        self._listener = RebalanceListener()
        self._membership: Membership | None = None
        self._task: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._commit_timer: asyncio.TimerHandle | None = None
        self._is_commit_due = False
        self._committing: asyncio.Task[None] | None = None
        self._committed: dict[TopicPartition, int] = {}

    # ---- life

    @property
    def is_subscribed(self) -> bool:
        return self._membership is not None

    async def subscribe(self, topics: Sequence[str], pattern: str | None, listener: RebalanceListener) -> None:
        """Become a member. Raises `ValueError` for a pattern that the protocol does not know."""
        if not topics and pattern is None:
            raise ValueError("nothing to subscribe to")
        if pattern is not None and self._settings.group_protocol == CLASSIC:
            raise ValueError("patterns need group_protocol='consumer'")
        await self.unsubscribe()
        self._listener = listener
        self._cluster.want(topics)
        self._membership = (
            ClassicMembership(self._link, self._settings, topics, self, self._gate)
            if self._settings.group_protocol == CLASSIC
            else ConsumerMembership(self._link, self._settings, topics, pattern, self, self._gate)
        )
        self._task = asyncio.get_running_loop().create_task(self._membership.run())
        self._task.add_done_callback(self._ended)
        self._set_commit_timer()

    async def unsubscribe(self) -> None:
        """Commit, tell the application, and leave."""
        membership, task = self._membership, self._task
        if membership is None or task is None:
            return
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if self._commit_timer is not None:
            self._commit_timer.cancel()
        if self._committing is not None:
            await asyncio.gather(self._committing, return_exceptions=True)
        if self._failure is None:
            await self.revoke(self.owned)
            with suppress(KafkaError):
                await membership.leave()
        self._membership = self._task = self._failure = None

    async def close(self) -> None:
        """The same; nothing that goes wrong keeps a consumer from ending."""
        try:
            await self.unsubscribe()
        except KafkaError as error:
            _log.warning("leaving a group failed", extra={"group": self._settings.group_id, "error": str(error)})

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._failure = task.exception()
            self._wake()

    # ---- what the application does

    async def at_poll(self) -> None:
        """The application asks for records: let a rebalance happen, commit if due. Raises what ended the membership."""
        self._gate.polls += 1
        if self._gate.is_wanted:
            await self._gate.pass_by()
        if self._is_commit_due:
            self._commit_in_background()
        if self._failure is not None:
            raise self._failure

    async def wait(self, news: Awaitable[bool]) -> bool:
        """Wait for records as the application does, which is then at the gate; returns what `news` gives."""
        self._gate.is_waiting = True
        try:
            has_news = await news
            await self.at_poll()
            return has_news
        finally:
            self._gate.is_waiting = False

    # ---- what the membership does

    @property
    def owned(self) -> Sequence[TopicPartition]:
        return list(self._subscription.states) if self.is_subscribed else []

    async def revoke(self, partitions: Sequence[TopicPartition]) -> None:
        """Commit where these have got, if that is wanted, tell the application, and read them no more."""
        if self._settings.enable_auto_commit:
            try:
                await self.commit(self._positions(partitions))
            except KafkaError as error:
                _log.warning("positions are not committed", extra={"partitions": partitions, "error": str(error)})
        if partitions:
            await self._listener.on_revoked(partitions)
        gone = set(partitions)
        self._read_exactly([partition for partition in self._subscription.states if partition not in gone])

    async def lose(self) -> None:
        lost = self.owned
        self._read_exactly([])
        if lost:
            await self._listener.on_lost(lost)

    async def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these too, from where the group has got."""
        for topic in {partition.topic for partition in partitions}:
            await self._cluster.topic(topic)
        committed = await self.committed(partitions) if partitions else {}
        default = self._reset.timestamp_ms()
        for state in self._read_exactly([*self._subscription.states, *partitions]):
            known = committed.get(state.partition)
            if known is not None:
                self._committed[state.partition] = known.offset
                state.seek(known.offset, known.leader_epoch)
            elif default is not None:
                state.seek_to_time(default)
            else:
                group_id = self._settings.group_id
                raise OffsetOutOfRange(f"group {group_id} has no offset for {state.partition} and no default is set")
        await self._listener.on_assigned(partitions)
        self._kick()

    # ---- offsets

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None) -> None:
        """Commit these, or all positions. Raises why a partition was refused."""
        wanted = self._positions(list(self._subscription.states)) if offsets is None else offsets
        for attempt in range(STALE_EPOCH_ATTEMPTS):
            answers = await self._commit_once(wanted)
            errors = {partition: error for partition, error in answers.items() if error is not None}
            if not errors:
                return
            error = next(iter(errors.values()))
            if not isinstance(error, StaleMemberEpoch):
                raise error
            wanted = {partition: wanted[partition] for partition in errors if partition in wanted}
            await asyncio.sleep(self._cluster.retry_delay_seconds(attempt + 1))
        raise StaleMemberEpoch("the epoch of this member rises faster than it can commit")

    async def _commit_once(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> Mapping[TopicPartition, KafkaError | None]:
        membership = self._membership
        if membership is None:
            answers = await commit_offsets(self._link, offsets)
        else:
            answers = await commit_offsets(self._link, offsets, membership.identity)
        for partition, error in answers.items():
            if error is None and partition in offsets:
                self._committed[partition] = offsets[partition].offset
        return answers

    async def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what the group has committed, for all partitions when none is named."""
        return await fetch_committed(self._link, partitions or None)

    def _positions(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where these have got, but for those that are committed as they are."""
        states = [self._subscription.states[partition] for partition in partitions]
        return {
            state.partition: OffsetAndMetadata(state.position, state.position_epoch)
            for state in states
            if state.has_position and self._committed.get(state.partition) != state.position
        }

    def _set_commit_timer(self) -> None:
        self._is_commit_due = False
        if self._settings.enable_auto_commit:
            seconds = self._settings.auto_commit_interval_ms / 1000
            self._commit_timer = asyncio.get_running_loop().call_later(seconds, self._commit_soon)

    def _commit_soon(self) -> None:
        """Have the application commit when it comes by; at once where it waits."""
        self._is_commit_due = True
        if self._gate.is_waiting:
            self._commit_in_background()

    def _commit_in_background(self) -> None:
        self._set_commit_timer()
        positions = self._positions(list(self._subscription.states))
        if positions and (self._committing is None or self._committing.done()):
            self._committing = asyncio.get_running_loop().create_task(self._commit_quietly(positions))

    async def _commit_quietly(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        try:
            await self.commit(positions)
        except KafkaError as error:
            _log.warning("positions are not committed", extra={"group": self._settings.group_id, "error": str(error)})
