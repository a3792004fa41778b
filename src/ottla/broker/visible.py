"""From what a fetch read to the records in it, for dialects that hand out records and not batches.

Kafka's own dialect sends batches as they are; whoever speaks another protocol must open them here, by the rules that
hold for any consumer (`records.reading`).
"""

from __future__ import annotations

from ottla.broker.partition import PartitionRead
from ottla.records.reading import RecordReader, split_readable
from ottla.records.record import Record


def take_bytes(read: PartitionRead) -> bytes:
    """Return the bytes that were read and release their spans. Blocks where they are not in memory."""
    parts = [span if isinstance(span, (bytes, memoryview)) else span.read() for span in read.spans]
    read.release()
    return b"".join(parts)


def visible_records(read: PartitionRead, offset: int, max_value_bytes: int) -> list[Record]:
    """Return the records from `offset` on, at least one if there is any, with about `max_value_bytes` of values.

    Ends at the first batch that is damaged; raises what is wrong with it (`CorruptMessage` and the like) when no record
    stands before it.
    """
    batches, end = split_readable(take_bytes(read), with_legacy=True)
    reader = RecordReader(batches, offset, end=end, limit=read.offsets.high_watermark)
    records: list[Record] = []
    left = max_value_bytes
    while left > 0 and (found := reader.next_records()):
        for record in found:
            left -= len(record.value or b"")
            if left < 0 and records:
                return records
            records.append(record)
    if not records and reader.problem is not None:
        raise reader.problem.error
    return records
