"""The plain commit log: its bytes, what it promises about them, and every way in which a file can end."""

from __future__ import annotations

import errno
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from traceback import walk_tb

import pytest

from ottla.commitlog import CommitLog, LogRecord, TornTail, WrongOffset, check_log, read_log
from ottla.errors import KafkaStorageError, MessageTooLarge
from ottla.storage.files import LocalFile, LocalFileSystem

VALUES = [b"hello", b"", b"world!"]
GOLDEN = bytes.fromhex(
    "0000000000000000 00000005 68656c6c6f0000000000000001 000000000000000000000002 00000006 776f726c6421"
)
RECORDS = [LogRecord(offset, value) for offset, value in enumerate(VALUES)]
ENDS = [0, 17, 29, 47]
"""Where a record ends and the next may begin."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "partition-0.log")


def write(path: str, data: bytes) -> str:
    Path(path).write_bytes(data)
    return path


def drained(records: Iterator[LogRecord]) -> tuple[list[LogRecord], bool]:
    """Return the records and whether a tear ended them."""
    found: list[LogRecord] = []
    try:
        for record in records:
            found.append(record)
    except TornTail:
        return found, True
    return found, False


def test_three_appends_make_the_golden_file(path: str) -> None:
    with CommitLog(path) as log:
        assert [log.append(value) for value in VALUES] == [0, 1, 2]
        assert Path(path).read_bytes() == GOLDEN
        assert list(log.read()) == RECORDS


def test_the_golden_file_is_read(path: str) -> None:
    assert list(read_log(write(path, GOLDEN))) == RECORDS


@pytest.mark.parametrize("start_offset", [0, 1, 2, 3, 9])
def test_reading_is_a_filter_by_offset(path: str, start_offset: int) -> None:
    assert list(read_log(write(path, GOLDEN), start_offset)) == RECORDS[start_offset:]
    with CommitLog(path) as log:
        assert list(log.read(start_offset)) == RECORDS[start_offset:]


def test_every_cut_is_told_from_a_clean_end_and_hides_no_good_record(path: str) -> None:
    for cut in range(len(GOLDEN) + 1):
        write(path, GOLDEN[:cut])
        whole = sum(1 for end in ENDS[1:] if end <= cut)
        for start_offset in (0, 2, 7):
            expected = [record for record in RECORDS[:whole] if record.offset >= start_offset]
            assert drained(read_log(path, start_offset)) == (expected, cut not in ENDS), (cut, start_offset)


def test_a_missing_file_is_an_error_for_readers(path: str) -> None:
    with pytest.raises(FileNotFoundError):
        read_log(path)


def test_readers_take_lower_offsets_after_higher_ones_as_they_are(path: str) -> None:
    write(path, struct.pack(">QI", 5, 1) + b"a" + struct.pack(">QI", 0, 1) + b"b")

    assert list(read_log(path, 1)) == [LogRecord(5, b"a")]
    assert list(read_log(path, 0)) == [LogRecord(5, b"a"), LogRecord(0, b"b")]


def test_a_claimed_size_takes_no_memory(path: str) -> None:
    write(path, GOLDEN[:17] + struct.pack(">QI", 1, 0xFFFFFFFF) + b"xyz")

    assert drained(read_log(path)) == (RECORDS[:1], True)


def test_a_restart_goes_on_where_it_stopped(path: str) -> None:
    for expected, value in enumerate(VALUES):
        with CommitLog(path) as log:
            assert log.append(value) == expected
    assert Path(path).read_bytes() == GOLDEN


def test_a_torn_tail_is_cut_at_the_start_wherever_it_was_torn(path: str) -> None:
    for cut in range(len(GOLDEN) + 1):
        write(path, GOLDEN[:cut])
        whole = sum(1 for end in ENDS[1:] if end <= cut)
        with CommitLog(path) as log:
            assert log.next_offset == whole, cut
            assert log.append(b"next") == whole, cut
            assert list(log.read()) == [*RECORDS[:whole], LogRecord(whole, b"next")], cut


def test_offsets_that_do_not_follow_each_other_are_told_and_left_alone(path: str) -> None:
    data = GOLDEN + GOLDEN[:17]  # a server that counted from 0 again
    with CommitLog(write(path, data)) as log:
        assert isinstance(log.problem, WrongOffset)
        assert list(log.read()) == RECORDS
        with pytest.raises(WrongOffset, match="at byte 47 has offset 0 where 3 must follow"):
            log.append(b"more")
    assert Path(path).read_bytes() == data
    assert isinstance(check_log(path).problem, WrongOffset)


def test_check_tells_what_is_good_and_changes_nothing(path: str) -> None:
    write(path, GOLDEN[:-1])

    result = check_log(path)

    assert (result.count, result.valid_bytes, result.size_bytes) == (2, 29, 46)
    assert isinstance(result.problem, TornTail)
    assert Path(path).read_bytes() == GOLDEN[:-1]
    assert check_log(write(path, GOLDEN)).problem is None


def test_many_threads_get_every_offset_once(path: str) -> None:
    given: list[list[tuple[int, bytes]]] = [[] for _ in range(4)]

    with CommitLog(path) as log:

        def work(number: int) -> None:
            for i in range(25):
                value = b"%d/%d" % (number, i)
                given[number].append((log.append(value), value))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stored = [tuple(record) for record in log.read()]
    assert [offset for offset, _ in stored] == list(range(100))
    assert sorted(pair for pairs in given for pair in pairs) == stored


def test_several_values_are_one_run_of_offsets(path: str) -> None:
    with CommitLog(path) as log:
        log.append(b"first")
        assert log.append_many([b"a", b"b"]) == 1
        assert log.append_many([]) == 3
        assert [record.value for record in log.read(1)] == [b"a", b"b"]
        assert [record.value for record in log.read(0, max_count=1)] == [b"first"]


def test_a_log_belongs_to_one_process(path: str) -> None:
    with CommitLog(path), pytest.raises(KafkaStorageError, match="in use"):
        CommitLog(path)
    CommitLog(path).close()


def test_a_closed_log_says_so(path: str) -> None:
    log = CommitLog(path)
    log.append(b"x")
    reading = log.read()
    log.close()
    log.close()
    with pytest.raises(KafkaStorageError, match="closed"):
        log.append(b"y")
    with pytest.raises(KafkaStorageError, match="closed"):
        next(reading)


def test_a_value_above_the_limit_is_refused_with_all_that_come_with_it(path: str) -> None:
    with CommitLog(path, max_value_bytes=4) as log:
        with pytest.raises(MessageTooLarge):
            log.append_many([b"tiny", b"large"])
        assert log.append(b"tiny") == 0


# ---- a disk that fails


class FailingFile(LocalFile):
    """Fails as it is told to."""

    __slots__ = ("fails",)

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self.fails: set[str] = set()

    def append(self, data: bytes | bytearray | memoryview) -> None:
        if "append" in self.fails:
            super().append(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        super().append(data)

    def sync(self) -> None:
        if "sync" in self.fails:
            raise OSError(errno.EIO, "Input/output error")
        super().sync()

    def truncate(self, size_bytes: int) -> None:
        if "truncate" in self.fails:
            raise OSError(errno.EIO, "Input/output error")
        super().truncate(size_bytes)


class FailingFileSystem(LocalFileSystem):
    """Opens files that fail, and keeps them by name."""

    __slots__ = ("files",)

    def __init__(self) -> None:
        self.files: dict[str, FailingFile] = {}

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        file = self.files[path] = FailingFile(super().open(path, create=create).descriptor)
        return file


@pytest.mark.parametrize("failure", ["append", "sync"])
def test_a_failed_append_leaves_no_trace(path: str, failure: str) -> None:
    filesystem = FailingFileSystem()
    with CommitLog(path, filesystem=filesystem) as log:
        log.append(b"hello")
        filesystem.files[path].fails = {failure}
        with pytest.raises(KafkaStorageError):
            log.append(b"lost")
        assert [record.value for record in log.read()] == [b"hello"]
        filesystem.files[path].fails = set()
        assert [log.append(value) for value in VALUES[1:]] == [1, 2]
    assert Path(path).read_bytes() == GOLDEN


def test_a_log_that_cannot_be_repaired_refuses_appends_until_it_is_opened_again(path: str) -> None:
    filesystem = FailingFileSystem()
    with CommitLog(path, filesystem=filesystem) as log:
        log.append(b"hello")
        filesystem.files[path].fails = {"append", "truncate"}
        for _ in range(2):
            with pytest.raises(KafkaStorageError):
                log.append(b"lost")
        filesystem.files[path].fails = set()
        for _ in range(20):
            with pytest.raises(KafkaStorageError) as refusal:
                log.append(b"lost")
        assert len(list(walk_tb(refusal.value.__traceback__))) < 10, "of what was refused nothing is kept"
        assert [record.value for record in log.read()] == [b"hello"]
    with CommitLog(path) as log:
        assert log.append(b"") == 1


def test_an_index_that_cannot_be_written_costs_no_append(path: str) -> None:
    filesystem = FailingFileSystem()
    with CommitLog(path, filesystem=filesystem, index_interval_bytes=1) as log:
        filesystem.files[path + ".index"].fails = {"append"}
        assert [log.append(value) for value in VALUES] == [0, 1, 2]
    with CommitLog(path, index_interval_bytes=1) as log:
        assert list(log.read(1)) == RECORDS[1:]
    assert len(Path(path + ".index").read_bytes()) == 3 * 16


# ---- the index


def fill(path: str) -> list[LogRecord]:
    with CommitLog(path, index_interval_bytes=64) as log:
        log.append_many([b"%04d" % number for number in range(100)])
        log.append_many([b"%04d" % number for number in range(100, 200)])
        return list(log.read())


def test_the_index_names_one_record_in_every_so_many_bytes(path: str) -> None:
    fill(path)
    entries = list(struct.iter_unpack(">QQ", Path(path + ".index").read_bytes()))

    assert entries[:3] == [(0, 0), (4, 64), (8, 128)]
    assert len(entries) == 50


@pytest.mark.parametrize(
    "damage",
    [None, b"", b"short", struct.pack(">QQ", 0, 7), struct.pack(">QQ", 150, 0) * 50],
    ids=["missing", "empty", "torn", "a wrong position", "wrong offsets"],
)
def test_a_bad_index_changes_no_answer_and_is_made_anew(path: str, damage: bytes | None) -> None:
    records = fill(path)
    index = Path(path + ".index")
    good = index.read_bytes()
    if damage is None:
        index.unlink()
    else:
        index.write_bytes(damage)

    with CommitLog(path, index_interval_bytes=64) as log:
        for start_offset in (0, 3, 4, 5, 150, 199, 200):
            assert list(log.read(start_offset)) == records[start_offset:], start_offset
    assert index.read_bytes() == good


def test_where_reading_starts_the_index_decides(path: str) -> None:
    class Recording(LocalFileSystem):
        __slots__ = ()

        def open(self, path: str, *, create: bool = False) -> LocalFile:
            return RecordingFile(super().open(path, create=create).descriptor)

    class RecordingFile(LocalFile):
        __slots__ = ()

        def pread(self, size_bytes: int, position: int) -> bytes:
            positions.append(position)
            return super().pread(size_bytes, position)

    positions: list[int] = []
    fill(path)
    with CommitLog(path, filesystem=Recording(), index_interval_bytes=64) as log:
        positions.clear()
        next(log.read(190))
        assert min(positions) == 188 * 16
