"""Membership in a consumer group (KIP-848): one heartbeat that says what is read and is told what to read.

The broker assigns. What it takes away is given up at the gate, reported as no longer owned, and only then given to
others; meanwhile heartbeats go on, so that an application that takes its time is not taken for gone.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Iterable, Sequence
from typing import Final
from uuid import uuid4

from ottla.client.committed import MemberIdentity
from ottla.client.coordinator import GROUP_CHANNEL, GroupLink
from ottla.client.errors import raise_error
from ottla.client.membership import Assigner, GroupSettings, PollGate
from ottla.errors import (
    FencedMemberEpoch,
    KafkaError,
    UnknownMemberId,
    UnreleasedInstanceId,
)
from ottla.model import TopicId, TopicPartition, format_uuid
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
FIRST_INTERVAL_MS: Final = 1_000
"""Between heartbeats until the broker has said how often it wants them."""


class ConsumerMembership:
    """See the module."""

    def __init__(
        self,
        link: GroupLink,
        settings: GroupSettings,
        topics: Sequence[str],
        pattern: str | None,
        assigner: Assigner,
        gate: PollGate,
    ) -> None:
        """`pattern` is in RE2 syntax and matched by the broker; None where there is none."""
        self._link = link
        self._settings = settings
        self._topics = sorted(set(topics))
        self._pattern = pattern
        self._assigner = assigner
        self._gate = gate
        self._member_id = format_uuid(uuid4().bytes)
        self._epoch = JOIN_EPOCH
        self._interval_ms = FIRST_INTERVAL_MS
        self._target: list[TopicPartition] | None = None
        self._must_tell_all = True
        self._reported: list[TopicPartition] | None = None

    @property
    def identity(self) -> MemberIdentity:
        return MemberIdentity(self._member_id, self._epoch or -1, self._settings.group_instance_id)

    # ---- life

    async def run(self) -> None:
        """Report, and do what the answers say."""
        attempt = 0
        while True:
            try:
                await self._beat()
                attempt = 0
                has_followed = await self._follow()
            except (UnknownMemberId, FencedMemberEpoch):
                await self._start_anew()
                continue
            except UnreleasedInstanceId:
                has_followed = False  # its last process has not been missed yet
            except KafkaError as error:
                attempt += 1
                self._must_tell_all = True
                await self._link.pause_after(error, attempt)
                continue
            if not has_followed:
                await asyncio.sleep(self._interval_ms / 1000)
                if self._gate.is_overdue:
                    await self._leave(LEAVE_EPOCH)
                    await self._gate.await_poll()
                    await self._start_anew()

    async def leave(self) -> None:
        await self._leave(LEAVE_EPOCH if self._settings.group_instance_id is None else STATIC_LEAVE_EPOCH)

    async def _leave(self, epoch: int) -> None:
        if self._epoch > JOIN_EPOCH:
            connection = await self._link.connection(GROUP_CHANNEL)
            request = ConsumerGroupHeartbeatRequest(
                group_id=self._link.group_id,
                member_id=self._member_id,
                member_epoch=epoch,
                instance_id=self._settings.group_instance_id,
            )
            await connection.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, request, ConsumerGroupHeartbeatResponse)
            self._epoch = JOIN_EPOCH

    async def _start_anew(self) -> None:
        """The group has gone on without this member: what it read belongs to others."""
        self._epoch = JOIN_EPOCH
        self._must_tell_all = True
        self._target = None
        if self._assigner.owned:
            async with self._gate:
                await self._assigner.lose()

    # ---- heartbeats

    async def _beat(self) -> None:
        """Send one heartbeat and note the answer. Raises what it is."""
        is_complete = self._must_tell_all
        owned = [] if self._epoch == JOIN_EPOCH else sorted(self._assigner.owned)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._link.group_id,
            member_id=self._member_id,
            member_epoch=self._epoch,
            instance_id=self._settings.group_instance_id,
            rebalance_timeout_ms=self._settings.max_poll_interval_ms if is_complete else -1,
            server_assignor=self._settings.group_remote_assignor if is_complete else None,
            topic_partitions=await self._topic_partitions(owned) if is_complete or owned != self._reported else None,
        )
        if is_complete:
            request.subscribed_topic_names = self._topics
            request.subscribed_topic_regex = self._pattern
        connection = await self._link.connection(GROUP_CHANNEL)
        response = await connection.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, request, ConsumerGroupHeartbeatResponse)
        raise_error(response.error_code, response.error_message)
        self._must_tell_all = False
        self._reported = owned
        self._epoch = response.member_epoch
        self._member_id = response.member_id or self._member_id
        self._interval_ms = response.heartbeat_interval_ms or self._interval_ms
        if response.assignment is not None:
            self._target = await self._named(response.assignment.topic_partitions)

    async def _follow(self) -> bool:
        """Give up and take on what the broker said last; say whether there is something to report at once."""
        if self._target is None:
            return False
        target, self._target = self._target, None
        owned = set(self._assigner.owned)
        revoked, added = sorted(owned - set(target)), sorted(set(target) - owned)
        if revoked:
            await self._while_beating(self._revoke(revoked))
        if not self._has_changed_its_mind() and (added or not owned):
            await self._while_beating(self._assign(added))
        return bool(revoked or added)

    def _has_changed_its_mind(self) -> bool:
        """Say whether the broker has told another assignment since the one that is being followed."""
        return self._target is not None

    async def _revoke(self, partitions: Sequence[TopicPartition]) -> None:
        async with self._gate:
            await self._assigner.revoke(partitions)

    async def _assign(self, partitions: Sequence[TopicPartition]) -> None:
        async with self._gate:
            await self._assigner.assign(partitions)

    async def _while_beating(self, work: Awaitable[None]) -> None:
        """Do what may wait for the application, with heartbeats meanwhile that say that this member is alive."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait([task], timeout=self._interval_ms / 1000)
                if not task.done():
                    await self._send_sign_of_life()
            await task
        finally:
            task.cancel()

    async def _send_sign_of_life(self) -> None:
        connection = await self._link.connection(GROUP_CHANNEL)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._link.group_id,
            member_id=self._member_id,
            member_epoch=self._epoch,
            instance_id=self._settings.group_instance_id,
        )
        response = await connection.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, request, ConsumerGroupHeartbeatResponse)
        raise_error(response.error_code)
        if response.assignment is not None:
            self._target = await self._named(response.assignment.topic_partitions)

    # ---- ids and names

    async def _topic_partitions(self, partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
        topics: defaultdict[str, list[int]] = defaultdict(list)
        for partition in partitions:
            topics[partition.topic].append(partition.partition)
        known = self._link.cluster.topics
        return [
            TopicPartitions(topic_id=known[topic].topic_id, partitions=numbers)
            for topic, numbers in topics.items()
            if topic in known
        ]

    async def _named(self, topics: Iterable[TopicPartitions]) -> list[TopicPartition]:
        """Return partitions by name; ids that nobody knows are of topics that are gone, or not known yet."""
        rows = list(topics)
        cluster = self._link.cluster
        if any(cluster.topic_name(TopicId(row.topic_id)) is None for row in rows):
            cluster.update(await cluster.ask_metadata(None))
        named = [(cluster.topic_name(TopicId(row.topic_id)), row.partitions) for row in rows]
        cluster.want(name for name, _ in named if name is not None)
        return [TopicPartition(name, number) for name, numbers in named if name is not None for number in numbers]
