"""What goes in through a client comes out again, the same and in order: every client, codec and acks."""

from __future__ import annotations

import pytest

from tests.interop.brokers import Broker
from tests.interop.clients import CLIENTS, Acks, Client, Codec, Row
from tests.interop.clients.confluent import ConfluentClient

MAX_MESSAGE_BYTES = 1_048_588
BATCH_HEADER_BYTES = 61
LARGEST_RECORD_OVERHEAD_BYTES = 12
"""Around the value of a record that fills a batch of MAX_MESSAGE_BYTES, with a key of one byte: two lengths of three
bytes, attributes, deltas of time and offset, the key with its length, and the count of headers."""

CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS: tuple[Acks, ...] = (0, 1, -1)


def rows_of(count: int, start: int = 0) -> list[Row]:
    return [Row(f"key-{i % 7}", f"value number {i}") for i in range(start, start + count)]


@pytest.mark.parametrize("acks", ACKS)
@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_with_every_codec_and_acks(client: Client, topic: str, codec: Codec, acks: Acks) -> None:
    rows = rows_of(30)
    client.create_topic(topic)

    client.produce(topic, rows, codec=codec, acks=acks)

    assert client.consume(topic, len(rows)) == rows


def test_consumers_start_at_the_beginning_in_the_middle_and_at_the_end(client: Client, topic: str) -> None:
    rows, new = rows_of(20), Row("new", "came later")
    client.create_topic(topic)
    client.produce(topic, rows)

    assert client.consume(topic, 20, offset=0) == rows
    assert client.consume(topic, 13, offset=7) == rows[7:]
    assert client.consume_new(topic, lambda: ConfluentClient(client.address).produce(topic, [new])) == new


def test_the_largest_record_that_fits_is_taken(client: Client, topic: str) -> None:
    """A batch of exactly max.message.bytes."""
    largest = Row("k", "v" * (MAX_MESSAGE_BYTES - BATCH_HEADER_BYTES - LARGEST_RECORD_OVERHEAD_BYTES))
    client.create_topic(topic)

    client.produce(topic, [largest])

    assert client.consume(topic, 1) == [largest]


@pytest.mark.parametrize(
    "kind", [kind for kind in CLIENTS if kind.name in {"confluent-kafka", "kafka-python", "aiokafka"}]
)
def test_one_byte_more_is_refused(kind: type[Client], broker: Broker, topic: str) -> None:
    client = kind(broker.address)
    too_large = Row("k", "v" * (MAX_MESSAGE_BYTES - BATCH_HEADER_BYTES - LARGEST_RECORD_OVERHEAD_BYTES + 1))
    client.create_topic(topic)

    with pytest.raises(Exception, match=r"(?i)message.?size.?too.?large|MSG_SIZE_TOO_LARGE"):
        client.produce(topic, [too_large])


def test_ten_thousand_small_records_keep_their_order(client: Client, topic: str) -> None:
    rows = rows_of(10_000)
    client.create_topic(topic)

    client.produce(topic, rows, codec="lz4")

    assert client.consume(topic, len(rows)) == rows


def test_an_idempotent_producer_is_served(client: Client, topic: str) -> None:
    rows = rows_of(100)
    client.create_topic(topic)

    client.produce(topic, rows, is_idempotent=True)
    client.produce(topic, rows, is_idempotent=True)

    assert client.consume(topic, 200) == rows + rows


def test_records_outlive_a_restart_and_more_can_follow(client: Client, broker: Broker, topic: str) -> None:
    before, after = rows_of(50), rows_of(50, start=50)
    client.create_topic(topic)
    client.produce(topic, before)

    broker.restart()

    assert client.consume(topic, 50) == before
    client.produce(topic, after)
    assert client.consume(topic, 100) == before + after


@pytest.mark.parametrize("reader", CLIENTS, ids=lambda kind: kind.name)
def test_every_client_reads_what_any_other_wrote(client: Client, reader: type[Client], topic: str) -> None:
    """Headers, timestamps and codecs of one library must not confuse another through our files."""
    rows = rows_of(10)
    client.create_topic(topic)

    client.produce(topic, rows, codec="zstd")

    assert reader(client.address).consume(topic, 10) == rows
