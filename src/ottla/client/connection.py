"""One TCP connection to one broker: an asyncio protocol around the sans-IO `ClientConnection`.

It sends requests, settles their futures in the order of the answers, and ends itself when an answer is overdue or what
comes is no Kafka. On opening it learns which versions the broker serves (KIP-35, KIP-511); every request is then sent
in the highest version that both sides know. A broker that is asked too much says for how long to leave it in peace
(KIP-219): requests are held back until then. Which broker to ask, and whether to ask again, is decided by `cluster`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from ssl import SSLContext
from typing import Final, TypeVar, cast

from ottla._version import __version__
from ottla.client.errors import ConnectionLost, raise_error
from ottla.errors import UnsupportedVersion
from ottla.protocol.apis import API, ApiKey
from ottla.protocol.codec import DecodeError, Message
from ottla.protocol.connection import Answer, ClientConnection, InvalidFrame
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

SOFTWARE_NAME: Final = "ottla-python"
API_VERSIONS_AT_MOST: Final = 4
"""Version 5 carries the cluster's id and the node's, which a bootstrapping client does not know."""

MUTING_FROM: Final = 2
"""Brokers that know this version of ApiVersions answer at once and have the client wait; older ones wait themselves."""

MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
"""Above what any fetch brings, and below what the first bytes of an HTTP or TLS server would be as a size."""

M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How connections are made. `ssl` and `authenticate` are where TLS and SASL hook in.

    `authenticate` is awaited on every new connection, after the versions are known and before anything else is sent.
    """

    client_id: str = "ottla"
    request_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    ssl: SSLContext | None = None
    authenticate: Callable[[Connection], Awaitable[None]] | None = None


class Connection(asyncio.BufferedProtocol):
    """An open connection. Make one with `open_connection`."""

    def __init__(self, address: str, settings: ConnectionSettings) -> None:
        self.address = address
        self.versions: dict[int, tuple[int, int]] = {}
        self.api_versions = ApiVersionsResponse()
        self.on_lost: Callable[[Connection], None] | None = None
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._machine = ClientConnection(settings.client_id, MAX_ANSWER_BYTES)
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[tuple[asyncio.Future[Message], asyncio.TimerHandle]] = deque()
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._reason: str | None = None
        self._muted_until = 0.0
        self._held: list[Sequence[bytes | memoryview]] | None = None
        """What was to be sent since the broker asked to be left in peace; None when it did not."""
        self._unmute_timer: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def in_flight(self) -> int:
        """How many requests wait for an answer."""
        return len(self._waiting)

    def version_for(self, api_key: ApiKey, at_most: int | None = None) -> int:
        """Return the version to speak with this broker. Raises `UnsupportedVersion` when no version is common."""
        api = API[api_key]
        low, high = self.versions.get(api_key, (0, -1))
        version = min(high, api.announced[1] if at_most is None else at_most)
        if version < max(low, api.min_version):
            served = f"serves versions {low} to {high} of it" if high >= 0 else "does not serve it"
            raise UnsupportedVersion(f"{api.name} cannot be asked of {self.address}, which {served}")
        return version

    def send(
        self, api_key: ApiKey, request: Message, api_version: int, timeout_ms: int | None = None
    ) -> asyncio.Future[Message]:
        """Send a request. The future gives the response, or raises `ConnectionLost`."""
        answer = self._loop.create_future()
        if not self.is_open:
            answer.set_exception(self._lost_because())
            return answer
        assert self._transport is not None
        seconds = (self._settings.request_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        _, buffers = self._machine.send(api_key, api_version, request)
        wait = 0.0 if self._held is None else max(0.0, self._muted_until - self._loop.time())
        timer = self._loop.call_later(seconds + wait, self._overdue, API[api_key].name, seconds)
        self._waiting.append((answer, timer))
        self._write(buffers)
        return answer

    def send_unanswered(self, api_key: ApiKey, request: Message, api_version: int) -> None:
        """Send a request that brokers do not answer (Produce with acks=0). Raises `ConnectionLost`."""
        if not self.is_open:
            raise self._lost_because()
        assert self._transport is not None
        _, buffers = self._machine.send(api_key, api_version, request, has_answer=False)
        self._write(buffers)

    async def call(self, api_key: ApiKey, request: Message, response_type: type[M], timeout_ms: int | None = None) -> M:
        """Send a request in the best common version and await its response."""
        response = await self.send(api_key, request, self.version_for(api_key), timeout_ms)
        assert isinstance(response, response_type)
        return response

    async def close(self) -> None:
        """Close and wait until the transport is gone."""
        if self._transport is not None:
            self._unmute()
            self._transport.close()
            await self._lost

    def abandon(self) -> None:
        """Close without waiting; requests in flight end with `ConnectionLost`."""
        if self._transport is not None:
            self._transport.abort()

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports are no subclass of it

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._machine.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            self._machine.buffer_updated(nbytes)
            while (answer := self._machine.next_answer()) is not None:
                self._settle(answer)
        except (InvalidFrame, DecodeError) as error:
            self._abort(f"what came is no answer of a Kafka broker ({error})")

    def connection_lost(self, exc: Exception | None) -> None:
        if self._reason is None:
            self._reason = "the broker closed the connection" if exc is None else _reason(exc)
        self._drop_held()
        waiting, self._waiting = self._waiting, deque()
        for future, timer in waiting:
            timer.cancel()
            if not future.done():
                future.set_exception(self._lost_because())
        if not self._lost.done():
            self._lost.set_result(None)
        if self.on_lost is not None:
            self.on_lost(self)

    def _settle(self, answer: Answer) -> None:
        future, timer = self._waiting.popleft()
        timer.cancel()
        if not future.done():  # a caller may have stopped waiting
            future.set_result(answer.message)
        throttle_time_ms = getattr(answer.message, "throttle_time_ms", 0)
        if throttle_time_ms > 0 and self.versions.get(ApiKey.API_VERSIONS, (0, 0))[1] >= MUTING_FROM:
            self._mute(throttle_time_ms / 1000)

    # ---- leaving a broker in peace

    def _mute(self, seconds: float) -> None:
        """Hold back what is to be sent; a later answer may ask for longer."""
        until = self._loop.time() + seconds
        if self._held is None:
            self._held = []
        elif until <= self._muted_until:
            return
        self._muted_until = until
        if self._unmute_timer is not None:
            self._unmute_timer.cancel()
        self._unmute_timer = self._loop.call_at(until, self._unmute)

    def _unmute(self) -> None:
        """Send what was held back, in its order."""
        held = self._drop_held()
        if self._transport is not None and not self._transport.is_closing():
            for buffers in held:
                self._transport.writelines(buffers)

    def _drop_held(self) -> Sequence[Sequence[bytes | memoryview]]:
        held, self._held = self._held or (), None
        if self._unmute_timer is not None:
            self._unmute_timer.cancel()
            self._unmute_timer = None
        return held

    def _write(self, buffers: Sequence[bytes | memoryview]) -> None:
        assert self._transport is not None
        if self._held is None:
            self._transport.writelines(buffers)
        else:
            self._held.append(buffers)

    def _overdue(self, request_name: str, seconds: float) -> None:
        """An answer did not come: as answers come in order, no later one can be believed in either."""
        self._abort(f"no answer to {request_name} within {seconds:g} s")

    def _abort(self, reason: str) -> None:
        self._reason = reason
        if self._transport is not None:
            self._transport.abort()

    def _lost_because(self) -> ConnectionLost:
        """A new exception for each waiter, since raising one adds to its traceback."""
        return ConnectionLost(self.address, self._reason or "the connection was closed")

    # ---- opening

    async def learn_versions(self) -> None:
        """Ask which versions the broker serves, stepping down once when it does not know ours."""
        version = API_VERSIONS_AT_MOST
        response = await self._ask_versions(version)
        if response.error_code == UnsupportedVersion.code:
            ranges = _ranges(response)
            version = min(ranges.get(ApiKey.API_VERSIONS, (0, 0))[1], version)
            response = await self._ask_versions(version)
        raise_error(response.error_code)
        self.api_versions = response
        self.versions = dict(_ranges(response))

    async def _ask_versions(self, version: int) -> ApiVersionsResponse:
        request = ApiVersionsRequest()
        if version >= 3:
            request.client_software_name = SOFTWARE_NAME
            request.client_software_version = __version__
        response = await self.send(ApiKey.API_VERSIONS, request, version, self._settings.connect_timeout_ms)
        assert isinstance(response, ApiVersionsResponse)
        return response


async def open_connection(host: str, port: int, settings: ConnectionSettings) -> Connection:
    """Connect, learn the broker's versions and authenticate. Raises `ConnectionLost` and what `authenticate` raises."""
    address = format_address(host, port)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(settings.connect_timeout_ms / 1000):
            _, connection = await loop.create_connection(
                lambda: Connection(address, settings),
                host,
                port,
                ssl=settings.ssl,
                server_hostname=host if settings.ssl is not None else None,
            )
    except TimeoutError:
        raise ConnectionLost(address, f"no connection within {settings.connect_timeout_ms / 1000:g} s") from None
    except OSError as error:
        raise ConnectionLost(address, _reason(error)) from error
    except UnicodeError as error:  # what a user gives and what a broker advertises need not be a name
        raise ConnectionLost(address, "no host can have that name") from error
    except (ValueError, OverflowError) as error:  # nor a port
        raise ConnectionLost(address, f"that is no address ({error})") from error
    try:
        await connection.learn_versions()
        if settings.authenticate is not None:
            await settings.authenticate(connection)
    except BaseException:
        await connection.close()
        raise
    return connection


def format_address(host: str, port: int) -> str:
    """HOST:PORT, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _ranges(response: ApiVersionsResponse) -> Mapping[int, tuple[int, int]]:
    return {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}


def _reason(error: Exception) -> str:
    """A few words for a person in place of the system's sentence."""
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return "connection refused"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error) or type(error).__name__
