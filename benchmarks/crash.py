"""Kill the broker under its producers, again and again, and check that it lost nothing that it had acknowledged.

    SECONDS=120 SEED=7 python -m benchmarks.crash

Three producers and a group write all the time while the broker dies by SIGKILL at a random moment, mostly at work,
sometimes while it starts, and now and then is stopped in order. After every start everything that came since is read:

* what was acknowledged is there, at the offset that was told, in the order of sending;
* of the idempotent ones (librdkafka's and ours) every number is there once, without a gap, and none was refused;
* of the one without retries no number is there twice;
* a compacted topic has each key's newest acknowledged value, or a later one;
* a group's offset is the newest acknowledged, or a later one.

Ends with 1 and keeps the data when something is lost. SIGKILL leaves the page cache alone, so this is about the
broker's own order of writes, its recovery and its memory of producers; `tests/storage/crashes.py` cuts the power too.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stubs forget to export it

from benchmarks.processes import find_free_port
from benchmarks.systems import SYSTEMS, Unavailable
from benchmarks.writers import Committer, ConfluentWriter, OurWriter, PlainWriter, Writer

READY_TIMEOUT_S: Final = 60.0
LONGEST_ROUND_S: Final = 2.0
POLL_S: Final = 0.02
SETTINGS: Final = (
    "log.segment.bytes=1048576",
    "log.cleaner.backoff.ms=200",
    "log.flush.offset.checkpoint.interval.ms=500",
    "log.flush.start.offset.checkpoint.interval.ms=500",
    "log.retention.bytes=200000000",
    "log.retention.check.interval.ms=1000",
    "offsets.topic.num.partitions=2",
)
COMPACTED: Final = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}


class Lost(Exception):
    """The broker broke a promise; the message says which."""


class Victim:
    """The broker's process, which is started and killed on one folder and port."""

    def __init__(self, folder: Path) -> None:
        port = find_free_port()
        self.address = f"127.0.0.1:{port}"
        flags = [text for setting in SETTINGS for text in ("-o", setting)]
        self._command = [*SYSTEMS["ottla"].command(folder, port), *flags]
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        with self._log.open("ab") as log:
            log.write(b"---- start\n")
            log.flush()
            self._begun_at = log.tell()
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while "ottla ready on " not in self.said:
            if not self.is_alive or time.monotonic() > deadline:
                raise Lost(f"the broker did not start: {self.said[-2000:]}")
            time.sleep(POLL_S)

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def said(self) -> str:
        """What it said since it was started last."""
        return self._log.read_bytes()[self._begun_at :].decode(errors="replace")

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self._process is None:
            return
        if "Traceback" in self.said:
            raise Lost(f"the broker was surprised: {self.said[-3000:]}")
        self._process.send_signal(number)
        self._process.wait(READY_TIMEOUT_S)
        self._process = None


def read(address: str, topic: str, offset: int) -> Iterator[Message]:
    """Yield every record of partition 0 from an offset to what is its end now."""
    settings = {"bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer({**settings, "fetch.wait.max.ms": 10, "auto.offset.reset": "error", "check.crcs": True})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=READY_TIMEOUT_S)
        consumer.assign([TopicPartition(topic, 0, offset)])
        deadline = time.monotonic() + READY_TIMEOUT_S
        while offset < end:
            if time.monotonic() > deadline:
                raise Lost(f"{topic}: nothing comes from offset {offset} on, and the end is {end}")
            for message in consumer.consume(10_000, 0.1):
                if message.error():
                    raise KafkaException(message.error())
                offset = int(message.offset() or 0) + 1
                if offset <= end:
                    yield message
    finally:
        consumer.close()


class Check:
    """Reads a writer's topic from where it stopped, and compares with what was acknowledged."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.acknowledged = 0
        self._position = 0
        self._newest = -1
        self._unmatched: dict[int, int] = {}
        """Number by offset of what was read and is not known to be acknowledged."""

    def run(self) -> None:
        """Raises `Lost`."""
        topic = self.writer.topic
        if self.writer.error is not None:
            raise Lost(self.writer.error)
        acknowledged = self.writer.take_acknowledged()
        for message in read(self.writer.address, topic, self._position):
            offset, number = int(message.offset() or 0), int(message.value() or b"")
            if offset != self._position:
                raise Lost(f"{topic}: offset {self._position} is missing, {offset} follows")
            if number <= self._newest or (self.writer.is_exactly_once and number != self._newest + 1):
                raise Lost(f"{topic}: {number} follows {self._newest} at offset {offset}")
            self._unmatched[offset] = number
            self._position, self._newest = offset + 1, number
        for number, offset in acknowledged:
            if self._unmatched.pop(offset, None) != number:
                raise Lost(f"{topic}: {number} was acknowledged at offset {offset}, and is not there")
        self.acknowledged += len(acknowledged)

    def check_end(self) -> None:
        """Check once more, after the writer has stopped."""
        self.run()
        if self.writer.is_exactly_once and self._newest + 1 != self.writer.sent:
            raise Lost(f"{self.writer.topic}: {self.writer.sent} were sent, the last is {self._newest}")


class CompactedCheck:
    """Reads a compacted topic whole: each key's newest value counts."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.acknowledged = 0
        self._newest: dict[int, int] = {}

    def run(self) -> None:
        """Raises `Lost`."""
        topic = self.writer.topic
        if self.writer.error is not None:
            raise Lost(self.writer.error)
        acknowledged = self.writer.take_acknowledged()
        found: dict[int, int] = {}
        for message in read(self.writer.address, topic, 0):
            key, number = int(message.key() or b""), int(message.value() or b"")
            if number <= found.get(key, -1):
                raise Lost(f"{topic}: {number} follows {found[key]} at offset {message.offset()}")
            found[key] = number
        for number, _ in acknowledged:
            self._newest[number % len(found)] = number
        for key, number in self._newest.items():
            if found[key] < number:
                raise Lost(f"{topic}: key {key} has {found[key]}, and {number} was acknowledged")
        self.acknowledged += len(acknowledged)

    check_end = run


def check_offsets(committer: Committer) -> None:
    """Raise `Lost` when a group's offset is older than the one that was acknowledged."""
    least = committer.committed
    consumer = Consumer({"bootstrap.servers": committer.address, "group.id": committer.group, "log_level": 0})
    try:
        (found,) = consumer.committed([TopicPartition(committer.topic, 0)], timeout=READY_TIMEOUT_S)
    finally:
        consumer.close()
    if least and not least <= found.offset <= committer.sent:
        raise Lost(f"offset {least} was committed, and {found.offset} is what the group has")


def create_topics(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    topics = [NewTopic(name, 1, 1) for name in ("idempotent", "plain", "ours")]
    topics.append(NewTopic("compacted", 1, 1, config=COMPACTED))
    for future in admin.create_topics(topics).values():
        future.result(READY_TIMEOUT_S)


class Run:
    """Rounds of work, death and checks."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.dice = dice
        self.victim = Victim(folder)
        self.deaths = {"at work": 0, "at its start": 0, "in order": 0}
        address = self.victim.address
        writers = [ConfluentWriter(address, "idempotent"), PlainWriter(address, "plain"), OurWriter(address, "ours")]
        compacting = ConfluentWriter(address, "compacted")
        self.committer = Committer(address, "idempotent", "committer")
        self.writers: list[Writer] = [*writers, compacting, self.committer]
        self.checks: list[Check | CompactedCheck] = [*map(Check, writers), CompactedCheck(compacting)]

    def run(self, seconds: float) -> None:
        """Raises `Lost`."""
        end = time.monotonic() + seconds
        self.victim.begin()
        self.victim.wait_until_ready()
        create_topics(self.victim.address)
        for writer in self.writers:
            writer.start()
        while time.monotonic() < end:
            time.sleep(self.dice.uniform(0.05, LONGEST_ROUND_S))
            self._die()
            self.victim.wait_until_ready()
            for check in self.checks:
                check.run()
            check_offsets(self.committer)
        for writer in self.writers:
            writer.stop()
        for check in self.checks:
            check.check_end()
        check_offsets(self.committer)
        self.victim.end(signal.SIGTERM)

    def _die(self) -> None:
        chosen = self.dice.random()
        if chosen < 0.1:
            self.deaths["in order"] += 1
            self.victim.end(signal.SIGTERM)
        else:
            self.deaths["at work"] += 1
            self.victim.end()
        self.victim.begin()
        while self.dice.random() < 0.2:
            time.sleep(self.dice.uniform(0, 0.6))
            self.deaths["at its start"] += 1
            self.victim.end()
            self.victim.begin()

    def told(self) -> str:
        deaths = ", ".join(f"{count} {where}" for where, count in self.deaths.items())
        kept = ", ".join(f"{check.acknowledged:,} {check.writer.topic}" for check in self.checks)
        return f"it ended {deaths}; acknowledged and checked: {kept}, {self.committer.committed:,} commits"


def main() -> None:
    try:
        SYSTEMS["ottla"].prepare()
    except Unavailable as reason:
        sys.exit(f"crash: {reason}")
    seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
    seconds = float(os.environ.get("SECONDS", "120"))
    print(f"crash: seed {seed}, {seconds:.0f} s", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="crash-"))
    run = Run(folder, random.Random(seed))
    try:
        run.run(seconds)
    except (Lost, KafkaException) as error:
        sys.exit(f"crash: seed {seed}: {error}\ncrash: {run.told()}; the data and the broker's log are in {folder}")
    finally:
        if run.victim.is_alive:
            run.victim.end()
    shutil.rmtree(folder)
    print(f"crash: {run.told()}; nothing was lost, nothing is there twice")


if __name__ == "__main__":
    main()
