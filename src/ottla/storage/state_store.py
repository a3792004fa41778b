"""`LocalStateStore`: the local `engine.StateStore` for state that lies in ordinary topics.

`__consumer_offsets`, `__transaction_state` and their like are partitions as any other: a decision's records become one
batch, appended as the coordinator's own; loading is reading the log's segments from its start. What a topic's
compaction has removed is gone by itself, so there are no snapshots. (`__cluster_metadata` has its own store:
`metadata_log`.)

State is loaded whole or not at all: of a log with damage in it, nobody knows which record was the last of its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ottla.clock import Clock
from ottla.engine import Offload, Shard, StateBatch, StateRecord, Ticket
from ottla.errors import CorruptMessage, KafkaError, KafkaStorageError
from ottla.model import NO_OFFSET, NO_PRODUCER_ID, NO_TIMESTAMP_MS, OFFSETS_TOPIC, AppendOrigin, TopicPartition
from ottla.records.batch import BATCH_LENGTH_AT, LOG_OVERHEAD_BYTES, RecordBatch
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.records.control import ControlType, marker_of
from ottla.records.legacy import LegacyBatch, split_any
from ottla.storage.manager import LogManager
from ottla.storage.segment import Segment

LOAD_BYTES: Final = 1024 * 1024
"""How much is read at once while loading (Kafka's `offsets.load.buffer.size` is 5 MB)."""


class LocalStateStore:
    """State shards on a `LogManager`'s partitions, which exist before they are used."""

    __slots__ = ("_clock", "_logs", "_offsets_codec")

    def __init__(self, logs: LogManager, clock: Clock, offsets_codec: Codec = Codec.NONE) -> None:
        """`offsets_codec` is that of `__consumer_offsets`: `offsets.topic.compression.codec`."""
        self._logs = logs
        self._clock = clock
        self._offsets_codec = offsets_codec

    def load(self, shard: Shard) -> Iterator[StateBatch]:
        """Yield the batches of a shard in offset order, see `engine.StateStore.load`. A log that is not there is empty.

        Raises `KafkaStorageError`, also for a damaged batch, which could say anything; it names file and position.
        """
        partition = TopicPartition(shard.topic, shard.partition)
        if not self._logs.contains(partition):  # the disk did not let us when it was due; the first append makes it
            return
        walk = _Walk()
        try:
            log = self._logs.log(partition)
            for segment in log.segments:
                for batch in walk.batches(segment):
                    loaded = _state_batch(batch, log.log_start_offset)
                    if loaded is not None:
                        yield loaded
        except (KafkaError, OSError) as error:
            raise KafkaStorageError(
                f"{partition} cannot be loaded: {walk.place}{error} (with the broker stopped, `ottla storage verify` "
                "tells what `ottla storage repair` would cut off)"
            ) from error

    def append(self, shard: Shard, records: Sequence[StateRecord], epoch: int) -> Ticket:
        builder = BatchBuilder(codec=self._offsets_codec if shard.topic == OFFSETS_TOPIC else Codec.NONE)
        now_ms = self._clock.wall_ms()
        for record in records:
            builder.append(now_ms, record.key, record.value)
        return self._logs.begin_append(
            TopicPartition(shard.topic, shard.partition),
            bytearray(builder.build()),
            leader_epoch=epoch,
            origin=AppendOrigin.COORDINATOR,
        )

    def snapshot(self, shard: Shard, records: Iterator[StateRecord]) -> None:
        """Do nothing: a compacted topic is its own snapshot, which the log cleaner keeps small."""


class ReadOnlyStateStore:
    """The same for whoever writes nothing: what is decided is replayed as ever, and forgotten at the end."""

    __slots__ = ("_offload", "_stored")

    def __init__(self, stored: LocalStateStore, offload: Offload) -> None:
        self._stored = stored
        self._offload = offload

    def load(self, shard: Shard) -> Iterator[StateBatch]:
        """Yield what is stored. Raises as `LocalStateStore.load`."""
        return self._stored.load(shard)

    def append(self, shard: Shard, records: Sequence[StateRecord], epoch: int) -> Ticket:
        """Return a ticket that is settled, of no place in the log."""
        return Ticket(self._offload, NO_OFFSET, NO_OFFSET, NO_TIMESTAMP_MS, NO_OFFSET, is_durable=True)

    def snapshot(self, shard: Shard, records: Iterator[StateRecord]) -> None:
        """There is nothing to store."""


class _Walk:
    """The way through segments, and how far it has come."""

    __slots__ = ("_path", "_position")

    def __init__(self) -> None:
        self._path = ""
        self._position = 0

    @property
    def place(self) -> str:
        """Where the batch stands that was yielded last, or that cannot be; for the beginning of a sentence."""
        return f"{self._path}, byte {self._position}: " if self._path else ""

    def batches(self, segment: Segment) -> Iterator[RecordBatch | LegacyBatch]:
        """Yield the batches of a segment. Raises `CorruptMessage` for bytes that are no whole batch, `OSError`."""
        self._path, self._position = segment.file.path, 0
        piece_bytes = LOAD_BYTES
        while self._position < segment.size_bytes:
            data = segment.file.get().pread(min(piece_bytes, segment.size_bytes - self._position), self._position)
            begin = self._position
            for batch in split_any(data):
                yield batch
                self._position += int(batch.size_in_bytes)
            piece_bytes = LOAD_BYTES if self._position > begin else self._larger_than(data, segment)
        if segment.has_torn_end:
            raise CorruptMessage("no whole batch follows")

    def _larger_than(self, data: bytes, segment: Segment) -> int:
        """Return the size of a batch that begins here and was not read whole."""
        size_bytes = int.from_bytes(data[BATCH_LENGTH_AT:LOG_OVERHEAD_BYTES], "big") + LOG_OVERHEAD_BYTES
        if not len(data) < size_bytes <= segment.size_bytes - self._position:
            raise CorruptMessage("no whole batch follows")
        return size_bytes


def _state_batch(batch: RecordBatch | LegacyBatch, log_start_offset: int) -> StateBatch | None:
    """Return a stored batch as state machines see it; None for one that says nothing. Raises `KafkaError`."""
    if not batch.is_crc_valid():
        raise CorruptMessage(f"the batch that ends at offset {batch.last_offset} fails its checksum")
    producer_id = NO_PRODUCER_ID
    if isinstance(batch, RecordBatch):
        if batch.is_control:
            marker = marker_of(batch)
            if marker is None:
                return None
            is_commit = marker.type is ControlType.COMMIT
            return StateBatch(batch.base_offset, batch.max_timestamp, (), batch.producer_id, is_commit)
        if batch.is_transactional:
            producer_id = batch.producer_id
    records = [record for record in batch.records() if record.offset >= log_start_offset]
    if not records:  # compaction may leave a batch with none
        return None
    return StateBatch(
        records[0].offset,
        batch.max_timestamp,
        [StateRecord(record.key, record.value) for record in records],
        producer_id,
    )
