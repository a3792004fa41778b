"""The commit log's file and the lite protocol's fetch, against a program in Go that knows only their descriptions."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from benchmarks.processes import find_free_port
from ottla.client.lite import LiteClient
from ottla.commitlog import CommitLog
from tests.interop.brokers import ROOT, OttlaBroker
from tests.interop.clients.client import run

LESSON: Final = os.environ.get("LESSON", str(ROOT / ".cache/interop/lesson"))


def test_each_reads_what_the_other_wrote_and_goes_on_with_it(tmp_path: Path) -> None:
    path = tmp_path / "partition-0.log"
    with CommitLog(str(path)) as log:
        assert [log.append(value) for value in (b"hello", b"", b"world!")] == [0, 1, 2]
    assert run([LESSON, "read", str(path), "0"]).splitlines() == ['"hello"', '""', '"world!"']
    assert run([LESSON, "append", str(path), "from", "Go"]).split() == ["3", "4"]
    with CommitLog(str(path)) as log:
        assert [record.value for record in log.read(1)] == [b"", b"world!", b"from", b"Go"]
        assert log.append(b"last") == 5
    assert run([LESSON, "read", str(path), "4"]).splitlines() == ['"Go"', '"last"']


def test_its_client_fetches_from_our_listener(tmp_path: Path) -> None:
    port = find_free_port()
    broker = OttlaBroker(tmp_path / "broker", f"listeners=PLAINTEXT://127.0.0.1:0,LITE://127.0.0.1:{port}")
    broker.start()
    client = LiteClient("127.0.0.1", port)
    client.create_topic("events", 1)
    client.produce("events", 0, [b"hello", b"", b"world!"])
    for offset, expected in ((0, ['"hello"', '""', '"world!"']), (2, ['"world!"']), (3, []), (9, [])):
        assert run([LESSON, "fetch", f"127.0.0.1:{port}", "events", "0", str(offset)]).splitlines() == expected
    broker.stop()


def test_our_client_fetches_from_its_server(tmp_path: Path) -> None:
    path = tmp_path / "partition-0.log"
    run([LESSON, "append", str(path), "hello", "", "world!"])
    with subprocess.Popen([LESSON, "serve", str(path)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        host, port = server.stdout.readline().strip().split(":")
        assert LiteClient(host, int(port)).fetch("events", 0, 1) == [b"", b"world!"]
        assert server.wait(30) == 0
