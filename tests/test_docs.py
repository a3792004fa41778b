"""The documentation, held to the code: what pages show is done, what they name exists, what exists is named."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import click
import pytest

from ottla.cli.commands import COMMANDS
from ottla.cli.main import main
from ottla.cli.reference import cli_page, example_lines, leaf_commands
from ottla.config.reference import SECTIONS, errors_page, settings_page
from ottla.dialects.kafka.reference import apis_page
from ottla.dialects.kafka.router import Router
from ottla.errors import ERRORS
from ottla.protocol.apis import API
from tests.pages import ROOT, Block, Reader, blocks, check_is_taken, is_like, steps

DOCS: Final = ROOT / "docs"
REFERENCE: Final = DOCS / "reference"
PAGES: Final = sorted([ROOT / "README.md", ROOT / "DESIGN.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md")])
SHOWING: Final = [page for page in PAGES if REFERENCE not in page.parents and "```" in page.read_text(encoding="utf-8")]
MADE: Final = {
    "apis.md": apis_page,
    "cli.md": cli_page,
    "errors.md": errors_page,
    "settings.md": settings_page,
}
LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAMED: Final = re.compile(r"\[`(?P<name>[\w.]+)`\]\((?P<file>[^)#]+\.py)\)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    someone = Reader(tmp_path)
    yield someone
    someone.close()


# ---- what pages show


@pytest.mark.parametrize("page", SHOWING, ids=name_of)
def test_what_a_page_shows_works(page: Path, reader: Reader) -> None:
    reader.follow(page)


def test_a_block_that_nobody_runs_says_so() -> None:
    shown = {"console", "sh", "python", "text", "properties", "ini", "yaml"}
    for page in PAGES:
        for block in blocks(page):
            known = block.language in shown or block.mark in ("elsewhere", "file")
            assert known, f"{block}: {block.language!r} is not run by anything"


def test_a_block_that_is_left_to_nobody_is_noticed(tmp_path: Path) -> None:
    for test in ("tests/nowhere.py::test_it", "tests/test_docs.py::test_nothing", f"tests/{__name__[6:]}.py::anchors"):
        block = Block(tmp_path / "page.md", 1, "go", "", "elsewhere", test)
        with pytest.raises(AssertionError):
            check_is_taken(block)


def test_a_page_is_held_to_its_words_and_not_to_its_numbers() -> None:
    assert is_like(["3 records in 0.02 s (170/s)"], ["3 records in 1.31 s (2,017/s)", ""])
    assert not is_like(["3 records in 0.02 s (170/s)"], ["4 records in 0.02 s (170/s)"])
    assert is_like(["a", "...", "z"], ["a", "b", "c", "z"])
    assert not is_like(["a"], ["a", "b"])
    assert not is_like(["a", "b"], ["a"])


def test_a_console_is_commands_and_what_they_say(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ one \\\n> more\nsaid\nby it\n$ two\n```\n")
    (block,) = blocks(page)
    assert [(step.command, step.output) for step in steps(block)] == [("one \\\nmore", ["said", "by it"]), ("two", [])]


# ---- what pages name


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith(("http:", "https:")):
            continue
        path, _, anchor = unquote(target).partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), f"{name_of(page)}: {target}"
        if anchor and file.suffix == ".md":
            assert anchor in set(anchors(file)), f"{name_of(page)}: {target}"


def anchors(page: Path) -> Iterator[str]:
    """Yield the anchors of a page's headings as GitHub makes them."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            yield heading.replace(" ", "-")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if NAMED.search(page.read_text(encoding="utf-8"))], ids=name_of
)
def test_functions_that_are_linked_exist_where_the_link_leads(page: Path) -> None:
    for named in NAMED.finditer(page.read_text(encoding="utf-8")):
        file = (page.parent / named["file"]).resolve()
        found: object = import_module(".".join(file.relative_to(ROOT / "src").with_suffix("").parts))
        for part in named["name"].split(".") if named["name"] != file.stem else ():
            assert hasattr(found, part), f"{name_of(page)}: {named[0]}"
            found = getattr(found, part)


def test_every_page_is_found_from_the_index() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        assert page.name == "index.md" or f"]({page.relative_to(DOCS)}" in index, f"{name_of(page)} is not in the index"


# ---- what exists


@pytest.mark.parametrize("page", MADE)
def test_reference_pages_are_up_to_date(page: str) -> None:
    assert (REFERENCE / page).read_text(encoding="utf-8") == MADE[page](), "run: make docs"


def test_every_command_setting_error_and_api_is_documented() -> None:
    commands, settings, errors, apis = (MADE[page]() for page in ("cli.md", "settings.md", "errors.md", "apis.md"))
    for path, context in leaf_commands():
        assert f"\n## ottla {path}\n" in commands
        assert context.command.help, path
        for parameter in context.command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{path}: {parameter.name} has no help"
    assert all(f"**`{name}`**" in settings for _, _, _, table in SECTIONS for name in table)
    assert all(f"| {code} | `{error.name}` |" in errors for code, error in ERRORS.items())
    assert all(f"| {key} | {api.name} |" in apis for key, api in API.items())
    assert set(Router().served()) <= set(API)


def test_every_command_is_in_the_overview(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    overview = capsys.readouterr().out
    for name, entry in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(entry.summary)}$", overview, re.MULTILINE), name


def test_every_command_that_answers_can_do_it_in_json() -> None:
    for path, context in leaf_commands():
        flags = {flag for parameter in context.command.params for flag in parameter.opts}
        assert "--json" in flags or path in WITHOUT_JSON, path


# ---- the commands' own examples

WITHOUT_JSON: Final = ("completion",)

WITHOUT_EXAMPLES: Final = ("completion",)


def test_every_command_has_examples() -> None:
    for path, context in leaf_commands():
        assert example_lines(context) or path in WITHOUT_EXAMPLES, path


def test_the_examples_of_all_commands_work(
    reader: Reader, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (reader.directory / "orders.txt").write_text("ann:coffee\nbob:tea\n" * 20)
    (reader.directory / "picture.png").write_bytes(b"not really a picture")
    reader.start_broker(["--data", "backup"])  # leaves a directory that nobody uses
    reader.start_broker(["-o", "ottla.flush.policy=os"])
    monkeypatch.chdir(reader.directory)
    monkeypatch.setenv("OTTLA_BOOTSTRAP", reader.address)
    for path, context in leaf_commands():
        for line in example_lines(context):
            assert run_example(reader, line, monkeypatch) == 0, f"{path}: {line}\n{capsys.readouterr().err}"


def run_example(reader: Reader, line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a command line: in this process, which is quicker, unless it needs a shell."""
    words = shlex.split(line)
    if words[0] != "ottla" or any(word in ("|", ">", "&&") for word in words):
        return reader.run(line)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(SystemExit) as ended:
        main(words[1:])
    return int(ended.value.code or 0)
