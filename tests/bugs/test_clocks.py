"""A wall clock that is set while a broker runs: deadlines do not move with it, and no id is given twice."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ottla.errors import NONE
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.testing.clock import ManualClock
from tests.group_wire import GROUP_SETTINGS, Member, committed, describe, find_coordinator, form_group, subscription
from tests.wire import Room, batches_of, fetch_request, open_room

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
STEPS = [-HOUR_MS, DAY_MS]
MEMBERS = 100


@asynccontextmanager
async def room_with_clock(**settings: str) -> AsyncIterator[tuple[Room, ManualClock]]:
    clock = ManualClock()
    with tempfile.TemporaryDirectory() as directory:
        async with open_room({**GROUP_SETTINGS, "log.dirs": directory, **settings}, clock=clock) as room:
            yield room, clock


def set_clock(room: Room, clock: ManualClock, step_ms: int) -> None:
    """Set the wall clock, and let a second pass in which the broker could take note of it."""
    clock.set_wall_ms(clock.wall_ms() + step_ms)
    room.running.advance(1)


@pytest.mark.parametrize("step_ms", STEPS)
def test_members_of_a_group_outlive_a_step_of_the_clock(step_ms: int) -> None:
    """franz-go "kfake: fix time-based uniqueness bugs and concurrent map race", KAFKA-8715 "Static consumer cannot join
    group due to ERROR_UNKNOWN_MEMBER_ID": every session was over at once, or none ever was."""

    async def scenario() -> None:
        async with room_with_clock() as (room, clock):
            await find_coordinator(room)
            members = [
                await Member.connect(room, instance_id=f"i{number}" if number % 2 else None)
                for number in range(MEMBERS)
            ]
            await form_group(room, *members)
            assert len({member.member_id for member in members}) == MEMBERS, "ids are no matter of time"

            set_clock(room, clock, step_ms)
            assert [await member.heartbeat() for member in members] == [NONE] * MEMBERS

            room.running.advance(9)
            assert await members[0].heartbeat() == NONE
            room.running.advance(2)
            assert len((await describe(room.peer, "g")).members) == 1, "the others have been silent for 11 s of 10"

    asyncio.run(scenario())


@pytest.mark.parametrize("step_ms", STEPS)
def test_ids_are_new_whatever_the_clock_says(step_ms: int) -> None:
    """KAFKA-8715, franz-go: ids made of the time came again when it did."""

    async def scenario() -> None:
        async with room_with_clock() as (room, clock):
            await find_coordinator(room)
            topics, producers, members = [], [], []
            for number in range(20):
                topics.append(await room.create(f"t{number}"))
                given = await room.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
                producers.append(given.producer_id)
                member = Member(room.peer, protocols=[("range", subscription("t"))])
                await member.ask_for_id()
                members.append(member.member_id)
                clock.set_wall_ms(clock.wall_ms() + (step_ms if number % 2 else -step_ms))
            assert [len(set(ids)) for ids in (topics, producers, members)] == [20, 20, 20]

    asyncio.run(scenario())


@pytest.mark.parametrize("step_ms", STEPS)
def test_who_waits_waits_as_long_as_it_asked_to(step_ms: int) -> None:
    """franz-go, redpanda-data/redpanda#3924 (negative relative time): long polls that never ended, or at once."""

    async def scenario() -> None:
        async with room_with_clock() as (room, clock):
            await room.create("t")
            session = (await room.ask(fetch_request({"t": {0: 0}}, session=(0, 0)), 12)).session_id
            other = await room.connect()
            waiting = asyncio.ensure_future(
                other.ask(fetch_request({}, session=(session, 1), max_wait_ms=60_000, min_bytes=1), 12)
            )
            await room.bounds("t")
            set_clock(room, clock, step_ms)
            await room.bounds("t")
            assert not waiting.done()
            room.running.advance(60)
            assert (await waiting).error_code == NONE

    asyncio.run(scenario())


@pytest.mark.parametrize("step_ms", STEPS)
def test_records_are_found_by_times_that_went_back(step_ms: int) -> None:
    """redpanda-data/redpanda#3924: times before those of the segment's first record. Append times step with the clock;
    the first record at or after a time is found all the same, segments roll, and nothing is lost."""

    async def scenario() -> None:
        async with room_with_clock(**{"log.retention.check.interval.ms": "1000"}) as (room, clock):
            configs = {
                "message.timestamp.type": "LogAppendTime",
                "retention.ms": str(7 * DAY_MS),
                "segment.ms": "60000",
            }
            await room.create("t", configs=configs)
            times = []
            for number in range(6):
                if number == 3:
                    set_clock(room, clock, step_ms)
                await room.append("t", b"%d" % number)
                times.append(clock.wall_ms())
                room.running.advance(30)
            assert await room.read_all("t") == [(number, b"%d" % number) for number in range(6)]
            for asked in times:
                found = await room.list_offset("t", asked)
                first = next(number for number, time_ms in enumerate(times) if time_ms >= asked)
                assert (found.offset, found.timestamp) == (first, times[first])
            assert [one.max_timestamp for one in batches_of(await room.fetch("t", 5))] == times[5:]

    asyncio.run(scenario())


def test_offsets_outlive_a_day_that_did_not_pass() -> None:
    """KAFKA-8715 and its kind: a clock that is set for a moment to a date far off, and back."""

    async def scenario() -> None:
        async with room_with_clock(**{"offsets.retention.check.interval.ms": "1000"}) as (room, clock):
            await find_coordinator(room)
            await room.create("t")
            member = await Member.connect(room)
            await form_group(room, member)
            assert await member.commit("t", 0, 5) == NONE
            set_clock(room, clock, DAY_MS)
            set_clock(room, clock, -DAY_MS)
            assert await member.heartbeat() == NONE
            assert await committed(room.peer, "g", "t") == 5

    asyncio.run(scenario())
