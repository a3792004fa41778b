"""The two brokers on one folder with two log directories, and what became of the folder."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
from pathlib import Path
from typing import Final

from tests.interop.brokers import BrokerProcess, KafkaBroker, OttlaBroker, is_open
from tests.interop.clients.console import QUICK_JVM

SNAPSHOTS: Final = "metadata.log.max.record.bytes.between.snapshots=3000"
"""Often enough for either broker to start from snapshots of the other."""
KAFKA_SETTINGS: Final = (
    SNAPSHOTS,
    "offsets.topic.num.partitions=3",
    "transaction.state.log.num.partitions=2",
    "log.index.interval.bytes=1024",
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:ANONYMOUS",
)
OTTLA_SETTINGS: Final = (
    SNAPSHOTS,
    "offsets.topic.num.partitions=3",
    "log.retention.check.interval.ms=200",
    "group.initial.rebalance.delay.ms=0",
)
CLEANS: Final = "log.cleaner.backoff.ms=100"
DOES_NOT_CLEAN: Final = "log.cleaner.enable=false"
USUAL: Final = re.compile(
    r"Performing controller activation|`log.cleaner.enable` is deprecated|has already been closed"
)


QUIET_PORTS: Final = range(20_000, 30_000)
"""None of them is lent to outgoing connections, so that a broker still finds its ports free when it starts again."""


def find_quiet_port() -> int:
    """Return the first of two free ports, for a broker and its controller."""
    while True:
        port = random.choice(QUIET_PORTS)
        if not is_open("127.0.0.1", port) and not is_open("127.0.0.1", port + 1):
            return port


class CrossedKafka(KafkaBroker):
    """Apache Kafka, whose metadata log remembers the port next to its own."""

    def __init__(self, folder: Path, port: int, *settings: str) -> None:
        super().__init__(folder, *KAFKA_SETTINGS, log_dirs(folder))
        self.settings: tuple[str, ...] = settings
        self._port = port
        self.address = f"127.0.0.1:{port}"

    @property
    def warnings(self) -> list[str]:
        """What it warned of since its start, but for what it always says."""
        lines = self.printed.splitlines()
        return [line for line in lines if re.search(r" (WARN|ERROR|FATAL) ", line) and not USUAL.search(line)]

    def command(self) -> list[str]:
        return ["env", *(f"{name}={value}" for name, value in QUICK_JVM.items()), *super().command(), *self.settings]


class CrossedOttla(OttlaBroker):
    """Ottla. With a port, it listens there, and tells a Kafka to come where its controller's port is."""

    def __init__(self, folder: Path, port: int | None, *settings: str) -> None:
        super().__init__(folder, *OTTLA_SETTINGS, log_dirs(folder), *settings)
        if port is not None:
            self.address = f"127.0.0.1:{port}"
            self._settings += (
                f"listeners=PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{port + 1}",
                f"advertised.listeners=PLAINTEXT://{self.address}",
                "controller.listener.names=CONTROLLER",
                "process.roles=broker,controller",
            )


def log_dirs(folder: Path) -> str:
    return f"log.dirs={folder / 'data'},{folder / 'second'}"


def copy(folder: Path, target: Path) -> Path:
    """Copy a folder of log directories, whatever their broker is."""
    shutil.copytree(folder, target, symlinks=True)
    return target


def kill(broker: BrokerProcess) -> None:
    """End it without a word; `BrokerProcess.stop` then finds it gone."""
    process = broker._process
    assert process is not None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def is_cleaned(folder: Path, *partitions: str) -> bool:
    """Whether these partitions are compacted up to their active segments."""
    cleaned = {}
    for checkpoint in folder.glob("*/cleaner-offset-checkpoint"):
        for line in checkpoint.read_text().splitlines()[2:]:
            topic, partition, offset = line.split()
            cleaned[f"{topic}-{partition}"] = int(offset)
    active = {name: max(int(log.stem) for log in folder.glob(f"*/{name}/*.log")) for name in partitions}
    return all(cleaned.get(name) == base_offset for name, base_offset in active.items())
