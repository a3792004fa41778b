"""Produce: which batches are taken, what they become, and what a producer is told about the others."""

from __future__ import annotations

import asyncio
import gzip
import time
import zlib

import pytest

from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.produce import ProduceResponse
from ottla.records.batch import HEADER_BYTES, RecordBatch
from ottla.records.builder import assemble
from ottla.records.compression import Codec
from ottla.testing.clock import ManualClock
from tests.wire import Room, batch, batches_of, on_broker, produce_request, sign

CORRUPT_MESSAGE = 2
MESSAGE_TOO_LARGE = 10
INVALID_REQUIRED_ACKS = 21
INVALID_TIMESTAMP = 32
OUT_OF_ORDER_SEQUENCE = 45
INVALID_PRODUCER_EPOCH = 47
UNSUPPORTED_COMPRESSION_TYPE = 76
INVALID_RECORD = 87


def raw_batch(payload: bytes, *, count: int, codec: int = 0) -> bytes:
    """A batch with a right checksum around any payload."""
    now_ms = int(time.time() * 1000)
    return assemble(
        payload,
        base_offset=0,
        leader_epoch=-1,
        attributes=codec,
        last_offset_delta=count - 1,
        base_timestamp=now_ms,
        max_timestamp=now_ms,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=count,
    )


def with_byte(records: bytes, at: int, value: int) -> bytes:
    """The same batch with one byte set and the checksum made right."""
    changed = bytearray(records)
    changed[at] = value
    return sign(changed)


RECORD = bytes.fromhex("0c 00 00 00 01 00 00".replace(" ", ""))  # length 6: no key, no value, no headers
HEADER_MISSING = bytes.fromhex("0c 00 00 00 01 00 04".replace(" ", ""))  # two headers announced, none there
KEYLESS_HEADER = bytes.fromhex("10 00 00 00 01 00 02 01 01".replace(" ", ""))  # a header key of length -1

MALFORMED = {
    "a length that goes on for longer than the batch": (bytes([100]) + RECORD[1:] + bytes(13), 1),
    "two headers announced, none there": (HEADER_MISSING, 1),
    "a header without a key": (KEYLESS_HEADER, 1),
    "five records announced, three there": (RECORD[:4] + b"\x01\x00\x00", 5),
    "two records where one is announced": (RECORD * 2, 1),
    "a length of 0": (bytes(8), 1),
    "a negative length": (b"\x01" + bytes(8), 1),
    "a varint that does not end": (b"\xff" * 12, 1),
    "nothing": (b"", 1),
}


@pytest.mark.parametrize("name", list(MALFORMED))
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@on_broker()
async def test_a_malformed_record_is_refused_as_such(room: Room, name: str, codec: Codec) -> None:
    """KAFKA-13149 apache/kafka#11080 "Fix NPE when handling malformed record data in produce requests"."""
    payload, count = MALFORMED[name]
    if codec is Codec.GZIP:
        payload = gzip.compress(payload)
    await room.create("t")
    refused = await room.produce("t", raw_batch(payload, count=count, codec=codec))

    assert refused.error_code == INVALID_RECORD
    assert await room.bounds("t") == (0, 0)
    await room.append("t", b"good")
    assert await room.read_all("t") == [(0, b"good")]


MAGIC_1 = bytes.fromhex("000000000000000000000018000000000100000001977420dc00ffffffff0000000176")

SHAPES = {
    "two batches": (batch(b"a") + batch(b"b"), 12, INVALID_RECORD),
    "no batch": (b"", 12, INVALID_RECORD),
    "null": (None, 12, INVALID_RECORD),
    "magic 1": (MAGIC_1, 12, INVALID_RECORD),
    "zstd before version 7": (batch(b"a", codec=Codec.ZSTD), 6, UNSUPPORTED_COMPRESSION_TYPE),
    "zstd from version 7 on": (batch(b"a", codec=Codec.ZSTD), 7, 0),
}


@pytest.mark.parametrize("shape", list(SHAPES))
@on_broker()
async def test_a_partition_gets_one_batch_of_the_current_format(room: Room, shape: str) -> None:
    """KAFKA-7549 apache/kafka#5925 "Old ProduceRequest with zstd compression does not return error to client"; a first
    batch that is stored while the second is dropped is of the same kind."""
    records, version, code = SHAPES[shape]
    await room.create("t")
    row = await room.produce("t", records, version=version)

    assert row.error_code == code
    assert await room.bounds("t") == (0, int(code == 0))


@pytest.mark.parametrize("at", [16, 17, 21, HEADER_BYTES, HEADER_BYTES + 5])
@on_broker()
async def test_a_changed_bit_is_found(room: Room, at: int) -> None:
    """redpanda "Fix for legacy incorrect crc calc", KAFKA-4776: stored, and answered with success."""
    records = bytearray(batch(b"some value"))
    records[at] ^= 1
    await room.create("t")
    row = await room.produce("t", bytes(records))

    assert row.error_code == CORRUPT_MESSAGE
    assert await room.bounds("t") == (0, 0)


@pytest.mark.parametrize("codec", range(1, 8))
@on_broker()
async def test_a_payload_that_is_not_compressed_as_it_says_is_refused(room: Room, codec: int) -> None:
    """KAFKA-4776 "graceful handling for improperly formed compressed message sets", apache/kafka#1344 (KAFKA-3160)."""
    await room.create("t")
    for payload in (b"", b"\x00", bytes(range(256)), batch(b"v")[HEADER_BYTES:]):
        row = await room.produce("t", raw_batch(payload, count=1, codec=codec))
        assert row.error_code == (INVALID_RECORD if codec <= Codec.ZSTD else UNSUPPORTED_COMPRESSION_TYPE)

    assert await room.bounds("t") == (0, 0)


@on_broker()
async def test_a_bomb_neither_grows_nor_stops_the_broker(room: Room) -> None:
    """twmb/franz-go#1348, which names decompression bombs among hostile inputs: one batch of 900 KB that inflates to a
    gigabyte froze the event loop and took the memory."""
    engine = zlib.compressobj(9, wbits=31)
    zeros = bytes(1 << 20)
    bomb = b"".join([engine.compress(zeros) for _ in range(90)]) + engine.flush()
    await room.create("t")
    attacker, other = await room.connect(), await room.connect()
    for _ in range(5):
        attacker.send(produce_request({"t": {0: raw_batch(bomb, count=1, codec=Codec.GZIP)}}), 12)
    slowest = 0.0
    for number in range(1, 6):
        begin = time.thread_time()  # the broker's own work, whatever else this machine does
        assert (await other.ask(MetadataRequest(topics=[]), 12)).brokers
        slowest = max(slowest, time.thread_time() - begin)
        answer = await attacker.receive_answer(ProduceResponse, 12, number)
        assert answer.responses[0].partition_responses[0].error_code == INVALID_RECORD

    assert slowest < 1.0


@pytest.mark.parametrize("is_transactional", [False, True])
@on_broker()
async def test_clients_cannot_write_markers(room: Room, is_transactional: bool) -> None:
    """franz-go "kfake: transaction compliance fixes": a forged commit was taken."""
    marker = batch(
        b"\x00\x00\x00\x00\x00\x00",
        keys=[b"\x00\x00\x00\x01"],
        producer=(5, 0, 0),
        is_transactional=is_transactional,
        is_control=True,
    )
    await room.create("t")
    answer = await room.ask(produce_request({"t": {0: marker}}, transactional_id="x" if is_transactional else None), 12)
    (row,) = answer.responses[0].partition_responses

    assert row.error_code != 0
    if not is_transactional:
        assert row.error_code == INVALID_RECORD
    assert await room.bounds("t") == (0, 0)
    assert (await room.fetch("t", 0)).last_stable_offset == 0


@on_broker()
async def test_a_recent_batch_sent_again_is_not_stored_again(room: Room) -> None:
    """AutoMQ/automq#437 "idempotent message duplicated", KAFKA-5793 "Tighten up the semantics of the
    OutOfOrderSequenceException"."""
    await room.create("t")
    for sequence in range(5):
        assert await room.append("t", b"v%d" % sequence, producer=(7, 0, sequence)) == sequence
    again = await room.produce("t", batch(b"v2", producer=(7, 0, 2)))
    assert (again.error_code, again.base_offset) == (0, 2)
    assert await room.bounds("t") == (0, 5)
    for sequence in range(5, 10):
        assert await room.append("t", b"v%d" % sequence, producer=(7, 0, sequence)) == sequence

    too_old = await room.produce("t", batch(b"v0", producer=(7, 0, 0)))
    assert too_old.error_code == OUT_OF_ORDER_SEQUENCE
    assert await room.bounds("t") == (0, 10)


@on_broker()
async def test_a_retry_is_known_by_its_whole_range(room: Room) -> None:
    """A sibling of AutoMQ/automq#437: a batch that begins like a stored one and ends elsewhere is no repeat of it."""
    await room.create("t")
    await room.append("t", b"0", b"1", b"2", producer=(7, 0, 0))
    longer = await room.produce("t", batch(b"0", b"1", b"2", b"3", producer=(7, 0, 0)))
    shorter = await room.produce("t", batch(b"0", b"1", producer=(7, 0, 0)))

    assert (longer.error_code, shorter.error_code) == (OUT_OF_ORDER_SEQUENCE, OUT_OF_ORDER_SEQUENCE)
    assert await room.bounds("t") == (0, 3)


@on_broker()
async def test_sequences_go_on_at_0_after_the_largest(room: Room) -> None:
    """A sibling of KAFKA-5793: a producer that wrote 2^31 records is not out of order."""
    await room.create("t")
    await room.append("t", b"a", b"b", producer=(7, 0, 2**31 - 3))
    assert await room.append("t", b"c", b"d", producer=(7, 0, 2**31 - 1)) == 2
    assert await room.append("t", b"e", producer=(7, 0, 1)) == 4

    again = await room.produce("t", batch(b"c", b"d", producer=(7, 0, 2**31 - 1)))
    assert (again.error_code, again.base_offset) == (0, 2)


@on_broker()
async def test_epochs_are_fenced_with_codes_that_a_producer_knows(room: Room) -> None:
    """franz-go "kfake: fix produce epoch validation error codes", redpanda "Add invalid_producer_epoch error": leader
    epoch errors made clients try again until their time was over."""
    await room.create("t")
    await room.append("t", b"v", producer=(7, 1, 0))
    codes = [
        (await room.produce("t", batch(b"v", producer=(7, epoch, sequence)))).error_code
        for epoch, sequence in [(0, 1), (2, 5), (2, 0)]
    ]

    assert codes == [INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE, 0]


@pytest.mark.parametrize("expires", [False, True])
@on_broker({"producer.id.expiration.ms": "1000", "producer.id.expiration.check.interval.ms": "100"}, clock=ManualClock)
async def test_a_producer_goes_on_after_its_records_were_deleted(room: Room, expires: bool) -> None:
    """KAFKA-7298 "Raise UnknownProducerIdException if next sequence number is unknown", KIP-360: fatal for a producer
    that did nothing wrong."""
    now = room.wall_ms()
    await room.create("t")
    for sequence in range(10):
        await room.append("t", b"v", producer=(7, 0, sequence), timestamps=[now])
    assert await room.delete_records("t", -1) == (0, 10)
    if expires:
        room.running.advance(60)
        await room.append("t", b"of another", producer=(8, 0, 0), timestamps=[room.wall_ms()])

    assert await room.append("t", b"v", producer=(7, 0, 10), timestamps=[room.wall_ms()]) == 10 + expires


@on_broker()
async def test_the_size_limit_counts_the_batch_as_it_came(room: Room) -> None:
    """redpanda "k/produce: validate max batch size", IBM/sarama#2804: off by one, or the inflated size counted, or the
    whole request failed."""
    await room.create("t", partitions=4, configs={"max.message.bytes": "2000"})
    room_for_value = 2000 - len(batch(bytes(1000))) + 1000
    exact, above = batch(bytes(room_for_value)), batch(bytes(room_for_value + 1))
    assert (len(exact), len(above)) == (2000, 2001)
    compressed = batch(*[bytes(10_000)] * 20, codec=Codec.GZIP)
    assert len(compressed) < 2000
    answer = await room.ask(produce_request({"t": {0: exact, 1: above, 2: compressed}}), 12)

    codes = [row.error_code for row in answer.responses[0].partition_responses]
    assert codes == [0, MESSAGE_TOO_LARGE, 0]


@on_broker()
async def test_append_time_is_the_brokers_and_told(room: Room) -> None:
    """redpanda-data/redpanda#910 "k/produce: fixed assigning log append timestamp"."""
    await room.create("t", configs={"message.timestamp.type": "LogAppendTime"})
    before = room.wall_ms()
    row = await room.produce("t", batch(b"a", b"b", b"c", timestamps=[1, 2, 3], codec=Codec.GZIP))
    assert before <= row.log_append_time_ms <= room.wall_ms()
    (stored,) = batches_of(await room.fetch("t", 0))
    assert stored.timestamp_type == 1
    assert [record.timestamp for record in stored.records()] == [row.log_append_time_ms] * 3

    await set_config(room, "t", "message.timestamp.type", "CreateTime")
    assert (await room.produce("t", batch(b"d", timestamps=[room.wall_ms()]))).log_append_time_ms == -1


async def set_config(room: Room, topic: str, name: str, value: str) -> None:
    setting = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=[setting])
    answer = await room.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0


@pytest.mark.parametrize("limit", ["after", "before"])
@on_broker()
async def test_a_record_out_of_its_time_is_named(room: Room, limit: str) -> None:
    """KAFKA-14991 apache/kafka#14135 (KIP-937), KAFKA-13710 "bring the InvalidTimestampException back for record
    error"."""
    now = room.wall_ms()
    wrong = now + (7_200_000 if limit == "after" else -7_200_000)
    records = batch(b"a", b"b", b"c", timestamps=[now, wrong, now])
    await room.create("t", configs={f"message.timestamp.{limit}.max.ms": "3600000"})
    row = await room.produce("t", records)

    assert row.error_code == INVALID_TIMESTAMP
    assert [error.batch_index for error in row.record_errors] == [1]
    assert row.record_errors[0].batch_index_error_message
    assert await room.bounds("t") == (0, 0)

    await set_config(room, "t", "message.timestamp.type", "LogAppendTime")
    assert (await room.produce("t", records)).error_code == 0


@pytest.mark.parametrize("codec", list(Codec))
@on_broker()
async def test_headers_come_back_as_they_were(room: Room, codec: Codec) -> None:
    """KAFKA-8142 apache/kafka#6484 "Fix NPE for nulls in Headers", dpkp/kafka-python#2024: order or nullness lost."""
    headers: tuple[tuple[str, bytes | None], ...] = (("k", None), ("k", b""), ("k", b"v"), ("", b"x"), ("ä", b"y"))
    await room.create("t")
    await room.append("t", b"v", headers=headers, codec=codec)
    (stored,) = batches_of(await room.fetch("t", 0))

    (record,) = stored.records()
    assert tuple(record.headers) == headers


@pytest.mark.parametrize("acks", [2, -2, 32767, -32768])
@on_broker()
async def test_acks_are_none_one_or_all(room: Room, acks: int) -> None:
    """KAFKA-3946 "Protocol guide should say that Produce request acks can only be 0, 1, or -1"."""
    await room.create("t", partitions=2)
    answer = await room.ask(produce_request({"t": {0: batch(b"v"), 1: batch(b"v")}}, acks=acks), 12)

    codes = {row.error_code for row in answer.responses[0].partition_responses}
    assert codes == {INVALID_REQUIRED_ACKS}
    assert await room.bounds("t", 0) == await room.bounds("t", 1) == (0, 0)


@on_broker()
async def test_a_refused_partition_does_not_touch_its_neighbours(room: Room) -> None:
    """A sibling of redpanda "k/produce: validate max batch size": one bad partition failed the whole request."""
    await room.create("t", partitions=5)
    bad = bytearray(batch(b"bad"))
    bad[-1] ^= 1
    rows = {0: batch(b"a"), 1: bytes(bad), 9: batch(b"x"), 2: batch(b"b"), 3: raw_batch(b"", count=1), 4: batch(b"c")}
    answer = await room.ask(produce_request({"t": rows}), 12)

    codes = {row.index: row.error_code for row in answer.responses[0].partition_responses}
    assert codes == {0: 0, 1: CORRUPT_MESSAGE, 9: 3, 2: 0, 3: INVALID_RECORD, 4: 0}
    assert [await room.bounds("t", number) for number in range(5)] == [(0, 1), (0, 0), (0, 1), (0, 0), (0, 1)]


@on_broker()
async def test_producer_ids_are_given_once(room: Room) -> None:
    """franz-go "kfake: fix time-based uniqueness bugs and concurrent map race": the same id for two producers."""
    peers = [await room.connect() for _ in range(20)]
    answers = await asyncio.gather(
        *(peer.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4) for peer in peers)
    )

    assert {answer.error_code for answer in answers} == {0}
    assert len({answer.producer_id for answer in answers}) == len(peers)


@on_broker()
async def test_base_offset_and_leader_epoch_are_the_brokers(room: Room) -> None:
    """KAFKA-5360 and its kind: what a producer writes into the fields of the broker is not served."""
    await room.create("t")
    await room.append("t", b"first")
    records = bytearray(batch(b"second"))
    records[12:16] = (77).to_bytes(4, "big")
    assert (await room.produce("t", bytes(records))).error_code == 0
    second = batches_of(await room.fetch("t", 1))[-1]
    assert isinstance(second, RecordBatch)

    assert second.base_offset == 1
    assert second.partition_leader_epoch == 0
