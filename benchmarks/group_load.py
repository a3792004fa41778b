"""Many live groups at once, as a client sees them: how long heartbeats take, and whether anybody is expelled.

    python -m benchmarks.group_load ADDRESS [--groups 1000] [--members 10] [--connections 100] [--seconds 60]

Speaks to any broker at ADDRESS (set `group.initial.rebalance.delay.ms=100` there, so that members join together).
Members of a group sit on different connections; each sends a heartbeat every three seconds, as clients do, from the
moment its group is formed. Heartbeats are encoded beforehand and their answers read at a fixed place, so that this
process is idle most of the time; how late it sent them itself is measured too.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import heapq
import random
import time
from array import array
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import uvloop

from ottla.protocol.apis import API
from ottla.protocol.codec import decode, encode
from ottla.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.protocol.schema import Message

HEARTBEAT_SECONDS: Final = 3.0
SESSION_TIMEOUT_MS: Final = 10_000
"""What clients had for long by default; three heartbeats fit into it."""
JOIN_VERSION: Final = 3
"""The last in which members join in one step."""
SYNC_VERSION: Final = 2
HEARTBEAT_VERSION: Final = 3
ERROR_AT: Final = 8
"""Where the error code of a Heartbeat v3 answer stands: behind the correlation id and the throttle time."""
SIZE_BYTES: Final = 4
NOT_READY: Final = (14, 15, 16)
"""Error codes of a coordinator that is still getting ready: loading, not available, not this one."""
ANSWER_TIMEOUT_S: Final = 60.0

Answered = Callable[[memoryview], None]


def encode_frame(request: Message, version: int) -> bytes:
    """Return a request as it goes over the wire."""
    key = type(request).SCHEMA.key
    assert key is not None
    frame = encode_request_header(RequestHeader(key, version, 1, "load")) + encode(request, version)
    return len(frame).to_bytes(SIZE_BYTES, "big") + frame


class Connection(asyncio.Protocol):
    """One connection. What is sent waits for nothing here; a broker answers in order."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._asked: deque[Answered] = deque()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's are no subclass

    def send(self, frame: bytes, answered: Answered) -> None:
        assert self._transport is not None
        self._asked.append(answered)
        self._transport.write(frame)

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        position = 0
        while len(received) - position >= SIZE_BYTES:
            end = position + SIZE_BYTES + int.from_bytes(received[position : position + SIZE_BYTES], "big")
            if end > len(received):
                break
            self._asked.popleft()(memoryview(bytes(received[position + SIZE_BYTES : end])))
            position = end
        del received[:position]

    async def ask(self, request: Message, version: int) -> Any:
        """Send a request and return its answer."""
        key = type(request).SCHEMA.key
        assert key is not None
        waiter: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self.send(encode_frame(request, version), waiter.set_result)
        answer = await asyncio.wait_for(waiter, ANSWER_TIMEOUT_S)
        _, position = decode_response_header(answer, API[key].response_header_version(version))
        return decode(API[key].response, version, answer, position)

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()


async def connect(address: str) -> Connection:
    """Open a connection to `host:port`."""
    host, _, port = address.rpartition(":")
    _, connection = await asyncio.get_running_loop().create_connection(Connection, host, int(port))
    return connection


@dataclass(slots=True)
class Member:
    """One member; `heartbeat` is its request, once its group is formed."""

    group_id: str
    member_id: str = ""
    generation_id: int = -1
    heartbeat: bytes = b""
    error_code: int = 0

    async def join(self, connection: Connection) -> str:
        """Join, and return who leads."""
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=60_000,
            protocol_type="load",
            protocols=[JoinGroupRequestProtocol(name="none", metadata=b"")],
            member_id=self.member_id,
        )
        answer = await connection.ask(request, JOIN_VERSION)
        while answer.error_code in NOT_READY:
            await asyncio.sleep(0.05)
            answer = await connection.ask(request, JOIN_VERSION)
        assert answer.error_code == 0, answer.error_code
        self.member_id, self.generation_id = answer.member_id, answer.generation_id
        leader_id: str = answer.leader
        return leader_id

    async def sync(self, connection: Connection, members: Sequence[Member]) -> None:
        """Get an assignment; the leader brings those of all `members`."""
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            assignments=[SyncGroupRequestAssignment(member_id=one.member_id, assignment=b"x") for one in members],
        )
        answer = await connection.ask(request, SYNC_VERSION)
        assert answer.error_code == 0, answer.error_code
        beat = HeartbeatRequest(group_id=self.group_id, generation_id=self.generation_id, member_id=self.member_id)
        self.heartbeat = encode_frame(beat, HEARTBEAT_VERSION)


async def form(members: Sequence[Member], connections: Sequence[Connection]) -> None:
    """Have these be one group; each joins on a connection of its own, where it holds nobody up."""
    places = list(zip(members, connections, strict=True))
    leaders = await asyncio.gather(*(member.join(connection) for member, connection in places))
    while len({member.generation_id for member in members}) > 1:  # some came late: all join again
        leaders = await asyncio.gather(*(member.join(connection) for member, connection in places))
    await asyncio.gather(*(member.sync(at, members if member.member_id == leaders[0] else ()) for member, at in places))


@dataclass(slots=True)
class GroupFigures:
    """What one run gave, in milliseconds and seconds."""

    forming_s: float
    heartbeats: int
    expelled: int
    unanswered: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    cpu_s: float
    """What the broker used in that time, where somebody could tell."""
    own_lag_p99_ms: float
    """How late this client was in sending; above some milliseconds its other figures mean little."""


class Beating:
    """The heartbeats of all members that are there, at moments of their own, each on one of the connections."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        self.latencies: array[float] = array("d")
        self.lags: array[float] = array("d")
        self.in_flight = 0
        self.is_measured = False
        self.connections = connections
        self._due: list[tuple[float, int, Member]] = []
        self._members = 0
        self._random = random.Random(1)

    def add(self, member: Member) -> None:
        """Begin at some moment of the next three seconds."""
        heapq.heappush(
            self._due, (time.monotonic() + self._random.uniform(0, HEARTBEAT_SECONDS), self._members, member)
        )
        self._members += 1

    async def run(self, is_over: Callable[[], bool]) -> None:
        """Send what is due until it is over."""
        due = self._due
        while not is_over():
            now = time.monotonic()
            while due and due[0][0] <= now:
                at, number, member = due[0]
                self._beat(member, self.connections[number % len(self.connections)], now - at)
                if member.error_code:
                    heapq.heappop(due)
                else:
                    heapq.heapreplace(due, (at + HEARTBEAT_SECONDS, number, member))
                now = time.monotonic()
            await asyncio.sleep(min(max(due[0][0] - now, 0.0), 0.01) if due else 0.01)

    def _beat(self, member: Member, connection: Connection, lag: float) -> None:
        started = time.monotonic()
        is_measured = self.is_measured
        if is_measured:
            self.lags.append(lag)
        self.in_flight += 1

        def answered(answer: memoryview) -> None:
            self.in_flight -= 1
            if is_measured:
                self.latencies.append(time.monotonic() - started)
            member.error_code = member.error_code or int.from_bytes(answer[ERROR_AT : ERROR_AT + 2], "big", signed=True)

        connection.send(member.heartbeat, answered)


async def run_load(
    address: str,
    *,
    groups: int = 1000,
    size: int = 10,
    connections: int = 100,
    seconds: float = 60,
    cpu_seconds: Callable[[], float] = float,
) -> GroupFigures:
    """Form the groups, have them live for some seconds, and return what it was like.

    `cpu_seconds` tells what the broker has used so far.
    """
    joining = [await connect(address) for _ in range(connections)]
    beating = Beating([await connect(address) for _ in range(connections)])
    while (await joining[0].ask(FindCoordinatorRequest(key="g"), 0)).error_code:
        await asyncio.sleep(0.1)
    ends_at = [float("inf")]
    beats = asyncio.create_task(beating.run(lambda: time.monotonic() >= ends_at[0]))
    everybody = [[Member(f"load-{number}") for _ in range(size)] for number in range(groups)]
    at_once = max(connections // size, 1)
    began = time.monotonic()
    for first in range(0, groups, at_once):
        formed = everybody[first : first + at_once]
        places = [joining[number * size : (number + 1) * size] for number in range(len(formed))]
        await asyncio.gather(*map(form, formed, places))
        for member in (member for members in formed for member in members):
            beating.add(member)
    forming_s = time.monotonic() - began
    gc.collect()
    gc.freeze()
    gc.disable()  # a look through ten thousand members would hold up who waits here
    beating.is_measured = True
    cpu_before = cpu_seconds()
    ends_at[0] = time.monotonic() + seconds
    await beats
    cpu_s = cpu_seconds() - cpu_before
    patience = time.monotonic() + SESSION_TIMEOUT_MS / 1000
    while beating.in_flight and time.monotonic() < patience:
        await asyncio.sleep(0.01)
    gc.enable()
    latencies, lags = sorted(beating.latencies), sorted(beating.lags)
    for connection in [*joining, *beating.connections]:
        connection.close()
    return GroupFigures(
        forming_s,
        len(latencies),
        sum(1 for members in everybody for member in members if member.error_code),
        beating.in_flight,
        latencies[len(latencies) // 2] * 1000,
        latencies[len(latencies) * 99 // 100] * 1000,
        latencies[-1] * 1000,
        cpu_s,
        lags[len(lags) * 99 // 100] * 1000,
    )


def on_loop(work: Coroutine[Any, Any, GroupFigures]) -> GroupFigures:
    """Run on the loop that costs this process least."""
    return uvloop.run(work)


def main() -> None:
    parser = argparse.ArgumentParser(description="Have many groups live on a broker.")
    parser.add_argument("address")
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60)
    said = parser.parse_args()
    found = on_loop(
        run_load(
            said.address, groups=said.groups, size=said.members, connections=said.connections, seconds=said.seconds
        )
    )
    print(f"{said.groups} groups of {said.members} formed in {found.forming_s:.1f} s")
    print(
        f"{found.heartbeats} heartbeats: p50 {found.p50_ms:.2f} ms, p99 {found.p99_ms:.2f} ms, "
        f"max {found.max_ms:.1f} ms; {found.expelled} expelled, {found.unanswered} unanswered"
    )
    print(f"sent late by the client itself: p99 {found.own_lag_p99_ms:.2f} ms")


if __name__ == "__main__":
    main()
