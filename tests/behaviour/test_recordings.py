"""Every recorded conversation with Kafka 4.4 holds with us, but for those listed beside this file.

`not_yet.txt` names what waits for features that are not served; `deliberate.txt` names where we answer otherwise on
purpose, with the first difference and, in `docs/differences.md`, the reason. Both are exact: a conversation that starts
to hold must leave its list. `python -m tests.behaviour.test_recordings` prints the lists as they would be now.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest

from ottla.config.broker_config import BrokerConfig
from ottla.server import Server
from tests.behaviour.moved_time import LoopClock, MovedTimeLoop, Threads
from tests.behaviour.recorded_broker import RECORDED_WITH
from tests.behaviour.replayer import Outcome, await_coordinator, replay_all
from tests.behaviour.scenario import Scenario, areas, load_area

HERE = Path(__file__).parent

COORDINATORS = (0, 1, 2)
"""Of groups, transactions and share groups: the topics that they keep were there when the recording began."""


@cache
def outcomes() -> dict[str, list[Outcome]]:
    """Replay everything once, on one broker for each setting that scenarios need."""
    found: dict[str, list[Outcome]] = {area: [] for area in areas()}
    scenarios = [scenario for area in areas() for scenario in load_area(area)]
    for auto_create_topics in (True, False):
        wanted = [scenario for scenario in scenarios if scenario.auto_create_topics is auto_create_topics]
        with asyncio.Runner(loop_factory=MovedTimeLoop) as runner:
            replayed = runner.run(_replay_on_new_broker(wanted, auto_create_topics=auto_create_topics))
        for outcome in replayed:
            found[outcome.scenario.area].append(outcome)
    return found


async def _replay_on_new_broker(scenarios: list[Scenario], *, auto_create_topics: bool) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as directory:
        settings = RECORDED_WITH | {
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://localhost:9093",
            "advertised.listeners": "PLAINTEXT://127.0.0.1:0",
            "auto.create.topics.enable": str(auto_create_topics).lower(),
            "log.dirs": directory,
            "ottla.flush.policy": "os",
        }
        loop = asyncio.get_running_loop()
        assert isinstance(loop, MovedTimeLoop)
        with patch("ottla.broker.loop.ThreadPoolExecutor", Threads):
            server = Server(BrokerConfig.from_properties(settings), clock=LoopClock(loop))
        await server.start()
        loop.move_time()
        try:
            host, port = server.address.rsplit(":", 1)
            for key_type in COORDINATORS:
                await await_coordinator(host, int(port), key_type)
            return await replay_all(scenarios, host, int(port))
        finally:
            await server.stop()


def listed(name: str) -> list[str]:
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def first_difference(outcome: Outcome) -> str:
    """The first difference with the names of this run taken out, so that it can be compared with a list."""
    text = re.sub(r"r\d{6}-", "", outcome.difference or "")
    return text if len(text) <= 160 else text[:160] + "…"


@pytest.mark.parametrize("area", areas())
def test_conversations_hold_but_for_those_that_wait_for_a_feature(area: str) -> None:
    deliberate = {line.split(": ", 1)[0] for line in listed("deliberate.txt")}
    failed = {outcome.scenario.name for outcome in outcomes()[area] if outcome.difference is not None}
    awaited = {line.split("/", 1)[1] for line in listed("not_yet.txt") if line.startswith(f"{area}/")}
    details = {
        outcome.scenario.name: outcome.difference
        for outcome in outcomes()[area]
        if outcome.difference is not None and outcome.scenario.name not in awaited | deliberate
    }

    assert not details, f"{len(details)} conversations differ: {details}"
    assert awaited - failed == set(), "these hold now and must leave not_yet.txt"


def test_deliberate_differences_are_as_listed() -> None:
    expected = dict(line.split(": ", 1) for line in listed("deliberate.txt"))
    actual = {
        outcome.scenario.name: first_difference(outcome)
        for rows in outcomes().values()
        for outcome in rows
        if outcome.scenario.name in expected
    }

    assert actual == expected


def test_what_is_not_served_is_as_listed() -> None:
    """Rows of ApiVersions answers (served keys, features) that Kafka has and we lack."""
    lacking = {thing for rows in outcomes().values() for outcome in rows for thing in outcome.lacking}

    assert lacking == {line.removeprefix("lacks ") for line in listed("not_yet.txt") if line.startswith("lacks ")}


def _print_lists() -> None:
    deliberate = {line.split(": ", 1)[0] for line in listed("deliberate.txt")}
    rows = [outcome for area in outcomes().values() for outcome in area]
    print("# not_yet.txt")
    for thing in sorted({thing for outcome in rows for thing in outcome.lacking}):
        print(f"lacks {thing}")
    for outcome in rows:
        if outcome.difference is not None and outcome.scenario.name not in deliberate:
            print(f"{outcome.scenario.area}/{outcome.scenario.name}")
    print("# deliberate.txt")
    for outcome in rows:
        if outcome.scenario.name in deliberate:
            print(f"{outcome.scenario.name}: {first_difference(outcome)}")


if __name__ == "__main__":
    _print_lists()
