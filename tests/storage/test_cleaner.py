"""Compaction: what stays, when it runs, and what it must not touch."""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.engine import LogOffsets, ReadLimit
from ottla.model import AppendOrigin
from ottla.records.batch import RecordBatch, split_batches
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.records.control import ControlType, EndTransactionMarker, end_transaction_batch
from ottla.storage.log import PartitionLog
from tests.storage.harness import TOPIC_ID, TP, FailingFileSystem, Kept, UnsyncedFileSystem, make_batch, take_bytes

COMPACT = frozenset({"compact"})
START_MS = 1_750_000_000_000
CLEAN_OFFSETS = "cleaner-offset-checkpoint"
HOUR_MS = 3_600_000


class Compacted:
    """A compacted topic with tiny segments, its housekeeper, and records by key."""

    def __init__(self, directory: Path, settings: dict[str, str] | None = None, **config: Any) -> None:
        properties = {
            "log.cleaner.backoff.ms": "1000",
            "log.retention.check.interval.ms": "1000000",
            **(settings or {}),
        }
        self.kept = Kept(directory, filesystem=UnsyncedFileSystem(), properties=properties)
        self.config = LogConfig(
            **{
                "cleanup_policy": COMPACT,
                "internal_segment_bytes": 400,
                "min_cleanable_dirty_ratio": 0.01,
                "delete_retention_ms": HOUR_MS,
                "file_delete_delay_ms": 0,
                **config,
            }
        )
        self.kept.manager.create(TP, TOPIC_ID, self.config)

    @property
    def log(self) -> PartitionLog:
        return self.kept.manager.log(TP)

    def put(
        self,
        *pairs: tuple[bytes | None, bytes | None],
        codec: Codec = Codec.NONE,
        timestamp_ms: int | None = None,
        **producer: Any,
    ) -> int:
        """Append one batch; returns its base offset."""
        builder = BatchBuilder(codec=codec, **producer)
        stamp = self.kept.clock.wall_ms() if timestamp_ms is None else timestamp_ms
        for key, value in pairs:
            builder.append(stamp, key, value)
        return self.kept.manager.begin_append(TP, bytearray(builder.build()), leader_epoch=0).base_offset

    def end(self, producer_id: int, kind: ControlType) -> None:
        marker = EndTransactionMarker(kind, 0)
        batch = end_transaction_batch(
            marker, producer_id=producer_id, producer_epoch=0, timestamp_ms=self.kept.clock.wall_ms()
        )
        self.kept.manager.begin_append(TP, bytearray(batch), leader_epoch=0, origin=AppendOrigin.COORDINATOR)

    def roll(self) -> None:
        self.log.roll()
        self.kept.offload.run_all()

    def clean(self) -> None:
        """Roll what there is, and let the cleaner come round."""
        self.roll()
        self.kept.advance(1)

    def batches(self) -> list[RecordBatch]:
        return batches_of(self.kept)

    def records(self) -> list[tuple[int, bytes | None, bytes | None]]:
        return [
            (record.offset, record.key, record.value)
            for batch in self.batches()
            if not batch.is_control
            for record in batch.records()
        ]


def batches_of(kept: Kept) -> list[RecordBatch]:
    """Read as a consumer does: always from where the last batch ended."""
    offsets = kept.manager.offsets(TP)
    offset = offsets.log_start_offset
    found: list[RecordBatch] = []
    while offset < offsets.high_watermark:
        result = kept.manager.read(TP, offset, ReadLimit(100_000, offsets.high_watermark, at_least_one_batch=True))
        batches = list(split_batches(take_bytes(result)))
        if not batches:
            return found  # nothing but holes up to the end
        assert all(batch.is_crc_valid() for batch in batches)
        found += batches
        offset = batches[-1].next_offset
    return found


def newest(pairs: Iterable[tuple[int, bytes | None, bytes | None]]) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in pairs if value is not None}


def test_newest_value_of_each_key_stays_at_its_offset(tmp_path: Path) -> None:
    topic = Compacted(tmp_path)
    for value in range(20):
        topic.put((b"a", b"%d" % value), (b"b", b"%d" % value))
    topic.put((b"c", b"only"))
    topic.clean()
    assert topic.records() == [(38, b"a", b"19"), (39, b"b", b"19"), (40, b"c", b"only")]
    assert topic.kept.manager.offsets(TP) == LogOffsets(0, 41, 41, 41)


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_keep_their_codec_and_their_ends(tmp_path: Path, codec: Codec) -> None:
    topic = Compacted(tmp_path)
    topic.put((b"a", b"1"), (b"b", b"1"), (b"c", b"1"), codec=codec)
    topic.put((b"a", b"2"), (b"c", b"2"), codec=codec)
    topic.clean()
    first, second = topic.batches()
    assert (first.base_offset, first.last_offset, first.count, first.codec) == (0, 2, 1, codec)
    assert (second.base_offset, second.last_offset, second.count, second.codec) == (3, 4, 2, codec)


def test_segments_are_merged_as_far_as_they_fit_one(tmp_path: Path) -> None:
    topic = Compacted(tmp_path)
    for value in range(40):
        topic.put((b"k%d" % (value % 3), b"%d" % value))
    before = len(topic.log.segments)
    for _ in range(3):
        topic.put((b"more", b"1"))
        topic.clean()
    topic.kept.advance(1)
    assert before > 6
    assert len(topic.log.segments) <= 4
    names = sorted(path.name for path in (tmp_path / "t-0").iterdir())
    assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]


def test_what_is_clean_is_not_compacted_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    topic = Compacted(tmp_path, min_cleanable_dirty_ratio=0.5)
    for value in range(20):
        topic.put((b"k", b"%d" % value))
    with caplog.at_level(logging.INFO):
        topic.clean()
        topic.kept.advance(10)
    assert sum("compacted up to" in record.getMessage() for record in caplog.records) == 1
    assert (tmp_path / CLEAN_OFFSETS).read_text() == "0\n1\nt 0 20\n"


def test_clean_part_counts_again_after_a_restart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    topic = Compacted(tmp_path)
    for value in range(20):
        topic.put((b"k", b"%d" % value))
    topic.clean()
    topic.kept.offload.run_all()
    topic.kept.manager.close()
    again = Kept(
        tmp_path, properties={"log.cleaner.backoff.ms": "1000", "log.cleanup.policy": "compact", "log.roll.hours": "1"}
    )
    with caplog.at_level(logging.INFO):
        again.advance(3)
        again.advance(3)
    assert not [record for record in caplog.records if "compacted up to" in record.getMessage()]


def test_deleted_log_takes_its_clean_part_with_it_before_anything_was_compacted(tmp_path: Path) -> None:
    topic = Compacted(tmp_path)
    for value in range(20):
        topic.put((b"k", b"%d" % value))
    topic.clean()
    topic.kept.manager.close()
    again = Compacted(tmp_path)
    again.kept.manager.delete(TP)
    again.kept.manager.create(TP, TOPIC_ID, again.config)
    for value in range(20):
        again.put((b"k", b"%d" % value))
    again.clean()
    again.kept.advance(1)
    assert again.records() == [(19, b"k", b"19")], "what was clean in the log before says nothing of this one"


def test_nothing_is_compacted_where_the_cleaner_is_off(tmp_path: Path) -> None:
    topic = Compacted(tmp_path, {"log.cleaner.enable": "false"})
    for value in range(20):
        topic.put((b"k", b"%d" % value))
    topic.kept.manager.configure_housekeeping(BrokerConfig.from_properties({"log.cleaner.enable": "false"}))
    topic.clean()
    topic.kept.advance(1000)
    assert len(topic.records()) == 20


def test_dirty_ratio_decides(tmp_path: Path) -> None:
    topic = Compacted(tmp_path, min_cleanable_dirty_ratio=0.5, internal_segment_bytes=10_000)
    topic.put(*((b"k%d" % number, bytes(20)) for number in range(50)))
    topic.clean()
    topic.put((b"k0", b"new"))
    topic.clean()
    assert len(topic.records()) == 51, "one of 51 is not dirty enough"
    topic.put(*((b"k%d" % number, bytes(40)) for number in range(50)))
    topic.clean()
    assert len(topic.records()) == 50


def test_longest_wait_overrules_the_ratio(tmp_path: Path) -> None:
    topic = Compacted(tmp_path, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=10_000)
    topic.put((b"k", b"1"))
    topic.put((b"k", b"2"))
    topic.clean()
    assert len(topic.records()) == 2
    topic.kept.advance(11)
    assert topic.records() == [(1, b"k", b"2")]


def test_young_records_and_the_active_segment_are_left_alone(tmp_path: Path) -> None:
    topic = Compacted(tmp_path, min_compaction_lag_ms=60_000)
    topic.put((b"k", b"1"))
    topic.put((b"k", b"2"))
    topic.clean()
    assert len(topic.records()) == 2
    topic.kept.advance(61)
    assert topic.records() == [(1, b"k", b"2")]
    topic.put((b"k", b"3"))
    topic.kept.advance(61)
    assert len(topic.records()) == 2


def test_tombstone_stays_until_its_horizon_and_goes_without_new_writes(tmp_path: Path) -> None:
    """KAFKA-4529 "tombstone can be deleted too early" (by times of records in the future), KAFKA-8522 (never)."""
    topic = Compacted(tmp_path, delete_retention_ms=5_000)
    topic.put((b"k", b"1"))
    topic.put((b"k", None), timestamp_ms=START_MS + 10**12)
    topic.put((b"other", b"1"))
    topic.clean()
    assert topic.records() == [(1, b"k", None), (2, b"other", b"1")]
    topic.kept.advance(2)
    assert topic.records() == [(1, b"k", None), (2, b"other", b"1")]
    topic.kept.advance(4)
    assert topic.records() == [(2, b"other", b"1")]


def test_aborted_records_go_and_their_marker_later(tmp_path: Path) -> None:
    topic = Compacted(tmp_path, delete_retention_ms=5_000)
    topic.put((b"k", b"kept"))
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    topic.put((b"k", b"aborted"), base_sequence=0, **producer)
    topic.end(7, ControlType.ABORT)
    topic.put((b"k2", b"committed"), base_sequence=1, **producer)
    topic.end(7, ControlType.COMMIT)
    assert len(topic.kept.manager.aborted_transactions(TP, 0, 10)) == 1

    topic.clean()
    assert topic.records() == [(0, b"k", b"kept"), (3, b"k2", b"committed")]
    assert [batch.base_offset for batch in topic.batches() if batch.is_control] == [2, 4]
    assert len(topic.kept.manager.aborted_transactions(TP, 0, 10)) == 1, "the marker came in the same pass"
    topic.put((b"k3", b"x"))
    topic.clean()
    assert topic.kept.manager.aborted_transactions(TP, 0, 10) == []
    topic.kept.advance(6)
    assert [batch.base_offset for batch in topic.batches() if batch.is_control] == [4]
    assert topic.records() == [(0, b"k", b"kept"), (3, b"k2", b"committed"), (5, b"k3", b"x")]


def test_nothing_at_or_above_the_last_stable_offset_is_touched(tmp_path: Path) -> None:
    """KAFKA-13194 "bound cleaning by both LSO and HWM"."""
    topic = Compacted(tmp_path)
    topic.put((b"k", b"before"))
    topic.roll()
    topic.put((b"k", b"open"), producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    topic.roll()
    topic.put((b"k", b"after"))
    topic.clean()
    assert [value for _, _, value in topic.records()] == [b"before", b"open", b"after"]
    topic.end(7, ControlType.ABORT)
    topic.clean()
    assert newest(topic.records()) == {b"k": b"after"}


def test_producers_newest_batch_stays_as_a_header_and_is_still_known_after_a_restart(tmp_path: Path) -> None:
    """KAFKA-5490 "Cleaner should retain empty batch if needed to preserve producer last sequence", KAFKA-7385."""
    topic = Compacted(tmp_path)
    for sequence in range(10):
        topic.put((b"k", b"%d" % sequence), producer_id=5, producer_epoch=0, base_sequence=sequence)
    topic.put((b"k", b"last"), producer_id=6, producer_epoch=0, base_sequence=0)
    topic.clean()
    assert topic.records() == [(10, b"k", b"last")]
    (empty,) = [batch for batch in topic.batches() if not batch.count]
    assert (empty.base_offset, empty.last_offset, empty.base_sequence) == (9, 9, 9)

    topic.kept.offload.run_all()
    topic.kept.manager.close()
    for path in (tmp_path / "t-0").glob("*.snapshot"):
        path.unlink()
    again = Kept(tmp_path)
    repeated = make_batch(producer_id=5, producer_epoch=0, base_sequence=9)
    assert again.manager.begin_append(TP, repeated, leader_epoch=0).is_duplicate
    following = make_batch(producer_id=5, producer_epoch=0, base_sequence=10)
    assert not again.manager.begin_append(TP, following, leader_epoch=0).is_duplicate


def test_empty_batches_do_not_pile_up(tmp_path: Path) -> None:
    """KAFKA-8335 "Clean empty batches when sequence numbers are reused"."""
    topic = Compacted(tmp_path)
    for sequence in range(60):
        topic.put((b"k", b"%d" % sequence), producer_id=5, producer_epoch=0, base_sequence=sequence)
        if sequence % 10 == 9:
            topic.clean()
    topic.clean()
    assert len(topic.batches()) == 1


def test_records_without_a_key_go(tmp_path: Path) -> None:
    topic = Compacted(tmp_path)
    topic.put((None, b"from before it was compacted"), (b"k", b"1"))
    topic.clean()
    assert topic.records() == [(1, b"k", b"1")]


def test_consumer_gets_past_holes_at_every_offset(tmp_path: Path) -> None:
    topic = Compacted(tmp_path)
    for value in range(30):
        topic.put((b"k%d" % (value % 2), b"%d" % value))
    topic.clean()
    topic.put((b"tail", b"1"))
    ends = [batch.last_offset for batch in topic.batches()]
    for offset in range(31):
        limit = ReadLimit(10_000, 31, at_least_one_batch=True)
        batches = list(split_batches(take_bytes(topic.kept.manager.read(TP, offset, limit))))
        assert batches[0].last_offset == next(end for end in ends if end >= offset), offset


def test_everything_may_vanish_and_the_end_stays(tmp_path: Path) -> None:
    topic = Compacted(tmp_path, delete_retention_ms=0)
    topic.put((b"k", b"1"))
    topic.put((b"k", None))
    topic.clean()
    topic.kept.advance(1)
    topic.kept.advance(1)
    assert topic.records() == []
    assert topic.kept.manager.offsets(TP) == LogOffsets(0, 2, 2, 2)
    assert topic.put((b"k", b"2")) == 2


def test_policy_that_changes_during_a_pass_ends_it(tmp_path: Path) -> None:
    """KAFKA-12840 "Removing `compact` cleaning on a topic should abort on-going compactions"."""
    topic = Compacted(tmp_path)
    for value in range(20):
        topic.put((b"k", b"%d" % value))
    topic.roll()
    topic.kept.clock.advance(1)
    topic.kept.timers.run_due(topic.kept.clock.monotonic())
    topic.kept.manager.configure(TP, LogConfig(internal_segment_bytes=400, retention_ms=-1))
    topic.kept.offload.run_all()
    assert len(topic.records()) == 20
    assert not list((tmp_path / "t-0").glob("*.cleaned"))


def test_log_that_is_deleted_during_a_pass_takes_nothing_with_it(tmp_path: Path) -> None:
    topic = Compacted(tmp_path)
    for value in range(20):
        topic.put((b"k", b"%d" % value))
    topic.roll()
    topic.kept.clock.advance(1)
    topic.kept.timers.run_due(topic.kept.clock.monotonic())
    topic.kept.manager.delete(TP)
    topic.kept.manager.create(TP, TOPIC_ID, topic.config)
    topic.kept.offload.run_all()
    assert topic.put((b"k", b"new")) == 0
    topic.kept.advance(2)
    assert topic.records() == [(0, b"k", b"new")]


@pytest.mark.parametrize("steps", range(6))
def test_log_that_is_deleted_at_any_step_leaves_the_next_of_its_name_alone(tmp_path: Path, steps: int) -> None:
    topic = Compacted(tmp_path)
    for value in range(20):
        topic.put((b"k", b"%d" % value))
    topic.roll()
    kept = topic.kept
    kept.clock.advance(1)
    kept.timers.run_due(kept.clock.monotonic())
    for _ in range(steps):
        if kept.offload.work:
            kept.offload.run_work()
    kept.manager.delete(TP)
    kept.manager.create(TP, TOPIC_ID, topic.config)
    for key in range(20):
        topic.put((b"%d" % key, b"v"))
    kept.offload.run_all()

    left = tmp_path / "left"
    shutil.copytree(tmp_path / "t-0", left / "t-0")
    assert [batch.base_offset for batch in batches_of(Kept(left))] == list(range(20))
    for _ in range(20):
        topic.put((b"0", b"again"))
    topic.clean()
    assert len(topic.records()) == 20, "nothing is compacted any more"


def test_map_without_room_for_all_keys_takes_several_passes(tmp_path: Path) -> None:
    topic = Compacted(tmp_path, {"log.cleaner.dedupe.buffer.size": "2000"})
    for value in range(60):
        topic.put((b"k%d" % (value % 30), b"%d" % value))
    topic.clean()
    topic.kept.advance(5)
    assert sorted(newest(topic.records()).items()) == sorted((b"k%d" % (v % 30), b"%d" % v) for v in range(30, 60))
    assert len(topic.records()) == 30


def test_index_settings_that_became_smaller_end_no_compaction(tmp_path: Path) -> None:
    topic = Compacted(tmp_path, index_interval_bytes=0, internal_segment_bytes=10_000)
    for value in range(60):
        topic.put((b"k%d" % (value % 30), b"%d" % value))
    topic.kept.manager.configure(TP, topic.config._replace(segment_index_bytes=80))
    topic.clean()
    topic.kept.advance(5)
    assert [offset for offset, _, _ in topic.records()] == list(range(30, 60))


def test_rate_is_kept(tmp_path: Path) -> None:
    topic = Compacted(tmp_path, {"log.cleaner.io.max.bytes.per.second": "1000"})
    for value in range(40):
        topic.put((b"k%d" % value, bytes(100)))
    size = topic.log.size_bytes
    topic.clean()
    assert topic.log.is_compacting
    for _ in range(3 * size // 1000 + 2):
        topic.kept.advance(1)
    assert not topic.log.is_compacting


def test_deleting_and_compacting_go_together(tmp_path: Path) -> None:
    policy = frozenset({"compact", "delete"})
    topic = Compacted(
        tmp_path, {"log.retention.check.interval.ms": "1000"}, cleanup_policy=policy, retention_ms=HOUR_MS
    )
    for value in range(10):
        topic.put((b"k", b"%d" % value))
    topic.clean()
    assert topic.records() == [(9, b"k", b"9")]
    topic.kept.advance(HOUR_MS / 1000 + 2)
    topic.kept.advance(2)
    assert topic.records() == []
    assert topic.kept.manager.offsets(TP).log_start_offset == 10


def test_damaged_log_is_left_as_it_is_and_said_so_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    topic = Compacted(tmp_path)
    for value in range(10):
        topic.put((b"k", b"%d" % value))
    topic.roll()
    path = tmp_path / "t-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    topic.clean()
    topic.kept.advance(5)
    assert sum("is not compacted any more" in record.getMessage() for record in caplog.records) == 1
    assert path.read_bytes() == data
    assert topic.put((b"k", b"still taken")) == 10


def test_failing_disk_during_a_pass_leaves_the_originals(tmp_path: Path) -> None:
    files = FailingFileSystem()
    kept = Kept(tmp_path, filesystem=files, properties={"log.cleaner.backoff.ms": "1000"})
    kept.manager.create(
        TP, TOPIC_ID, LogConfig(cleanup_policy=COMPACT, internal_segment_bytes=200, min_cleanable_dirty_ratio=0.01)
    )
    for value in range(6):
        kept.manager.begin_append(TP, make_batch(value=b"%d" % value), leader_epoch=0)
    kept.offload.run_all()
    files.is_sync_failing = True
    kept.advance(1)
    files.is_sync_failing = False
    assert len(batches_of(kept)) == 6
    assert kept.manager.begin_append(TP, make_batch(), leader_epoch=0).base_offset == 6


@pytest.mark.parametrize("seed", range(4))
def test_any_history_ends_in_the_newest_committed_values(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    topic = Compacted(tmp_path, delete_retention_ms=dice.choice((0, 5_000, HOUR_MS)))
    model: dict[bytes, bytes | None] = {}
    pending: dict[int, dict[bytes, bytes | None]] = {}
    sequences = {1: 0, 2: 0}
    for step in range(300):
        key = b"k%d" % dice.randrange(12)
        value = None if dice.random() < 0.15 else b"%d" % step
        codec = dice.choice(list(Codec))
        chosen = dice.random()
        if chosen < 0.5:
            topic.put((key, value), codec=codec)
            model[key] = value
        elif chosen < 0.8:
            producer_id = dice.choice((1, 2))
            own = b"p%d-" % producer_id + key
            topic.put(
                (own, value),
                codec=codec,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequences[producer_id],
                is_transactional=True,
            )
            sequences[producer_id] += 1
            pending.setdefault(producer_id, {})[own] = value
        elif chosen < 0.9 and pending:
            producer_id, written = pending.popitem()
            is_commit = dice.random() < 0.5
            topic.end(producer_id, ControlType.COMMIT if is_commit else ControlType.ABORT)
            if is_commit:
                model.update(written)
        else:
            topic.kept.advance(dice.choice((1, 3, 10)))
    for producer_id in pending:
        topic.end(producer_id, ControlType.ABORT)
    topic.clean()
    topic.kept.advance(1)
    assert committed(topic) == {key: value for key, value in model.items() if value is not None}


def committed(topic: Compacted) -> dict[bytes | None, bytes]:
    """Read as a read_committed consumer does, by the list of aborted transactions."""
    end = topic.kept.manager.offsets(TP).high_watermark
    upcoming = sorted(topic.kept.manager.aborted_transactions(TP, 0, end), key=lambda txn: txn.first_offset)
    aborted: set[int] = set()
    state: dict[bytes | None, bytes] = {}
    for batch in topic.batches():
        while upcoming and upcoming[0].first_offset <= batch.last_offset:
            aborted.add(upcoming.pop(0).producer_id)
        if batch.is_control:
            aborted.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborted):
            for record in batch.records():
                state.pop(record.key, None)
                if record.value is not None:
                    state[record.key] = record.value
    return state
