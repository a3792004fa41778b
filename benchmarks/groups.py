"""Consumer groups on Ottla and on Kafka in one run: many live ones, and a start with many committed offsets.

    python -m benchmarks.groups [--systems kafka,ottla] [--seconds 60] [--write docs/performance.md]

First 1,000 groups of 10 members over 100 connections (`group_load`), then a fresh broker that gets 100,000 committed
offsets and is started again: the time from its start until every shard of the offsets topic answers for them, beside
the same with next to none. What is to hold: nobody is expelled, the 99th percentile of heartbeats is under 50 ms, and
100,000 offsets load within 2 s.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import uvloop

from benchmarks.bench import Sheet, available, describe_machine, format_table, write_into
from benchmarks.group_load import Connection, connect, run_load
from benchmarks.processes import Running, find_free_port, running
from benchmarks.systems import System
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.records.hashing import coordinator_partition

SHARDS: Final = 50
GROUPS: Final = 1_000
PARTITIONS: Final = 100
TOPIC: Final = "committed"
READY_TIMEOUT_S: Final = 60.0
PAUSE_S: Final = 0.005
SETTING: Final = "group.initial.rebalance.delay.ms=100"
"""Members that come within it are one generation; Kafka's default of 3 s would only make the run longer."""
MARK: Final = "groups"


def _command(system: System, data: Path, port: int) -> list[str]:
    """The system's own command with our one setting, which each takes in its own way."""
    return [*system.command(data, port), *(["-o"] if system.name.startswith("ottla") else []), SETTING]


@contextmanager
def _started(system: System, folder: Path) -> Iterator[tuple[Running, str]]:
    """Start a system on a folder, new or not, and yield it with its address."""
    port = find_free_port(system.ports)
    with running(_command(system, folder / "data", port), folder / "log") as server:
        yield server, f"127.0.0.1:{port}"


async def _connect_when_up(address: str, server: Running) -> Connection:
    """Wait until somebody listens. Raises `TimeoutError` with what the server printed."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        try:
            return await connect(address)
        except OSError:
            if time.monotonic() > deadline:
                raise TimeoutError(f"nobody listens at {address}: {server.log_tail()}") from None
            await asyncio.sleep(PAUSE_S)


async def _when_found(connection: Connection) -> None:
    """Wait until the offsets topic is there."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while (await connection.ask(FindCoordinatorRequest(key="g"), 0)).error_code:
        if time.monotonic() > deadline:
            raise TimeoutError("no group has a coordinator")
        await asyncio.sleep(PAUSE_S)


def _one_group_of_each_shard() -> list[str]:
    found: dict[int, str] = {}
    for number in range(GROUPS):
        found.setdefault(coordinator_partition(_group(number), SHARDS), _group(number))
    assert len(found) == SHARDS, "some shard has none of the groups"
    return list(found.values())


def _group(number: int) -> str:
    return f"committing-{number}"


async def _commit(connection: Connection, group_id: str, partitions: int) -> None:
    """Commit one offset for each partition, again while the group's shard is not ready."""
    rows = [
        OffsetCommitRequestPartition(partition_index=number, committed_offset=number + 1, committed_metadata="")
        for number in range(partitions)
    ]
    request = OffsetCommitRequest(group_id=group_id, topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=rows)])
    deadline = time.monotonic() + READY_TIMEOUT_S
    while any(row.error_code for row in (await connection.ask(request, 8)).topics[0].partitions):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the offsets of {group_id} are refused")
        await asyncio.sleep(PAUSE_S)


async def _when_loaded(connection: Connection, groups: list[str], partitions: int) -> None:
    """Wait until the last offset of every group is there."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group_id, topics=[OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[partitions - 1])]
            )
            for group_id in groups
        ]
    )
    while not all(_offset(group) == partitions for group in (await connection.ask(request, 8)).groups):
        if time.monotonic() > deadline:
            raise TimeoutError("offsets that were committed are not there")
        await asyncio.sleep(PAUSE_S)


def _offset(group: Any) -> int:
    if group.error_code or not group.topics:
        return -1
    offset: int = group.topics[0].partitions[0].committed_offset
    return offset


def measure_live_groups(system: System, seconds: float, sheet: Sheet) -> None:
    """Have many groups live on a fresh broker."""
    with (
        tempfile.TemporaryDirectory(prefix=f"groups-{system.name}-") as folder,
        _started(system, Path(folder)) as (
            server,
            address,
        ),
    ):

        async def load() -> None:
            (await _connect_when_up(address, server)).close()
            found = await run_load(address, seconds=seconds, cpu_seconds=server.cpu_seconds)
            name = system.name
            sheet.put(name, "forming 1,000 groups of 10, s", found.forming_s, 1)
            sheet.put(name, "heartbeats", found.heartbeats)
            sheet.put(name, "members expelled", found.expelled)
            sheet.put(name, "heartbeats not answered", found.unanswered)
            sheet.put(name, "heartbeat p50, ms", found.p50_ms, 2)
            sheet.put(name, "heartbeat p99, ms", found.p99_ms, 2)
            sheet.put(name, "heartbeat max, ms", found.max_ms, 1)
            sheet.put(name, "broker CPU s in that time", found.cpu_s, 1)
            sheet.put(name, "sent late by the client itself, p99 ms", found.own_lag_p99_ms, 2)

        uvloop.run(load())


def measure_load_of_offsets(system: System, sheet: Sheet) -> None:
    """Start a broker with next to no committed offsets, then with 100,000."""
    with tempfile.TemporaryDirectory(prefix=f"offsets-{system.name}-") as name:
        folder = Path(name)
        few = _one_group_of_each_shard()

        async def prepare(address: str, server: Running) -> None:
            connection = await _connect_when_up(address, server)
            await _when_found(connection)
            topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
            await connection.ask(CreateTopicsRequest(topics=[topic]), 4)
            for group_id in few:
                await _commit(connection, group_id, 1)

        async def wait(address: str, server: Running, partitions: int) -> tuple[float, float]:
            connection = await _connect_when_up(address, server)
            await _when_loaded(connection, few, partitions)
            return time.monotonic(), server.cpu_seconds()

        async def commit_all(address: str, server: Running) -> None:
            connection = await _connect_when_up(address, server)
            for number in range(GROUPS):
                await _commit(connection, _group(number), PARTITIONS)

        async def check_all(address: str, server: Running) -> None:
            connection = await _connect_when_up(address, server)
            await _when_loaded(connection, [_group(number) for number in range(GROUPS)], PARTITIONS)

        with _started(system, folder) as (server, address):
            uvloop.run(prepare(address, server))
        few_began = time.monotonic()
        with _started(system, folder) as (server, address):
            few_at, few_cpu_s = uvloop.run(wait(address, server, 1))
            uvloop.run(commit_all(address, server))
        all_began = time.monotonic()
        with _started(system, folder) as (server, address):
            all_at, all_cpu_s = uvloop.run(wait(address, server, PARTITIONS))
            uvloop.run(check_all(address, server))
    sheet.put(system.name, "start until 50 committed offsets are served, s", few_at - few_began, 2)
    sheet.put(system.name, "broker CPU s until then", few_cpu_s, 2)
    sheet.put(system.name, "start until 100,000 are, s", all_at - all_began, 2)
    sheet.put(system.name, "broker CPU s until then, with 100,000", all_cpu_s, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure consumer groups on several systems.")
    parser.add_argument("--systems", default="kafka,ottla", help="names, separated by commas (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="how long the groups live (%(default)s)")
    parser.add_argument("--write", type=Path, help="a page to put the table into, between its marks")
    options = parser.parse_args()
    sheet = Sheet()
    for system in available(options.systems.split(","), sheet):
        print(system.name, file=sys.stderr, flush=True)
        try:
            measure_live_groups(system, options.seconds, sheet)
            measure_load_of_offsets(system, sheet)
        except (TimeoutError, AssertionError, ConnectionError) as failure:
            sheet.note(f"{system.name}: {failure}")
    header = f"{options.seconds:g} s on {describe_machine()}, {time.strftime('%Y-%m-%d')}."
    text = "\n".join(
        [header, "", format_table(sheet.cells), *(["", *(f"* {n}" for n in sheet.notes)] if sheet.notes else [])]
    )
    print(text)
    if options.write is not None:
        write_into(options.write, text, MARK)


if __name__ == "__main__":
    main()
