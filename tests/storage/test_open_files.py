"""The bounded set of open segment files."""

from __future__ import annotations

import errno
from pathlib import Path
from random import Random

import pytest

from ottla.storage.files import LocalFileSystem
from ottla.storage.open_files import OpenFiles, SegmentFile
from ottla.testing.faults import Faults, FaultyFileSystem

FILES = LocalFileSystem()


def files_in(path: Path, count: int, limit: int) -> tuple[OpenFiles, list[SegmentFile]]:
    open_files = OpenFiles(FILES, limit)
    return open_files, [SegmentFile(open_files, str(path / str(number))) for number in range(count)]


def test_number_of_open_files_is_bounded(tmp_path: Path) -> None:
    open_files, files = files_in(tmp_path, 20, limit=4)
    for number, file in enumerate(files):
        file.get().append(b"%d" % number)
        assert open_files.count <= 4
    assert [file.get().pread(10, 0) for file in files] == [b"%d" % number for number in range(20)]


def test_file_that_was_touched_outlives_those_that_were_not(tmp_path: Path) -> None:
    _, files = files_in(tmp_path, 5, limit=3)
    for file in files[:4]:
        file.get()
    files[1].get()
    files[4].get()
    assert [file.is_open for file in files] == [False, True, False, True, True]


def test_leased_file_is_never_closed(tmp_path: Path) -> None:
    open_files, files = files_in(tmp_path, 5, limit=2)
    leased = [file.lease() for file in files]
    assert open_files.count == 5  # over the bound rather than refusing a reader
    for file in leased:
        assert file.size() == 0
    for segment_file in files:
        segment_file.release()
    files[0].get()
    SegmentFile(open_files, str(tmp_path / "one more")).get()
    assert open_files.count <= 2


def test_retired_file_closes_with_its_last_lease(tmp_path: Path) -> None:
    open_files, (file,) = files_in(tmp_path, 1, limit=2)
    file.lease()
    file.lease()
    file.retire()
    assert open_files.count == 1
    file.release()
    file.release()
    assert open_files.count == 0


def test_places_of_closed_files_do_not_pile_up(tmp_path: Path) -> None:
    open_files, _ = files_in(tmp_path, 0, limit=2)
    for number in range(100):
        file = SegmentFile(open_files, str(tmp_path / str(number)))
        file.get()
        file.retire()
    assert open_files.known <= 5


def test_without_descriptors_idle_files_are_closed_for_the_one_that_is_needed(tmp_path: Path) -> None:
    """Sockets may have taken what the bound counts on."""
    faults = Faults(Random(1))
    faults.error = errno.EMFILE
    open_files = OpenFiles(FaultyFileSystem(FILES, faults), limit=10)
    files = [SegmentFile(open_files, str(tmp_path / str(number))) for number in range(4)]
    leased = files[0].lease()
    files[1].get()
    faults.fails = lambda call, _: call == "open" and open_files.count > 1

    files[2].get()

    assert [file.is_open for file in files] == [True, False, True, False]
    assert leased.size() == 0


def test_without_descriptors_and_idle_files_opening_fails(tmp_path: Path) -> None:
    faults = Faults(Random(1))
    faults.error = errno.EMFILE
    open_files = OpenFiles(FaultyFileSystem(FILES, faults), limit=10)
    faults.fails = lambda call, _: True
    with pytest.raises(OSError, match="Too many open files"):
        SegmentFile(open_files, str(tmp_path / "one")).get()
    assert open_files.count == 0
