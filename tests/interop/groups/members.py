"""Groups of member processes as a test sees them: what each was assigned, read and committed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from tests.interop.brokers import ROOT
from tests.interop.clients.franz import FRANZ
from tests.interop.clients.jvm import OUR_CLASS_PATH, java

LIBRARIES: Final = ("confluent-kafka", "kafka-python", "aiokafka")
NODE_MODULES: Final = Path(os.environ.get("NODE_MODULES", ROOT / ".cache/interop/js/node_modules"))
WAIT_SECONDS: Final = 120.0 if os.environ.get("OTTLA_INTEROP_BROKER") == "kafka" else 30.0
"""Apache Kafka takes long to come back from a crash."""

POLL_SECONDS: Final = 0.02


def command(library: str, arguments: Sequence[str]) -> list[str]:
    """Return what runs a member. Those that are not in Python know no assignor but range, and no static members."""
    address, group, topic = arguments[:3]
    match library:
        case "kafka-clients":
            return java(OUR_CLASS_PATH, "GroupMember", address, group, topic)
        case "kafkajs":
            return ["node", str(ROOT / "tests/interop/clients/js/member.cjs"), address, group, topic]
        case "franz-go":
            return [str(FRANZ), address, "member", topic, group]
    return [sys.executable, "-m", "tests.interop.groups.member_process", library, *arguments]


class MemberProcess:
    """One member. Its lines are read as they come."""

    def __init__(
        self,
        library: str,
        address: str,
        group: str,
        topic: str,
        *,
        assignor: str = "range",
        instance_id: str | None = None,
    ) -> None:
        self.library = library
        self.assigned: list[list[int]] = []
        self.records: list[tuple[int, int, str]] = []
        self.committed: dict[int, int] = {}
        self.is_closed = False
        arguments = [address, group, topic, assignor, *([instance_id] if instance_id is not None else [])]
        self._process = subprocess.Popen(
            command(library, arguments),
            cwd=ROOT,
            env={**os.environ, "NODE_PATH": str(NODE_MODULES), "KAFKAJS_NO_PARTITIONER_WARNING": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._errors: list[bytes] = []
        self._readers = [threading.Thread(target=self._read, daemon=True)]
        self._readers.append(threading.Thread(target=self._read_errors, daemon=True))
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"{") and line.endswith(b"\n"):  # else it is from a log, or cut off by a kill
                self._take(json.loads(line))

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self._errors.extend(self._process.stderr)

    def _take(self, said: dict[str, Any]) -> None:
        if "assigned" in said:
            self.assigned.append(said["assigned"])
        elif "record" in said:
            partition, offset, value = said["record"]
            self.records.append((partition, offset, value))
        elif "committed" in said:
            self.committed.update({int(partition): offset for partition, offset in said["committed"].items()})
        elif "closed" in said:
            self.is_closed = True

    @property
    def partitions(self) -> list[int]:
        """What it owns now."""
        return self.assigned[-1] if self.assigned else []

    def leave(self) -> None:
        """Have it leave the group in order."""
        self._end(signal.SIGTERM)
        assert self.is_closed, self.errors

    def kill(self) -> None:
        """It dies without a word."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, how)
        self._process.wait(WAIT_SECONDS)
        for reader in self._readers:
            reader.join(WAIT_SECONDS)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    @property
    def errors(self) -> str:
        return b"".join(self._errors).decode(errors="replace")


def wait_until(is_so: Callable[[], bool], members: Iterable[MemberProcess], what: str) -> None:
    """Wait until something holds of running members."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        told = [(member.library, member.assigned, len(member.records), member.errors[-500:]) for member in members]
        assert time.monotonic() < deadline, f"not so after {WAIT_SECONDS} s: {what}: {told}"
        time.sleep(POLL_SECONDS)


def share(members: Iterable[MemberProcess], partitions: int) -> bool:
    """Say whether these members own all partitions, none of them twice, and each of them some."""
    owned = [member.partitions for member in members]
    return all(owned) and sorted(number for one in owned for number in one) == list(range(partitions))
