"""State shards in ordinary logs: what was appended comes back, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.config.log_config import LogConfig
from ottla.engine import Shard, StateRecord, StateStore
from ottla.errors import KafkaStorageError
from ottla.model import TopicPartition
from ottla.records.batch import RecordBatch, split_batches
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.records.control import ControlType, EndTransactionMarker, end_transaction_batch
from ottla.storage.state_store import LOAD_BYTES, LocalStateStore
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


RECORD_BATCHES = 30


def stored_batches(tmp_path: Path, count: int = RECORD_BATCHES) -> tuple[list[Path], int]:
    """Return the segments of a shard with so many batches of equal size in them, and that size."""
    logs = start_manager(tmp_path)
    logs.create(PARTITION, TOPIC_ID, LogConfig(internal_segment_bytes=800))
    store = LocalStateStore(logs, ManualClock())
    for number in range(count):
        store.append(SHARD, [StateRecord(b"k%02d" % number, b"v")], epoch=0)
    logs.close()
    paths = sorted((tmp_path / f"{PARTITION}").glob("*.log"))
    assert len(paths) > 2
    return paths, RecordBatch(next(iter(split_batches(paths[0].read_bytes()))).buffer).size_in_bytes


def load_again(tmp_path: Path) -> list[bytes | None]:
    """Return the keys of what is loaded after a clean stop."""
    logs = start_manager(tmp_path)
    try:
        batches = list(LocalStateStore(logs, ManualClock()).load(SHARD))
    finally:
        logs.close()
    return [record.key for batch in batches for record in batch.records]


@pytest.mark.parametrize(
    ("position", "byte", "problem"),
    [
        (8, 0x80, "-2147483"),
        (11, 3, "3 bytes long"),
        (9, 1, "no whole batch follows"),
        (16, 66, "66"),
        (40, 0x80, "fails its checksum"),
        (-1, 0x80, "fails its checksum"),
    ],
    ids=["a length below 0", "a short length", "a long length", "a magic", "a header", "a value"],
)
@pytest.mark.parametrize("slot", [0, -1], ids=["a full segment", "the active segment"])
def test_a_damaged_batch_is_named_and_not_taken_for_what_it_says(
    tmp_path: Path, slot: int, position: int, byte: int, problem: str
) -> None:
    """A bit that turned in a committed offset is an offset, too. Nothing looks for it after a clean stop but this."""
    paths, size = stored_batches(tmp_path)
    data = bytearray(paths[slot].read_bytes())
    data[size + position if position >= 0 else 2 * size + position] = byte
    paths[slot].write_bytes(data)

    with pytest.raises(KafkaStorageError) as raised:
        load_again(tmp_path)

    told = str(raised.value)
    assert told.startswith(f"{PARTITION} cannot be loaded: ")
    assert f"{paths[slot]}" in told
    assert f" {size}: " in told
    assert problem in told
    assert "`ottla storage verify`" in told
    assert "\n" not in told


@pytest.mark.parametrize("slot", [0, -1], ids=["a full segment", "the active segment"])
def test_a_segment_that_ends_within_a_batch_is_damage(tmp_path: Path, slot: int) -> None:
    """Kafka goes on with the next segment, and groups with older offsets; or appends behind the torn batch."""
    paths, size = stored_batches(tmp_path)
    paths[slot].write_bytes(paths[slot].read_bytes()[: 2 * size - 5])

    with pytest.raises(KafkaStorageError, match=f"{paths[slot]}, byte {size}: no whole batch follows"):
        load_again(tmp_path)


def test_what_was_damaged_is_loaded_once_it_is_whole_again(tmp_path: Path) -> None:
    paths, size = stored_batches(tmp_path)
    whole = paths[0].read_bytes()
    paths[0].write_bytes(whole[:size] + bytes(size) + whole[2 * size :])
    with pytest.raises(KafkaStorageError):
        load_again(tmp_path)

    paths[0].write_bytes(whole)

    assert load_again(tmp_path) == [b"k%02d" % number for number in range(RECORD_BATCHES)]


@pytest.mark.parametrize("value_bytes", [LOAD_BYTES // 3, 2 * LOAD_BYTES])
def test_batches_of_any_size_are_loaded(tmp_path: Path, value_bytes: int) -> None:
    logs = start_manager(tmp_path)
    logs.create(PARTITION, TOPIC_ID, LogConfig(segment_bytes=3 * LOAD_BYTES))
    store = LocalStateStore(logs, ManualClock())
    written = [StateRecord(b"k%d" % number, b"%d" % number * value_bytes) for number in range(9)]
    for record in written:
        store.append(SHARD, [record, StateRecord(b"small", b"")], epoch=0)

    assert [batch.records[0] for batch in store.load(SHARD)] == written


def test_a_log_that_could_not_be_made_yet_is_empty(tmp_path: Path) -> None:
    """Its topic is recorded, and the disk was full when the log was due; the first append makes it."""
    assert list(LocalStateStore(start_manager(tmp_path), ManualClock()).load(SHARD)) == []


def test_a_disk_that_gives_an_error_is_told_with_the_place(tmp_path: Path) -> None:
    stored_batches(tmp_path)
    logs = start_manager(tmp_path)
    segment = logs.log(PARTITION).segments[1]
    Path(segment.file.path).unlink()
    Path(segment.file.path).mkdir()

    with pytest.raises(KafkaStorageError, match=f"{segment.file.path}, byte 0: .*Is a directory"):
        list(LocalStateStore(logs, ManualClock()).load(SHARD))
