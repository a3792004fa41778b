"""What a log knows about the producers that write to it (KIP-98): sequences, epochs, open transactions.

`ProducerStates` decides whether a batch is new, a repeat or out of order, before it is written (`check`), and learns it
afterwards (`update`, which recovery calls too). Rules, each of them Kafka's:

* The last five batches of a producer are remembered; a batch with the first and last sequence of one of them is a
  repeat and is answered with that batch's offset, whatever its records say.
* Otherwise a sequence goes on where the last one ended, with 0 after 2^31 - 1. A producer that the log does not know
  may start anywhere; a new epoch starts at 0; an older epoch is fenced. (A producer is known, too, whose first batch
  the disk did not take: Kafka takes nothing more then, a log here tries again.)
* Sequences are checked for clients only; what a coordinator writes has none.
* A transaction opens with its first batch and ends with a marker. The last stable offset is the first offset of the
  oldest transaction that is open, or whose marker is not yet below the high watermark.

Snapshots hold the newest batch of each producer only (`.snapshot` files: version 1, CRC-32C, count, 46 bytes each).
Producers without an open transaction are forgotten after `producer.id.expiration.ms`.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, final

from ottla.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)
from ottla.model import NO_OFFSET, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP_MS, AppendOrigin
from ottla.records.control import ControlType, EndTransactionMarker
from ottla.records.crc32c import crc32c
from ottla.storage.txn_index import AbortedTxn

REMEMBERED_BATCHES: Final = 5
MAX_SEQUENCE: Final = 2**31 - 1
NO_COORDINATOR_EPOCH: Final = -1

_SNAPSHOT_VERSION: Final = 1
_SNAPSHOT_HEAD: Final = struct.Struct(">hI")
_SNAPSHOT_COUNT: Final = struct.Struct(">i")
_SNAPSHOT_ENTRY: Final = struct.Struct(">qhiqiqiq")
_EPOCH_BUMP_VERSION: Final = 2
"""From this transaction version on, a marker carries an epoch above its transaction's (KIP-890)."""


class CorruptSnapshot(ValueError):
    """A producer snapshot that cannot be read; the state can be rebuilt from the log."""


@final
class BatchFacts:
    """What producer state wants to know of a batch: header fields, with the offsets it has or is about to get."""

    __slots__ = (
        "base_offset",
        "base_sequence",
        "is_transactional",
        "last_offset",
        "max_timestamp_ms",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        base_offset: int,
        last_offset: int,
        max_timestamp_ms: int,
        is_transactional: bool,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.max_timestamp_ms = max_timestamp_ms
        self.is_transactional = is_transactional


class ProducedBatch(NamedTuple):
    """One remembered batch; its first sequence and offset follow from the last ones."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        first = self.last_sequence - self.offset_delta
        return first if self.last_sequence >= self.offset_delta else first + MAX_SEQUENCE + 1

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class CompletedTxn(NamedTuple):
    """A transaction whose marker was just appended."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerState:
    """One producer, as its last appends left it."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp_ms",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.last_timestamp_ms = NO_TIMESTAMP_MS
        self.current_txn_first_offset: int | None = None
        self.batches: deque[ProducedBatch] = deque(maxlen=REMEMBERED_BATCHES)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def find_duplicate(self, producer_epoch: int, base_sequence: int, last_sequence: int) -> ProducedBatch | None:
        if producer_epoch != self.producer_epoch:
            return None
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == base_sequence:
                return batch
        return None

    def enter_epoch(self, producer_epoch: int) -> None:
        """Sequences start anew with an epoch, so what was remembered of the old one means nothing."""
        if producer_epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch


def follows(batch: BatchFacts, before: BatchFacts) -> bool:
    """True when the same producer, or nobody who counts, sent `batch` right after `before`.

    Nothing needs to be known of a producer to tell that such a batch may be appended when `before` was.
    """
    if batch.producer_id < 0 or before.producer_id < 0:
        return batch.producer_id == before.producer_id
    last_sequence = add_to_sequence(before.base_sequence, before.last_offset - before.base_offset)
    return (
        batch.producer_id == before.producer_id
        and batch.producer_epoch == before.producer_epoch
        and batch.base_sequence == add_to_sequence(last_sequence, 1)
    )


class ProducerStates:
    """All producers of one log."""

    __slots__ = ("_open_txns", "_producers", "_unstable_txns", "expiration_ms")

    def __init__(self, expiration_ms: int) -> None:
        self.expiration_ms = expiration_ms
        self._producers: dict[int, ProducerState] = {}
        self._open_txns: dict[int, int] = {}
        """Producer id to the first offset of its open transaction, oldest first."""
        self._unstable_txns: dict[int, int] = {}
        """First offset of an ended transaction to its marker's offset, until the high watermark has passed that."""

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[ProducerState]:
        return iter(self._producers.values())

    @property
    def has_transactions(self) -> bool:
        """False when the last stable offset is the high watermark."""
        return bool(self._open_txns) or bool(self._unstable_txns)

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest transaction that is not decided below the high watermark."""
        oldest_open = next(iter(self._open_txns.values()), None)
        oldest_ended = min(self._unstable_txns, default=None)
        if oldest_open is None:
            return oldest_ended
        return oldest_open if oldest_ended is None else min(oldest_open, oldest_ended)

    def find(self, producer_id: int) -> ProducerState | None:
        return self._producers.get(producer_id)

    def check(self, batch: BatchFacts, origin: AppendOrigin) -> ProducedBatch | None:
        """Decide about a data batch that is to be appended; returns the batch that it repeats, if it does.

        Raises `InvalidProducerEpoch`, `OutOfOrderSequenceNumber`, `InvalidTxnState`.
        """
        state = self._producers.get(batch.producer_id)
        if state is None:
            state = ProducerState(batch.producer_id)
        if origin is AppendOrigin.CLIENT:
            last_sequence = add_to_sequence(batch.base_sequence, batch.last_offset - batch.base_offset)
            duplicate = state.find_duplicate(batch.producer_epoch, batch.base_sequence, last_sequence)
            if duplicate is not None:
                return duplicate
        if origin is not AppendOrigin.REPLICATION:
            check_epoch(state, batch.producer_epoch)
        if origin is AppendOrigin.CLIENT:
            check_sequence(state, batch.producer_epoch, batch.base_sequence)
        if state.current_txn_first_offset is not None and not batch.is_transactional:
            raise InvalidTxnState(f"producer {batch.producer_id} has an open transaction and sent a plain batch")
        return None

    def check_marker(
        self, producer_id: int, producer_epoch: int, marker: EndTransactionMarker, transaction_version: int
    ) -> None:
        """Decide about a marker. Raises `InvalidProducerEpoch`, `TransactionCoordinatorFenced`."""
        state = self._producers.get(producer_id)
        if state is None:
            return
        check_epoch(state, producer_epoch)
        is_repeat = state.current_txn_first_offset is None
        if transaction_version >= _EPOCH_BUMP_VERSION and producer_epoch == state.producer_epoch and not is_repeat:
            raise InvalidProducerEpoch(f"the marker of producer {producer_id} does not raise epoch {producer_epoch}")
        if state.coordinator_epoch > marker.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"marker of coordinator epoch {marker.coordinator_epoch}, below {state.coordinator_epoch}"
            )

    def update(self, batch: BatchFacts) -> None:
        """Learn an appended data batch."""
        state = self._get_or_create(batch.producer_id)
        state.enter_epoch(batch.producer_epoch)
        offset_delta = batch.last_offset - batch.base_offset
        last_sequence = add_to_sequence(batch.base_sequence, offset_delta)
        state.batches.append(ProducedBatch(last_sequence, batch.last_offset, offset_delta, batch.max_timestamp_ms))
        state.last_timestamp_ms = batch.max_timestamp_ms
        if batch.is_transactional and state.current_txn_first_offset is None:
            state.current_txn_first_offset = batch.base_offset
            self._open_txns[batch.producer_id] = batch.base_offset

    def note_refused(self, batch: BatchFacts) -> None:
        """Take note that a batch could not be written: if it was a producer's first, those behind it are not.

        Of a producer that it does not know a log takes any sequence, so that one of them could come before it.
        """
        if batch.base_sequence == 0 and batch.producer_id not in self._producers:
            state = self._get_or_create(batch.producer_id)
            state.enter_epoch(batch.producer_epoch)
            state.last_timestamp_ms = batch.max_timestamp_ms

    def end_txn(self, batch: BatchFacts, marker: EndTransactionMarker) -> CompletedTxn | None:
        """Learn an appended marker; returns the transaction that it ended, if one was open."""
        state = self._get_or_create(batch.producer_id)
        state.enter_epoch(batch.producer_epoch)
        first_offset = state.current_txn_first_offset
        state.current_txn_first_offset = None
        state.coordinator_epoch = marker.coordinator_epoch
        state.last_timestamp_ms = batch.max_timestamp_ms
        if first_offset is None:
            return None
        return CompletedTxn(batch.producer_id, first_offset, batch.base_offset, marker.type == ControlType.ABORT)

    def complete(self, txn: CompletedTxn) -> AbortedTxn | None:
        """Take an ended transaction off the open ones; returns its row for the transaction index when aborted."""
        del self._open_txns[txn.producer_id]
        last_stable_offset = next(iter(self._open_txns.values()), txn.last_offset + 1)
        self._unstable_txns[txn.first_offset] = txn.last_offset
        if not txn.is_aborted:
            return None
        return AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, last_stable_offset)

    def note_high_watermark(self, high_watermark: int) -> None:
        """Let transactions be stable whose markers lie below the high watermark."""
        for first_offset in [first for first, last in self._unstable_txns.items() if last < high_watermark]:
            del self._unstable_txns[first_offset]

    def expire(self, now_ms: int) -> None:
        """Forget producers that have been silent for too long and have no open transaction."""
        for state in [state for state in self if self._is_expired(state, now_ms)]:
            del self._producers[state.producer_id]

    def clear(self) -> None:
        self._producers.clear()
        self._open_txns.clear()
        self._unstable_txns.clear()

    def load(self, states: Iterable[ProducerState], now_ms: int) -> None:
        """Start from a snapshot, without what has expired since."""
        self.clear()
        for state in states:
            if self._is_expired(state, now_ms):
                continue
            self._producers[state.producer_id] = state
            if state.current_txn_first_offset is not None:
                self._open_txns[state.producer_id] = state.current_txn_first_offset
        self._open_txns = dict(sorted(self._open_txns.items(), key=lambda txn: txn[1]))

    def _is_expired(self, state: ProducerState, now_ms: int) -> bool:
        return state.current_txn_first_offset is None and now_ms - state.last_timestamp_ms >= self.expiration_ms

    def _get_or_create(self, producer_id: int) -> ProducerState:
        state = self._producers.get(producer_id)
        if state is None:
            state = self._producers[producer_id] = ProducerState(producer_id)
        return state


def check_epoch(state: ProducerState, producer_epoch: int) -> None:
    if producer_epoch < state.producer_epoch:
        raise InvalidProducerEpoch(
            f"producer {state.producer_id} has epoch {state.producer_epoch}, the batch {producer_epoch}"
        )


def check_sequence(state: ProducerState, producer_epoch: int, base_sequence: int) -> None:
    """Raise `OutOfOrderSequenceNumber` unless a batch may follow what the producer wrote last."""
    if producer_epoch != state.producer_epoch:
        if base_sequence != 0 and state.producer_epoch != NO_PRODUCER_EPOCH:
            raise OutOfOrderSequenceNumber(
                f"epoch {producer_epoch} of producer {state.producer_id} starts at sequence {base_sequence}, not at 0"
            )
        return
    if state.producer_epoch == NO_PRODUCER_EPOCH:
        return
    last_sequence = state.last_sequence
    expected = 0 if last_sequence == MAX_SEQUENCE else last_sequence + 1
    if base_sequence != expected:
        raise OutOfOrderSequenceNumber(
            f"producer {state.producer_id} sent sequence {base_sequence} where {expected} was due"
        )


def add_to_sequence(sequence: int, increment: int) -> int:
    """Return a sequence further on; -1 (none) stays, 0 follows 2^31 - 1."""
    if sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    total = sequence + increment
    return total if total <= MAX_SEQUENCE else total - MAX_SEQUENCE - 1


def encode_snapshot(states: Iterable[ProducerState]) -> bytes:
    """Return the bytes of a `.snapshot` file."""
    entries = [_encode_entry(state) for state in states]
    body = _SNAPSHOT_COUNT.pack(len(entries)) + b"".join(entries)
    return _SNAPSHOT_HEAD.pack(_SNAPSHOT_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[ProducerState]:
    """Read a `.snapshot` file. Raises `CorruptSnapshot`."""
    if len(data) < _SNAPSHOT_HEAD.size + _SNAPSHOT_COUNT.size:
        raise CorruptSnapshot(f"a producer snapshot of {len(data)} bytes")
    version, crc = _SNAPSHOT_HEAD.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        raise CorruptSnapshot(f"a producer snapshot of version {version}")
    body = memoryview(data)[_SNAPSHOT_HEAD.size :]
    if crc32c(body) != crc:
        raise CorruptSnapshot("a producer snapshot with a wrong checksum")
    (count,) = _SNAPSHOT_COUNT.unpack_from(body)
    entries = body[_SNAPSHOT_COUNT.size :]
    if count < 0 or len(entries) != count * _SNAPSHOT_ENTRY.size:
        raise CorruptSnapshot(f"a producer snapshot of {count} producers in {len(entries)} bytes")
    return [_decode_entry(entry) for entry in _SNAPSHOT_ENTRY.iter_unpack(entries)]


def _encode_entry(state: ProducerState) -> bytes:
    newest = state.batches[-1] if state.batches else ProducedBatch(NO_SEQUENCE, NO_OFFSET, 0, NO_TIMESTAMP_MS)
    txn_first_offset = NO_OFFSET if state.current_txn_first_offset is None else state.current_txn_first_offset
    return _SNAPSHOT_ENTRY.pack(
        state.producer_id,
        state.producer_epoch,
        newest.last_sequence,
        newest.last_offset,
        newest.offset_delta,
        state.last_timestamp_ms,
        state.coordinator_epoch,
        txn_first_offset,
    )


def _decode_entry(entry: tuple[int, int, int, int, int, int, int, int]) -> ProducerState:
    producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp_ms, coordinator_epoch, txn_offset = entry
    state = ProducerState(producer_id)
    state.producer_epoch = epoch
    state.coordinator_epoch = coordinator_epoch
    state.last_timestamp_ms = timestamp_ms
    if last_offset >= 0:
        state.batches.append(ProducedBatch(last_sequence, last_offset, offset_delta, timestamp_ms))
    if txn_offset >= 0:
        state.current_txn_first_offset = txn_offset
    return state


def has_producer(producer_id: int) -> bool:
    return producer_id > NO_PRODUCER_ID
