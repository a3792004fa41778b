"""Runs what documentation pages show, in the order in which they show it, as a reader would.

A page has a directory of its own and, once it says so, a broker. Fenced blocks are taken by their language:

* `console`: each line after `$ ` is run at a terminal; what the page shows below it must be what comes out. `...` on a
  line of its own stands for any lines. Numbers that differ from run to run (times, rates, ids, addresses) may differ.
* `sh`: the lines are run by bash, and every one must succeed.
* `python`: a program; with `<!-- prints -->` before the next block, that one is its output.
* `text`, `ini`, `properties` and others are shown, not run; `<!-- file: NAME -->` before a block puts it into a file.

Commands that keep running are known by their words: `make serve` and `ottla serve ...` start the page's broker, on a
free port whatever the page says, and `^C` stops it. Other `make` commands only have to exist.
`<!-- elsewhere: FILE::TEST -->` before a block says that another test does it, which takes it with `left_to`.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SHOWN_ADDRESS: Final = "localhost:9092"
SECONDS: Final = 20.0
MARK: Final = re.compile(r"<!-- (?P<word>prints|file|elsewhere)(?:: (?P<value>.+))? -->")
FENCE: Final = re.compile(r"^(?P<indent> *)```(?P<language>[a-z]*)$")
SERVE: Final = re.compile(r"^(?:make serve|(?:\.venv/bin/)?ottla serve)\b(?P<arguments>[^;|&]*)$")
MAKE: Final = re.compile(r"^make (?P<target>[a-z-]+)$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page, with the mark that stands before it."""

    page: Path
    line: int
    language: str
    text: str
    mark: str | None = None
    value: str | None = None

    def __str__(self) -> str:
        return f"{os.path.relpath(self.page, ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page in order. Raises `ValueError` for a fence that is never closed."""
    lines = page.read_text(encoding="utf-8").splitlines()
    mark: re.Match[str] | None = None
    number = 0
    while number < len(lines):
        fence = FENCE.match(lines[number])
        if fence is None:
            if lines[number].strip():
                mark = MARK.fullmatch(lines[number].strip())
            number += 1
            continue
        indent, start = fence["indent"], number + 1
        end = next((i for i in range(start, len(lines)) if lines[i] == indent + "```"), None)
        if end is None:
            raise ValueError(f"{page}:{number + 1}: the block has no end")
        text = "\n".join(line.removeprefix(indent) for line in lines[start:end])
        yield Block(page, start, fence["language"], text, mark and mark["word"], mark and mark["value"])
        mark = None
        number = end + 1


def left_to(page: Path, test: str) -> list[Block]:
    """Return the blocks of a page that it leaves to a test, FILE::TEST. Raises `AssertionError` when there is none."""
    found = [block for block in blocks(page) if block.mark == "elsewhere" and block.value == test]
    assert found, f"{page.relative_to(ROOT)} leaves nothing to {test}"
    return found


def check_is_taken(block: Block) -> None:
    """Raise `AssertionError` unless the test that a block is left to exists and takes it from its page."""
    file, _, name = str(block.value).partition("::")
    source = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).is_file() else ""
    test = re.search(rf"^def {re.escape(name)}\(.*?(?=^(?:def|class|@)\b|\Z)", source, re.MULTILINE | re.DOTALL)
    assert test is not None, f"{block}: there is no {block.value}"
    assert block.page.name in test[0], f"{block}: {block.value} does not take it"
    assert "left_to(" in source, f"{block}: {block.value} does not take it"


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a console block with the output shown below it."""

    command: str
    output: Sequence[str]


def steps(block: Block) -> Iterator[Step]:
    """Yield the commands of a console block."""
    command: list[str] = []
    output: list[str] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command:
                yield Step("\n".join(command), output)
            command, output = [line.removeprefix("$ ")], []
        elif line.startswith("> ") and not output:
            command.append(line.removeprefix("> "))
        else:
            output.append(line)
    if command:
        yield Step("\n".join(command), output)


def is_like(shown: Sequence[str], seen: Sequence[str]) -> bool:
    """Tell whether output is what a page shows, but for what differs from run to run and for empty lines at the end."""
    if not shown:
        return not any(seen)
    if shown[0] == "...":
        return any(is_like(shown[1:], seen[index:]) for index in range(len(seen) + 1))
    if not seen:
        return not any(shown)
    return normal(shown[0]) == normal(seen[0]) and is_like(shown[1:], seen[1:])


def normal(line: str) -> str:
    """Return a line with what differs from run to run taken out of it."""
    for pattern, word in VARYING:
        line = pattern.sub(word, line)
    return line.strip()


VARYING: Final = (
    (re.compile(r"(?:127\.0\.0\.1|localhost|\[::\]):\d+"), SHOWN_ADDRESS),
    (re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.,]+Z?"), "TIME"),
    (re.compile(r"\b1[6-9]\d{11}\b"), "TIME"),
    (re.compile(r"\b\d+\.\d+\b|[\d,]+(?=/s| ms| s\b| MB| APIs)"), "N"),
    (re.compile(r"\bPython 3\.\d+\.\d+"), "Python"),
    (re.compile(r"(?:compiled|pure) build"), "build"),
    (re.compile(r"[─━]+"), "─"),
    (re.compile(r"\s+"), " "),
)


@dataclass
class Reader:
    """Somebody who does what a page says."""

    directory: Path
    _broker: subprocess.Popen[str] | None = None
    _exports: list[str] = field(default_factory=list)
    _printed: list[str] = field(default_factory=list)

    address: str = SHOWN_ADDRESS

    # ---- a page

    def follow(self, page: Path) -> None:
        """Do everything that a page shows. Raises `AssertionError` where something else comes out."""
        for block in blocks(page):
            self.do(block)

    def do(self, block: Block) -> None:
        if block.mark == "elsewhere":
            check_is_taken(block)
        elif block.mark == "file":
            path = self.directory / str(block.value)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._here(block.text) + "\n", encoding="utf-8")
        elif block.mark == "prints":
            shown = block.text.splitlines()
            assert is_like(shown, self._printed), _difference(block, "the program", shown, self._printed)
        elif block.language == "console":
            for step in steps(block):
                self._take(block, step)
        elif block.language == "sh":
            self._run_all(block)
        elif block.language == "python":
            self._printed = self._run_python(block)

    def close(self) -> None:
        self.stop_broker()

    # ---- its broker

    def start_broker(self, arguments: Sequence[str] = ()) -> None:
        """Start a broker as a page says, but on a free port and with its data in the page's directory."""
        self.stop_broker()
        words = [word.replace("/var/lib/ottla", str(self.directory / "ottla-data")) for word in arguments]
        words = [re.sub(r":\d+", ":0", word) if word.startswith("listeners=") else word for word in words]
        if "--listen" in words:
            at = words.index("--listen")
            del words[at : at + 2]
        process = subprocess.Popen(
            [*OTTLA, "serve", *words, "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self.directory,
            env=self.environment(),
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("ottla ready on "):
            process.wait(SECONDS)
            raise AssertionError(f"ottla serve {shlex.join(words)} did not start: {line!r}")
        self._broker = process
        self.address = line.removeprefix("ottla ready on ").strip()

    def stop_broker(self) -> None:
        """Press Ctrl-C in the broker's terminal."""
        if self._broker is None:
            return
        with self._broker as process:
            process.send_signal(signal.SIGINT)
            code = process.wait(SECONDS)
        self._broker = None
        assert code == 0, f"the broker ended with {code}"

    # ---- commands

    def environment(self) -> Mapping[str, str]:
        return {
            **os.environ,
            "PATH": f"{self._shims()}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "OTTLA_BOOTSTRAP": self.address,
            "COLUMNS": "100",
            "LINES": "50",
            "TERM": "dumb",
        }

    def _shims(self) -> Path:
        """A directory with an `ottla` and a `python` as an installation would have them."""
        directory = self.directory / ".venv" / "bin"
        if not directory.exists():
            directory.mkdir(parents=True)
            for name, command in (("ottla", OTTLA), ("python", [sys.executable])):
                shim = directory / name
                shim.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
                shim.chmod(0o755)
        return directory

    def _here(self, text: str) -> str:
        return text.replace(SHOWN_ADDRESS, self.address)

    def _take(self, block: Block, step: Step) -> None:
        serve = SERVE.match(step.command)
        shown = list(step.output)
        if serve is not None:
            is_stopped = shown[-1:] == ["^C"]
            self.start_broker(shlex.split(serve["arguments"]))
            seen = [f"ottla ready on {self.address}"]
            assert is_like([line for line in shown if line != "^C"], seen), _difference(
                block, step.command, shown, seen
            )
            if is_stopped:
                self.stop_broker()
        elif not self._is_known_make(block, step.command):
            code, seen = self._at_terminal(step.command)
            assert is_like(shown, seen), _difference(block, step.command, shown, seen)
            if step.command.startswith("export "):
                self._exports.append(step.command)
            assert code in (0, 1), f"{block}: {step.command!r} ended with {code}"

    def _run_all(self, block: Block) -> None:
        """Run the lines of a block; those that start brokers one by one, the others together."""
        script: list[str] = []
        for line in block.text.splitlines():
            serve = SERVE.match(line)
            if serve is not None:
                self.start_broker(shlex.split(serve["arguments"], comments=True))
            elif not self._is_known_make(block, line.partition("#")[0].strip()):
                script.append(self._here(line))
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join([*self._exports, *script])],
            cwd=self.directory,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{block}: exit code {done.returncode}\n{done.stdout}{done.stderr}"

    def run(self, line: str) -> int:
        """Run one line; return its exit code."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=self.directory,
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
        return done.returncode

    def _run_python(self, block: Block) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", self._here(block.text)],
            cwd=self.directory,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{block}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout.splitlines()

    def _at_terminal(self, command: str) -> tuple[int, list[str]]:
        """Run a command as at a terminal; return its exit code and what was seen there."""
        ours, theirs = pty.openpty()
        script = "\n".join([*self._exports, self._here(command)])
        with subprocess.Popen(
            ["bash", "-c", script],
            cwd=self.directory,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        ) as process:
            os.close(theirs)
            seen = _read_terminal(ours)
            code = process.wait(SECONDS)
        return code, [line.rstrip() for line in seen.replace("\r\n", "\n").splitlines()]

    @staticmethod
    def _is_known_make(block: Block, command: str) -> bool:
        make = MAKE.match(command)
        if make is None:
            return False
        targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert make["target"] in targets, f"{block}: the Makefile has no {make['target']}"
        return True


OTTLA: Final = [sys.executable, "-m", "ottla.cli.main"]


def _read_terminal(descriptor: int) -> str:
    """Read until the other end is closed, which Linux tells as an error."""
    seen = b""
    readable = select.poll()  # select.select knows no descriptor above 1023
    readable.register(descriptor, select.POLLIN)
    try:
        while readable.poll(SECONDS * 1000):
            chunk = os.read(descriptor, 65_536)
            if not chunk:
                break
            seen += chunk
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return seen.decode("utf-8", "replace")


def _difference(block: Block, command: str, shown: Sequence[str], seen: Sequence[str]) -> str:
    return f"{block}: {command!r}\nthe page shows:\n" + "\n".join(shown) + "\nand this came out:\n" + "\n".join(seen)
