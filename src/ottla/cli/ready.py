"""`ottla ready`: waits until a cluster serves clients, for scripts that have just started one.

Ready means that the next create, produce, consume and joining of a group will work: a broker answers, would create a
topic (asked without doing it), gives out a producer id and has read what it knows of groups.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Final

import click

from ottla.cli.options import MOST_SECONDS, Amount, bootstrap_option, cluster_settings, examples, json_option
from ottla.cli.output import DONE, code_of, describe_error, print_json, run, say, say_error
from ottla.client.admin import Admin, NewTopic
from ottla.client.errors import ClusterUnreachable
from ottla.errors import KafkaError, UnsupportedVersion

PROBE_TOPIC: Final = "ottla-ready-probe"
PAUSE_SECONDS: Final = 0.05
NO_GROUPS_STATE: Final = "Dead"
"""Asking for groups in this state costs an empty answer, or the error of a coordinator that is still loading."""


@click.command(epilog=examples("ottla ready --timeout 30", "ottla ready --quiet && ottla topics list"))
@click.option(
    "--timeout",
    "timeout_seconds",
    type=Amount(MOST_SECONDS),
    metavar="SECONDS",
    default=10.0,
    show_default=True,
    help="Seconds to wait.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing.")
@json_option
@bootstrap_option
def ready(timeout_seconds: float, quiet: bool, as_json: bool, bootstrap: str) -> None:
    """Wait until a cluster serves clients. Exits 0 then, 3 when nothing answered in time, 1 when it was not ready."""

    async def work() -> int:
        started = time.monotonic()
        deadline = started + timeout_seconds
        while True:
            error = await why_not_ready(bootstrap, max(deadline - time.monotonic(), PAUSE_SECONDS))
            if error is None:
                seconds = time.monotonic() - started
                if as_json:
                    print_json({"is_ready": True, "seconds": round(seconds, 3)})
                elif not quiet:
                    say(f"ready after {seconds:.1f} s")
                return DONE
            if time.monotonic() + PAUSE_SECONDS >= deadline:
                break
            await asyncio.sleep(PAUSE_SECONDS)
        if as_json:
            print_json({"is_ready": False, "seconds": timeout_seconds})
        if not quiet:
            say_error(f"not ready after {timeout_seconds:g} s: {describe_error(error)}")
        return code_of(error)

    run(work())


async def why_not_ready(bootstrap: str, patience_seconds: float) -> KafkaError | None:
    """Try once what clients need; return what failed. A broker that hangs in the middle of it is no answer."""
    try:
        async with asyncio.timeout(patience_seconds):
            return await _first_failure(bootstrap, patience_seconds)
    except TimeoutError:
        return ClusterUnreachable({bootstrap: f"no answer within {patience_seconds:.1f} s"})


async def _first_failure(bootstrap: str, patience_seconds: float) -> KafkaError | None:
    admin = Admin(bootstrap, cluster=cluster_settings(patience_ms=int(patience_seconds * 1000)))
    try:
        await admin.start()
        probe = await admin.create_topics([NewTopic(PROBE_TOPIC, 1, 1)], validate_only=True)
        result = probe.get(PROBE_TOPIC)
        if isinstance(result, KafkaError) and result.retriable:
            return result
        await admin.acquire_producer_id()
        with suppress(
            UnsupportedVersion
        ):  # brokers before 2.6 know no filter, and listing all is too much to ask often
            await admin.groups.list_groups(states=[NO_GROUPS_STATE])
    except KafkaError as error:
        return error
    finally:
        await admin.close()
    return None
