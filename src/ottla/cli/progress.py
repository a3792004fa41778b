"""A progress bar on stderr, for long work that a person watches while data goes elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


class Progress(Protocol):
    """Something that can be told how far the work is."""

    def advance(self, count: int) -> None: ...

    def close(self) -> None: ...


class _Silent:
    def advance(self, count: int) -> None:
        """Say nothing."""

    def close(self) -> None:
        """Nothing is open."""


class _Bar:
    def __init__(self, bar: RichProgress, total: int) -> None:
        self._bar = bar
        self._task = bar.add_task("records", total=total)
        bar.start()

    def advance(self, count: int) -> None:
        self._bar.advance(self._task, count)

    def close(self) -> None:
        self._bar.stop()


def no_progress() -> Progress:
    """Nothing to look at."""
    return _Silent()


def progress_bar(total: int) -> Progress:
    """A bar with count, rate and the time that is left."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return _Bar(Bar(*columns, console=Console(stderr=True), transient=True), total)
