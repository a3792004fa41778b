"""`LeaderEpochs`: the start offset of each leader epoch of one log, and its `leader-epoch-checkpoint`.

Epochs and start offsets rise together; an assignment that would break this drops what stands in its way, because the
newest leader is right (KIP-101, KIP-279). The file is written when the cache changes, so it may be ahead of the data
that survived a crash; `truncate_from_end` at start-up brings it back.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.engine import EpochEndOffset
from ottla.model import NO_LEADER_EPOCH, NO_OFFSET
from ottla.storage.checkpoints import format_checkpoint, parse_leader_epochs
from ottla.storage.files import FileSystem


class EpochEntry(NamedTuple):
    """One epoch and the first offset that was appended in it."""

    epoch: int
    start_offset: int


class LeaderEpochs:
    """The epochs of one log, oldest first."""

    __slots__ = ("_entries", "_filesystem", "latest_epoch", "path")

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self.path = path
        self._filesystem = filesystem
        self._entries: list[EpochEntry] = []
        self.latest_epoch = NO_LEADER_EPOCH
        """Epoch of the last entry, -1 without entries; the append path compares with it."""

    @property
    def entries(self) -> list[EpochEntry]:
        return list(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`. Raises `ValueError` for negative numbers."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} from offset {start_offset} is negative")
        if self.replay(epoch, start_offset):
            self.store()

    def replay(self, epoch: int, start_offset: int) -> bool:
        """Assign without writing the file; True when that changed something."""
        if self._entries and self.latest_epoch == epoch and start_offset >= self._entries[-1].start_offset:
            return False
        while self._entries and (self._entries[-1].epoch >= epoch or self._entries[-1].start_offset >= start_offset):
            self._entries.pop()
        self._entries.append(EpochEntry(epoch, start_offset))
        self.latest_epoch = epoch
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """Return the largest known epoch not above `epoch` and where it ends; (-1, -1) when that is unknown."""
        if epoch == NO_LEADER_EPOCH or not self._entries or epoch > self.latest_epoch:
            return EpochEndOffset(NO_LEADER_EPOCH, NO_OFFSET)
        if epoch == self.latest_epoch:
            return EpochEndOffset(epoch, log_end_offset)
        found = epoch
        for entry in self._entries:
            if entry.epoch > epoch:
                return EpochEndOffset(found, entry.start_offset)
            found = entry.epoch
        return EpochEndOffset(NO_LEADER_EPOCH, NO_OFFSET)

    def find_epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch in which `offset` was or would be appended; None below the first entry."""
        found: int | None = None
        for entry in self._entries:
            if entry.start_offset > offset:
                break
            found = entry.epoch
        return found

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or above the log's new end."""
        kept = [entry for entry in self._entries if entry.start_offset < end_offset]
        self._replace(kept)

    def cut_start(self, start_offset: int) -> bool:
        """Let the epoch that holds the log's new start begin there, and forget the older ones, in memory.

        True when that changed something that `store` should write.
        """
        below = [entry for entry in self._entries if entry.start_offset <= start_offset]
        if not below or below == [(below[-1].epoch, start_offset)]:
            return False
        self._entries[: len(below)] = [EpochEntry(below[-1].epoch, start_offset)]
        return True

    def clear(self) -> None:
        self._replace([])

    def load(self) -> None:
        """Read the file, if there is one. Raises `CorruptCheckpoint`."""
        self._entries.clear()
        self.latest_epoch = NO_LEADER_EPOCH
        if self._filesystem.exists(self.path):
            text = self._filesystem.read(self.path).decode("utf-8", "replace")
            for epoch, start_offset in parse_leader_epochs(text, self.path):
                self.replay(epoch, start_offset)

    def encode(self) -> bytes:
        """Return the bytes of the file."""
        return format_checkpoint(self._entries).encode()

    def store(self, *, durable: bool = True) -> None:
        self._filesystem.replace(self.path, self.encode(), durable=durable)

    def _replace(self, entries: list[EpochEntry]) -> None:
        if entries != self._entries:
            self._entries = entries
            self.latest_epoch = entries[-1].epoch if entries else NO_LEADER_EPOCH
            self.store()
