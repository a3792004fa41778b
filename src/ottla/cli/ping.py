"""`ottla ping`: connects to each bootstrap address, says what answers there and how fast.

Clients connect twice: to the address that they are given, then to those that the brokers advertise. Whether the second
step would work from here is tried too, since it is what fails behind containers and forwarded ports.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence

import click

from ottla.cli.options import CLIENT_ID, MOST_SECONDS, Amount, bootstrap_option, examples, json_option
from ottla.cli.output import ANSWER_IS_NO, DONE, UNREACHABLE, count_text, print_json, print_line, run, say_error
from ottla.client.connection import ConnectionSettings, format_address, open_connection
from ottla.client.errors import ConnectionLost
from ottla.client.topology import parse_bootstrap
from ottla.protocol.apis import API, ApiKey
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker


@click.command(epilog=examples("ottla ping", "ottla ping --count 100 --json"))
@click.option(
    "-c", "--count", type=click.IntRange(1, 1000), metavar="N", default=5, show_default=True, help="Requests to time."
)
@click.option(
    "--timeout",
    "timeout_seconds",
    type=Amount(MOST_SECONDS),
    metavar="SECONDS",
    default=5.0,
    show_default=True,
    help="Seconds to wait.",
)
@json_option
@bootstrap_option
def ping(count: int, timeout_seconds: float, as_json: bool, bootstrap: str) -> None:
    """Measure the round trip to each bootstrap address and show what it speaks.

    Exits 1 when only some of the addresses answer, or a broker advertises one that cannot be reached from here.
    """
    settings = ConnectionSettings(
        client_id=CLIENT_ID,
        connect_timeout_ms=int(timeout_seconds * 1000),
        request_timeout_ms=int(timeout_seconds * 1000),
    )

    async def work() -> int:
        code = DONE
        rows: list[dict[str, object]] = []
        for host, port in parse_bootstrap(bootstrap):
            try:
                row, advertised = await _ping(host, port, settings, count)
            except ConnectionLost as error:
                say_error(f"no answer from {error.address}: {error.reason}")
                code = ANSWER_IS_NO
            else:
                rows.append(row)
                if not as_json:
                    _print(row)
                unreachable = await _find_unreachable(advertised, settings)
                for address, reason in unreachable.items():
                    say_error(
                        f"a broker there advertises {address}, which cannot be reached from here ({reason}): "
                        "clients will fail; see advertised.listeners"
                    )
                    code = ANSWER_IS_NO
        if as_json and rows:
            print_json(rows)
        return code if rows else UNREACHABLE

    run(work())


async def _find_unreachable(
    advertised: Sequence[MetadataResponseBroker], settings: ConnectionSettings
) -> dict[str, str]:
    """Try the addresses that are advertised; return those that fail with the reason."""
    failures: dict[str, str] = {}
    for broker in advertised:
        try:
            await (await open_connection(broker.host, broker.port, settings)).close()
        except ConnectionLost as error:
            failures[error.address] = error.reason
    return failures


async def _ping(
    host: str, port: int, settings: ConnectionSettings, count: int
) -> tuple[dict[str, object], Sequence[MetadataResponseBroker]]:
    """Time the connection with its version handshake, then the smallest request that every broker serves.

    Returns what is told of it, and the brokers that are advertised.
    """
    started = time.perf_counter()
    connection = await open_connection(host, port, settings)
    connected_ms = (time.perf_counter() - started) * 1000
    times_ms: list[float] = []
    try:
        for number in range(count):
            started = time.perf_counter()
            response = await connection.call(ApiKey.METADATA, MetadataRequest(topics=[]), MetadataResponse)
            times_ms.append((time.perf_counter() - started) * 1000)
            if number + 1 < count:
                await asyncio.sleep(0.01)
    finally:
        await connection.close()
    row: dict[str, object] = {
        "address": connection.address,
        "cluster_id": response.cluster_id,
        "brokers": len(response.brokers),
        "advertised": [format_address(broker.host, broker.port) for broker in response.brokers],
        "connect_ms": round(connected_ms, 3),
        "round_trip_ms": {
            "min": round(min(times_ms), 3),
            "median": round(statistics.median(times_ms), 3),
            "max": round(max(times_ms), 3),
        },
        "versions": {
            API[key].name: [low, high] for key, (low, high) in sorted(connection.versions.items()) if key in API
        },
    }
    return row, response.brokers


def _print(row: dict[str, object]) -> None:
    times, versions, brokers = row["round_trip_ms"], row["versions"], row["brokers"]
    assert isinstance(brokers, int)
    assert isinstance(times, dict)
    assert isinstance(versions, dict)
    spoken = ", ".join(
        f"{name} {versions[name][0]}-{versions[name][1]}" for name in ("Produce", "Fetch") if name in versions
    )
    print_line(
        f"{row['address']} answers: cluster {row['cluster_id']}, {count_text(brokers, 'broker')}, "
        f"connected in {row['connect_ms']} ms, round trip {times['median']} ms "
        f"(min {times['min']}, max {times['max']}); {spoken} and {len(versions)} APIs in all"
    )
