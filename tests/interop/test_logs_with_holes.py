"""Logs as compaction and transactions leave them: every client gets past what is missing, empty or not for it.

The log is written into the files of a broker that is stopped: to have Kafka's cleaner, or ours, leave just these holes
would take long.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ottla.records.batch import stamp
from ottla.records.builder import BatchBuilder
from ottla.records.control import ControlType, EndTransactionMarker, end_transaction_batch
from tests.interop.brokers import Broker
from tests.interop.clients import CLIENTS, Client, Row
from tests.interop.clients.confluent import ConfluentClient

TOPIC = "holes"
PER_BATCH = 3
NOW_MS = 1_750_000_000_000
KEPT = (2, 3, 7)
"""Numbers of the batches that have records, of 3 offsets each; those between are missing."""
EMPTY = (5, 9)
"""Those of which a header is left, since it holds a producer's last sequence; the second one ends its segment."""
COMMITTED, ABORTED = 30, 32
"""Offsets of a record of either transaction; its marker follows."""
END = 36
LIBRDKAFKA = {"confluent-kafka", "kcat"}
"""Read what is committed unless told otherwise; the others everything but markers."""


def plain_batch(number: int, *, is_empty: bool = False) -> bytes:
    builder = BatchBuilder(producer_id=7, producer_epoch=0, base_sequence=0) if is_empty else BatchBuilder()
    for place in range(0 if is_empty else PER_BATCH):
        builder.append(NOW_MS, b"k", b"%d" % (number * PER_BATCH + place))
    builder.extend_to(PER_BATCH - 1)
    return placed(builder.build(), number * PER_BATCH)


def placed(batch: bytes, offset: int) -> bytes:
    data = bytearray(batch)
    stamp(data, offset, 0)
    return bytes(data)


def transaction(offset: int, producer_id: int, kind: ControlType) -> bytes:
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.append(NOW_MS, b"k", b"%d" % offset)
    marker = EndTransactionMarker(kind, 0)
    end = end_transaction_batch(marker, producer_id=producer_id, producer_epoch=0, timestamp_ms=NOW_MS)
    return placed(builder.build(), offset) + placed(end, offset + 1)


def write_log(directory: Path) -> None:
    """Two segments: batches with holes between them, then transactions, then a header that covers the last offsets."""
    numbers = sorted([*KEPT, *EMPTY])
    first = b"".join(plain_batch(number, is_empty=number in EMPTY) for number in numbers)
    second = transaction(COMMITTED, 8, ControlType.COMMIT) + transaction(ABORTED, 9, ControlType.ABORT)
    for old in [*directory.glob("*.log"), *directory.glob("*.index"), *directory.glob("*.timeindex")]:
        old.unlink()
    (directory / f"{0:020d}.log").write_bytes(first)
    last = BatchBuilder(producer_id=7, producer_epoch=0, base_sequence=3)
    last.extend_to(1)
    (directory / f"{COMMITTED:020d}.log").write_bytes(second + placed(last.build(), END - 2))


def test_every_client_reads_to_the_end(start_broker: Callable[..., Broker]) -> None:
    """redpanda-data/redpanda#8698, IBM/sarama#3221, dpkp/kafka-python#1571, tulios/kafkajs#562, kafka4beam/brod#263:
    clients that asked for an offset in a hole for ever; redpanda "kafka: fix Sarama control record issue"."""
    broker = start_broker()
    ConfluentClient(broker.address).create_topic(TOPIC, {"cleanup.policy": "compact"})
    broker.stop()
    write_log(broker.data / f"{TOPIC}-0")
    (broker.data / ".kafka_cleanshutdown").unlink()  # so that the start finds the aborted transaction
    broker.start()
    new = Row("new", "behind it all")
    ConfluentClient(broker.address).produce(TOPIC, [new])
    for kind in CLIENTS:
        read_to_the_end(kind(broker.address), new)


def read_to_the_end(client: Client, new: Row) -> None:
    offsets = [number * PER_BATCH + place for number in KEPT for place in range(PER_BATCH)]
    offsets += [COMMITTED] if client.name in LIBRDKAFKA else [COMMITTED, ABORTED]
    for start in (0, END - 2):
        expected = [Row("k", str(offset)) for offset in offsets if offset >= start] + [new]
        assert client.consume(TOPIC, len(expected), offset=start) == expected, (client.name, start)
