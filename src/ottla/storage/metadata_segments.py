"""`MetadataSegments`: the segment files of `__cluster_metadata-0`, read while the log is not open.

Opening a log repairs it: ends are cut, indexes made again, snapshots of producers removed. A start that is refused for
what the metadata says shall have done nothing of this, so the metadata is judged from here first. Only reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from ottla.errors import KafkaError, KafkaStorageError
from ottla.records.batch import HEADER_BYTES, RecordBatch, next_batch_size, size_from_front
from ottla.storage.files import File, FileSystem
from ottla.storage.index import CorruptIndex, OffsetIndex
from ottla.storage.metadata_snapshots import check_batches
from ottla.storage.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, format_offset, walk_batches

_READ_BYTES: Final = 1 << 20
_MOST_INDEX_BYTES: Final = 2**31 - 1


class Damage(NamedTuple):
    """The first place where a log is not whole: `position` in the segment of `base_offset`.

    With `is_inside` good batches, or segments, stand behind it: it is no torn end.
    """

    base_offset: int
    position: int
    is_inside: bool


class GoodPart(NamedTuple):
    """What can be read from a log's start: up to `end_offset` (0 for an empty log), where `damage` is, if any."""

    end_offset: int
    damage: Damage | None


class MetadataSegments:
    """The segments in one directory, which need not exist."""

    __slots__ = ("_filesystem", "_path")

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path

    @property
    def size_bytes(self) -> int:
        return sum(self._filesystem.size(self.path(base_offset)) for base_offset in self.base_offsets())

    def base_offsets(self) -> list[int]:
        names = self._filesystem.list(self._path) if self._filesystem.exists(self._path) else []
        stems = [name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)]
        return sorted(int(stem) for stem in stems if stem.isdigit())

    def find_good_part(self) -> GoodPart:
        """Check every batch, and find where the first bad one is. Raises `OSError`."""
        end_offset = 0
        base_offsets = self.base_offsets()
        for base_offset in base_offsets:
            data = self._filesystem.read(self.path(base_offset))
            whole = _whole_batches(data)
            end_offset = max(end_offset, whole.end_offset)
            if whole.size_bytes != len(data):
                is_inside = base_offset != base_offsets[-1] or _has_batch_behind(data, whole.size_bytes)
                return GoodPart(end_offset, Damage(base_offset, whole.size_bytes, is_inside))
        return GoodPart(end_offset, None)

    def read(self, offset: int, damage: Damage | None) -> Iterator[list[RecordBatch]]:
        """Yield the batches from the one that holds `offset`, some at a time, up to a known `damage` or to the end.

        A torn batch is the end in the newest segment. Raises `KafkaStorageError` for other damage, `OSError`.
        """
        base_offsets = self.base_offsets()
        for base_offset, following in pairwise([*base_offsets, None]):
            assert base_offset is not None
            end = damage.position if damage is not None and damage.base_offset == base_offset else None
            if following is not None and following <= offset and end is None:
                continue
            for batches in self._read_segment(base_offset, offset, end, is_newest=following is None):
                if wanted := [batch for batch in batches if batch.next_offset > offset]:
                    yield wanted
            if end is not None:
                return

    def _read_segment(
        self, base_offset: int, offset: int, end: int | None, *, is_newest: bool
    ) -> Iterator[list[RecordBatch]]:
        path = self.path(base_offset)
        file = self._filesystem.open(path)
        try:
            size_bytes = file.size() if end is None else end
            position = self._find_position(file, base_offset, offset)
            while position < size_bytes:
                where = f"{path}, from byte {position},"
                data = _read_whole_batches(file, position, size_bytes - position, where)
                if not data:
                    if is_newest:
                        return
                    raise KafkaStorageError(f"{path} ends within a batch")
                yield check_batches(data, where)
                position += len(data)
        finally:
            file.close()

    def _find_position(self, file: File, base_offset: int, offset: int) -> int:
        """Return where to begin to look for an offset; the segment's start if its index is of no use."""
        if offset <= base_offset:  # as where there is no snapshot yet
            return 0
        path = f"{self._path}/{format_offset(base_offset)}{OFFSET_INDEX_SUFFIX}"
        index = OffsetIndex(self._filesystem, path, base_offset, _MOST_INDEX_BYTES)
        try:
            index.load()
            index.check_order(file.size())
            entry = index.lookup(offset)
            first = next(walk_batches(file, entry.position, file.size()), None)
        except (CorruptIndex, FileNotFoundError, KafkaStorageError):
            return 0
        return entry.position if first is not None and first.last_offset == entry.offset else 0

    def path(self, base_offset: int) -> str:
        return f"{self._path}/{format_offset(base_offset)}{LOG_SUFFIX}"


def _read_whole_batches(file: File, position: int, size_bytes: int, where: str) -> bytes:
    """Return batches of about 1 MiB, at least one, of the `size_bytes` from `position`; nothing where it is torn."""
    data = file.pread(min(_READ_BYTES, size_bytes), position)
    try:
        first = int(size_from_front(data[:HEADER_BYTES], size_bytes))
        if first > len(data):
            data = file.pread(first, position)
        view, end = memoryview(data), 0
        while (size := int(next_batch_size(view, end))) > 0:
            end += size
    except KafkaError as error:
        raise KafkaStorageError(f"{where} is damaged: {error}") from error
    return data[:end]


class _Whole(NamedTuple):
    """The good batches at the start of a segment; `end_offset` is 0 where there are none."""

    size_bytes: int
    end_offset: int


def _whole_batches(data: bytes) -> _Whole:
    """Return how much of a segment is good batches, one after the other from its start."""
    view = memoryview(data)
    position = end_offset = 0
    try:
        while (size := int(next_batch_size(view, position))) > 0:
            batch = RecordBatch(view[position : position + size])
            if not batch.is_crc_valid():
                break
            position += size
            end_offset = int(batch.next_offset)
    except KafkaError:
        pass  # no batch can start like that, so the good part ends here
    return _Whole(position, end_offset)


def _has_batch_behind(data: bytes, damage: int) -> bool:
    """Say whether a good batch stands anywhere behind a damaged place: then it was no torn end."""
    view = memoryview(data)
    return any(_is_batch(view, position) for position in range(damage + 1, len(data) - HEADER_BYTES + 1))


def _is_batch(view: memoryview, position: int) -> bool:
    try:
        size = int(next_batch_size(view, position))
        return size >= HEADER_BYTES and RecordBatch(view[position : position + size]).is_crc_valid()
    except KafkaError:
        return False
