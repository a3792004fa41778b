"""Many live groups at once: how long heartbeats take, and whether anybody is expelled.

    python -m benchmarks.group_load ADDRESS [--groups 1000] [--members 10] [--connections 100] [--seconds 60]

Speaks to any broker at ADDRESS (set `group.initial.rebalance.delay.ms=100` there, or forming the groups takes long).
Members of a group sit on different connections; each sends a heartbeat every three seconds, as clients do.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.protocol.apis import API
from ottla.protocol.codec import decode, encode
from ottla.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.protocol.schema import Message

HEARTBEAT_SECONDS: Final = 3.0
SESSION_TIMEOUT_MS: Final = 120_000
"""Long enough to form all groups before the first heartbeat, which would hold up joins on its connection."""
JOIN_VERSION: Final = 3
"""The last in which members join in one step."""


class Connection:
    """One connection; requests on it wait for each other, as on a broker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._lock = asyncio.Lock()

    async def ask(self, request: Message, version: int) -> Any:
        async with self._lock:
            key = type(request).SCHEMA.key
            assert key is not None
            frame = encode_request_header(RequestHeader(key, version, 1, "load")) + encode(request, version)
            self._writer.write(len(frame).to_bytes(4, "big") + frame)
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            answer = memoryview(await self._reader.readexactly(size))
            _, position = decode_response_header(answer, API[key].response_header_version(version))
            return decode(API[key].response, version, answer, position)


@dataclass(slots=True)
class Member:
    """One member, once it has joined."""

    connection: Connection
    group_id: str
    member_id: str = ""
    generation_id: int = -1
    expelled_code: int = 0

    async def join(self) -> Any:
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=60_000,
            protocol_type="load",
            protocols=[JoinGroupRequestProtocol(name="none", metadata=b"")],
        )
        answer = await self.connection.ask(request, JOIN_VERSION)
        assert answer.error_code == 0, answer.error_code
        self.member_id, self.generation_id = answer.member_id, answer.generation_id
        return answer

    async def sync(self, members: Sequence[Member]) -> None:
        assignments = [SyncGroupRequestAssignment(member_id=one.member_id, assignment=b"x") for one in members]
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            assignments=assignments,
        )
        answer = await self.connection.ask(request, 2)
        assert answer.error_code == 0, answer.error_code

    async def beat(self, first_after: float, load: Load) -> None:
        """Report every three seconds until the load ends or the broker does not know it any more."""
        request = HeartbeatRequest(group_id=self.group_id, generation_id=self.generation_id, member_id=self.member_id)
        await asyncio.sleep(first_after)
        while not (load.is_over or self.expelled_code):
            started = time.monotonic()
            self.expelled_code = (await self.connection.ask(request, 3)).error_code
            load.latencies.append(time.monotonic() - started)
            await asyncio.sleep(max(HEARTBEAT_SECONDS - (time.monotonic() - started), 0))


@dataclass(slots=True)
class Load:
    """What is measured, and whether it goes on."""

    latencies: list[float] = field(default_factory=list)
    is_over: bool = False


async def form(members: Sequence[Member]) -> None:
    """Have these be one group."""
    answers = await asyncio.gather(*(member.join() for member in members))
    leader_id = answers[0].leader
    leader = next(member for member in members if member.member_id == leader_id)
    assert {member.generation_id for member in members} == {leader.generation_id}, "they did not join together"
    await asyncio.gather(*(member.sync(members if member is leader else ()) for member in members))


async def run(address: str, groups: int, size: int, connections: int, seconds: float) -> None:
    host, _, port = address.rpartition(":")
    opened = [Connection(*await asyncio.open_connection(host, int(port))) for _ in range(connections)]
    while (await opened[0].ask(FindCoordinatorRequest(key="g"), 0)).error_code:
        await asyncio.sleep(0.1)
    load = Load()
    everybody: list[Member] = []
    at_once = max(connections // size, 1)
    started = time.monotonic()
    for first in range(0, groups, at_once):
        formed = [
            [Member(opened[(number * size + i) % connections], f"load-{number}") for i in range(size)]
            for number in range(first, min(first + at_once, groups))
        ]
        await asyncio.gather(*(form(members) for members in formed))
        everybody += [member for members in formed for member in members]
    print(f"{groups} groups of {size} formed in {time.monotonic() - started:.1f} s", flush=True)
    step = HEARTBEAT_SECONDS / len(everybody)
    beating = [asyncio.create_task(member.beat(number * step, load)) for number, member in enumerate(everybody)]
    await asyncio.sleep(seconds)
    load.is_over = True
    await asyncio.gather(*beating)
    latencies = sorted(load.latencies)
    expelled = sum(1 for member in everybody if member.expelled_code)
    p50, p99 = latencies[len(latencies) // 2], latencies[len(latencies) * 99 // 100]
    print(f"{len(latencies)} heartbeats: p50 {p50 * 1000:.2f} ms, p99 {p99 * 1000:.2f} ms; {expelled} expelled")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60)
    said = parser.parse_args()
    asyncio.run(run(said.address, said.groups, said.members, said.connections, said.seconds))


if __name__ == "__main__":
    main()
