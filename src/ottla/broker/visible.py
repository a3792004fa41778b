"""From a partition to the values of its records, for dialects that hand out values and not batches.

Kafka's own dialect sends batches as they are; whoever speaks another protocol must open them here, by the rules that
hold for any consumer (`records.reading`). That costs time for each record, and so it goes by stretches, between which
others get their turn.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.broker.partition import Partition, PartitionRead
from ottla.errors import KafkaError, KafkaStorageError
from ottla.model import IsolationLevel
from ottla.records.reading import RecordReader, split_readable

STRETCH_BYTES: Final = 256 * 1024
"""What is opened at a time: some ten milliseconds, unless it is compressed well."""


class Stretch(NamedTuple):
    """Values in a row, empty for null, and the offset at which the next stretch begins.

    `size_bytes` is what was read for them. A `problem` says why there are no more: the batch behind them is damaged.
    """

    values: list[bytes]
    next_offset: int
    size_bytes: int
    problem: KafkaError | None


def read_values(partition: Partition, offset: int) -> Stretch:
    """Read what consumers may see from an offset on, of one stretch; blocks where that is not in memory.

    Raises `OffsetOutOfRange`, `KafkaStorageError`.
    """
    read = partition.read(offset, STRETCH_BYTES, IsolationLevel.READ_UNCOMMITTED, at_least_one_batch=True)
    batches, end = split_readable(take_bytes(read), with_legacy=True)
    reader = RecordReader(batches, offset, end=end, limit=read.offsets.high_watermark)
    values: list[bytes] = []
    while records := reader.next_records():
        values += [record.value or b"" for record in records]
    problem = None if reader.problem is None else reader.problem.error
    return Stretch(values, reader.next_fetch_offset, read.size_bytes, problem)


def take_bytes(read: PartitionRead) -> bytes:
    """Return the bytes that were read and release their spans. Raises `KafkaStorageError`."""
    try:
        return b"".join(span if isinstance(span, (bytes, memoryview)) else span.read() for span in read.spans)
    except OSError as error:
        raise KafkaStorageError(f"a log cannot be read: {error.strerror}") from error
    finally:
        read.release()
