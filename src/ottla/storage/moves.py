"""`LogMoves`: logs on their way from one log directory to another (AlterReplicaLogDirs, KIP-113).

1. A copy is made (`future_log`), piece by piece, while the log goes on where it is. Compaction of it pauses.
2. When little is left, it is copied on the loop, and the log goes on in the copy, in the same step. Nobody notices: the
   log, what waits in it and what it knows stay the same; only its files are others.
3. A thread brings the copy to disk and gives the original a name that ends in `-delete`.
4. The copy gets the log's name, and the original is removed later.

What a crash leaves of it is settled by `future_log.settle_futures`, and gone on with by `take_up`. What a move must not
do is to take a name away that a flush under way still needs: steps 3 and 4 wait for such flushes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from ottla.clock import Timers
from ottla.config.broker_config import BrokerConfig
from ottla.engine import FutureLogFacts
from ottla.errors import KafkaError, KafkaStorageError
from ottla.model import TopicId, TopicPartition
from ottla.random_ids import random_uuid
from ottla.storage.background import Background
from ottla.storage.checkpoints import PARTITION_METADATA, format_partition_metadata
from ottla.storage.directory import DELETE_SUFFIX, FUTURE_SUFFIX, LogDirectory
from ottla.storage.directory_names import DirectoryNames
from ottla.storage.files import FileSystem
from ottla.storage.flush_work import FlushWork
from ottla.storage.future_log import PIECE_BYTES, WHOLE_MARK, FoundFuture, FutureLog, Piece
from ottla.storage.host import LogHost
from ottla.storage.log import PartitionLog
from ottla.storage.recovery import LEADER_EPOCHS
from ottla.storage.trash import Trash

_log = logging.getLogger(__name__)

RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
PAUSE_SECONDS: Final = 0.01
"""Until somebody else is asked again whether he is done."""
PACE_SECONDS: Final = 0.1
LEAST_PIECE_BYTES: Final = 16 * 1024


class MovedLogs(Protocol):
    """What moves ask of a manager."""

    def log(self, partition: TopicPartition) -> PartitionLog: ...

    def directory_of(self, partition: TopicPartition) -> LogDirectory: ...

    def topic_id_of(self, partition: TopicPartition) -> TopicId: ...

    def note_moved(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Take note that a partition lies in another directory now."""


class Move:
    """One log on its way. Over once it has arrived, was deleted, is to go elsewhere, or cannot go on."""

    __slots__ = (
        "began",
        "copied_bytes",
        "destination",
        "future",
        "is_over",
        "is_switched",
        "log",
        "names",
        "next_destination",
        "partition",
        "source",
        "topic_id",
    )

    def __init__(self, log: PartitionLog, topic_id: TopicId, source: LogDirectory, destination: LogDirectory) -> None:
        self.partition = log.partition
        self.log = log
        self.topic_id = topic_id
        self.source = source
        self.destination = destination
        self.next_destination: LogDirectory | None = None
        """Where it was asked to go when it was almost there."""
        self.names = DirectoryNames()
        """Through which a thread puts the original aside: another topic may have taken its name."""
        self.is_switched = False
        """True once the log goes on in the copy."""
        self.is_over = False
        self.began = 0.0
        self.copied_bytes = 0

    def start(self, future: FutureLog, now: float) -> None:
        self.future = future
        self.began = now
        self.log.is_moving = True

    @property
    def discarded_original(self) -> str:
        return self.source.discarded_path(self.partition, self.topic_id, DELETE_SUFFIX)

    @property
    def discarded_copy(self) -> str:
        return self.future.path.removesuffix(FUTURE_SUFFIX) + DELETE_SUFFIX


class LogMoves:
    """The moves of one manager's logs. All methods run on the owner's loop."""

    __slots__ = ("_background", "_bytes_per_second", "_host", "_logs", "_moves", "_on_moved", "_timers", "_trash")

    def __init__(self, logs: MovedLogs, host: LogHost, background: Background, trash: Trash) -> None:
        self._logs = logs
        self._host = host
        self._background = background
        self._trash = trash
        self._timers: Timers | None = None
        self._bytes_per_second = 0.0
        self._moves: dict[TopicPartition, Move] = {}
        self._on_moved: Callable[[TopicPartition, bytes], None] | None = None

    def start(self, timers: Timers, settings: BrokerConfig, found: Sequence[FoundFuture]) -> None:
        """Move from now on, at first what an earlier process had begun to."""
        self._timers = timers
        self.configure(settings)
        for future in found:
            try:
                self._take_up(future)
            except (KafkaError, OSError) as error:
                _log.error("the move of %s is not gone on with: %s", future.partition, error)

    def configure(self, settings: BrokerConfig) -> None:
        """Use the settings as they are now."""
        self._bytes_per_second = float(settings.integer(RATE))

    def on_moved(self, callback: Callable[[TopicPartition, bytes], None]) -> None:
        """Call `callback` when a log goes on in another directory, with the id of that."""
        self._on_moved = callback

    # ---- what others ask

    def destination_of(self, partition: TopicPartition) -> LogDirectory | None:
        """Return where a log is moving to."""
        move = self._moves.get(partition)
        return None if move is None else move.destination

    def futures_in(self, directory: LogDirectory) -> list[FutureLogFacts]:
        """Return what there is of copies in a directory."""
        return [
            FutureLogFacts(move.partition, move.future.size_bytes, 0 if move.is_switched else move.future.lag(move.log))
            for move in self._moves.values()
            if move.destination is directory
        ]

    def begin(self, partition: TopicPartition, destination: LogDirectory) -> None:
        """Have a log move; one that is moving elsewhere turns round. Raises `KafkaStorageError`, as `future_path`."""
        move = self._moves.get(partition)
        if move is not None:
            if move.destination is destination:
                return
            if move.is_switched:
                move.next_destination = destination
                return
            self._turn_round(move)
        if self._logs.directory_of(partition) is destination:
            return
        path = destination.future_path(partition, random_uuid())
        move = self._new_move(partition, destination)
        try:
            self._host.filesystem.make_directory(path)
            self._start(move, FutureLog(self._host.filesystem, path))
        except OSError as error:
            raise KafkaStorageError(f"{partition} cannot move to {destination.path}: {error}") from error

    def forget(self, partition: TopicPartition) -> None:
        """Take note that a partition is being deleted. Raises `OSError`."""
        move = self._moves.get(partition)
        if move is not None:
            self._cancel(move)
            move.names.give_up()
            if move.is_switched:
                self._trash.add([move.discarded_original], move.log.config.file_delete_delay_ms)

    # ---- copying

    def _new_move(self, partition: TopicPartition, destination: LogDirectory) -> Move:
        log = self._logs.log(partition)
        if log.failure is not None:
            raise log.failure.with_traceback(None)
        return Move(log, self._logs.topic_id_of(partition), self._logs.directory_of(partition), destination)

    def _take_up(self, found: FoundFuture) -> None:
        move = self._new_move(found.partition, found.directory)
        future = FutureLog(self._host.filesystem, found.path)
        future.take_up(move.log)
        self._start(move, future)

    def _start(self, move: Move, future: FutureLog) -> None:
        """Begin to copy. Raises `OSError`."""
        assert self._timers is not None, "moves begin with the housekeeping"
        metadata = format_partition_metadata(move.topic_id).encode()
        self._host.filesystem.replace(f"{future.path}/{PARTITION_METADATA}", metadata, durable=False)
        _log.info("%s moves from %s to %s", move.partition, move.source.path, move.destination.path)
        move.start(future, self._host.clock.monotonic())
        self._moves[move.partition] = move
        self._go_on(move)

    def _go_on(self, move: Move) -> None:
        log = move.log
        if log.failure is not None:
            self._give_up(move, log.failure)
        elif log.is_compacting:  # it ends soon, since the log is moving
            self._after(PAUSE_SECONDS, move, self._go_on)
        else:
            limit = max(min(int(self._bytes_per_second * PACE_SECONDS), PIECE_BYTES), LEAST_PIECE_BYTES)
            piece = move.future.next_piece(log.segments, limit)
            if piece is None:
                self._switch(move)
            else:
                self._copy(move, piece)

    def _copy(self, move: Move, piece: Piece) -> None:
        try:
            source = piece.file.lease()
        except OSError as error:
            self._give_up(move, error)
            return
        self._background.submit(partial(move.future.copy, piece, source), partial(self._note_copied, move, piece))

    def _note_copied(self, move: Move, piece: Piece, error: BaseException | None) -> None:
        piece.file.release()
        if move.is_over or self._background.is_stopping:
            return
        if error is not None:
            self._give_up(move, error)
            return
        move.future.note(piece)
        move.copied_bytes += piece.size_bytes
        self._pace(move)

    def _pace(self, move: Move) -> None:
        """Go on as fast as the allowed rate lets it, which may change meanwhile."""
        elapsed = self._host.clock.monotonic() - move.began
        if move.copied_bytes <= (elapsed + PACE_SECONDS) * self._bytes_per_second:
            self._go_on(move)
        else:
            self._after(PACE_SECONDS, move, self._pace)

    def _after(self, seconds: float, move: Move, step: Callable[[Move], None]) -> None:
        assert self._timers is not None

        def go_on() -> None:
            if not move.is_over and not self._background.is_stopping:
                step(move)

        self._timers.call_at(self._host.clock.monotonic() + seconds, go_on)

    # ---- arriving

    def _switch(self, move: Move) -> None:
        """Have the log go on in the copy."""
        flush = move.log.flushing
        try:
            move.future.finish(move.log)
        except (KafkaError, OSError) as error:
            self._give_up(move, error)
            return
        move.log.move_to(move.future.path)
        move.log.unsynced.add_made([f"{move.future.path}/{PARTITION_METADATA}"], [move.destination.path])
        move.is_switched = True
        meta = move.destination.meta
        if self._on_moved is not None and meta is not None and meta.directory_id is not None:
            self._on_moved(move.partition, meta.directory_id)
        self._when_unnamed(move, flush, self._settle)

    def _when_unnamed(self, move: Move, flush: FlushWork | None, step: Callable[[Move], None]) -> None:
        """Go on once a flush that finds files by name is over."""
        if flush is None or not flush.uses_names or move.log.flushing is not flush:
            step(move)
        else:
            self._after(PAUSE_SECONDS, move, lambda move: self._when_unnamed(move, flush, step))

    def _settle(self, move: Move) -> None:
        """Bring the copy to disk, then put the original aside."""
        paths = move.future.unsynced_paths(move.log)
        work = partial(_settle_files, self._host.filesystem, move, paths)
        self._background.submit(work, partial(self._note_settled, move))

    def _note_settled(self, move: Move, error: BaseException | None) -> None:
        if move.is_over:
            return
        if error is not None:  # the next start finds out which of both is the log
            self._end(move)
            move.log.fail_flush(error)
            return
        self._arrive(move)

    def _arrive(self, move: Move) -> None:
        flush = move.log.flushing
        if flush is not None and flush.uses_names:
            self._after(PAUSE_SECONDS, move, self._arrive)
            return
        path = move.destination.partition_path(move.partition)
        try:
            self._host.filesystem.rename(move.future.path, path)
            self._host.filesystem.remove(f"{path}/{WHOLE_MARK}")
        except OSError as error:
            self._end(move)
            move.log.fail(KafkaStorageError(f"{move.partition} cannot get its name in its new directory: {error}"))
            return
        log = move.log
        log.rename_to(path)
        log.unsynced.add_made((), [move.destination.path])
        self._end(move)
        self._trash.add([move.discarded_original], log.config.file_delete_delay_ms)
        self._logs.note_moved(move.partition, move.destination)
        _log.info(
            "%s has moved to %s in %.1f s",
            move.partition,
            move.destination.path,
            self._host.clock.monotonic() - move.began,
        )
        if move.next_destination is not None:
            self.begin(move.partition, move.next_destination)

    # ---- not arriving

    def _give_up(self, move: Move, error: BaseException) -> None:
        _log.error("%s does not move to %s: %s", move.partition, move.destination.path, error)
        try:
            self._cancel(move)
        except OSError as failure:
            _log.error("%s stays: %s", move.future.path, failure)

    def _turn_round(self, move: Move) -> None:
        try:
            self._cancel(move)
        except OSError as error:
            raise KafkaStorageError(f"{move.future.path} cannot be put aside: {error}") from error

    def _cancel(self, move: Move) -> None:
        """End a move and put its copy aside. Raises `OSError`."""
        self._end(move)
        self._host.filesystem.rename(move.future.path, move.discarded_copy)
        self._trash.add([move.discarded_copy], move.log.config.file_delete_delay_ms)

    def _end(self, move: Move) -> None:
        move.is_over = True
        move.log.is_moving = False
        del self._moves[move.partition]


def _settle_files(filesystem: FileSystem, move: Move, paths: Sequence[str]) -> None:
    """Sync the copy, and rename the original. Raises `OSError`."""
    for path in paths:
        try:
            filesystem.sync_file(path)
        except FileNotFoundError:  # an index that is in memory, or a segment that retention has removed
            continue
    for name in (PARTITION_METADATA, LEADER_EPOCHS):
        filesystem.sync_file(f"{move.future.path}/{name}")
    filesystem.sync_directory(move.future.path)
    filesystem.sync_directory(move.destination.path)
    filesystem.replace(f"{move.future.path}/{WHOLE_MARK}", b"")
    original = move.source.partition_path(move.partition)
    filesystem.remove_tree(move.discarded_original)
    move.names.change(partial(filesystem.rename, original, move.discarded_original))
    filesystem.sync_directory(move.source.path)
