"""What people copy into production names things that exist."""

from __future__ import annotations

import re
import shlex
from configparser import RawConfigParser
from typing import Final

from ottla.cli.commands import COMMANDS
from ottla.cli.serve import serve_parser
from tests.pages import ROOT

CONTRIB: Final = ROOT / "contrib"


def unit() -> RawConfigParser:
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's keys have capitals
    parser.read(CONTRIB / "ottla.service")
    return parser


def test_the_unit_starts_what_the_command_line_takes() -> None:
    service = unit()["Service"]
    program, command, *words = shlex.split(service["ExecStart"])
    options = serve_parser().parse_args(words)

    assert (program, command) == ("/opt/ottla/bin/ottla", "serve")
    assert options.data == f"/var/lib/{service['StateDirectory']}"
    assert options.properties == f"/etc/{service['ConfigurationDirectory']}/server.properties"


def test_the_unit_counts_as_started_when_clients_are_served() -> None:
    program, command, *_ = shlex.split(unit()["Service"]["ExecStartPost"])
    assert (program, command) == ("/opt/ottla/bin/ottla", "ready")
    assert command in COMMANDS


def test_a_start_that_checks_large_logs_is_not_cut_short() -> None:
    """A start that is killed while it checks would begin to check anew, again and again."""
    service = unit()["Service"]
    assert service["TimeoutStartSec"] == "infinity"
    assert float(shlex.split(service["ExecStartPost"])[-1]) >= 24 * 3600


def test_the_image_starts_what_the_command_line_takes() -> None:
    text = (CONTRIB / "Containerfile").read_text(encoding="utf-8")
    words = [json_words(text, "ENTRYPOINT"), json_words(text, "CMD")]
    assert words[0][:2] == ["ottla", "serve"]
    options = serve_parser().parse_args([*words[0][2:], *words[1]])
    assert options.listen == "0.0.0.0:9092"
    assert options.data == "/var/lib/ottla"
    assert json_words(text, "HEALTHCHECK .* CMD")[:2] == ["ottla", "ready"]


def json_words(text: str, instruction: str) -> list[str]:
    found = re.search(rf"^{instruction} \[(.*)\]$", text, re.MULTILINE)
    assert found is not None, instruction
    return [word.strip().strip('"') for word in found[1].split(",")]


def test_the_page_copies_files_that_are_there() -> None:
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    for file in set(re.findall(r"contrib/[\w.]+", page)):
        assert (ROOT / file).is_file(), file
