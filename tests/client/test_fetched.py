"""Which records of a fetch the application sees."""

from __future__ import annotations

import pytest

from ottla.client.fetched import FetchedPartition
from ottla.client.subscription import PartitionState
from ottla.errors import CorruptMessage
from ottla.model import TopicPartition
from ottla.records.batch import RecordBatch
from ottla.records.builder import BatchBuilder
from ottla.records.control import ControlType, control_key
from ottla.records.reading import Aborted


def batch(base_offset: int, count: int, *, producer_id: int = -1, control: ControlType | None = None) -> RecordBatch:
    builder = BatchBuilder(
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        is_transactional=producer_id >= 0,
        is_control=control is not None,
        leader_epoch=3,
    )
    for number in range(count):
        key = control_key(control) if control is not None else b"k"
        builder.append(1000, key, str(base_offset + number).encode())
    return RecordBatch(builder.build())


def fetched(*batches: RecordBatch, position: int = 0, aborted: Aborted | None = None) -> FetchedPartition:
    state = PartitionState(TopicPartition("t", 0))
    state.seek(position)
    return FetchedPartition(state, batches, aborted=aborted, check_crcs=True)


def offsets(found: FetchedPartition) -> list[int]:
    seen: list[int] = []
    while records := found.next_records():
        seen += [record.offset for record in records]
    return seen


def test_records_below_the_position_are_left_out() -> None:
    found = fetched(batch(10, 5), position=12)

    assert offsets(found) == [12, 13, 14]
    assert found.next_offset == 15
    assert found.leader_epoch == 3


def test_control_records_are_never_seen_and_passed() -> None:
    found = fetched(batch(0, 2), batch(2, 1, producer_id=9, control=ControlType.COMMIT))

    assert offsets(found) == [0, 1]
    assert found.next_offset == 3


def test_aborted_records_are_seen_only_without_an_aborted_list() -> None:
    batches = (
        batch(0, 2, producer_id=1),
        batch(2, 2, producer_id=2),
        batch(4, 1, producer_id=1, control=ControlType.ABORT),
        batch(5, 1, producer_id=1),
        batch(6, 1, producer_id=2, control=ControlType.COMMIT),
    )
    assert offsets(fetched(*batches)) == [0, 1, 2, 3, 5]
    assert offsets(fetched(*batches, aborted=Aborted([(1, 0)]))) == [2, 3, 5]


def test_a_batch_with_a_wrong_checksum_stops_before_itself() -> None:
    damaged = bytearray(batch(2, 1).buffer)
    damaged[-1] ^= 1
    found = fetched(batch(0, 2), RecordBatch(damaged))

    assert [record.offset for record in found.next_records()] == [0, 1]
    with pytest.raises(CorruptMessage, match="seek to 3 to go past it"):
        found.next_records()
    assert found.next_offset == 2


def test_a_seek_outdates_what_was_fetched() -> None:
    found = fetched(batch(0, 2))
    assert not found.is_outdated

    found.state.seek(7)

    assert found.is_outdated
