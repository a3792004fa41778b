"""What docs/codecrafters.md shows at its console, done."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.processes import find_free_port
from tests.codecrafters.files import lay_down
from tests.pages import ROOT, is_like, left_to, steps

FILE = "tests/codecrafters/test_page.py::"


def test_the_page_starts_the_program(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (block,) = left_to(ROOT / "docs/codecrafters.md", FILE + request.node.name)
    (step,) = steps(block)
    properties = lay_down(tmp_path, None, listen=f"localhost:{find_free_port()}")
    words = shlex.split(step.command.replace("/tmp/server.properties", str(properties)))
    assert str(properties) in words
    with subprocess.Popen(
        words, cwd=ROOT, env={**os.environ, "PYTHON": sys.executable}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        seen = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert is_like(step.output, [seen.rstrip()])
