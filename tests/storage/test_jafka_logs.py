"""Logs in Jafka's form under a manager: made, found again, checked after a crash, swept, moved not, and deleted."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from ottla.config.log_config import LogConfig
from ottla.engine import LogOffsets, ReadLimit, Ticket
from ottla.errors import KafkaStorageError, UnknownTopicOrPartition
from ottla.model import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    NO_LEADER_EPOCH,
    NO_OFFSET,
    NO_TIMESTAMP_MS,
    TopicPartition,
)
from ottla.records.builder import BatchBuilder
from ottla.records.reading import decode
from ottla.storage.manager import LogManager
from ottla.testing.clock import START_WALL_MS, ManualClock
from ottla.testing.memory import MemoryFileSystem
from tests.storage.harness import TOPIC_ID, TP, Kept, ManualOffload, make_batch, make_manager, start_manager, take_bytes
from tests.storage.jafka import message, segments

JAFKA = LogConfig(ottla_format="jafka", retention_ms=1000)


def batch(*values: bytes) -> bytearray:
    builder = BatchBuilder()
    for value in values:
        builder.append(5, None, value)
    return bytearray(builder.build())


def append(manager: LogManager, *values: bytes) -> None:
    manager.keeping(JAFKA).begin_append(TP, batch(*values), leader_epoch=0)


def values(manager: LogManager, offset: int = 0) -> list[bytes]:
    log = manager.keeping(JAFKA)
    read = log.read(TP, offset, ReadLimit(1 << 20, log.offsets(TP).high_watermark, at_least_one_batch=True))
    return [record.value or b"" for record in decode(take_bytes(read), offset, 1 << 40).records]


def config_for(topic: str) -> LogConfig:
    return JAFKA


def restart(directory: Path, **settings: Any) -> LogManager:
    manager = start_manager(directory, **settings)
    manager.create(TP, TOPIC_ID, JAFKA)
    return manager


def test_a_topic_in_jafkas_format_has_its_files_alone(tmp_path: Path) -> None:
    manager = restart(tmp_path)
    assert manager.keeping(LogConfig()) is manager
    append(manager, b"one", b"two")
    assert values(manager) == [b"one", b"two"]
    assert manager.size_bytes(TP) == 26
    assert manager.producers(TP) == ()
    manager.close()
    assert segments(tmp_path / "t-0") == {0: 26}
    assert not list((tmp_path / "t-0").glob("*.log"))
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    again = restart(tmp_path)
    assert again.size_bytes(TP) == 26
    append(again, b"three")
    assert values(again) == [b"one", b"two", b"three"]
    again.close()


def test_questions_of_kafkas_clients(tmp_path: Path) -> None:
    manager = restart(tmp_path)
    log = manager.keeping(JAFKA)
    append(manager, b"one", b"two")
    assert log.offsets(TP) == LogOffsets(0, 2, 2, 2)
    assert log.delete_records(TP, 1) == 1
    asked = (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, MAX_TIMESTAMP, 5, START_WALL_MS + 1)
    assert [log.offset_for_timestamp(TP, at) for at in asked] == [
        (NO_TIMESTAMP_MS, 1, NO_LEADER_EPOCH),
        (NO_TIMESTAMP_MS, 2, NO_LEADER_EPOCH),
        (START_WALL_MS, 1, NO_LEADER_EPOCH),
        (START_WALL_MS, 1, NO_LEADER_EPOCH),
        None,
    ]
    assert log.end_offset_for_epoch(TP, 0) == (NO_LEADER_EPOCH, NO_OFFSET)
    assert (log.latest_leader_epoch(TP), log.aborted_transactions(TP, 0, 2)) == (None, ())
    log.truncate_to(TP, 1)
    assert log.offsets(TP) == LogOffsets(1, 1, 1, 1)
    with pytest.raises(UnknownTopicOrPartition):
        log.offsets(TopicPartition("other", 0))
    manager.close()


def test_a_torn_end_is_cut_at_the_start(tmp_path: Path) -> None:
    manager = restart(tmp_path)
    append(manager, b"one", b"two")
    manager.close()
    (tmp_path / ".kafka_cleanshutdown").unlink()
    with (tmp_path / "t-0" / f"{0:020d}.jafka").open("ab") as file:
        file.write(message(b"three")[:-1])
    again = restart_after_crash(tmp_path)
    assert values(again) == [b"one", b"two"]
    assert segments(tmp_path / "t-0") == {0: 26}
    again.close()


def restart_after_crash(directory: Path, **settings: Any) -> LogManager:
    manager = make_manager(directory, **settings)
    manager.open()
    manager.load(config_for)
    manager.create(TP, TOPIC_ID, JAFKA)
    return manager


def test_old_files_go_in_the_background_also_of_logs_that_nobody_asked_for(tmp_path: Path) -> None:
    settings = {"log.retention.check.interval.ms": "5000", "ottla.jafka.file.size": "20"}
    kept = Kept(tmp_path, properties=settings)
    kept.manager.create(TP, TOPIC_ID, JAFKA)
    append(kept.manager, b"one", b"two")
    kept.manager.close()
    again = Kept(tmp_path, properties=settings)
    again.manager.create(TP, TOPIC_ID, JAFKA)
    again.clock.advance(1 << 40)  # the files are as old as the real clock says
    again.advance(6)
    assert segments(tmp_path / "t-0") == {26: 0}
    assert again.manager.keeping(JAFKA).offsets(TP) == LogOffsets(2, 2, 2, 2)
    again.manager.close()


def test_many_logs_are_swept_a_few_at_a_time_and_none_once_the_broker_stops(tmp_path: Path) -> None:
    offload = ManualOffload()
    manager = start_manager(tmp_path, offload=offload)
    partitions = [TopicPartition("many", number) for number in range(45)]
    for partition in partitions:
        manager.create(partition, TOPIC_ID, JAFKA)
    offload.run_loop()  # all have their directory
    manager.jafka.sweep()
    assert len(list(manager.jafka.opened())) == 20
    manager.delete(partitions[25])
    offload.callbacks.popleft()()
    assert len(list(manager.jafka.opened())) == 39
    manager.prepare_close()
    offload.run_all()
    assert len(list(manager.jafka.opened())) == 39
    manager.close()


def test_settings_hold_from_when_they_change(tmp_path: Path) -> None:
    kept = Kept(tmp_path, properties={"log.retention.check.interval.ms": "5000"})
    kept.manager.create(TP, TOPIC_ID, LogConfig(ottla_format="jafka", retention_ms=-1))
    append(kept.manager, b"one")
    kept.advance(6)
    assert segments(tmp_path / "t-0") == {0: 13}
    kept.manager.configure(TP, JAFKA)
    kept.clock.advance(1 << 40)
    kept.advance(6)
    assert segments(tmp_path / "t-0") == {13: 0}
    kept.manager.close()


def test_a_deleted_topic_leaves_nothing_open_and_one_of_its_name_begins_anew(tmp_path: Path) -> None:
    offload = ManualOffload()
    manager = restart(tmp_path, fsync=True, offload=offload)
    ticket = manager.keeping(JAFKA).begin_append(TP, batch(b"one"), leader_epoch=0)
    manager.delete(TP)
    offload.run_all()
    assert isinstance(ticket.error, KafkaStorageError)
    assert manager.open_file_count == 0
    manager.create(TP, TOPIC_ID, JAFKA)
    append(manager, b"new")
    offload.run_all()
    assert values(manager) == [b"new"]
    manager.close()


def test_the_copy_of_a_deleted_log_goes_with_it(tmp_path: Path) -> None:
    manager = start_manager(tmp_path)
    manager.create(TP, TOPIC_ID, LogConfig())
    copy = manager.jafka.beside(TP, 0)
    copy.append(message(b"old"), 1, 1)
    manager.delete(TP)
    manager.create(TP, TOPIC_ID, LogConfig())
    assert manager.jafka.beside(TP, 0).end == 0
    manager.close()


def test_jafkas_files_stay_where_they_are(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    kept = Kept(tmp_path, properties={"log.dirs": f"{here},{there}"})
    manager = kept.manager
    manager.keep_in(TP, str(here))
    manager.create(TP, TOPIC_ID, LogConfig())
    manager.begin_append(TP, make_batch(), leader_epoch=0)
    manager.jafka.beside(TP, 0)
    with pytest.raises(KafkaStorageError, match="stay where they are"):
        manager.keep_in(TP, str(there))
    other = TopicPartition("other", 0)
    manager.keep_in(other, str(here))
    manager.create(other, TOPIC_ID, LogConfig())
    manager.begin_append(other, make_batch(), leader_epoch=0)
    manager.keep_in(other, str(there))
    with pytest.raises(KafkaStorageError, match="is moving"):
        manager.jafka.beside(other, 0)
    for _ in range(20):
        kept.advance(0.1)
    assert manager.jafka.beside(other, 0).end == 0
    manager.close()


@pytest.mark.parametrize("seed", range(50))
def test_what_was_acknowledged_outlives_power_cuts_under_its_number(seed: int) -> None:
    """The file system tears what was not synced; a record that was acknowledged keeps its number and its value."""
    dice = Random(seed)
    clock = ManualClock(wall_ms=1 << 41)
    files = MemoryFileSystem(clock)
    acknowledged: dict[int, bytes] = {}
    sizes = {"ottla.jafka.file.size": "300"}
    for _ in range(4):
        offload = ManualOffload()
        manager = restart_after_crash(
            Path("/data"), fsync=True, filesystem=files, offload=offload, clock=clock, properties=sizes
        )
        log = manager.keeping(LogConfig(ottla_format="jafka"))
        offsets = log.offsets(TP)
        assert offsets.log_end_offset >= max(acknowledged, default=0)
        waiting: list[tuple[Ticket, bytes]] = []
        found = dict(enumerate(all_values(manager)))
        assert {number: found[number] for number in acknowledged} == acknowledged
        for _ in range(dice.randrange(1, 30)):
            value = dice.randbytes(dice.randrange(60))
            ticket = log.begin_append(TP, batch(value), leader_epoch=0)
            waiting.append((ticket, value))
            if dice.random() < 0.5:
                offload.run_loop()
            if dice.random() < 0.3 and offload.work:
                offload.run_work()
        acknowledged |= {ticket.base_offset: value for ticket, value in waiting if ticket.is_durable}
        files = files.cut_power(dice) if dice.random() < 0.7 else files.kill()


def all_values(manager: LogManager) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < manager.keeping(JAFKA).offsets(TP).high_watermark:
        found += values(manager, len(found))
    return found
