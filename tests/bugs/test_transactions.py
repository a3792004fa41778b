"""Transactions as a partition has them: how far readers see, what they must skip, and what markers look like."""

from __future__ import annotations

import random
from typing import Final

import pytest

from ottla.engine import Ticket
from ottla.errors import InvalidTxnState
from ottla.model import LATEST_TIMESTAMP, AppendOrigin, TopicPartition
from ottla.protocol.messages.fetch import PartitionData
from ottla.records.control import ControlType, EndTransactionMarker, end_transaction_batch
from tests.wire import Room, batch, batches_of, on_broker, produce_request

READ_COMMITTED: Final = 1
COORDINATOR_EPOCH: Final = 3
LOOPS: Final = 10_000
LOOPS_PER_READ: Final = 400
ENDS: Final = (ControlType.COMMIT, ControlType.ABORT)


class Producers:
    """Producers with transactions on partition 0 of `t`, and what a committed reader is to get in the end."""

    def __init__(self, room: Room) -> None:
        self._partition = room.running.broker.partition("t", 0)
        self._log = self._partition._log
        self._now_ms = room.wall_ms()
        self._sequences: dict[int, int] = {}
        self.open: dict[int, list[bytes]] = {}
        self.committed: set[bytes] = set()

    def append(self, producer_id: int, value: bytes, *, is_transactional: bool = True) -> Ticket:
        sequence = self._sequences.get(producer_id, 0)
        data = batch(value, producer=(producer_id, 0, sequence), is_transactional=is_transactional)
        ticket = self._partition.append(memoryview(bytearray(data)), self._now_ms)
        self._sequences[producer_id] = sequence + 1
        if is_transactional:
            self.open.setdefault(producer_id, []).append(value)
        else:
            self.committed.add(value)
        return ticket

    def end(self, producer_id: int, kind: ControlType) -> Ticket:
        marker = EndTransactionMarker(kind, COORDINATOR_EPOCH)
        data = end_transaction_batch(marker, producer_id=producer_id, producer_epoch=0, timestamp_ms=self._now_ms)
        values = self.open.pop(producer_id, [])
        if kind is ControlType.COMMIT:
            self.committed.update(values)
        return self._log.begin_append(
            TopicPartition("t", 0), bytearray(data), leader_epoch=0, origin=AppendOrigin.COORDINATOR
        )


def values_for_a_committed_reader(row: PartitionData) -> list[bytes]:
    """Read as a consumer does: of a producer in the list nothing from its first offset to its abort marker."""
    waiting = sorted((one.first_offset, one.producer_id) for one in row.aborted_transactions or ())
    aborted = set[int]()
    values: list[bytes] = []
    for one in batches_of(row):
        while waiting and waiting[0][0] <= one.base_offset:
            aborted.add(waiting.pop(0)[1])
        records = list(one.records())
        if one.is_control:
            if (records[0].key or b"")[2:4] == b"\0\0":
                aborted.discard(one.producer_id)
        elif one.producer_id not in aborted:
            values += [record.value or b"" for record in records]
    return values


@on_broker()
async def test_a_committed_reader_stops_where_a_transaction_is_open(room: Room) -> None:
    """nisshi-io/nisshi#689 "read_committed reads the stable offset, not the high watermark", KAFKA-9807."""
    await room.create("t")
    producers = Producers(room)
    for number in range(3):
        await room.append("t", b"%d" % number)
    producers.append(7, b"open")
    await room.append("t", b"4", b"5")

    committed = await room.fetch("t", 0, isolation_level=READ_COMMITTED)
    assert (committed.last_stable_offset, committed.high_watermark) == (3, 6)
    assert [one.last_offset for one in batches_of(committed)] == [0, 1, 2]
    assert batches_of(await room.fetch("t", 3, isolation_level=READ_COMMITTED)) == []
    uncommitted = await room.fetch("t", 0)
    assert (uncommitted.last_stable_offset, uncommitted.high_watermark) == (3, 6)
    assert batches_of(uncommitted)[-1].last_offset == 5
    assert (await room.list_offset("t", LATEST_TIMESTAMP, isolation_level=READ_COMMITTED)).offset == 3
    assert (await room.list_offset("t", LATEST_TIMESTAMP)).offset == 6

    producers.end(7, ControlType.ABORT)
    row = await room.fetch("t", 0, isolation_level=READ_COMMITTED)
    assert (row.last_stable_offset, row.high_watermark) == (7, 7)
    assert [(one.producer_id, one.first_offset) for one in row.aborted_transactions or ()] == [(7, 3)]
    assert values_for_a_committed_reader(row) == [b"0", b"1", b"2", b"4", b"5"]


@on_broker({"log.index.interval.bytes": "0"})
async def test_no_aborted_record_is_ever_read(room: Room) -> None:
    """redpanda "txn: fix aborted txs being visible", KAFKA-9807: with many transactions at once, ending either way, a
    reader that starts anywhere gets what was committed and nothing else."""
    dice = random.Random(43)
    await room.create("t")
    producers = Producers(room)
    for number in range(LOOPS):
        producer_id = dice.randrange(8)
        if producer_id in producers.open and dice.random() < 1 / 3:
            producers.end(producer_id, dice.choice(ENDS))
        else:
            producers.append(producer_id, b"%d" % number)
        if number % LOOPS_PER_READ == 0 and number:
            start = dice.randrange((await room.bounds("t"))[1])
            row = await room.fetch("t", start, isolation_level=READ_COMMITTED)
            assert set(values_for_a_committed_reader(row)) <= producers.committed
    for producer_id in list(producers.open):
        producers.end(producer_id, dice.choice(ENDS))
    row = await room.fetch("t", 0, isolation_level=READ_COMMITTED)
    assert set(values_for_a_committed_reader(row)) == producers.committed


@on_broker()
async def test_a_plain_batch_does_not_slip_into_a_transaction(room: Room) -> None:
    """KAFKA-14916 "Fix code that assumes transactional ID implies all records are transactional", franz-go (rules of
    produce): records of other producers, or without a transaction, in one."""
    await room.create("t", partitions=2)
    producers = Producers(room)
    producers.append(7, b"open")
    with pytest.raises(InvalidTxnState):
        producers.append(7, b"plain", is_transactional=False)
    row = await room.produce("t", batch(b"plain", producer=(7, 0, 1)))
    assert row.error_code == InvalidTxnState.code

    mixed = {number: batch(b"v", producer=(8 + number, 0, 0), is_transactional=True) for number in range(2)}
    answer = await room.ask(produce_request({"t": mixed}, transactional_id="x"), 12)
    assert all(one.error_code for one in answer.responses[0].partition_responses)
    row_of_log = await room.fetch("t", 0, isolation_level=READ_COMMITTED)
    assert (row_of_log.last_stable_offset, row_of_log.high_watermark) == (0, 1)
    assert list(row_of_log.aborted_transactions or ()) == []
    assert await room.bounds("t", 1) == (0, 0)


@pytest.mark.parametrize(("kind", "number"), [(ControlType.ABORT, 0), (ControlType.COMMIT, 1)])
@on_broker()
async def test_markers_are_laid_out_as_clients_read_them(room: Room, kind: ControlType, number: int) -> None:
    """redpanda "kafka: fix Sarama control record issue": an empty value, and clients that read one failed."""
    await room.create("t")
    producers = Producers(room)
    producers.append(7, b"v")
    producers.end(7, kind)
    await room.append("t", b"next")

    marker = batches_of(await room.fetch("t", 1))[0]
    assert (marker.base_offset, marker.last_offset, marker.count) == (1, 1, 1)
    assert marker.is_control
    assert marker.is_transactional
    (record,) = marker.records()
    assert record.key == bytes([0, 0, 0, number])
    assert record.value == b"\0\0" + COORDINATOR_EPOCH.to_bytes(4, "big")
    assert await room.bounds("t") == (0, 3)
