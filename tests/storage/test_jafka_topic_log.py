"""A topic's log in Jafka's format: which records of Kafka are in it, and that their numbers stay what they are."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from ottla.config.log_config import LogConfig
from ottla.engine import LogOffsets, ReadLimit
from ottla.errors import CorruptMessage, KafkaStorageError, OffsetOutOfRange, UnsupportedForMessageFormat
from ottla.model import NO_LEADER_EPOCH, NO_TIMESTAMP_MS
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.records.reading import decode
from ottla.storage.files import LocalFile, LocalFileSystem
from ottla.storage.jafka_log import JafkaLogSettings
from ottla.storage.jafka_topic_log import ENTRY_EVERY_BYTES, READ_BYTES, JafkaTopicLog
from ottla.testing.clock import ManualClock
from tests.storage.harness import FailingFileSystem, make_host, take_bytes
from tests.storage.jafka import EVERY_MESSAGE, KEPT_A_SECOND, SMALL, message, open_topic_log, packed, segments

ALL = 1 << 40


def append(log: JafkaTopicLog, data: bytes, count: int = 1) -> None:
    log.append(data, count, log.next_kafka_offset + count)


def fill(log: JafkaTopicLog, count: int) -> None:
    """Append messages of 100 bytes whose values are their numbers."""
    for _ in range(count):
        append(log, message(b"%090d" % log.next_kafka_offset))


def values(log: JafkaTopicLog, offset: int, max_bytes: int = 1 << 20, up_to: int = ALL) -> list[tuple[int, bytes]]:
    """Return offsets and values that one read brings."""
    result = log.read_records(offset, ReadLimit(max_bytes, up_to, at_least_one_batch=True))
    data = take_bytes(result)
    assert len(data) == result.size_bytes
    return [(record.offset, record.value or b"") for record in decode(data, offset, ALL).records]


def numbers(log: JafkaTopicLog) -> list[int]:
    """Return the offsets of all records, each of which must have its own number as its value."""
    found: list[int] = []
    offset, end = log.offsets().log_start_offset, log.offsets().last_stable_offset
    while offset < end:
        for at, value in values(log, offset):
            assert int(value) == at
            found.append(at)
        offset = found[-1] + 1
    return found


def batch(*values: bytes | None, key: bytes | None = None, **settings: int | bool | Codec) -> bytearray:
    builder = BatchBuilder(**settings)  # type: ignore[arg-type]
    for value in values:
        builder.append(5, key, value)
    return bytearray(builder.build())


def test_each_payload_is_a_record_also_those_in_a_compressed_set(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path)
    append(log, message(b"one") + packed(b"two", b"", b"four"), 4)
    append(log, message(b"five"))
    assert log.offsets() == LogOffsets(0, 5, 5, 5)
    expected = [(0, b"one"), (1, b"two"), (2, b""), (3, b"four"), (4, b"five")]
    assert values(log, 0) == expected
    for offset in range(5):
        assert values(log, offset) == expected[offset:]
    assert values(log, 1, up_to=3) == expected[1:3]
    assert log.read_records(5, ReadLimit(100, ALL, at_least_one_batch=True)).size_bytes == 0
    assert segments(tmp_path) == {0: 13 + len(packed(b"two", b"", b"four")) + 14}


def test_a_read_is_one_batch_without_times_and_epochs(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path)
    fill(log, 3)
    result = log.read_records(1, ReadLimit(1 << 20, ALL, at_least_one_batch=True))
    decoded = decode(take_bytes(result), 1, ALL)
    assert [(record.offset, record.timestamp, record.key) for record in decoded.records] == [
        (1, NO_TIMESTAMP_MS, None),
        (2, NO_TIMESTAMP_MS, None),
    ]
    assert decoded.next_fetch_offset == 3
    assert int.from_bytes(take_bytes(result)[12:16], "big", signed=True) == NO_LEADER_EPOCH


def test_a_read_stops_at_its_size_but_for_one_record_where_that_is_asked(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path)
    fill(log, 5)
    assert [at for at, _ in values(log, 1, 61 + 2 * 99)] == [1, 2]
    assert [at for at, _ in values(log, 1, 61 + 2 * 99 - 1)] == [1]
    assert [at for at, _ in values(log, 1, 0)] == [1]
    assert log.read_records(1, ReadLimit(100, ALL, at_least_one_batch=False)).size_bytes == 0


def test_a_read_makes_no_more_than_a_consumer_asks_by_default(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path)
    append(log, message(bytes(1000)) * 3000, 3000)
    result = log.read_records(0, ReadLimit(ALL, ALL, at_least_one_batch=True))
    assert result.size_bytes <= READ_BYTES
    assert result.is_behind, "the others take another read"
    found = values(log, 0, ALL)
    assert 1000 < len(found) < 1048
    assert values(log, len(found), ALL)[0][0] == len(found)


def test_offsets_outside_are_refused(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path)
    fill(log, 2)
    for offset in (-1, 3):
        with pytest.raises(OffsetOutOfRange):
            values(log, offset)


def test_numbers_stay_over_segments_and_restarts(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path, SMALL)
    fill(log, 30)
    assert numbers(log) == list(range(30))
    log.close()
    again = open_topic_log(tmp_path, SMALL)
    fill(again, 5)
    assert numbers(again) == list(range(35))
    (tmp_path / "jafka.positions").unlink()  # nothing was removed: they are found again
    assert numbers(open_topic_log(tmp_path, SMALL)) == list(range(35))


@pytest.mark.parametrize("seed", range(5))
def test_numbers_are_found_wherever_the_noted_ones_lie(tmp_path: Path, seed: int) -> None:
    dice = Random(seed)
    log = open_topic_log(tmp_path, JafkaLogSettings(file_size_bytes=200_000, flush_messages=1))
    expected: list[bytes] = []
    while len(expected) < 2000:
        payloads = [dice.randbytes(dice.choice((0, 7, 900))) for _ in range(dice.choice((1, 1, 1, 5)))]
        append(log, packed(*payloads) if len(payloads) > 1 else message(payloads[0]), len(payloads))
        expected += payloads
    for reader in (log, open_topic_log(tmp_path, is_clean=False)):
        assert reader.next_kafka_offset == len(expected)
        for _ in range(40):
            offset = dice.randrange(len(expected))
            found = values(reader, offset, 5000)
            assert found == list(enumerate(expected[offset : offset + len(found)], offset))
    assert len(segments(tmp_path)) > 2


def test_a_message_larger_than_what_is_read_at_once(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path)
    large = Random(1).randbytes(300_000)
    append(log, message(b"small") + message(large) + message(b"last"), 3)
    assert values(log, 0) == [(0, b"small"), (1, large), (2, b"last")]
    assert open_topic_log(tmp_path, is_clean=False).next_kafka_offset == 3


# ---- retention


class UnnotedFile(LocalFile):
    """A file that takes nothing while its file system says so."""

    __slots__ = ("_files",)

    def __init__(self, descriptor: int, files: UnnotedFileSystem) -> None:
        super().__init__(descriptor)
        self._files = files

    def append(self, data: bytes | bytearray | memoryview) -> None:
        if self._files.is_failing:
            raise OSError(errno.ENOSPC, "no space left on device")
        super().append(data)


class UnnotedFileSystem(LocalFileSystem):
    """The local file system with a switch for positions that cannot be noted."""

    __slots__ = ("is_failing",)

    def __init__(self) -> None:
        self.is_failing = False

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        file = super().open(path, create=create)
        return UnnotedFile(file.descriptor, self) if path.endswith("positions") else file


def test_numbers_stay_when_old_segments_go(tmp_path: Path) -> None:
    clock = ManualClock(wall_ms=1 << 41)
    log = open_topic_log(tmp_path, SMALL, host=make_host(clock=clock)[0])
    fill(log, 8)
    clock.advance(0.9)
    fill(log, 1)
    clock.advance(0.2)
    log.sweep()
    assert (segments(tmp_path), log.start) == ({800: 100}, 800)
    assert numbers(log) == [8]
    log.close()
    again = open_topic_log(tmp_path, SMALL, host=make_host(clock=clock)[0])
    assert numbers(again) == [8]
    clock.advance(2)
    again.sweep()
    assert segments(tmp_path) == {900: 0}
    again.close()
    last = open_topic_log(tmp_path, SMALL, is_clean=False)
    assert (last.start, last.offsets()) == (900, LogOffsets(9, 9, 9, 9))
    fill(last, 1)
    assert numbers(last) == [9]


def test_spare_segments_go_by_size(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path, SMALL, config=LogConfig(retention_bytes=600, ottla_format="jafka"))
    fill(log, 12)
    log.sweep()
    assert segments(tmp_path) == {400: 400, 800: 400, 1200: 0}
    assert numbers(log) == list(range(4, 12))


def test_nothing_goes_where_the_topic_says_so(tmp_path: Path) -> None:
    config = LogConfig(retention_bytes=0, cleanup_policy=frozenset(), ottla_format="jafka")
    log = open_topic_log(tmp_path, SMALL, config=config)
    fill(log, 12)
    log.sweep()
    assert log.start == 0


def test_a_segment_whose_end_could_not_be_noted_goes_all_the_same(tmp_path: Path) -> None:
    files = UnnotedFileSystem()
    clock = ManualClock(wall_ms=1 << 41)
    log = open_topic_log(tmp_path, SMALL, host=make_host(clock=clock, filesystem=files)[0])
    files.is_failing = True
    fill(log, 9)
    clock.advance(2)
    log.sweep()
    assert segments(tmp_path) == {900: 0}
    assert log.offsets() == LogOffsets(9, 9, 9, 9)


def test_segments_that_somebody_else_removed_leave_the_numbers_of_the_others_alone(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path, JafkaLogSettings(file_size_bytes=40_000, flush_messages=1))
    fill(log, 1000)
    log.close()
    starts = list(segments(tmp_path))
    (tmp_path / f"{starts[0]:020d}.jafka").unlink()
    assert numbers(open_topic_log(tmp_path)) == list(range(starts[1] // 100, 1000))
    path = tmp_path / "jafka.positions"
    whole = path.read_bytes()
    entries = [whole[at : at + 28] for at in range(0, len(whole), 28)]
    exact = starts[2].to_bytes(8, "big")
    path.write_bytes(b"".join(entry for entry in entries if not entry.startswith(exact)))
    (tmp_path / f"{starts[1]:020d}.jafka").unlink()
    assert numbers(open_topic_log(tmp_path)) == list(range(starts[2] // 100, 1000))
    path.write_bytes(entries[0])  # nothing is known of what is left: numbers do at least not fall
    assert open_topic_log(tmp_path).log_start_offset == starts[1] // 100


def test_times_find_what_was_flushed_since(tmp_path: Path) -> None:
    """Each message is as large as the stretch of which a time is noted; the last two have one time together."""
    clock = ManualClock(wall_ms=1000)
    host, _ = make_host(clock=clock)
    log = open_topic_log(tmp_path, JafkaLogSettings(file_size_bytes=40_000, flush_messages=1), host=host)
    assert log.find_since(0) is None
    for _ in range(4):
        clock.advance(1)
        append(log, message(bytes(ENTRY_EVERY_BYTES)))
    append(log, message(b"more"))

    def found(times: Sequence[int]) -> list[tuple[int, int] | None]:
        answers = (log.find_since(time_ms) for time_ms in times)
        return [None if answer is None else answer[:2] for answer in answers]

    times = (0, 2000, 2001, 3000, 4000, 4001, 5000, 5001)
    expected = [(2000, 0), (2000, 0), (3000, 1), (3000, 1), (4000, 2), (5000, 3), (5000, 3), None]
    assert len(segments(tmp_path)) == 2 and found(times) == expected
    log.close()
    log = open_topic_log(tmp_path, host=host)
    assert found(times) == expected
    log.delete_records(2)
    assert found((0, 2000, 4001, 5001)) == [(4000, 2), (4000, 2), (5000, 3), None]
    log.delete_records(5)
    assert found((0, 5000)) == [None, None]
    log.close()


def test_after_a_clock_went_back_times_find_too_much_rather_than_too_little(tmp_path: Path) -> None:
    clock = ManualClock(wall_ms=9000)
    host, _ = make_host(clock=clock)
    log = open_topic_log(tmp_path, host=host)
    for wall_ms in (9000, 2000, 3000):
        clock.set_wall_ms(wall_ms)
        append(log, message(bytes(ENTRY_EVERY_BYTES)))
    assert log.find_since(2500) == (9000, 0, NO_LEADER_EPOCH)
    assert (log.find_since(3000), log.find_since(3001)) == ((9000, 0, NO_LEADER_EPOCH), None)
    log.close()


def test_records_are_deleted_by_number(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path, SMALL)
    fill(log, 10)
    assert log.delete_records(6) == 6
    assert (segments(tmp_path), log.start) == ({400: 400, 800: 200}, 600)
    assert numbers(log) == [6, 7, 8, 9]
    with pytest.raises(OffsetOutOfRange):
        log.read(500, 100)
    assert log.delete_records(3) == 6
    for offset in (-1, 11):
        with pytest.raises(OffsetOutOfRange):
            log.delete_records(offset)
    assert numbers(open_topic_log(tmp_path, SMALL, is_clean=False)) == [6, 7, 8, 9]
    assert log.delete_records(10) == 10
    assert log.offsets() == LogOffsets(10, 10, 10, 10)
    assert log.positions_before(None, 10) == [1000, 1000]


def test_a_compressed_set_is_deleted_whole(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path)
    append(log, message(b"0") + packed(b"1", b"2", b"3"), 4)
    assert log.delete_records(2) == 1
    assert values(log, 1) == [(1, b"1"), (2, b"2"), (3, b"3")]


def test_records_are_cut_off_the_end(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path, SMALL)
    fill(log, 10)
    log.truncate_to(20)
    log.truncate_to(3)
    assert (log.offsets(), segments(tmp_path)) == (LogOffsets(0, 3, 3, 3), {0: 300})
    fill(log, 3)
    assert numbers(log) == list(range(6))
    assert numbers(open_topic_log(tmp_path, SMALL)) == list(range(6))


# ---- crashes and damage


def test_what_a_crash_tore_is_cut_and_whole_messages_stay(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path, SMALL)
    fill(log, 6)
    for junk in (b"junk bytes", message(b"whole")[:-1], bytes(50), message(b"x")[:6] + bytes(20), b"\x7f" + bytes(30)):
        with (tmp_path / f"{400:020d}.jafka").open("ab") as file:
            file.write(junk)
        again = open_topic_log(tmp_path, SMALL, is_clean=False)
        assert again.cut_bytes == len(junk)
        assert numbers(again) == list(range(6))
        assert segments(tmp_path) == {0: 400, 400: 200}


def test_positions_that_lie_behind_the_end_or_are_torn_are_forgotten(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path, SMALL)
    fill(log, 6)
    log.close()
    path = tmp_path / "jafka.positions"
    whole = path.read_bytes()
    for extra in (bytes(28), b"torn", (1 << 30).to_bytes(8, "big") + bytes(20)):
        path.write_bytes(whole + extra)
        again = open_topic_log(tmp_path, SMALL, is_clean=False)
        assert numbers(again) == list(range(6))
        again.close()
        assert path.read_bytes()[: len(whole) - 28] == whole[:-28]


def test_damage_in_an_older_segment_is_passed_over(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path, SMALL)
    fill(log, 10)
    path = tmp_path / f"{400:020d}.jafka"
    data = bytearray(path.read_bytes())
    data[250] ^= 1
    path.write_bytes(data)
    assert [at for at, _ in values(log, 4)] == [4, 5]
    with pytest.raises(CorruptMessage):  # it was not known before: nobody is to miss records unawares
        values(log, 6)
    (tmp_path / "jafka.positions").unlink()
    again = open_topic_log(tmp_path, SMALL)
    assert [int(value) for _, value in values(again, 0)] == [0, 1, 2, 3, 4, 5, 8, 9]
    assert [at for at, _ in values(again, 6)] == [6, 7]
    assert again.read(400, 1000) == data


def test_a_start_behind_the_files_is_told(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path, SMALL)
    fill(log, 5)
    log.delete_records(5)
    (tmp_path / f"{400:020d}.jafka").rename(tmp_path / f"{0:020d}.jafka")
    with pytest.raises(KafkaStorageError, match="starts behind"):
        open_topic_log(tmp_path, SMALL)


# ---- what Kafka's producers send


def test_a_batch_is_appended_as_plain_messages_and_flushed_at_once(tmp_path: Path) -> None:
    host, offload = make_host(fsync=True)
    advanced: list[object] = []
    host.on_advance = advanced.append
    log = open_topic_log(tmp_path, JafkaLogSettings(flush_messages=500), host=host)
    append(log, message(b"zero"))
    ticket = log.append_batch(batch(b"one", b"", codec=Codec.GZIP))
    assert (ticket.base_offset, ticket.last_offset, ticket.log_append_time_ms) == (1, 2, NO_TIMESTAMP_MS)
    assert (ticket.is_durable, log.offsets()) == (False, LogOffsets(0, 0, 0, 3))
    offload.run_all()
    assert (ticket.is_durable, log.offsets()) == (True, LogOffsets(0, 3, 3, 3))
    assert advanced == [log.partition]
    assert log.read(0, 1000) == message(b"zero") + message(b"one") + message(b"")


def test_without_syncs_an_append_is_done_at_once(tmp_path: Path) -> None:
    log = open_topic_log(tmp_path, JafkaLogSettings(flush_messages=500))
    assert log.append_batch(batch(b"one")).is_durable
    assert log.offsets() == LogOffsets(0, 1, 1, 1)


@pytest.mark.parametrize(
    "refused",
    [
        batch(b"v", key=b"k"),
        batch(None),
        batch(b"v", producer_id=5, producer_epoch=0, base_sequence=0),
        batch(b"v", producer_id=5, producer_epoch=0, is_transactional=True),
    ],
)
def test_what_messages_cannot_say_is_refused(tmp_path: Path, refused: bytearray) -> None:
    log = open_topic_log(tmp_path)
    with pytest.raises(UnsupportedForMessageFormat):
        log.append_batch(refused)
    assert segments(tmp_path) == {0: 0}


def test_headers_are_refused(tmp_path: Path) -> None:
    builder = BatchBuilder()
    builder.append(5, None, b"v", (("h", b"x"),))
    with pytest.raises(UnsupportedForMessageFormat):
        open_topic_log(tmp_path).append_batch(bytearray(builder.build()))


def test_who_waits_for_a_sync_that_fails_hears_of_it(tmp_path: Path) -> None:
    files = FailingFileSystem()
    host, offload = make_host(fsync=True, filesystem=files)
    log = open_topic_log(tmp_path, EVERY_MESSAGE, host=host)
    files.is_sync_failing = True
    ticket = log.append_batch(batch(b"one"))
    offload.run_all()
    assert isinstance(ticket.error, KafkaStorageError)
    with pytest.raises(KafkaStorageError):
        log.append_batch(batch(b"two"))
    files.is_sync_failing = False
    inode = (tmp_path / f"{0:020d}.jafka").stat().st_ino
    again = open_topic_log(tmp_path, host=make_host(fsync=True)[0], is_clean=False)
    assert values(again, 0) == [(0, b"one")]
    assert (tmp_path / f"{0:020d}.jafka").stat().st_ino != inode  # written anew: the disk may not have the old one
    assert not (tmp_path / "flush-failed").exists()


def test_who_waits_when_the_topic_is_deleted_hears_of_it(tmp_path: Path) -> None:
    host, offload = make_host(fsync=True)
    log = open_topic_log(tmp_path, EVERY_MESSAGE, host=host, config=KEPT_A_SECOND)
    ticket = log.append_batch(batch(b"one"))
    log.discard(KafkaStorageError("deleted"))
    offload.run_all()
    assert ticket.error is not None
    assert host.open_files.count == 0
