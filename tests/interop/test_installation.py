"""What docs/operations.md has people copy into production, done under another root directory: the unit, and the image.

Commands are those of the page and of the Containerfile; only the directories that root would own are moved into a
temporary one. `systemctl` is played by this test, which does with the unit's lines what systemd does, and so are
`apt-get` and `useradd`, which need a machine of their own. Python packages are really installed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from configparser import RawConfigParser
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import pytest

from tests.pages import ROOT, left_to

MOVED: Final = re.compile(r"(?<![\w./-])/(?=(?:opt/ottla|etc/(?:ottla|systemd)|var/lib/ottla|wheels|source)\b)")
SECONDS: Final = 120.0
NAME: Final = "tests/interop/test_installation.py::"


def moved(text: str, root: Path) -> str:
    """Return a command line that has `root` before what is root's."""
    return MOVED.sub(f"{root}/", text)


def shell(script: str, directory: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"


def played(directory: Path, *names: str) -> Path:
    """Return a directory with commands that only note what they were asked."""
    directory.mkdir()
    for name in names:
        stand_in = directory / name
        stand_in.write_text(f'#!/bin/sh\necho "{name} $*" >> {directory}/asked\n')
        stand_in.chmod(0o755)
    return directory


def environment(*first: Path) -> dict[str, str]:
    """An environment with some directories before the others, and without this project's own Python path."""
    known = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**known, "PATH": os.pathsep.join([*map(str, first), os.environ["PATH"]])}


@contextmanager
def serving(words: Sequence[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Run a broker until the end of the block, then stop it as systemd and container daemons do. Yields its address."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("ottla ready on "), process.stderr.read() if process.stderr else ""
            yield line.removeprefix("ottla ready on ").strip()
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()


# ---- the unit


def test_the_page_installs_a_service_that_starts(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    root, work = tmp_path / "root", tmp_path / "work"
    work.mkdir()
    for name in ("requirements.lock", "contrib", "build/wheels"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).symlink_to(ROOT / name)
    (work / "server.properties").write_text("listeners=PLAINTEXT://127.0.0.1:0\n")
    shims = played(tmp_path / "played", "systemctl")
    (block,) = left_to(ROOT / "docs/operations.md", NAME + request.node.name)

    shell(moved(block.text, root).replace("python3 -m venv", f"{sys.executable} -m venv"), work, environment(shims))

    assert (shims / "asked").read_text().splitlines() == ["systemctl daemon-reload", "systemctl enable --now ottla"]
    unit = root / "etc/systemd/system/ottla.service"
    unit.write_text(moved(unit.read_text(), root))
    verdict = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (verdict.returncode, verdict.stdout + verdict.stderr) == (0, "")
    start(unit, root)


def start(unit: Path, root: Path) -> None:
    """Do what systemd does with a unit's lines, and see that it answers."""
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's keys have capitals
    parser.read(unit)
    service = parser["Service"]
    name, value = service["Environment"].split("=", 1)
    (root / "var/lib" / service["StateDirectory"]).mkdir(parents=True)
    with serving(shlex.split(service["ExecStart"]), {**environment(), name: value}) as address:
        asking = {**environment(), name: address}
        after = subprocess.run(shlex.split(service["ExecStartPost"]), env=asking, timeout=SECONDS, check=False)
        assert after.returncode == 0
        shell("ottla topics create orders", root, {**asking, "PATH": f"{root}/opt/ottla/bin:{asking['PATH']}"})
    assert (root / "var/lib/ottla/orders-0").is_dir()
    assert (root / "var/lib/ottla/.kafka_cleanshutdown").is_file()


# ---- the image


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the instructions of a Containerfile with their arguments, continued lines as one."""
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.strip().partition(" ")
            yield word, rest.strip()


PIP: Final = """#!/bin/sh
if [ "$1" = wheel ]; then exec {here} -m pip "$@" --quiet --no-build-isolation; fi
exec {here} -m pip --python {there} "$@" --quiet
"""
"""The base image's pip. It is the one that runs these tests, and builds with what is installed here: a minute less."""


class Build:
    """Takes the steps of a Containerfile. Each stage has a root directory and a Python of its own."""

    def __init__(self, directory: Path, context: Path) -> None:
        self.stages: dict[str, Path] = {}
        self.settings: dict[str, str] = {}
        self._directory = directory
        self._context = context
        self._shims = played(directory / "played", "apt-get", "useradd", "chown")
        self._root = directory
        self._work = directory

    @property
    def environment(self) -> dict[str, str]:
        """The build is a pure one: compiling is what `make build` has done, and takes minutes."""
        return {**environment(self._shims, self._root / "usr/local/bin"), "OTTLA_PURE": "1"}

    @property
    def root(self) -> Path:
        return self._root

    def take(self, word: str, rest: str) -> None:
        if word == "FROM":
            self._begin(rest)
        elif word == "WORKDIR":
            self._work = Path(moved(rest, self._root))
            self._work.mkdir(parents=True)
        elif word == "COPY":
            self._copy(shlex.split(rest))
        elif word == "RUN":
            rest = rest.replace("install -d -o ottla", "install -d")  # only root may give things away
            rest = rest.replace("--no-cache-dir ", "")  # here a download may be kept for the next time
            shell(moved(rest, self._root), self._work, self.environment)
        else:
            assert word in ("USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"), word
            self.settings[word] = rest

    def _begin(self, rest: str) -> None:
        base, _, name = rest.partition(" AS ")
        assert base.startswith("docker.io/library/python:3."), base
        self._work = self._root = self.stages[name or "image"] = self._directory / (name or "image")
        shell(f"{sys.executable} -m venv --without-pip {self._root}/usr/local", self._directory, environment())
        pip = self._root / "usr/local/bin/pip"
        pip.write_text(PIP.format(here=sys.executable, there=self._root / "usr/local/bin/python"))
        pip.chmod(0o755)

    def _copy(self, words: Sequence[str]) -> None:
        origin = self._context
        if words[0].startswith("--from="):
            origin = self.stages[words[0].removeprefix("--from=")]
            words = words[1:]
        *sources, target = words
        to = Path(moved(target, self._root)) if target.startswith("/") else self._work / target
        for source in sources:
            path = origin / source.lstrip("/")
            assert path.exists(), f"COPY of {source}, which is not there"
            assert origin != self._context or is_in_context(source), f"{source} is left out by .dockerignore"
            if path.is_dir():
                shutil.copytree(path, to, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
            else:
                shutil.copy(path, to)


def is_in_context(path: str) -> bool:
    """Tell whether .dockerignore lets a file at the root into the build: the last line that matches decides."""
    is_in = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line and not line.startswith("#") and fnmatch(path, line.removeprefix("!")):
            is_in = line.startswith("!")
    return is_in


def test_the_page_builds_and_runs_the_image(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The page's commands ask for that file, and for the port, the volume and the name that it has."""
    (block,) = left_to(ROOT / "docs/operations.md", NAME + request.node.name)
    shims = played(tmp_path / "played", "podman")

    shell(block.text, ROOT, environment(shims))

    build, run = map(shlex.split, (shims / "asked").read_text().splitlines())
    made = dict(instructions((ROOT / build[build.index("-f") + 1]).read_text(encoding="utf-8")))
    assert build[:2] == ["podman", "build"]
    assert build[-1] == ".", "what the file copies stands at the root"
    assert run == [
        *("podman", "run", "-p", f"{made['EXPOSE']}:{made['EXPOSE']}"),
        *("-v", f"ottla:{made['VOLUME']}", build[build.index("-t") + 1]),
    ]


def test_the_steps_of_the_image_make_one_that_serves(tmp_path: Path) -> None:
    build = Build(tmp_path, ROOT)

    for word, rest in instructions((ROOT / "contrib/Containerfile").read_text(encoding="utf-8")):
        build.take(word, rest)

    words = [*json.loads(build.settings["ENTRYPOINT"]), *json.loads(build.settings["CMD"])]
    words = [moved(word, build.root) for word in words]
    words[words.index("--listen") + 1] = "0.0.0.0:0"  # the port may be somebody else's on this machine
    program = str(build.root / "usr/local/bin" / words[0])
    asked = build.settings["HEALTHCHECK"].partition(" CMD ")[2]
    assert build.settings["VOLUME"] == "/var/lib/ottla"
    assert build.settings["STOPSIGNAL"] == "SIGTERM"
    without_address = words[1:-2]  # what clients are told is the port 9092
    with serving([program, *without_address], build.environment) as address:
        port = address.rpartition(":")[2]
        check = subprocess.run(
            [program, *json.loads(asked)[1:]],
            env={**build.environment, "OTTLA_BOOTSTRAP": f"localhost:{port}"},
            timeout=SECONDS,
            check=False,
        )
        assert check.returncode == 0
    assert (build.root / "var/lib/ottla/.kafka_cleanshutdown").is_file()
