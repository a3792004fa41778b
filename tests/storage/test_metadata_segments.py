"""Reading the metadata log's files as they are: from where, up to where, and what is no end but damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.errors import KafkaStorageError
from ottla.records.builder import BatchBuilder
from ottla.storage.files import LocalFile, LocalFileSystem
from ottla.storage.index import OffsetIndex
from ottla.storage.metadata_segments import Damage, GoodPart, MetadataSegments


def batch_at(offset: int, size_bytes: int = 10) -> bytes:
    builder = BatchBuilder(base_offset=offset, leader_epoch=1)
    builder.append(0, None, bytes(size_bytes))
    return builder.build()


def write(directory: Path, base_offset: int, *batches: bytes) -> Path:
    path = directory / f"{base_offset:020d}.log"
    path.write_bytes(b"".join(batches))
    return path


def segments_of(directory: Path) -> MetadataSegments:
    return MetadataSegments(LocalFileSystem(), str(directory))


def offsets(directory: Path, offset: int = 0, damage: Damage | None = None) -> list[int]:
    return [batch.base_offset for batches in segments_of(directory).read(offset, damage) for batch in batches]


def test_batches_are_read_from_an_offset_on_across_segments(tmp_path: Path) -> None:
    write(tmp_path, 0, batch_at(0), batch_at(1))
    write(tmp_path, 2, batch_at(2), batch_at(3))
    assert [offsets(tmp_path, offset) for offset in range(5)] == [[0, 1, 2, 3], [1, 2, 3], [2, 3], [3], []]


def test_a_directory_that_is_not_there_has_nothing(tmp_path: Path) -> None:
    assert offsets(tmp_path / "none") == []
    assert segments_of(tmp_path / "none").find_good_part() == GoodPart(0, None)


def test_batches_of_any_size_are_read(tmp_path: Path) -> None:
    write(tmp_path, 0, *(batch_at(offset, size) for offset, size in enumerate([10, 3 << 20, 700_000, 700_000, 10])))
    assert offsets(tmp_path) == [0, 1, 2, 3, 4]


class Reads(LocalFileSystem):
    """Notes where log files are read."""

    def __init__(self) -> None:
        self.positions: list[int] = []

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        positions = self.positions

        class Noted(LocalFile):
            def pread(self, size_bytes: int, position: int) -> bytes:
                positions.append(position)
                return super().pread(size_bytes, position)

        return Noted(super().open(path, create=create).descriptor)


@pytest.mark.parametrize(("offset", "position_of"), [(1, 0), (2, 2), (3, 2)])
def test_what_lies_before_the_index_entry_is_not_read(tmp_path: Path, offset: int, position_of: int) -> None:
    batches = [batch_at(number) for number in range(5)]
    write(tmp_path, 0, *batches)
    index = OffsetIndex(LocalFileSystem(), str(tmp_path / f"{0:020d}.index"), 0, 1 << 20)
    index.append(2, 2 * len(batches[0]))
    index.store()
    files = Reads()

    found = [batch.base_offset for part in MetadataSegments(files, str(tmp_path)).read(offset, None) for batch in part]

    assert found == list(range(offset, 5))
    assert min(files.positions) == position_of * len(batches[0])


@pytest.mark.parametrize("entry", [(2, 7), (1, 100_000), (4, 0)])
def test_an_index_that_does_not_agree_with_the_log_is_not_used(tmp_path: Path, entry: tuple[int, int]) -> None:
    write(tmp_path, 0, *(batch_at(number) for number in range(5)))
    index = OffsetIndex(LocalFileSystem(), str(tmp_path / f"{0:020d}.index"), 0, 1 << 20)
    index.append(*entry)
    index.store()
    assert offsets(tmp_path, 4) == [4]


def test_a_torn_batch_is_the_end_of_the_newest_segment_only(tmp_path: Path) -> None:
    write(tmp_path, 0, batch_at(0), batch_at(1)[:-3])
    assert offsets(tmp_path) == [0]
    write(tmp_path, 2, batch_at(2))
    with pytest.raises(KafkaStorageError, match="ends within a batch"):
        offsets(tmp_path)


def test_a_damaged_batch_is_refused_unless_the_log_is_known_to_end_there(tmp_path: Path) -> None:
    bad = bytearray(batch_at(1))
    bad[-1] ^= 1
    write(tmp_path, 0, batch_at(0), bytes(bad), batch_at(2))
    write(tmp_path, 3, batch_at(3))
    with pytest.raises(KafkaStorageError, match="checksum"):
        offsets(tmp_path)

    good = segments_of(tmp_path).find_good_part()

    assert good == GoodPart(1, Damage(0, len(batch_at(0)), is_inside=True))
    assert [offsets(tmp_path, offset, good.damage) for offset in (0, 1, 3)] == [[0], [], []]


def test_a_torn_end_has_nothing_behind_it(tmp_path: Path) -> None:
    write(tmp_path, 0, batch_at(0), batch_at(1)[:-3])
    assert segments_of(tmp_path).find_good_part() == GoodPart(1, Damage(0, len(batch_at(0)), is_inside=False))


def test_what_can_begin_no_batch_is_damage(tmp_path: Path) -> None:
    write(tmp_path, 0, batch_at(0), b"\0" * 100)
    with pytest.raises(KafkaStorageError, match="damaged"):
        offsets(tmp_path)
