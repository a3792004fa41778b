"""`LocalStateStore`: the local `engine.StateStore` for state that lies in ordinary topics.

`__consumer_offsets`, `__transaction_state` and their like are partitions as any other: a decision's records become one
batch, appended as the coordinator's own; loading is reading the log from its start. What a topic's compaction has
removed is gone by itself, so there are no snapshots. (`__cluster_metadata` has its own store: `metadata_log`.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ottla.clock import Clock
from ottla.engine import Offload, ReadLimit, ReadResult, Shard, StateBatch, StateRecord, Ticket
from ottla.errors import CorruptMessage, KafkaError, KafkaStorageError
from ottla.model import NO_OFFSET, NO_PRODUCER_ID, NO_TIMESTAMP_MS, OFFSETS_TOPIC, AppendOrigin, TopicPartition
from ottla.records.batch import RecordBatch
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.records.control import ControlType, marker_of
from ottla.records.legacy import split_any
from ottla.storage.manager import LogManager
from ottla.storage.ticket import LogTicket, SegmentSpan

LOAD_BYTES = 1024 * 1024
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
        """Yield the batches of a shard in offset order, see `engine.StateStore.load`.

        Raises `KafkaStorageError`, also for a damaged batch, which could say anything.
        """
        partition = TopicPartition(shard.topic, shard.partition)
        try:
            yield from self._load(partition)
        except KafkaError as error:
            hint = "`ottla storage verify` tells what `repair` would cut off"
            raise KafkaStorageError(f"{partition} cannot be loaded: {error} ({hint})") from error

    def _load(self, partition: TopicPartition) -> Iterator[StateBatch]:
        offsets = self._logs.offsets(partition)
        offset, end = offsets.log_start_offset, offsets.log_end_offset
        while offset < end:
            result = self._logs.read(partition, offset, ReadLimit(LOAD_BYTES, end, at_least_one_batch=True))
            next_offset = offset
            for batch in split_any(_take_bytes(result)):
                next_offset = max(next_offset, batch.next_offset)
                if not batch.is_crc_valid():
                    raise CorruptMessage(f"the batch that ends at offset {batch.last_offset} fails its checksum")
                if isinstance(batch, RecordBatch) and batch.is_control:
                    marker = marker_of(batch)
                    if marker is not None:
                        is_commit = marker.type is ControlType.COMMIT
                        yield StateBatch(batch.base_offset, batch.max_timestamp, (), batch.producer_id, is_commit)
                    continue
                producer_id = NO_PRODUCER_ID
                if isinstance(batch, RecordBatch) and batch.is_transactional:
                    producer_id = batch.producer_id
                records = [record for record in batch.records() if record.offset >= offset]
                if records:  # compaction may leave a batch with none
                    yield StateBatch(
                        records[0].offset,
                        batch.max_timestamp,
                        [StateRecord(record.key, record.value) for record in records],
                        producer_id,
                    )
            if next_offset == offset:
                return  # compaction left nothing behind this offset
            offset = next_offset

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
        return LogTicket(self._offload, NO_OFFSET, NO_OFFSET, NO_TIMESTAMP_MS, NO_OFFSET, is_durable=True)

    def snapshot(self, shard: Shard, records: Iterator[StateRecord]) -> None:
        """There is nothing to store."""


def _take_bytes(result: ReadResult) -> bytes:
    """Return the bytes of a read and give its leases back."""
    parts = []
    for span in result.spans:
        if isinstance(span, SegmentSpan):
            parts.append(span.read())
            span.release()
        else:
            assert isinstance(span, (bytes, memoryview))
            parts.append(bytes(span))
    return b"".join(parts)
