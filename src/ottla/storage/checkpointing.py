"""`Checkpointer`: writes the offset checkpoints of the log directories, on a thread, one round at a time.

A checkpoint is a promise to the next start: everything below a recovery point is on disk. So the numbers are taken on
the loop, after the flush that they speak of, and only then written. What has not changed since the last round is not
written again; an idle broker leaves its disk alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ottla.model import TopicPartition
from ottla.storage.background import Background
from ottla.storage.directory import LogDirectory

_log = logging.getLogger(__name__)


class Checkpoint(NamedTuple):
    """One checkpoint file as it should be."""

    directory: LogDirectory
    name: str
    offsets: dict[TopicPartition, int]


class Checkpointer:
    """Keeps the checkpoint files of all directories up to date."""

    __slots__ = ("_background", "_collect", "_is_asked", "_is_running", "_written")

    def __init__(self, collect: Callable[[], Sequence[Checkpoint]], background: Background) -> None:
        self._collect = collect
        self._background = background
        self._written: dict[tuple[str, str], dict[TopicPartition, int]] = {}
        self._is_running = False
        self._is_asked = False

    def write_soon(self) -> None:
        """Write what has changed, on a thread; whoever asks while that runs is served by the round after it."""
        if self._is_running:
            self._is_asked = True
            return
        changed = self._changed()
        if changed:
            self._is_running = True
            self._background.submit(partial(_write_all, changed), partial(self._finish, changed))

    def write_now(self) -> None:
        """Write what has changed, here. Nothing may be under way. Raises `OSError`."""
        changed = self._changed()
        _write_all(changed)
        self._note(changed)

    def _changed(self) -> list[Checkpoint]:
        return [one for one in self._collect() if self._written.get((one.directory.path, one.name)) != one.offsets]

    def _note(self, written: Sequence[Checkpoint]) -> None:
        for one in written:
            self._written[one.directory.path, one.name] = one.offsets

    def _finish(self, changed: Sequence[Checkpoint], error: BaseException | None) -> None:
        self._is_running = False
        if error is None:
            self._note(changed)
        else:
            _log.error("checkpoints cannot be written: %s", error)
        if self._is_asked:
            self._is_asked = False
            self.write_soon()


def _write_all(checkpoints: Sequence[Checkpoint]) -> None:
    for one in checkpoints:
        one.directory.write_checkpoint(one.name, one.offsets)
