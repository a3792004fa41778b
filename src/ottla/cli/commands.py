"""The table of commands. A command's module is imported when it is run, so that help and completion come at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NamedTuple

import click

from ottla.cli.interrupts import take_again

PROGRAM: Final = "ottla"
COMPLETE_VARIABLE: Final = "_OTTLA_COMPLETE"
"""Where a shell says that it wants to know what could come next."""

INTERRUPTED: Final = 130
"""What shells give to a program that Ctrl-C ended."""


class Entry(NamedTuple):
    """Where a command is defined, and what the overview says about it."""

    module: str
    attribute: str
    summary: str


COMMANDS: Final = {
    "serve": Entry("ottla.cli.commands", "serve", "Run a broker."),
    "topics": Entry("ottla.cli.topics", "topics", "Create, list, describe, alter, grow and delete topics."),
    "produce": Entry("ottla.cli.produce", "produce", "Send lines, files or JSON to a topic."),
    "consume": Entry("ottla.cli.consume", "consume", "Read records of topics."),
    "groups": Entry("ottla.cli.groups", "groups", "Show groups, members and lag; set offsets back; delete."),
    "configs": Entry("ottla.cli.configs", "configs", "Get, set and unset settings of topics, brokers and groups."),
    "cluster": Entry("ottla.cli.cluster", "cluster", "Show brokers, features and API versions."),
    "ping": Entry("ottla.cli.ping", "ping", "Measure the round trip to a broker and show what it speaks."),
    "ready": Entry("ottla.cli.ready", "ready", "Wait until a cluster serves clients."),
    "decode": Entry("ottla.cli.decode", "decode", "Show what a consumer sees in the bytes of a log."),
    "commitlog": Entry("ottla.cli.commitlog", "commitlog", "Append to, read and check plain commit log files."),
    "perf": Entry("ottla.cli.perf", "perf", "Measure throughput and latency with a bounded load."),
    "storage": Entry("ottla.cli.storage", "storage", "Look at, check and repair a log directory."),
    "dump-log": Entry("ottla.cli.dump_log", "dump_log", "Show what the files of a log directory hold."),
    "completion": Entry("ottla.cli.completion", "completion", "Print the completion script for a shell."),
}


class Commands(click.Group):
    """Commands that are found by the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = getattr(import_module(entry.module), entry.attribute)
        take_again()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview from the table, importing nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


def _show_version(ctx: click.Context, parameter: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        from ottla._build import version_line

        click.echo(version_line())
        ctx.exit()


@click.command(
    cls=Commands,
    epilog="Exit codes: 0 done, 1 the answer is no or partly failed, 2 wrong use, 3 the cluster cannot be reached.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "-V", "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def cli() -> None:
    """Ottla: a Kafka-compatible broker, and a command line for any Kafka-compatible cluster.

    Where the cluster is: -b HOST:PORT with each command, or OTTLA_BOOTSTRAP; else localhost:9092.
    """


def run_command(words: Sequence[str]) -> int:
    """Run one command; return its exit code. Wrong use is one line that names the help to read.

    Raises `BrokenPipeError` when nobody reads a help any more.
    """
    completing = os.environ.get(COMPLETE_VARIABLE)
    if completing:
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, PROGRAM, COMPLETE_VARIABLE, completing)
    try:
        with cli.make_context(PROGRAM, list(words)) as context:
            cli.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except (click.ClickException, OSError) as error:
        return _complain(error)
    return 0


def _complain(error: click.ClickException | OSError) -> int:
    from ottla.cli.output import ANSWER_IS_NO, describe_os_error, say, say_error

    if isinstance(error, OSError):
        say_error(describe_os_error(error))
        return ANSWER_IS_NO
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        say(error.format_message())
    else:
        say_error(_one_line(error))
    return error.exit_code


def _one_line(error: click.ClickException) -> str:
    text = " ".join(error.format_message().split()).rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return text
    return f"{text[:1].lower()}{text[1:]}; see: {context.command_path} --help"


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def serve(arguments: tuple[str, ...]) -> None:
    """Run a broker; `ottla serve --help` says how."""
    from ottla.cli.serve import main

    sys.exit(main(list(arguments)))
