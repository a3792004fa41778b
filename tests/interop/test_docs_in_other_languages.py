"""The programs of `docs/how-to/` that are not Python, run as the pages have them, and what they print."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.interop.brokers import KAFKA_HOME, ROOT, Broker
from tests.interop.clients.jvm import QUICK
from tests.pages import SHOWN_ADDRESS, Block, left_to

PAGES: Final = ROOT / "docs/how-to"
GO_MODULE: Final = ROOT / "tests/interop/clients/go"
OLDEST_JAVA_LIBRARIES: Final = os.environ.get("OLDEST_JAVA", f"{ROOT}/.cache/interop/oldest-java/lib") + "/*"
NODE_MODULES: Final = Path(os.environ.get("NODE_MODULES", ROOT / ".cache/interop/js/node_modules"))
SECONDS: Final = 120


def shown(page: str, language: str, test: str) -> Block:
    """Return the one block of a language that a page leaves to a test."""
    file = Path(__file__).relative_to(ROOT)
    (block,) = (block for block in left_to(PAGES / page, f"{file}::{test}") if block.language == language)
    return block


def run(command: list[str], directory: Path, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def own_broker(start_broker: Callable[..., Broker]) -> Broker:
    """A broker that nobody else uses, since the programs name their topics themselves."""
    return start_broker()


def program(page: str, language: str, test: str, broker: Broker) -> str:
    return shown(page, language, test).text.replace(SHOWN_ADDRESS, broker.address)


@pytest.mark.parametrize("libraries", [f"{KAFKA_HOME}/libs/*", OLDEST_JAVA_LIBRARIES], ids=["newest", "oldest"])
def test_the_java_program(own_broker: Broker, tmp_path: Path, request: pytest.FixtureRequest, libraries: str) -> None:
    test = request.node.originalname
    (tmp_path / "Greetings.java").write_text(program("java.md", "java", test, own_broker))
    run(["javac", "-cp", libraries, "Greetings.java"], tmp_path)
    printed = run(["java", *QUICK, "-cp", f"{libraries}:.", "Greetings"], tmp_path)
    assert printed == shown("java.md", "text", test).text


def test_the_tools_of_kafka(own_broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    script = program("java.md", "sh", request.node.name, own_broker)
    printed = run(
        ["bash", "-euo", "pipefail", "-c", script], tmp_path, {"PATH": f"{KAFKA_HOME}/bin:{os.environ['PATH']}"}
    )
    assert "Created topic tools." in printed
    assert printed.splitlines()[-1] == "hello"


def test_the_javascript_program(own_broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "greetings.cjs").write_text(program("javascript.md", "javascript", request.node.name, own_broker))
    environment = {"NODE_PATH": str(NODE_MODULES), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
    assert (
        run(["node", "greetings.cjs"], tmp_path, environment) == shown("javascript.md", "text", request.node.name).text
    )


def test_the_go_program(own_broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for name in ("go.mod", "go.sum"):
        (tmp_path / name).write_bytes((GO_MODULE / name).read_bytes())
    (tmp_path / "greetings.go").write_text(program("go.md", "go", request.node.name, own_broker))
    assert run(["go", "run", "-mod=mod", "greetings.go"], tmp_path) == shown("go.md", "text", request.node.name).text
