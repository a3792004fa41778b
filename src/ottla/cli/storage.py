"""`ottla storage`: look after a log directory that no broker uses: what is in it, whether it is whole, make it so.

With `ottla dump-log`, the only commands that read files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from ottla.cli.options import examples, json_option
from ottla.cli.output import UNKNOWN, count_text, print_json, print_line, print_table, say, say_error
from ottla.model import METADATA_TOPIC
from ottla.storage.directory import META_PROPERTIES, DirectoryError
from ottla.storage.dump import Row
from ottla.storage.files import LocalFileSystem
from ottla.storage.inspection import describe_directory, partition_directories, repair_partition
from ottla.storage.verify import Finding, verify_partition

_IN_USE_HINT = "stop the broker first"


@click.group()
def storage() -> None:
    """Look at, check and repair a log directory."""


directory_argument = click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))


@storage.command(epilog=examples("ottla storage info ottla-data", "ottla storage info ottla-data --json"))
@directory_argument
@json_option
def info(directory: Path, as_json: bool) -> None:
    """Say whose directory it is, and what its partitions hold."""
    _partitions(directory)
    found = describe_directory(LocalFileSystem(), str(directory))
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        if name != "partitions":
            print_line(f"{name}: {_in_words(value)}")
    partitions: list[Row] = found["partitions"]
    print_table(
        ["partition", "topic id", "segments", "bytes", "from", "recovery point"],
        [
            (
                one["partition"],
                one["topic_id"],
                one["segments"],
                one["bytes"],
                one["first_offset"],
                one["recovery_point"],
            )
            for one in partitions
        ],
    )


@storage.command(epilog=examples("ottla storage verify backup"))
@directory_argument
@json_option
def verify(directory: Path, as_json: bool) -> None:
    """Read everything and list what is not as it should be. Changes nothing; ends with 1 when there is something."""
    paths = _partitions(directory)
    with _unused(directory):
        findings = [finding for path in paths for finding in verify_partition(LocalFileSystem(), path)]
    _print_findings(findings, as_json)
    say(f"{count_text(len(paths), 'partition')} read, {count_text(len(findings), 'finding')}")
    sys.exit(1 if findings else 0)


@storage.command(epilog=examples("ottla storage repair backup --dry-run", "ottla storage repair backup --json"))
@directory_argument
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option(
    "--cut-metadata",
    is_flag=True,
    help="Cut the metadata log, too: topics and settings behind its damage are forgotten.",
)
@json_option
def repair(directory: Path, dry_run: bool, cut_metadata: bool, as_json: bool) -> None:
    """Make damaged partitions whole: indexes and the like anew, logs cut off at their first damaged batch.

    What would be cut off is said by --dry-run. Whole partitions are not touched. Ends with 1 where the metadata log was
    left as it is, since all topics are known by it alone.
    """
    filesystem = LocalFileSystem()
    findings: list[Finding] = []
    paths = _partitions(directory)
    left: list[str] = []
    with _unused(directory):
        for path in paths:
            found = list(verify_partition(filesystem, path))
            is_metadata = os.path.basename(path).startswith(f"{METADATA_TOPIC}-")
            if is_metadata and not cut_metadata and any(finding.loses_bytes for finding in found):
                left.append(path)
                continue
            findings += found
            if found and not dry_run:
                repair_partition(filesystem, path)
    _print_findings(findings, as_json)
    if not as_json:
        lost = sum(finding.loses_bytes for finding in findings)
        done = "would be" if dry_run else "were"
        print_line(f"{count_text(len(findings), 'finding')}; {lost} bytes {done} cut off")
    for path in left:
        say_error(
            f"{path} is damaged and left alone: without its end, topics and settings are forgotten; "
            "restore it from a backup, or see --cut-metadata"
        )
    sys.exit(1 if left else 0)


def _in_words(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return UNKNOWN if value is None else value


def _partitions(directory: Path) -> list[str]:
    """Return the paths of its partitions. Raises `click.ClickException` for what is no log directory."""
    filesystem = LocalFileSystem()
    if not directory.is_dir():
        raise click.ClickException(f"{directory} is no directory")
    try:
        found = partition_directories(filesystem, str(directory))
    except DirectoryError as error:
        raise click.ClickException(str(error)) from None
    if not found and not filesystem.exists(str(directory / META_PROPERTIES)):
        raise click.ClickException(
            f"{directory} has neither {META_PROPERTIES} nor partitions; name a directory of log.dirs"
        )
    return found


def _print_findings(findings: list[Finding], as_json: bool) -> None:
    if as_json:
        print_json([finding._asdict() for finding in findings])
        return
    for finding in findings:
        loses = f" ({finding.loses_bytes} bytes are lost)" if finding.loses_bytes else ""
        print_line(f"{finding.path}: {finding.problem}{loses}")


@contextmanager
def _unused(directory: Path) -> Iterator[None]:
    """Hold the directory's lock, so that no broker works in it meanwhile."""
    lock = LocalFileSystem().lock(str(directory / ".lock"))
    if lock is None:
        say_error(f"{directory} is in use; {_IN_USE_HINT}")
        sys.exit(1)
    try:
        yield
    finally:
        lock.release()
