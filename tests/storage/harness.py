"""What the tests of this room stand on: reference data, logs in a temporary directory, threads that run when told."""

from __future__ import annotations

import errno
import gzip
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ottla.clock import Timers
from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.engine import ReadResult, Sync
from ottla.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, TopicId, TopicPartition
from ottla.records.builder import BatchBuilder
from ottla.storage.files import FileSystem, LocalFile, LocalFileSystem
from ottla.storage.flusher import Flusher
from ottla.storage.host import LogHost
from ottla.storage.log import PartitionLog
from ottla.storage.manager import LogManager
from ottla.storage.open_files import OpenFiles
from ottla.storage.recovery import LoadPoint, load_log
from ottla.storage.span import SegmentSpan
from ottla.testing.clock import ManualClock

GOLDEN = Path(__file__).parent.parent / "golden"
TP = TopicPartition("t", 0)
TOPIC_ID = TopicId(bytes(15) + b"\x07")
CLEAN = LoadPoint(is_clean=True, recovery_point=0, log_start_offset=0)
UNCLEAN = LoadPoint(is_clean=False, recovery_point=0, log_start_offset=0)
A_DAY_MS = 86_400_000


def golden_lines(name: str) -> Iterator[dict[str, Any]]:
    """Yield the cases of one reference file of `tests/golden/records`."""
    with gzip.open(GOLDEN / "records" / f"{name}.jsonl.gz", "rt") as file:
        for line in file:
            yield json.loads(line)


class ManualOffload:
    """An `engine.Offload` whose loop and threads move when the test says so."""

    def __init__(self) -> None:
        self.callbacks: deque[Callable[[], None]] = deque()
        self.work: deque[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = deque()

    def submit(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        self.work.append((work, done))

    def sync(self, syncs: Sequence[Sync]) -> None:
        for file, done in syncs:
            self.submit(file.sync, done)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def run_loop(self) -> None:
        while self.callbacks:
            self.callbacks.popleft()()

    def run_work(self) -> None:
        """Run one piece of work to its end."""
        work, done = self.work.popleft()
        try:
            work()
        except Exception as error:
            done(error)
        else:
            done(None)

    def run_all(self) -> None:
        while self.callbacks or self.work:
            self.run_loop()
            if self.work:
                self.run_work()


def make_host(
    *,
    fsync: bool = False,
    filesystem: FileSystem | None = None,
    clock: ManualClock | None = None,
    pause: Callable[[], None] = lambda: None,
) -> tuple[LogHost, ManualOffload]:
    offload = ManualOffload()
    filesystem = LocalFileSystem() if filesystem is None else filesystem
    host = LogHost(
        clock=ManualClock() if clock is None else clock,
        filesystem=filesystem,
        offload=offload,
        open_files=OpenFiles(filesystem),
        schedule_flush=Flusher(offload, pause).schedule,
        syncs_appends=fsync,
    )
    return host, offload


def open_log(
    directory: Path, config: LogConfig | None = None, *, host: LogHost | None = None, point: LoadPoint = CLEAN
) -> PartitionLog:
    """Open, or make, the log of `TP` in a directory of its own."""
    host = make_host()[0] if host is None else host
    host.filesystem.make_directory(str(directory))
    return load_log(host, TP, str(directory), LogConfig() if config is None else config, point, A_DAY_MS)


def make_manager(
    directory: Path,
    *,
    fsync: bool = False,
    filesystem: FileSystem | None = None,
    offload: ManualOffload | None = None,
    clock: ManualClock | None = None,
    properties: Mapping[str, str] | None = None,
) -> LogManager:
    settings = {"log.dirs": str(directory), "ottla.flush.policy": "fsync" if fsync else "os", **(properties or {})}
    return LogManager(
        BrokerConfig.from_properties(settings),
        ManualClock() if clock is None else clock,
        ManualOffload() if offload is None else offload,
        LocalFileSystem() if filesystem is None else filesystem,
    )


def start_manager(directory: Path, **settings: Any) -> LogManager:
    manager = make_manager(directory, **settings)
    manager.open()
    manager.load()
    return manager


class Kept:
    """A manager with its housekeeper, on a clock that is moved by hand."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.clock = ManualClock()
        self.timers = Timers()
        self.offload = ManualOffload()
        self.manager = start_manager(directory, clock=self.clock, offload=self.offload, **settings)
        properties = {"log.dirs": str(directory), **settings.get("properties", {})}
        self.manager.start_housekeeping(self.timers, BrokerConfig.from_properties(properties))

    def advance(self, seconds: float) -> None:
        """Let time pass; what falls due is done to its end."""
        self.clock.advance(seconds)
        self.timers.run_due(self.clock.monotonic())
        self.offload.run_all()


def make_batch(
    count: int = 1,
    *,
    timestamp_ms: int = 1_750_000_000_000,
    value: bytes = b"value",
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
) -> bytearray:
    """Return a batch of `count` records, as a producer sends it."""
    builder = BatchBuilder(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
    )
    for index in range(count):
        builder.append(timestamp=timestamp_ms, key=b"k%d" % index, value=value)
    return bytearray(builder.build())


class UnsyncedFile(LocalFile):
    """A file that does not wait for the disk."""

    __slots__ = ()

    @property
    def sync_descriptor(self) -> int:
        return -1

    def sync(self) -> None: ...


class UnsyncedFileSystem(LocalFileSystem):
    """The local file system without waiting for the disk, for tests in which nothing can crash."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> UnsyncedFile:
        return UnsyncedFile(super().open(path, create=create).descriptor)

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        super().replace(path, data, durable=False)

    def sync_file(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...


class FailingFile(LocalFile):
    """A file whose appends or syncs fail while its file system says so."""

    __slots__ = ("_files",)

    def __init__(self, descriptor: int, files: FailingFileSystem) -> None:
        super().__init__(descriptor)
        self._files = files

    @property
    def sync_descriptor(self) -> int:
        return -1

    def append(self, data: bytes | bytearray | memoryview) -> None:
        if self._files.torn_append_bytes is not None:
            super().append(memoryview(data)[: self._files.torn_append_bytes])
            raise OSError(errno.ENOSPC, "no space left on device")
        super().append(data)

    def append_all(self, parts: Sequence[memoryview | bytearray]) -> None:
        for part in parts:
            self.append(part)

    def truncate(self, size_bytes: int) -> None:
        if self._files.is_truncate_failing:
            raise OSError(errno.EIO, "input/output error")
        super().truncate(size_bytes)

    def sync(self) -> None:
        self._files.sync_count += 1
        if self._files.is_sync_failing:
            raise OSError(errno.EIO, "input/output error")
        super().sync()


class FailingFileSystem(LocalFileSystem):
    """The local file system with switches for what goes wrong."""

    __slots__ = ("is_sync_failing", "is_truncate_failing", "sync_count", "torn_append_bytes")

    def __init__(self) -> None:
        self.is_sync_failing = False
        self.is_truncate_failing = False
        self.torn_append_bytes: int | None = None
        self.sync_count = 0

    def open(self, path: str, *, create: bool = False) -> FailingFile:
        return FailingFile(super().open(path, create=create).descriptor, self)


def take_bytes(result: ReadResult) -> bytes:
    """Return the bytes of a read and give its leases back."""
    data = b""
    for part in result.spans:
        if isinstance(part, SegmentSpan):
            data += part.read()
            part.release()
        else:
            assert isinstance(part, bytes)
            data += part
    return data
