"""The reference page `docs/reference/cli.md`, made from the commands' own tables of arguments and options.

`python -m ottla.cli.reference docs/reference` writes it; a test holds the page in the tree to what this makes.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import Final

import click

from ottla.cli.commands import COMMANDS, cli
from ottla.cli.json_shapes import LINES, SHAPES, written
from ottla.cli.serve import serve_parser

HEAD: Final = """\
# The command line

This page is made from the commands themselves by `python -m ottla.cli.reference docs/reference`. `ottla COMMAND --help`
says the same.

Every command but `ottla serve` is an ordinary client: it works on any Kafka-compatible cluster. Each takes `-b` or
`--bootstrap HOST:PORT[,...]`, which says where that is; else the environment variable `OTTLA_BOOTSTRAP` does, else it
is `localhost:9092`. The commands that read files (`decode`, `commitlog` apart from `import` and `export`, `storage`,
`dump-log`) need none.

Data goes to standard output, talk to standard error. Tables are for people: on a terminal they have rules, elsewhere
they are columns with tabs between, with `-` for what is not known. A closed pipe ends a command in silence; Ctrl-C ends
it with code 130 after it has said where it was.

`--json` is for programs: names of fields stay as they are, new ones may be added. Each command's JSON is shown with
the kinds of its values in their places: `text`, `number`, `yes/no` (true, false) or `any`, with `?` behind what may be
null; `"*"` stands for any name. Keys, values and headers of records that are not UTF-8 have `_base64` behind their
names and are in base64; `ottla decode` gives all of them in hex. `offset_at_time` and `error` are there where they were
asked for or there is one.

| exit code | means |
|--:|---|
| 0 | done |
| 1 | the answer is no, or some of it failed; a line for each failure says why, with Kafka's name for the error |
| 2 | wrong use; a line says what is wrong |
| 3 | the cluster cannot be reached; the line names the addresses that were tried |
| 130 | ended by Ctrl-C |
"""

LINE_CHARACTERS: Final = 116

HIDDEN: Final = ("help", "bootstrap")
"""Options that every command has."""


def cli_page() -> str:
    """Return `cli.md`."""
    return HEAD + "\n" + _serve_section() + "".join(_sections())


def leaf_commands() -> Iterator[tuple[str, click.Context]]:
    """Yield every command that does something with its path (`topics create`), in the order of the table."""
    root = click.Context(cli, info_name="ottla")
    for name in COMMANDS:
        command = cli.get_command(root, name)
        assert command is not None
        if name == "serve":
            continue  # it has a parser of its own
        context = click.Context(command, parent=root, info_name=name)
        if not isinstance(command, click.Group):
            yield name, context
            continue
        for verb in command.commands.values():
            yield f"{name} {verb.name}", click.Context(verb, parent=context, info_name=verb.name)


def example_lines(context: click.Context) -> Sequence[str]:
    """Return the command lines that end a command's help."""
    lines = (context.command.epilog or "").splitlines()
    return [line.strip() for line in lines if line.startswith("  ")]


def _sections() -> Iterator[str]:
    for path, context in leaf_commands():
        yield f"\n## ottla {path}\n\n{_prose(context.command)}\n\n"
        yield _usage([context.command_path, *context.command.collect_usage_pieces(context)])
        records = [
            record
            for parameter in context.command.params
            if isinstance(parameter, click.Option) and parameter.name not in HIDDEN
            for record in [parameter.get_help_record(context)]
            if record is not None
        ]
        yield _options(records)
        yield _json(path)
        yield _examples(example_lines(context))


def _serve_section() -> str:
    parser = serve_parser()
    records = [
        (", ".join(action.option_strings) + (f" {action.metavar}" if action.metavar else ""), action.help or "")
        for action in parser._actions
        if action.option_strings and action.dest not in HIDDEN
    ]
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    lines = [line.strip() for line in (parser.epilog or "").splitlines() if line.startswith("  ")]
    return f"## ottla serve\n\n{parser.description}\n\n{_usage([usage])}{_options(records)}{_examples(lines)}"


def _prose(command: click.Command) -> str:
    """The docstring; what stands in columns there stays so."""
    paragraphs = cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(_paragraph(paragraph) for paragraph in paragraphs)


def _paragraph(paragraph: str) -> str:
    if not paragraph.startswith("\b"):
        return " ".join(paragraph.split())
    return "```text\n" + paragraph.removeprefix("\b\n") + "\n```"


def _usage(pieces: Sequence[str]) -> str:
    return f"```text\n{' '.join(pieces)}\n```\n"


def _options(records: Sequence[tuple[str, str]]) -> str:
    if not records:
        return ""
    return "\n" + "".join(f"* `{names}`: {text}\n" for names, text in records)


def _json(path: str) -> str:
    """What `--json` prints, over as many lines as it needs."""
    shape = SHAPES.get(path)
    if shape is None:
        return ""
    lines = textwrap.wrap(written(shape), LINE_CHARACTERS, break_long_words=False, break_on_hyphens=False)
    each = ", a line each" if path in LINES else ""
    return f"\nJSON{each}:\n\n```text\n" + "\n".join(lines) + "\n```\n"


def _examples(lines: Sequence[str]) -> str:
    return "\n```sh\n" + "\n".join(lines) + "\n```\n" if lines else ""


if __name__ == "__main__":
    (Path(sys.argv[1]) / "cli.md").write_text(cli_page(), encoding="utf-8")
