"""State shards in ordinary logs: what was appended comes back, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.config.log_config import LogConfig
from ottla.engine import Shard, StateRecord, StateStore
from ottla.errors import KafkaStorageError
from ottla.model import TopicPartition
from ottla.records.batch import RecordBatch
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.records.control import ControlType, EndTransactionMarker, end_transaction_batch
from ottla.storage.state_store import LocalStateStore
from ottla.testing.clock import START_WALL_MS, ManualClock
from tests.storage.harness import TOPIC_ID, start_manager

SHARD = Shard("__consumer_offsets", 3)
PARTITION = TopicPartition(*SHARD)


def test_appended_records_are_loaded_in_order(tmp_path: Path) -> None:
    logs = start_manager(tmp_path)
    logs.create(PARTITION, TOPIC_ID, LogConfig(internal_segment_bytes=400))
    store: StateStore = LocalStateStore(logs, ManualClock())
    written = [[StateRecord(b"k%d" % index, b"v"), StateRecord(b"gone", None)] for index in range(20)]
    for records in written:
        assert store.append(SHARD, records, epoch=2).is_durable

    loaded = list(store.load(SHARD))

    assert [list(batch.records) for batch in loaded] == written
    assert [batch.base_offset for batch in loaded] == list(range(0, 40, 2))
    assert {batch.timestamp_ms for batch in loaded} == {START_WALL_MS}
    assert logs.latest_leader_epoch(PARTITION) == 2


def test_of_control_records_only_the_end_of_a_transaction_is_told(tmp_path: Path) -> None:
    logs = start_manager(tmp_path)
    logs.create(PARTITION, TOPIC_ID, LogConfig())
    store = LocalStateStore(logs, ManualClock())
    store.append(SHARD, [StateRecord(b"k", b"v")], epoch=0)
    marker = EndTransactionMarker(ControlType.COMMIT, 0)
    batch = end_transaction_batch(marker, producer_id=1, producer_epoch=0, timestamp_ms=5)
    logs.begin_append(PARTITION, bytearray(batch), leader_epoch=0)

    data, end = store.load(SHARD)

    assert (list(data.records), data.producer_id, data.is_commit) == ([StateRecord(b"k", b"v")], -1, None)
    assert (list(end.records), end.producer_id, end.is_commit) == ([], 1, True)


def test_records_of_a_transaction_come_with_their_producer(tmp_path: Path) -> None:
    logs = start_manager(tmp_path)
    logs.create(PARTITION, TOPIC_ID, LogConfig())
    builder = BatchBuilder(producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.append(5, b"k", b"v")
    logs.begin_append(PARTITION, bytearray(builder.build()), leader_epoch=0)

    (batch,) = LocalStateStore(logs, ManualClock()).load(SHARD)

    assert (list(batch.records), batch.producer_id, batch.is_commit) == ([StateRecord(b"k", b"v")], 7, None)


@pytest.mark.parametrize("codec", list(Codec))
def test_offsets_are_stored_in_the_codec_that_was_set(tmp_path: Path, codec: Codec) -> None:
    logs = start_manager(tmp_path)
    other = Shard("__share_group_state", 0)
    store = LocalStateStore(logs, ManualClock(), codec)
    record = StateRecord(b"k", b"value " * 100)
    for shard, expected in ((SHARD, codec), (other, Codec.NONE)):
        partition = TopicPartition(*shard)
        logs.create(partition, TOPIC_ID, LogConfig())
        store.append(shard, [record], epoch=0)

        stored = RecordBatch((tmp_path / f"{partition}" / f"{0:020d}.log").read_bytes())
        assert stored.codec is expected
        (batch,) = store.load(shard)
        assert list(batch.records) == [record]


def test_empty_shard_loads_nothing(tmp_path: Path) -> None:
    logs = start_manager(tmp_path)
    logs.create(PARTITION, TOPIC_ID, LogConfig())
    assert list(LocalStateStore(logs, ManualClock()).load(SHARD)) == []


def test_a_load_ends_where_the_offset_of_a_batch_went_back(tmp_path: Path) -> None:
    """What is damaged after a clean stop is not looked for; a start that read the same batches for ever would hang."""
    logs = start_manager(tmp_path)
    logs.create(PARTITION, TOPIC_ID, LogConfig(index_interval_bytes=1))
    store = LocalStateStore(logs, ManualClock())
    for number in range(4):
        store.append(SHARD, [StateRecord(b"k%d" % number, b"v")], epoch=0)
    path = tmp_path / f"{PARTITION}" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    size = 12 + int.from_bytes(data[8:12], "big")
    data[3 * size : 3 * size + 8] = bytes(8)
    path.write_bytes(data)

    batches = [batch for batch, _ in zip(store.load(SHARD), range(9), strict=False)]

    assert [batch.records[0].key for batch in batches] == [b"k0", b"k1", b"k2", b"k3"]


@pytest.mark.parametrize("position", [8, 40, -1], ids=["a length", "a header", "a value"])
def test_a_damaged_batch_is_named_and_not_taken_for_what_it_says(tmp_path: Path, position: int) -> None:
    """A bit that turned in a committed offset is an offset, too. Nothing looks for it after a clean stop but this."""
    logs = start_manager(tmp_path)
    logs.create(PARTITION, TOPIC_ID, LogConfig())
    store = LocalStateStore(logs, ManualClock())
    store.append(SHARD, [StateRecord(b"k", b"v")], epoch=0)
    path = tmp_path / f"{PARTITION}" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[position] ^= 0x80
    path.write_bytes(data)

    with pytest.raises(KafkaStorageError, match=f"{PARTITION} cannot be loaded: .*repair"):
        list(store.load(SHARD))
