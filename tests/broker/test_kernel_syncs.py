"""Fsyncs of the kernel's own: they end on the loop, each for itself, and what is refused is left to others."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.kernel_syncs import ROOM, KernelSyncs
from ottla.broker.loop import SYNCED_BY_THREADS, LoopOffload
from ottla.extensions import load_extension

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux is asked")


class Opened:
    """A file that notes when it was synced by a thread."""

    def __init__(self, descriptor: int) -> None:
        self.sync_descriptor = descriptor
        self.synced = 0

    def sync(self) -> None:
        self.synced += 1
        os.fdatasync(self.sync_descriptor)


class Ends:
    """What became of each file, in the order of their ends."""

    def __init__(self) -> None:
        self.errors: dict[int, BaseException | None] = {}
        self._changed = asyncio.Event()

    def note(self, number: int) -> Callable[[BaseException | None], None]:
        def done(error: BaseException | None) -> None:
            assert number not in self.errors
            self.errors[number] = error
            self._changed.set()

        return done

    async def wait(self, count: int) -> None:
        async with asyncio.timeout(30):
            while len(self.errors) < count:
                await self._changed.wait()
                self._changed.clear()


@pytest.fixture
def files(tmp_path: Path) -> Iterator[list[Opened]]:
    opened = [Opened(os.open(tmp_path / str(number), os.O_WRONLY | os.O_CREAT)) for number in range(3)]
    for file in opened:
        os.write(file.sync_descriptor, b"data")
    yield opened
    for file in opened:
        os.close(file.sync_descriptor)


@pytest.fixture
def pipe() -> Iterator[Opened]:
    """Something open that cannot be synced."""
    reader, writer = os.pipe()
    yield Opened(writer)
    os.close(reader)
    os.close(writer)


def on_loop(scenario: Callable[[LoopOffload], Awaitable[None]]) -> None:
    async def run() -> None:
        offload = LoopOffload(asyncio.get_running_loop())
        await scenario(offload)
        offload.close()

    asyncio.run(run())


async def sync_by_threads(offload: LoopOffload, file: Opened) -> None:
    """Have as many files synced as threads do before the kernel is asked."""
    ends = Ends()
    offload.sync([(file, ends.note(number)) for number in range(SYNCED_BY_THREADS)])
    await ends.wait(SYNCED_BY_THREADS)
    assert file.synced == SYNCED_BY_THREADS
    file.synced = 0


def refuse(package: str, name: str) -> Any:
    raise ImportError(f"{package}.{name} is not for this kernel")


def test_the_kernel_syncs_all_files_of_a_turn(files: list[Opened]) -> None:
    async def run() -> None:
        syncs = KernelSyncs(asyncio.get_running_loop())
        ends = Ends()
        assert syncs.open()
        assert syncs.begin([(file, ends.note(number)) for number, file in enumerate(files)]) == 3
        assert not ends.errors
        await ends.wait(3)
        assert set(ends.errors.values()) == {None}
        syncs.close()

    asyncio.run(run())
    assert not any(file.synced for file in files)


def test_a_sync_that_fails_is_told_with_its_number(files: list[Opened]) -> None:
    """The kernel reports it as a negative number, which arrives without its sign."""

    class Failing:
        def __init__(self, room: int) -> None:
            self._module = load_extension("caio", "linux_aio")
            self._context = self._module.Context(room)
            self.fileno = self._context.fileno
            self._callbacks: list[Callable[[int], None]] = []

        def submit(self, *operations: Any) -> int:
            self._callbacks += [operation.callback for operation in operations]
            return len(operations)

        def process_events(self, *_: int) -> int:
            callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                callback((1 << 64) - errno.EIO)
            return len(callbacks)

    class Operation:
        def __init__(self, descriptor: int) -> None:
            self.descriptor = descriptor

        @classmethod
        def fdsync(cls, descriptor: int) -> Operation:
            return cls(descriptor)

        def set_callback(self, callback: Callable[[int], None]) -> None:
            self.callback = callback

    class Module:
        Context = Failing

    Module.Operation = Operation  # type: ignore[attr-defined]

    async def run() -> None:
        syncs = KernelSyncs(asyncio.get_running_loop(), lambda package, name: Module)
        ends = Ends()
        assert syncs.open()
        assert syncs.begin([(files[0], ends.note(0))]) == 1
        syncs.close()
        await ends.wait(1)
        error = ends.errors[0]
        assert isinstance(error, OSError)
        assert error.errno == errno.EIO

    asyncio.run(run())


def test_threads_sync_the_first_files_and_the_kernel_the_others(files: list[Opened]) -> None:
    async def run(offload: LoopOffload) -> None:
        await sync_by_threads(offload, files[0])
        ends = Ends()
        offload.sync([(file, ends.note(number)) for number, file in enumerate(files)])
        await ends.wait(3)
        assert set(ends.errors.values()) == {None}

    on_loop(run)
    assert not any(file.synced for file in files)


def test_a_signal_does_not_end_the_wait_for_what_is_under_way(files: list[Opened]) -> None:
    class Interrupted:
        def __init__(self, room: int) -> None:
            self._context = load_extension("caio", "linux_aio").Context(room)
            self._left = 3

        def __getattr__(self, name: str) -> Any:
            return getattr(self._context, name)

        def process_events(self, *arguments: int) -> Any:
            self._left -= 1
            if self._left >= 0:
                raise SystemError(errno.EINTR, "Interrupted system call")
            return self._context.process_events(*arguments)

    class Module:
        Context = Interrupted
        Operation = load_extension("caio", "linux_aio").Operation

    async def run() -> None:
        syncs = KernelSyncs(asyncio.get_running_loop(), lambda package, name: Module)
        ends = Ends()
        assert syncs.open()
        assert syncs.begin([(file, ends.note(number)) for number, file in enumerate(files)]) == 3
        syncs.close()
        await ends.wait(3)
        assert set(ends.errors.values()) == {None}

    asyncio.run(run())


def test_files_that_the_kernel_refuses_are_synced_by_threads(files: list[Opened], pipe: Opened) -> None:
    async def run(offload: LoopOffload) -> None:
        await sync_by_threads(offload, files[0])
        ends = Ends()
        offload.sync([(file, ends.note(number)) for number, file in enumerate([pipe, *files])])
        await ends.wait(4)
        error = ends.errors.pop(0)
        assert isinstance(error, OSError)
        assert error.errno == errno.EINVAL
        assert set(ends.errors.values()) == {None}

    on_loop(run)
    assert pipe.synced


def test_a_file_without_a_descriptor_for_it_is_left_to_others(files: list[Opened]) -> None:
    async def run() -> None:
        syncs = KernelSyncs(asyncio.get_running_loop())
        ends = Ends()
        own = files[1].sync_descriptor
        files[1].sync_descriptor = -1
        assert syncs.open()
        assert syncs.begin([(file, ends.note(number)) for number, file in enumerate(files)]) == 1
        syncs.close()
        await ends.wait(1)
        files[1].sync_descriptor = own

    asyncio.run(run())


def test_more_than_there_is_room_for_are_left_to_others(files: list[Opened]) -> None:
    async def run() -> None:
        syncs = KernelSyncs(asyncio.get_running_loop())
        ends = Ends()
        assert syncs.open()
        assert syncs.begin([(files[0], ends.note(number)) for number in range(ROOM + 5)]) == ROOM
        syncs.close()
        await ends.wait(ROOM)

    asyncio.run(run())


def test_a_kernel_without_it_is_asked_once(files: list[Opened]) -> None:
    asked: list[str] = []

    def load(package: str, name: str) -> Any:
        asked.append(package)
        return refuse(package, name)

    async def run() -> None:
        syncs = KernelSyncs(asyncio.get_running_loop(), load)
        assert not syncs.open()
        assert not syncs.open()
        assert not syncs.is_open
        syncs.close()

    asyncio.run(run())
    assert asked == ["caio"]


def test_a_stop_waits_for_what_is_under_way(files: list[Opened]) -> None:
    ends: list[BaseException | None] = []

    async def run(offload: LoopOffload) -> None:
        await sync_by_threads(offload, files[0])
        offload.sync([(file, ends.append) for file in files])

    async def stop() -> None:
        offload = LoopOffload(asyncio.get_running_loop())
        await run(offload)
        offload.close()
        offload.sync([(files[0], ends.append)])
        await asyncio.sleep(0)

    asyncio.run(stop())
    assert ends == [None] * 3
