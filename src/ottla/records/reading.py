"""What a consumer sees of fetched log bytes: which records, where it is afterwards, and how far behind.

One rule book for our consumer, for `ottla.decode` and for whoever reads a log file. Bytes come as a fetch brings them:
whole batches from the one that holds the fetch offset on, the last one perhaps cut. Then:

1. A batch that is cut at the end is left alone, before anything else about it is looked at.
2. A batch that ends below the fetch offset is passed over, one that begins at the limit or above ends the reading;
   neither is checksummed. The limit is the high watermark; for committed records only, the last stable offset if lower.
3. Any other batch is taken whole or not at all: checksum first, over the packed bytes, then its records' structure.
   A damaged one ends the reading; what came before it stays.
4. Records from the fetch offset up to the limit are seen, except control records, and except those of aborted
   transactions where only committed ones are wanted (KIP-98).

`position` is one past the last record seen. `next_fetch_offset` is one past the last batch passed: it moves on where a
batch's last records are compacted away, void or control records, so that they are not fetched for ever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Final, final

from librt.strings import read_i32_be

from ottla.errors import CorruptMessage, InvalidRecord, KafkaError, UnsupportedCompressionType
from ottla.model import IsolationLevel
from ottla.records.batch import (
    BATCH_LENGTH_AT,
    CURRENT_MAGIC,
    HEADER_BYTES,
    HEADER_TO_MAGIC_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC_AT,
    MIN_LENGTH,
    RecordBatch,
)
from ottla.records.control import ControlType, control_type_of
from ottla.records.legacy import LegacyBatch
from ottla.records.record import Record

NO_LIMIT: Final = (1 << 63) - 1
"""For readers of a broker's answers, in which nothing stands that they may not see."""


class Damage(Enum):
    """In what way a batch cannot be read; the value is the name that programs are told."""

    CRC = "corrupt_crc"
    RECORD = "corrupt_record"
    BATCH = "corrupt_batch"
    MAGIC = "unsupported_magic"


@dataclass(frozen=True)
class Problem:
    """Why the reading ended early: `error` is what our consumer raises. `base_offset` is -1 where none was read."""

    damage: Damage
    error: KafkaError
    base_offset: int = -1
    next_offset: int = -1

    @property
    def name(self) -> str:
        return self.damage.value


Batches = list[RecordBatch | LegacyBatch]


def split_readable(buffer: bytes | bytearray | memoryview, *, with_legacy: bool) -> tuple[Batches, Problem | None]:
    """Return the whole batches of `buffer`, and why they end before its end where that is not a cut.

    Formats before magic 2 are a problem unless `with_legacy`.
    """
    view = memoryview(buffer)
    batches: Batches = []
    position = 0
    while len(view) - position >= LOG_OVERHEAD_BYTES:
        front = bytes(view[position : position + HEADER_TO_MAGIC_BYTES])
        length = int(read_i32_be(front, BATCH_LENGTH_AT))
        end = position + LOG_OVERHEAD_BYTES + length
        if end > len(view):
            break
        if length < MIN_LENGTH:
            return batches, _unreadable(Damage.BATCH, f"a record batch cannot be {length} bytes long")
        magic = front[MAGIC_AT]
        if magic > CURRENT_MAGIC or (magic < CURRENT_MAGIC and not with_legacy):
            return batches, _unreadable(Damage.MAGIC, f"a batch of magic {magic} cannot be read")
        piece = view[position:end]
        if magic < CURRENT_MAGIC:
            batches.append(LegacyBatch(piece))
        elif length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
            return batches, _unreadable(Damage.BATCH, f"a record batch of magic 2 cannot be {length} bytes long")
        else:
            batches.append(RecordBatch(piece))
        position = end
    return batches, None


def _unreadable(damage: Damage, text: str) -> Problem:
    return Problem(damage, CorruptMessage(text))


@final
class Aborted:
    """Which producers' records are void at the offset that has been reached (KIP-98).

    Fed with the broker's list. A producer is void from its transaction's first offset to its abort marker.
    """

    __slots__ = ("_ahead", "_void")

    def __init__(self, transactions: Sequence[tuple[int, int]]) -> None:
        """Takes pairs of producer id and first offset, in any order."""
        self._ahead = deque(sorted((first_offset, producer_id) for producer_id, first_offset in transactions))
        self._void: set[int] = set()

    def is_void(self, batch: RecordBatch) -> bool:
        """True for a batch of an aborted transaction. Batches must be shown in order, control batches too."""
        if not self._ahead and not self._void:
            return False
        last_offset = batch.last_offset
        while self._ahead and self._ahead[0][0] <= last_offset:
            self._void.add(self._ahead.popleft()[1])
        if batch.is_control:
            markers = batch.decode()
            if markers and control_type_of(markers[0]) is ControlType.ABORT:
                self._void.discard(batch.producer_id)
            return False
        return batch.is_transactional and batch.producer_id in self._void

    def pass_over(self, batch: RecordBatch) -> None:
        """A batch below the fetch offset: it may end transactions; if it is damaged, that is nobody's concern."""
        with suppress(InvalidRecord, UnsupportedCompressionType):
            self.is_void(batch)


@final
class RecordReader:
    """Reads batches one after the other, each when it is asked for, by the rules above."""

    __slots__ = (
        "_aborted",
        "_batches",
        "_check_crcs",
        "_end",
        "_index",
        "_limit",
        "leader_epoch",
        "next_fetch_offset",
        "position",
        "problem",
    )

    def __init__(
        self,
        batches: Sequence[RecordBatch | LegacyBatch],
        fetch_offset: int,
        *,
        end: Problem | None = None,
        limit: int = NO_LIMIT,
        aborted: Aborted | None = None,
        check_crcs: bool = True,
    ) -> None:
        """`end` is the problem that stands behind the last batch. `aborted` only where committed records are wanted."""
        self._batches = batches
        self._index = 0
        self._end = end
        self._limit = limit
        self._aborted = aborted
        self._check_crcs = check_crcs
        self.position = fetch_offset
        self.next_fetch_offset = fetch_offset
        self.leader_epoch = -1
        """Epoch of the last batch that was passed, -1 for none."""
        self.problem: Problem | None = None
        """Why there is no more, once `next_records` came to it; the offsets stay before it."""

    @property
    def batches_passed(self) -> int:
        return self._index

    def next_records(self) -> list[Record]:
        """Return the next batch's visible records; an empty list at the end, or where `problem` tells why not."""
        batches = self._batches
        while self._index < len(batches):
            batch = batches[self._index]
            next_offset = batch.next_offset
            records: list[Record] = []
            if next_offset > self.next_fetch_offset:
                if isinstance(batch, RecordBatch) and batch.base_offset >= self._limit:
                    self._index = len(batches)
                    self._end = None
                    return []
                self.problem = self._problem_of(batch, records)
                if self.problem is not None:
                    return []
            elif self._aborted is not None and isinstance(batch, RecordBatch):
                self._aborted.pass_over(batch)
            self._index += 1
            if isinstance(batch, RecordBatch):
                self.leader_epoch = batch.partition_leader_epoch
            visible = self._within(records)
            self.next_fetch_offset = max(self.next_fetch_offset, min(self._limit, next_offset))
            if visible:
                self.position = int(visible[-1].offset) + 1
                return visible
        self.problem = self._end
        return []

    def _problem_of(self, batch: RecordBatch | LegacyBatch, records: list[Record]) -> Problem | None:
        """Put what is visible of a batch, within its bounds or not, into `records`; return what forbids it."""
        if self._check_crcs and not batch.is_crc_valid():
            return _problem(Damage.CRC, CorruptMessage("the batch fails its checksum"), batch)
        try:
            if isinstance(batch, LegacyBatch):
                records += batch.records()
            elif self._aborted is not None and self._aborted.is_void(batch):
                return None
            elif not batch.is_control:
                records += batch.decode(is_strict=True)
        except UnsupportedCompressionType as unknown:
            return _problem(Damage.BATCH, unknown, batch)
        except InvalidRecord as damaged:
            return _problem(Damage.RECORD, damaged, batch)
        return None

    def _within(self, records: list[Record]) -> list[Record]:
        """Leave out what is below the fetch offset or at the limit and above; batches end there, so it is rare."""
        if not records:
            return records
        first_wanted, limit = self.next_fetch_offset, self._limit
        if records[0].offset >= first_wanted and records[-1].offset < limit:
            return records
        return [record for record in records if first_wanted <= record.offset < limit]


def _problem(damage: Damage, error: KafkaError, batch: RecordBatch | LegacyBatch) -> Problem:
    base_offset = batch.base_offset if isinstance(batch, RecordBatch) else batch.last_offset
    return Problem(damage, error, base_offset, batch.next_offset)


@dataclass(frozen=True)
class Decoded:
    """What `decode` found. Offsets are numbers of records; `lag` is how many are left below the limit."""

    records: list[Record]
    position: int
    """One past the last record, or the fetch offset without any."""
    lag: int
    next_fetch_offset: int
    """Where to fetch from next: never below `position`, and above it where nothing more is to be seen."""
    problem: Problem | None = None
    """Why the rest cannot be read, None when all that is visible was."""

    @property
    def error(self) -> str | None:
        """`corrupt_crc`, `corrupt_record`, `corrupt_batch` or `unsupported_magic`; None when all went well."""
        return None if self.problem is None else self.problem.name


def decode(
    log_bytes: bytes | bytearray | memoryview,
    fetch_offset: int,
    high_watermark: int,
    *,
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    last_stable_offset: int | None = None,
    aborted_transactions: Sequence[tuple[int, int]] = (),
) -> Decoded:
    """Decode the bytes of a log, or of a fetch answer, as a consumer at `fetch_offset` sees them.

    With `READ_COMMITTED` nothing at `last_stable_offset` (the high watermark, when not given) or above is seen, and
    nothing of `aborted_transactions`: pairs of producer id and first offset, as Fetch answers them. Never raises for
    what the bytes are: damage is in the answer, with the records before it.
    """
    limit = high_watermark
    aborted: Aborted | None = None
    if isolation_level == IsolationLevel.READ_COMMITTED:
        aborted = Aborted(aborted_transactions)
        if last_stable_offset is not None:
            limit = min(limit, last_stable_offset)
    batches, end = split_readable(log_bytes, with_legacy=False)
    reader = RecordReader(batches, fetch_offset, end=end, limit=limit, aborted=aborted)
    records: list[Record] = []
    while found := reader.next_records():
        records += found
    return Decoded(records, reader.position, max(0, limit - reader.position), reader.next_fetch_offset, reader.problem)
