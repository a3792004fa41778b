"""`ottla serve`: where its settings come from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.cli.serve import main, read_config, serve_parser


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_properties_file_is_read_in_either_encoding(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes("broker.rack=Köln\n".encode(encoding))
    assert read_config(serve_parser().parse_args([str(file)])).rack == "Köln"


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nlog.dirs=/elsewhere\n")
    config = read_config(serve_parser().parse_args([str(file), "--data", str(tmp_path), "-o", "num.partitions=5"]))
    assert (config.num_partitions, config.log_dirs) == (5, (str(tmp_path),))


@pytest.mark.parametrize("words", [["--frob"], ["-o"], ["a.properties", "b.properties"]], ids=" ".join)
def test_wrong_use_is_one_line_that_names_the_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)

    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("ottla: ")
    assert error.endswith("; see: ottla serve --help\n")
    assert error.count("\n") == 1


def test_help_ends_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])

    assert ended.value.code == 0
    assert "Examples:\n  ottla serve\n" in capsys.readouterr().out


def test_a_start_imports_nothing_that_it_has_no_use_for(tmp_path: Path) -> None:
    """What makes it quick, stated so that a slow machine cannot break it. Half of a start is importing."""
    unused = {
        "cramjam",
        "ctypes",
        "encodings.idna",
        "ipaddress",
        "ottla.broker.administration",
        "ottla.broker.groups.coordinator",
        "ottla.broker.loggers",
        "ottla.broker.telemetry",
        "ottla.client",
        "ottla.config.alter",
        "ottla.config.describe",
        "ottla.config.documentation",
        "ottla.dialects.jafka.dialect",
        "ottla.storage.cleaner",
        "ottla.storage.sweeper",
        "random",
        "shutil",
        "uuid",
    }
    code = (
        "import asyncio, sys\n"
        "from ottla.cli.serve import read_config, serve_parser\n"
        "async def start(words):\n"
        "    from ottla.server import Server\n"
        "    server = Server(read_config(serve_parser().parse_args(words)))\n"
        "    await server.start()\n"
        f"    found = {unused!r} & set(sys.modules)\n"
        "    await server.stop()\n"
        "    sys.exit(f'imported: {found}' if found else 0)\n"
        f"asyncio.run(start(['--data', {str(tmp_path)!r}, '--listen', '127.0.0.1:0']))\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
