"""What the tests of this room stand on: reference data, logs in a temporary directory, threads that run when told."""

from __future__ import annotations

import gzip
import json
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, TopicId, TopicPartition
from ottla.records.builder import BatchBuilder
from ottla.storage.files import FileSystem, LocalFileSystem
from ottla.storage.flusher import Flusher
from ottla.storage.log import LogHost, PartitionLog
from ottla.storage.manager import LogManager
from ottla.storage.open_files import OpenFiles
from ottla.storage.recovery import LoadPoint, load_log
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
        except OSError as error:
            done(error)
        else:
            done(None)

    def run_all(self) -> None:
        while self.callbacks or self.work:
            self.run_loop()
            if self.work:
                self.run_work()


def make_host(
    *, fsync: bool = False, filesystem: FileSystem | None = None, clock: ManualClock | None = None
) -> tuple[LogHost, ManualOffload]:
    offload = ManualOffload()
    filesystem = LocalFileSystem() if filesystem is None else filesystem
    host = LogHost(
        clock=ManualClock() if clock is None else clock,
        filesystem=filesystem,
        offload=offload,
        open_files=OpenFiles(filesystem),
        schedule_flush=Flusher(offload).schedule,
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
    **settings: str,
) -> LogManager:
    properties = {
        "log.dirs": str(directory),
        "ottla.flush.policy": "fsync" if fsync else "os",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    return LogManager(
        BrokerConfig.from_properties(properties),
        ManualClock(),
        ManualOffload() if offload is None else offload,
        LocalFileSystem() if filesystem is None else filesystem,
    )


def start_manager(directory: Path, **settings: Any) -> LogManager:
    manager = make_manager(directory, **settings)
    manager.open()
    manager.load()
    return manager


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
