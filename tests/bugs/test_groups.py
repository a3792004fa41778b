"""Classic groups and committed offsets: joining, static members, commits, expiry, deletion, loading."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.testing.clock import ManualClock
from tests.group_wire import (
    GROUP_SETTINGS,
    Member,
    commit,
    committed,
    describe,
    find_coordinator,
    form_group,
    state_of,
    subscription,
    sync_all,
)
from tests.wire import SECONDS, Room, on_broker, open_room

UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_COORDINATOR = 16
ILLEGAL_GENERATION = 22
INCONSISTENT_GROUP_PROTOCOL = 23
UNKNOWN_MEMBER_ID = 25
REBALANCE_IN_PROGRESS = 27
NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69
FENCED_INSTANCE_ID = 82
GROUP_SUBSCRIBED_TO_TOPIC = 86

on_groups = on_broker(GROUP_SETTINGS, clock=ManualClock)


@asynccontextmanager
async def room_in(directory: Path, **settings: str) -> AsyncIterator[Room]:
    """A broker on a directory, with its coordinator."""
    named = {name.replace("__", "."): value for name, value in settings.items()}
    async with open_room({**GROUP_SETTINGS, "log.dirs": str(directory), **named}, clock=ManualClock()) as room:
        await find_coordinator(room)
        yield room


async def beat_for(room: Room, seconds: int, *members: Member) -> None:
    """Let time pass while these members report every second."""
    for _ in range(seconds):
        room.running.advance(1)
        for member in members:
            await member.heartbeat()


@on_groups
async def test_clients_that_give_up_joining_leave_no_members_behind(room: Room) -> None:
    """KAFKA-7610 "Proactively timeout new group members if rebalance is delayed", KAFKA-9232."""
    await find_coordinator(room)
    stays = await Member.connect(room, session_timeout_ms=60_000)
    await form_group(room, stays)
    for _ in range(200):
        ghost = await Member.connect(room, version=3)
        await ghost.begin_join()
        await ghost.peer.close()
    assert await state_of(room.peer) == "PreparingRebalance"
    assert await stays.join() == 0
    await stays.sync()
    await beat_for(room, 10, stays)
    if await state_of(room.peer) == "PreparingRebalance":
        assert await stays.join() == 0
        await stays.sync()
    assert [one.member_id for one in (await describe(room.peer, "g")).members] == [stays.member_id]


@on_groups
async def test_ids_that_are_never_used_do_not_hold_up_a_group(room: Room) -> None:
    """KAFKA-7610 with KIP-394: two hundred clients ask for an id and go."""
    await find_coordinator(room)
    for _ in range(200):
        await Member(room.peer).ask_for_id()
    assert await state_of(room.peer) == "Empty"
    stays = await Member.connect(room)
    await form_group(room, stays)
    room.running.advance(5)
    await stays.heartbeat()
    room.running.advance(5)
    assert (await stays.heartbeat(), await state_of(room.peer)) == (0, "Stable")
    assert len((await describe(room.peer, "g")).members) == 1


@on_groups
async def test_a_second_member_makes_one_rebalance(room: Room) -> None:
    """nisshi-io/nisshi#625/#626 "Consumer group rebalance fails with UNKNOWN_MEMBER_ID when second consumer joins"."""
    await find_coordinator(room)
    first, second = [await Member.connect(room) for _ in range(2)]
    await form_group(room, first)
    await second.begin_join()
    assert await first.heartbeat() == REBALANCE_IN_PROGRESS
    assert (await first.sync()).error_code == REBALANCE_IN_PROGRESS
    assert await first.join() == 0
    assert await second.end_join() == 0
    assert {one.joined.generation_id for one in (first, second)} == {2}
    assert await sync_all(first, second) == [first.member_id.encode(), second.member_id.encode()]
    assert (await first.sync(generation_id=1)).error_code == ILLEGAL_GENERATION
    assert [await one.heartbeat() for one in (first, second)] == [0, 0]


@on_groups
async def test_a_rebalance_ends_though_members_are_dead(room: Room) -> None:
    """redpanda-data/redpanda#3300 "observed stuck consumer group", KAFKA-7909 "Ensure timely rebalance completion
    after pending members rejoin or fail", franz-go "classic group compliance fixes" (pending sync timeout): one never
    rejoins, one joins and never syncs, one never uses the id that it got."""
    await find_coordinator(room)

    async def connect() -> Member:
        return await Member.connect(room, session_timeout_ms=6_000, rebalance_timeout_ms=5_000)

    lives, silent, half, pending = [await connect() for _ in range(4)]
    await form_group(room, lives, silent, half)
    await pending.ask_for_id()
    await lives.begin_join()  # the leader rejoins: a rebalance
    half.protocols = [("range", subscription("t", "u"))]
    await half.begin_join()
    assert await state_of(room.peer) == "PreparingRebalance"
    for _ in range(6):
        room.running.advance(1)
    assert await lives.end_join() == 0
    assert await half.end_join() == 0
    await lives.sync()
    await beat_for(room, 5, lives)
    assert await lives.heartbeat() == REBALANCE_IN_PROGRESS  # `half` did not sync in time
    assert await lives.join() == 0
    await lives.sync()
    assert await state_of(room.peer) == "Stable"
    assert [one.member_id for one in (await describe(room.peer, "g")).members] == [lives.member_id]
    assert await lives.leave() == 0
    assert await state_of(room.peer) == "Empty"


@on_groups
async def test_the_protocol_is_one_that_all_members_speak(room: Room) -> None:
    """franz-go "kfake: classic group compliance fixes"."""
    await find_coordinator(room)
    first = await Member.connect(room, protocols=[("x", b"1"), ("y", b"1")])
    second = await Member.connect(room, protocols=[("y", b"2"), ("z", b"2")])
    await form_group(room, first)
    await second.begin_join()
    assert [await first.join(), await second.end_join()] == [0, 0]
    assert [one.joined.protocol_name for one in (first, second)] == ["y", "y"]
    for said in ({"protocols": [("z", b"3")]}, {"protocols": [("y", b"3")], "protocol_type": "connect"}):
        stranger = await Member.connect(room, version=3, **said)
        assert await stranger.join() == INCONSISTENT_GROUP_PROTOCOL
    assert await (await Member.connect(room, version=3, protocols=[])).join() == INCONSISTENT_GROUP_PROTOCOL


@on_groups
async def test_a_static_member_is_one_process_at_a_time(room: Room) -> None:
    """KAFKA-8500 "Static member rejoin should always update member.id", KAFKA-9801."""
    await room.create("t")
    await find_coordinator(room)
    other, old = await Member.connect(room), await Member.connect(room, instance_id="i1")
    await form_group(room, other, old)
    generation_id, assignment = old.joined.generation_id, (await old.sync()).assignment

    new = await Member.connect(room, instance_id="i1")
    assert await new.join() == 0

    assert (new.joined.generation_id, new.member_id != old.member_id) == (generation_id, True)
    assert (await new.sync()).assignment == assignment
    assert [await old.heartbeat(), await old.commit("t", 0, 1)] == [FENCED_INSTANCE_ID, FENCED_INSTANCE_ID]
    assert (await old.sync()).error_code == FENCED_INSTANCE_ID
    assert [await other.heartbeat(), await new.heartbeat(), await new.commit("t", 0, 1)] == [0, 0, 0]

    await other.begin_join()  # a rebalance: in it the instance comes back once more
    newest = await Member.connect(room, instance_id="i1")
    await newest.begin_join()
    assert [await newest.end_join(), await other.end_join()] == [0, 0]
    assert newest.joined.generation_id == generation_id + 1
    assert [await new.heartbeat(), await old.heartbeat()] == [FENCED_INSTANCE_ID, FENCED_INSTANCE_ID]
    assert len((await describe(room.peer, "g")).members) == 2


@pytest.mark.parametrize("ends", ["in order", "at once"])
def test_static_members_outlive_a_restart(tmp_path: Path, ends: str) -> None:
    """KAFKA-10284 "Group membership update due to static member rejoin should be persisted", redpanda#5607 "fix
    assertion failure in join_empty_group_static_member"."""
    live, left = tmp_path / "live", tmp_path / "left"
    ids: list[str] = []

    async def before() -> None:
        async with room_in(live) as room:
            old, lonely = await Member.connect(room, instance_id="i1"), await Member.connect(room, group_id="empty")
            lonely.instance_id = "i2"
            await form_group(room, old)
            await form_group(room, lonely)
            assert await lonely.leave() == 0
            new = await Member.connect(room, instance_id="i1")
            assert await new.join() == 0
            ids.extend([old.member_id, new.member_id])
            if ends == "at once":
                shutil.copytree(live, left)
        if ends == "in order":
            shutil.copytree(live, left)

    async def after() -> None:
        async with room_in(left) as room:
            old, new = [await Member.connect(room, instance_id="i1", member_id=member_id) for member_id in ids]
            for member in (old, new):
                member.joined.generation_id = 1
            assert [await new.heartbeat(), await old.heartbeat()] == [0, FENCED_INSTANCE_ID]
            lonely = await Member.connect(room, group_id="empty", instance_id="i2")
            await form_group(room, lonely)

    asyncio.run(before())
    asyncio.run(after())


@on_groups
async def test_commits_are_checked(room: Room) -> None:
    """franz-go "kfake: validate OffsetCommit partitions exist" and "support committing to non-existing groups",
    KAFKA-6773 "Allow offset commit/fetch/describe/delete with empty groupId"."""
    await room.create("t")
    await find_coordinator(room)
    member = await Member.connect(room)
    await form_group(room, member)
    peer, generation_id = room.peer, member.joined.generation_id
    told = {
        "topic": await commit(peer, "simple", "unknown", 0, 5),
        "partition": await commit(peer, "simple", "t", 1, 5),
        "generation": await commit(peer, "g", "t", 0, 5, member=(member.member_id, generation_id + 3, None)),
        "member": await commit(peer, "g", "t", 0, 5, member=("nobody", generation_id, None)),
        "nobody in particular": await commit(peer, "g", "t", 0, 5),
        "no group": await commit(peer, "", "t", 0, 5),
        "new group": await commit(peer, "simple", "t", 0, 5),
        "new group, by a member": await commit(peer, "new", "t", 0, 5, member=("m", 1, None)),
        "the same before KIP-848": await commit(peer, "new", "t", 0, 5, member=("m", 1, None), version=8),
    }
    assert told == {
        "topic": UNKNOWN_TOPIC_OR_PARTITION,
        "partition": UNKNOWN_TOPIC_OR_PARTITION,
        "generation": ILLEGAL_GENERATION,
        "member": UNKNOWN_MEMBER_ID,
        "nobody in particular": UNKNOWN_MEMBER_ID,
        "no group": 0,
        "new group": 0,
        "new group, by a member": GROUP_ID_NOT_FOUND,
        "the same before KIP-848": ILLEGAL_GENERATION,
    }
    assert await committed(peer, "g", "t") == -1
    assert (await committed(peer, "", "t"), await committed(peer, "simple", "t")) == (5, 5)
    assert await state_of(peer, "simple") == "Empty"

    newcomer = await (await Member.connect(room)).begin_join()
    assert await member.commit("t", 0, 6) == 0  # it is not asked to stop reading before it rejoins
    assert await member.join() == 0
    assert await newcomer.end_join() == 0
    assert await member.commit("t", 0, 7) == REBALANCE_IN_PROGRESS
    assert await committed(peer, "g", "t") == 6


@on_broker(GROUP_SETTINGS)
async def test_a_missing_coordinator_is_told_where_old_clients_look(room: Room) -> None:
    """KAFKA-19246 "OffsetFetch API does not return group level errors correctly with version 1",
    dpkp/kafka-python#2428 (consumers reset to the earliest offset because of it)."""
    asked = [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
    by_version = {}
    for version in range(1, 8):
        answer = await room.ask(OffsetFetchRequest(group_id="g", topics=asked), version)
        rows = [row.error_code for topic in answer.topics for row in topic.partitions]
        by_version[version] = (answer.error_code, rows)
    assert by_version[1] == (0, [NOT_COORDINATOR, NOT_COORDINATOR])
    assert [by_version[version] for version in range(2, 8)] == [(NOT_COORDINATOR, [])] * 6
    groups = [OffsetFetchRequestGroup(group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])])]
    (group,) = (await room.ask(OffsetFetchRequest(groups=groups), 8)).groups
    assert (group.error_code, group.topics) == (NOT_COORDINATOR, [])


@on_broker(
    {**GROUP_SETTINGS, "offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"},
    clock=ManualClock,
)
async def test_offsets_are_kept_for_their_time(room: Room) -> None:
    """nisshi-io/nisshi#447/#448 "Fix negative retention time in OffsetCommitRequest", KAFKA-4682/KAFKA-7403,
    KAFKA-13636 "offsets are deleted for unstable groups"."""
    await room.create("t")
    await find_coordinator(room)
    member = await Member.connect(room, session_timeout_ms=30_000)
    await form_group(room, member)
    await member.commit("t", 0, 1)
    for version in (2, 3, 4):  # that had a retention of their own; -1 is the broker's
        assert await commit(room.peer, f"v{version}", "t", 0, 1, version=version) == 0
    await beat_for(room, 59, member)
    assert [await committed(room.peer, f"v{version}", "t") for version in (2, 3, 4)] == [1, 1, 1]
    await beat_for(room, 2, member)
    assert [await committed(room.peer, f"v{version}", "t") for version in (2, 3, 4)] == [-1, -1, -1]
    assert await committed(room.peer, "g", "t") == 1

    await beat_for(room, 60, member)
    assert await member.leave() == 0
    await beat_for(room, 59)
    assert await committed(room.peer, "g", "t") == 1
    await beat_for(room, 2)
    assert (await committed(room.peer, "g", "t"), await state_of(room.peer)) == (-1, "Dead")


def test_offsets_do_not_expire_early_because_of_a_restart(tmp_path: Path) -> None:
    """KAFKA-8069 "Fix early expiration of offsets due to invalid loading of expire timestamp"."""
    clock = ManualClock()
    settings = {
        **GROUP_SETTINGS,
        "log.dirs": str(tmp_path),
        "offsets.retention.minutes": "1",
        "offsets.retention.check.interval.ms": "1000",
    }

    async def commit_and_stop() -> None:
        async with open_room(settings, clock=clock) as room:
            await room.create("t")
            await find_coordinator(room)
            assert await commit(room.peer, "g", "t", 0, 1) == 0
            room.running.advance(30)

    async def look() -> None:
        async with open_room(settings, clock=clock) as room:
            await beat_for(room, 28)
            assert await committed(room.peer, "g", "t") == 1
            await beat_for(room, 3)
            assert await committed(room.peer, "g", "t") == -1

    asyncio.run(commit_and_stop())
    asyncio.run(look())


async def delete_group(room: Room, group_id: str = "g") -> int:
    answer = await room.ask(DeleteGroupsRequest(groups_names=[group_id]), 2)
    code: int = answer.results[0].error_code
    return code


async def delete_offset(room: Room, topic: str, group_id: str = "g") -> int:
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    request = OffsetDeleteRequest(
        group_id=group_id, topics=[OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
    )
    answer = await room.ask(request, 0)
    code: int = answer.error_code or answer.topics[0].partitions[0].error_code
    return code


async def listed(room: Room) -> set[str]:
    return {row.group_id for row in (await room.ask(ListGroupsRequest(), 5)).groups}


@pytest.mark.parametrize("ends", ["in order", "at once"])
def test_deleted_groups_and_offsets_stay_deleted(tmp_path: Path, ends: str) -> None:
    """redpanda-data/redpanda#4900 "Consumer group deletion is not recoverable", redpanda#26664, KAFKA-8954."""
    live, left = tmp_path / "live", tmp_path / "left"

    async def before() -> None:
        async with room_in(live) as room:
            await room.create("t")
            await room.create("u")
            member = await Member.connect(room)
            await form_group(room, member)
            assert [await member.commit("t", 0, 1), await member.commit("u", 0, 1)] == [0, 0]
            assert [await commit(room.peer, name, "t", 0, 1) for name in ("manual", "gone")] == [0, 0]
            assert await delete_group(room) == NON_EMPTY_GROUP
            assert await delete_offset(room, "t") == GROUP_SUBSCRIBED_TO_TOPIC
            assert await delete_offset(room, "u") == 0
            assert await delete_offset(room, "t", "manual") == 0
            assert await delete_offset(room, "unknown", "manual") == UNKNOWN_TOPIC_OR_PARTITION
            assert [await delete_group(room, "gone"), await delete_group(room, "never")] == [0, GROUP_ID_NOT_FOUND]
            if ends == "at once":
                shutil.copytree(live, left)
        if ends == "in order":
            shutil.copytree(live, left)

    async def after() -> None:
        async with room_in(left) as room:
            assert "gone" not in await listed(room)
            assert (await describe(room.peer, "gone")).group_state == "Dead"
            found = [
                await committed(room.peer, *where) for where in (("g", "t"), ("g", "u"), ("manual", "t"), ("gone", "t"))
            ]
            assert found == [1, -1, -1, -1]

    asyncio.run(before())
    asyncio.run(after())


@on_groups
async def test_a_group_that_is_not_there_is_dead(room: Room) -> None:
    """redpanda-data/redpanda#4900 (expected Dead), KAFKA-3158, KIP-1043 (an error from v6 on)."""
    await room.create("t")
    await find_coordinator(room)
    await commit(room.peer, "offsets only", "t", 0, 1)
    for version in range(6):
        row = await describe(room.peer, "never", version)
        assert (row.error_code, row.group_state, row.members) == (0, "Dead", [])
        assert (await describe(room.peer, "offsets only", version)).group_state == "Empty"
    assert (await describe(room.peer, "never", 6)).error_code == GROUP_ID_NOT_FOUND
    for spelling in ("Empty", "empty", "EMPTY"):
        rows = (await room.ask(ListGroupsRequest(states_filter=[spelling]), 5)).groups
        assert [(row.group_id, row.group_state) for row in rows] == [("offsets only", "Empty")]
    assert (await room.ask(ListGroupsRequest(states_filter=["Dead"]), 5)).groups == []


async def delete_topic(room: Room, name: str) -> None:
    answer = await room.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=5000), 6)
    assert answer.responses[0].error_code == 0


@pytest.mark.parametrize("is_restarted", [False, True])
def test_offsets_of_a_deleted_topic_do_not_come_back_with_its_name(tmp_path: Path, is_restarted: bool) -> None:
    """KAFKA-2000 "Delete topic should also delete consumer offsets", twmb/franz-go#1426 (old offsets applied to a
    recreated topic)."""

    async def delete_and_create(room: Room) -> None:
        await room.create("t")
        member = await Member.connect(room, group_id="live")
        await form_group(room, member)
        assert [await member.commit("t", 0, 100), await commit(room.peer, "empty", "t", 0, 100)] == [0, 0]
        await delete_topic(room, "t")
        await room.create("t")

    async def look(room: Room) -> None:
        assert [await committed(room.peer, group_id, "t") for group_id in ("live", "empty")] == [-1, -1]

    async def run(*steps: Callable[[Room], object]) -> None:
        async with room_in(tmp_path) as room:
            for step in steps:
                await step(room)  # type: ignore[misc]

    if is_restarted:
        asyncio.run(run(delete_and_create))
        asyncio.run(run(look))
    else:
        asyncio.run(run(delete_and_create, look))


def test_large_groups_are_there_soon_after_a_restart(tmp_path: Path) -> None:
    """KAFKA-7286 "Avoid getting stuck loading large metadata records", KAFKA-9065 "Fix endless loop when loading
    group/transaction metadata": 300 members with 100 KB each, 5,000 offsets."""
    protocols = [("range", subscription("t") + bytes(100_000))]
    groups, partitions = 100, 50

    async def before() -> None:
        async with room_in(tmp_path) as room:
            await room.create("t", partitions=partitions)
            await form_group(room, *[await Member.connect(room, protocols=protocols) for _ in range(300)])
            rows = [
                OffsetCommitRequestPartition(partition_index=number, committed_offset=number, committed_metadata="")
                for number in range(partitions)
            ]
            topics = [OffsetCommitRequestTopic(name="t", partitions=rows)]
            for number in range(groups):
                answer = await room.ask(OffsetCommitRequest(group_id=f"offsets-{number}", topics=topics), 9)
                assert {row.error_code for row in answer.topics[0].partitions} == {0}

    async def after() -> None:
        started = time.monotonic()
        async with room_in(tmp_path) as room:
            assert await committed(room.peer, f"offsets-{groups - 1}", "t", partitions - 1) == partitions - 1
            assert time.monotonic() - started < SECONDS
            assert len((await describe(room.peer, "g")).members) == 300
            assert len(await listed(room)) == groups + 1

    asyncio.run(before())
    asyncio.run(after())
