"""A whole broker in this process: on a free port, in a directory of its own, gone at the end.

    async with running_broker() as running:
        await client.connect(running.address)

    with broker_in_thread() as running:
        producer = Producer({"bootstrap.servers": running.address})

What was acknowledged is in the page cache and not waited for on the disk (`ottla.flush.policy=os`), which is what a
test wants; any setting can be given. With a `ManualClock` time stands still until `advance` moves it.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from ottla.broker.broker import Broker
from ottla.clock import Clock
from ottla.config.broker_config import BrokerConfig
from ottla.server import Server
from ottla.testing.clock import ManualClock

TEST_SETTINGS: Final[Mapping[str, str]] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "ottla.flush.policy": "os",
}
STOP_SECONDS: Final = 10.0


class RunningBroker:
    """A broker that serves."""

    __slots__ = ("_clock", "directory", "server")

    def __init__(self, server: Server, directory: str, clock: Clock | None) -> None:
        self.server = server
        self.directory = directory
        """Its first log directory."""
        self._clock = clock

    @property
    def address(self) -> str:
        """`host:port` for bootstrap.servers."""
        return self.server.address

    @property
    def broker(self) -> Broker:
        return self.server.broker

    def advance(self, seconds: float) -> None:
        """Move a manual clock and run what falls due. Call it on the broker's loop."""
        assert isinstance(self._clock, ManualClock), "only a manual clock can be moved"
        self._clock.advance(seconds)
        self.server.timers.run_due(self._clock.monotonic())


@asynccontextmanager
async def running_broker(
    settings: Mapping[str, str] | None = None, *, clock: Clock | None = None
) -> AsyncIterator[RunningBroker]:
    """Run a broker on this loop. `settings` come on top of `TEST_SETTINGS`; without `log.dirs` data is temporary."""
    with _log_dirs(settings) as properties:
        server = Server(BrokerConfig.from_properties(properties), clock=clock)
        await server.start()
        try:
            yield RunningBroker(server, server.config.log_dirs[0], clock)
        finally:
            await server.stop()


class _BrokerThread(threading.Thread):
    """Runs a broker on a loop of its own until it is told to finish."""

    def __init__(self, settings: Mapping[str, str] | None) -> None:
        super().__init__(name="ottla-broker", daemon=True)
        self.running: RunningBroker | None = None
        self.failure: BaseException | None = None
        self.is_decided = threading.Event()
        """Set once the broker serves or has failed to."""
        self._settings = settings
        self._loop: asyncio.AbstractEventLoop | None = None
        self._finished: asyncio.Event | None = None

    def run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:
            self.failure = failure
        finally:
            self.is_decided.set()

    def finish(self) -> None:
        """Stop the broker in order and wait for it. Raises what ended it, if that was something else."""
        if self._loop is not None and self._finished is not None and self.is_alive():
            self._loop.call_soon_threadsafe(self._finished.set)
        self.join(STOP_SECONDS)
        if self.failure is not None:
            raise self.failure

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._finished = asyncio.Event()
        async with running_broker(self._settings) as running:
            self.running = running
            self.is_decided.set()
            await self._finished.wait()


@contextmanager
def broker_in_thread(settings: Mapping[str, str] | None = None) -> Iterator[RunningBroker]:
    """Run a broker on a thread of its own, for tests and clients that are not asynchronous."""
    thread = _BrokerThread(settings)
    thread.start()
    thread.is_decided.wait()
    if thread.running is None:
        thread.join()
        raise RuntimeError("the broker did not start") from thread.failure
    try:
        yield thread.running
    finally:
        thread.finish()


@contextmanager
def _log_dirs(settings: Mapping[str, str] | None) -> Iterator[dict[str, str]]:
    """The settings of a test broker, with a directory that is removed at the end unless one was given."""
    properties = {**TEST_SETTINGS, **(settings or {})}
    if "log.dirs" in properties or "log.dir" in properties:
        yield properties
        return
    with tempfile.TemporaryDirectory(prefix="ottla-test-", ignore_cleanup_errors=True) as directory:
        yield {**properties, "log.dirs": directory}
