"""Replays recorded conversations against a broker over TCP and says where its answers differ.

Owns the connections of one run of one conversation. What a step means for variables and comparison is `scenario`'s;
how a body becomes bytes is the protocol room's codec, which the golden bytes judge.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from ottla.protocol.apis import API
from ottla.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from tests.behaviour.kafka_bodies import body_from_json, body_to_json, encode_body
from tests.behaviour.scenario import Comparison, Json, Scenario, Variables, expand_hex, should_retry

ANSWER_TIMEOUT_MS = 5000
RETRY_PAUSE_SECONDS = 0.05
RETRY_LIMIT_SECONDS = 5.0
LARGEST_ANSWER_BYTES = 200_000_000


@dataclass(eq=False, slots=True)
class Expected:
    """An answer that a connection owes us, and what it turned out to be."""

    connection: Connection
    key: int
    version: int
    correlation_id: int
    answer: Json = None


@dataclass(slots=True)
class Connection:
    """One TCP connection with the answers it still owes, in order."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    next_correlation_id: int = 100
    owed: list[Expected] = field(default_factory=list)

    async def send(self, data: bytes) -> bool:
        """Write `data`; false when the other side has closed."""
        try:
            self.writer.write(data)
            await self.writer.drain()
        except ConnectionError:
            return False
        return True

    async def read_frame(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big", signed=True)
        if not 0 <= size <= LARGEST_ANSWER_BYTES:
            raise ConnectionError(f"no frame, but a size of {size}")
        return await self.reader.readexactly(size)


class Run:
    """One run of one conversation."""

    def __init__(self, host: str, port: int) -> None:
        self.address = (host, port)
        self.variables = Variables()
        self.comparison = Comparison()
        self.connections: dict[str, Connection] = {}
        self.pending: dict[str, Expected] = {}

    async def replay(self, scenario: Scenario) -> str | None:
        """Play all steps; returns the first difference, or None."""
        try:
            for number, step in enumerate(scenario.steps):
                difference = await self._step_difference(step)
                if difference:
                    what = step.get("api", step.get("op"))
                    return f"step {number} {what} v{step.get('version')} {difference}"
            return None
        finally:
            await self.close()

    async def close(self) -> None:
        for name in list(self.connections):
            await self._drop(name)

    async def _step_difference(self, step: dict[str, Json]) -> str | None:
        answer = await self.answer_to(step)
        if "response" not in step:
            return None
        if answer is None:
            return "nothing was answered"
        if isinstance(answer, dict):
            self.variables.capture(step, answer)
            self.variables.keep_only_ours(step, answer)
        expected = self.variables.put_into(step["response"])
        return self.comparison.difference(expected, answer, ordered=step.get("ordered", False))

    async def answer_to(self, step: dict[str, Json]) -> Json:
        """Do what a step says; returns the answer, None when there is nothing to compare."""
        await asyncio.sleep(step.get("after_ms", 0) / 1000)
        match step.get("op"):
            case None:
                return await self._request(step)
            case "sleep":
                await asyncio.sleep(step["ms"] / 1000)
                return None
            case "close":
                await self._drop(step["conn"])
                return None
            case "await":
                expected = self.pending.pop(step["of"])
                return await self._read_answer(expected, step.get("expect_ms", ANSWER_TIMEOUT_MS))
            case "raw":
                return await self._raw(step)
            case unknown:
                raise ValueError(f"unknown step {unknown}")

    async def _request(self, step: dict[str, Json]) -> Json:
        deadline = asyncio.get_running_loop().time() + RETRY_LIMIT_SECONDS
        while True:
            answer = await self._request_once(step)
            if not should_retry(step, answer, self.variables) or asyncio.get_running_loop().time() > deadline:
                return answer
            await asyncio.sleep(RETRY_PAUSE_SECONDS)

    async def _request_once(self, step: dict[str, Json]) -> Json:
        name = step.get("conn", "c1")
        connection = await self._connection(name)
        correlation_id = step.get("correlation_id", connection.next_correlation_id)
        if "correlation_id" not in step:
            connection.next_correlation_id += 1
        expected = Expected(connection, step["key"], step["version"], correlation_id)
        if not await connection.send(self._frame(step, correlation_id)):
            await self._drop(name)
            return "closed"
        connection.owed.append(expected)
        if "async" in step:
            self.pending[step["async"]] = expected
            return None
        return await self._read_answer(expected, step.get("expect_ms", ANSWER_TIMEOUT_MS))

    def _frame(self, step: dict[str, Json], correlation_id: int) -> bytes:
        key, version = step["key"], step["version"]
        client_id = self.variables.put_into(step.get("client_id", "check"))
        header = encode_request_header(RequestHeader(key, version, correlation_id, client_id))
        body = encode_body(body_from_json(API[key].request, step["request"], self.variables), version)
        return (len(header) + len(body)).to_bytes(4, "big") + header + body

    async def _raw(self, step: dict[str, Json]) -> Json:
        connection = await self._connection(step["conn"])
        if not await connection.send(expand_hex(step["hex"])):
            await self._drop(step["conn"])
            return "closed"
        if step.get("no_read"):
            return None
        parse = step.get("parse", {})
        expected = Expected(connection, parse.get("key", 18), parse.get("version", 0), parse.get("correlation_id", 0))
        connection.owed.append(expected)
        if "async" in step:
            self.pending[step["async"]] = expected
            return None
        return await self._read_answer(expected, step.get("expect_ms", ANSWER_TIMEOUT_MS))

    async def _read_answer(self, wanted: Expected, timeout_ms: int) -> Json:
        connection = wanted.connection
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while wanted.answer is None:
                    frame = await connection.read_frame()
                    owed = connection.owed.pop(0) if connection.owed else wanted
                    owed.answer = _decode(owed, frame)
        except TimeoutError:
            connection.owed = [owed for owed in connection.owed if owed is not wanted]
            return "none"
        except (ConnectionError, asyncio.IncompleteReadError):
            await self._drop(next((name for name, c in self.connections.items() if c is connection), ""))
            return "closed"
        return wanted.answer

    async def _connection(self, name: str) -> Connection:
        if name not in self.connections:
            self.connections[name] = Connection(*await asyncio.open_connection(*self.address, limit=1 << 20))
        return self.connections[name]

    async def _drop(self, name: str) -> None:
        connection = self.connections.pop(name, None)
        if connection is not None:
            connection.writer.close()


def _decode(owed: Expected, frame: bytes) -> Json:
    api = API[owed.key]
    correlation_id, position = decode_response_header(memoryview(frame), api.response_header_version(owed.version))
    if correlation_id != owed.correlation_id:
        return {"wrongCorrelationId": correlation_id, "expectedCorrelationId": owed.correlation_id}
    return body_to_json(api.response, owed.version, memoryview(frame)[position:])


@dataclass(slots=True)
class Outcome:
    """What became of one conversation."""

    scenario: Scenario
    difference: str | None
    lacking: set[str]


FIND_GROUP_COORDINATOR: dict[str, Json] = {
    "api": "FindCoordinator",
    "key": 10,
    "version": 4,
    "request": {"keyType": 0, "coordinatorKeys": ["anybody"]},
    "response": {"throttleTimeMs": "$any", "coordinators": "$any"},
    "retry_while": {"at": "/coordinators/0/errorCode", "in": [14, 15, 16]},
}
"""As before the recording: the topic of the groups is there."""


async def await_coordinator(host: str, port: int, key_type: int) -> bool:
    """Ask for a coordinator, as was done before the recording, until it is there; false when it will not come."""
    step = {
        "conn": "c1",
        "api": "FindCoordinator",
        "key": 10,
        "version": 6,
        "request": {"keyType": key_type, "coordinatorKeys": ["first"]},
        "retry_while": {"at": "/coordinators/0/errorCode", "in": [14]},
    }
    run = Run(host, port)
    answer = await run.answer_to(step)
    await run.close()
    return bool(answer["coordinators"][0]["errorCode"] == 0)


async def replay_all(scenarios: list[Scenario], host: str, port: int, *, at_once: int = 64) -> list[Outcome]:
    """Replay many conversations side by side, then those that want the broker to themselves."""
    await Run(host, port).replay(Scenario("coordinators", "", "", [FIND_GROUP_COORDINATOR], True, False, False))
    gate = asyncio.Semaphore(at_once)

    async def replay_one(scenario: Scenario) -> Outcome:
        async with gate:
            run = Run(host, port)
            try:
                difference = await run.replay(scenario)
            except (ConnectionError, OSError, ValueError, KeyError) as error:
                difference = f"{type(error).__name__}: {error}"
            return Outcome(scenario, difference, run.comparison.lacking)

    shared = [scenario for scenario in scenarios if not scenario.exclusive and not scenario.quirk]
    alone = [scenario for scenario in scenarios if scenario.exclusive and not scenario.quirk]
    outcomes = list(await asyncio.gather(*map(replay_one, shared)))
    outcomes += [await replay_one(scenario) for scenario in alone]
    return outcomes
