"""How commands speak: data on stdout, talk on stderr, one honest exit code.

Tables are for people, JSON for programs (`--json`). Every error is one line that says what happened and what to try.
A closed pipe ends a command in silence, as does Ctrl-C after the command has said where it was.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn

from ottla.cli.pipes import drop_output
from ottla.client.errors import ClusterUnreachable, ConnectionLost
from ottla.errors import KafkaError

DONE: Final = 0
ANSWER_IS_NO: Final = 1
WRONG_USE: Final = 2
UNREACHABLE: Final = 3
INTERRUPTED: Final = 130
"""What shells give to a program that Ctrl-C ended."""

UNKNOWN: Final = "-"
"""What a table says where nothing is known."""


class Refused(Exception):
    """The command cannot be done; the message says why, in words for a person."""


def no_topic(topic: str) -> Refused:
    """Return what a command raises for a topic that is not there and that it does not create."""
    return Refused(f"topic {topic!r} does not exist; `ottla topics list` shows what does")


class WrongUse(Exception):
    """The command makes no sense as given."""


def run(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Run a command's coroutine, turn what goes wrong into a line and exit with its code."""
    code = INTERRUPTED
    try:
        code = run_loop(work)
        sys.stdout.flush()
    except BrokenPipeError:
        code = DONE
        drop_output(sys.stdout)
    except KeyboardInterrupt:
        pass
    except WrongUse as error:
        code = WRONG_USE
        say_error(str(error))
    except Refused as error:
        code = ANSWER_IS_NO
        say_error(str(error))
    except KafkaError as error:
        code = code_of(error)
        say_error(describe_error(error))
    except OSError as error:
        code = ANSWER_IS_NO
        say_error(describe_os_error(error))
    except ValueError as error:
        code = WRONG_USE
        say_error(_describe_misfit(error))
    sys.exit(code)


def run_loop(work: Coroutine[Any, Any, int]) -> int:
    """Run on uvloop where it is installed, else on asyncio's own loop."""
    try:
        import uvloop
    except ImportError:
        import asyncio

        return asyncio.run(work)
    return uvloop.run(work)


def code_of(error: KafkaError) -> int:
    """Return the exit code for a command that ended with this error."""
    return UNREACHABLE if isinstance(error, ClusterUnreachable | ConnectionLost) else ANSWER_IS_NO


def describe_error(error: KafkaError) -> str:
    """Return one line about an error, with Kafka's name for it."""
    if isinstance(error, ClusterUnreachable):
        tried = "; ".join(f"{address} ({reason})" for address, reason in error.failures.items())
        return f"cannot reach the cluster: tried {tried}. Is a broker there? Give its address with -b HOST:PORT"
    text = " ".join(str(error).split()) or error.sentence
    return f"{text} [{error.name}]"


def _describe_misfit(error: ValueError) -> str:
    """Return one line about a word that no request can carry; raises any other error, which shows a mistake of ours."""
    from ottla.protocol.primitives import EncodeError

    if isinstance(error, UnicodeEncodeError):
        return f"{error.object!r} is no text in UTF-8"
    if isinstance(error, EncodeError):
        return f"what was given is more than a request can carry: {error}"
    raise error


def describe_os_error(error: OSError) -> str:
    """Return one line about what the system refused, with the file's name where that is known."""
    return f"{error.filename or 'input or output'}: {error.strerror or error}"


def say(text: str) -> None:
    """Talk to the person: stderr. Where nobody listens any more the exit code still tells."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except BrokenPipeError:
        drop_output(sys.stderr)


def say_error(text: str) -> None:
    say(f"ottla: {text}")


def print_json(value: object) -> None:
    """Print one JSON document, indented where a person looks, and escaped where the output cannot have all letters."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(value, indent=indent, ensure_ascii=sys.stdout.encoding.lower() != "utf-8") + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> None:
    """Print a table; numbers to the right, None as `-`. Plain tabs where no person looks."""
    cells = [[UNKNOWN if cell is None else str(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in [list(columns), *cells]:
            sys.stdout.write("\t".join(row) + "\n")
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        is_number = all(_is_number(row[index]) for row in cells) and bool(cells)
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for row in cells:
        table.add_row(*row)
    Console(markup=False, highlight=False, emoji=False).print(table)


def count_text(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: `1 partition`, `3 partitions`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def print_line(text: str) -> None:
    """Print one line of data."""
    sys.stdout.write(text + "\n")


def _is_number(cell: str) -> bool:
    return cell == UNKNOWN or cell.lstrip("-").replace(",", "").replace(".", "", 1).isdecimal()


def report_changes(results: Mapping[str, KafkaError | None], done: str, *, as_json: bool) -> int:
    """Say what became of each named thing: those that worked on stdout, errors on stderr. Returns the exit code."""
    if as_json:
        print_json([{"name": name, "error": None if row is None else row.name} for name, row in results.items()])
    else:
        for name, row in results.items():
            if row is None:
                print_line(f"{name} {done}")
    return failed_rows(results.items())


def failed_rows(results: Iterable[tuple[str, object]]) -> int:
    """Say a line for each named result that is an error; return the exit code for all of them together."""
    codes = set()
    for name, result in results:
        if isinstance(result, KafkaError):
            text = describe_error(result)
            say_error(text if name in text else f"{name}: {text}")
            codes.add(code_of(result))
        else:
            codes.add(DONE)
    return codes.pop() if len(codes) == 1 else ANSWER_IS_NO if codes else DONE
