"""`JafkaCopy`: what stands in a log of Kafka's format, once more as Jafka has it, for clients who ask for bytes.

Every flush is noted, on the disk, too, before anybody reads what it flushed. After a crash everything behind the last
note is cut off: nobody has seen it, and the records are in Kafka's log.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ottla.config.log_config import LogConfig
from ottla.errors import KafkaStorageError
from ottla.storage.files import File
from ottla.storage.flush_work import FlushWork
from ottla.storage.host import LogHost
from ottla.storage.jafka_log import JafkaLog, JafkaLogSettings
from ottla.storage.jafka_positions import Flushed, encode_entry
from ottla.storage.open_files import SegmentFile


class JafkaCopy(JafkaLog):
    """A copy of one partition."""

    def __init__(
        self, host: LogHost, directory: str, config: LogConfig, settings: JafkaLogSettings, *, kafka_offset: int
    ) -> None:
        """Open the copy, or begin one at position 0 with the Kafka record `kafka_offset`. Raises as `JafkaLog`."""
        self._first_kafka_offset = kafka_offset
        super().__init__(host, directory, config, settings)

    def _find_end(self) -> Flushed:
        """Let the last entry and the last segment end at the same place, the smaller of the two."""
        positions = self._positions
        end = self._segments[-1].end
        if not positions:
            positions.begin_at(Flushed(end, self._first_kafka_offset, self._host.clock.wall_ms()))
        positions.cut(end)
        found = positions.last
        self._cut(found.position)
        if self._segments[-1].end != found.position:
            raise KafkaStorageError(f"{self._segments[-1].path} ends at {end}, and the log at {found.position}")
        self._forget_old_entries()
        self._has_new_names = True  # after a crash, which nobody tells of
        return found

    def _forget_old_entries(self) -> None:
        """Keep of the entries those that tell a segment's age, and the last one, if that is few."""
        positions = self._positions
        reached = (positions.reaching(segment.end) for segment in self._segments)
        kept = sorted({*(entry for entry in reached if entry is not None), positions.last})
        if 2 * len(kept) < len(positions):
            positions.keep(kept)

    def _new_work(self, files: Sequence[SegmentFile]) -> FlushWork:
        """Have the messages brought to the disk, and after them the note that they are there."""
        work = super()._new_work(files)
        if self._flushing.position != self._positions.last.position:
            notes = self._positions.file
            try:
                work.add_last(partial(_append_note, notes.lease(), encode_entry(self._flushing)), notes)
            except OSError:
                work.release()
                raise
        return work

    def _take_flush(self, reached: Flushed) -> None:
        if self._host.syncs_appends:
            self._positions.remember(reached)
        else:
            self._note(reached)
        self._positions.forget_inner(self._segments[-1].start)
        self.readable = reached

    def _note(self, reached: Flushed) -> None:
        try:
            self._positions.append(reached)
        except OSError as error:  # the next start would not know of it, and convert anew what somebody has seen
            self.fail(KafkaStorageError(f"{self._directory}: a flush cannot be noted: {error.strerror}"))

    def _forget_before(self, position: int) -> None:
        """The entries tell ages only, and the next start drops those that tell none."""


def _append_note(file: File, entry: bytes) -> None:
    file.append(entry)
    file.sync()
