"""How compacted segments take the place of their originals, so that a crash at any point leaves one or the other.

1. The new segment is written to files that end in `.cleaned`, which are synced.
2. Its index files, and last its log, are renamed to `.swap`; the directory is synced. From here on the swap happens.
3. The originals are renamed to `.deleted`, the oldest first, and the directory is synced after each: no crash keeps an
   older one without those behind it, which may hold a tombstone for something in it.
4. The `.swap` files get their names, the indexes first; the directory is synced; then the log; synced once more.

`finish_swaps` does at a start what was left undone: before the end of step 2 the originals stay, after it they go.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ottla.errors import KafkaError, KafkaStorageError
from ottla.records.batch import CURRENT_MAGIC, RecordBatch
from ottla.records.legacy import LegacyBatch
from ottla.storage.files import FileSystem
from ottla.storage.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    format_offset,
    walk_batches,
)

_log = logging.getLogger(__name__)

INDEX_SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
_UNFINISHED_SUFFIXES: Final = (DELETED_SUFFIX, CLEANED_SUFFIX, ".tmp")


def announce_swap(filesystem: FileSystem, directory: str, base_offset: int) -> None:
    """Step 2: `.cleaned` to `.swap`. The files must be synced. Raises `OSError`."""
    path = f"{directory}/{format_offset(base_offset)}"
    for suffix in (*INDEX_SUFFIXES, LOG_SUFFIX):
        with suppress(FileNotFoundError):
            filesystem.rename(path + suffix + CLEANED_SUFFIX, path + suffix + SWAP_SUFFIX)
    filesystem.sync_directory(directory)


def withdraw(filesystem: FileSystem, directory: str, bases: Sequence[int]) -> None:
    """Remove the `.cleaned` files of a swap that does not happen. Raises `OSError`."""
    for base_offset in bases:
        for suffix in (*INDEX_SUFFIXES, LOG_SUFFIX):
            filesystem.remove(f"{directory}/{format_offset(base_offset)}{suffix}{CLEANED_SUFFIX}")


def put_originals_aside(filesystem: FileSystem, directory: str, bases: Sequence[int], base_offset: int) -> list[str]:
    """Step 3; returns the new names, all of which end in `.deleted`. Raises `OSError`.

    A producer snapshot goes with its segment, but not the one where the new segment begins.
    """
    renamed: list[str] = []
    for original in bases:
        suffixes = (*INDEX_SUFFIXES, LOG_SUFFIX, *((SNAPSHOT_SUFFIX,) if original != base_offset else ()))
        for suffix in suffixes:
            path = f"{directory}/{format_offset(original)}{suffix}"
            with suppress(FileNotFoundError):
                filesystem.rename(path, path + DELETED_SUFFIX)
                renamed.append(path + DELETED_SUFFIX)
        filesystem.sync_directory(directory)
    return renamed


def complete_swap(filesystem: FileSystem, directory: str, base_offset: int) -> None:
    """Step 4. Raises `OSError`."""
    path = f"{directory}/{format_offset(base_offset)}"
    for suffix in INDEX_SUFFIXES:
        if filesystem.exists(path + suffix + SWAP_SUFFIX):
            filesystem.rename(path + suffix + SWAP_SUFFIX, path + suffix)
        else:  # what stands there is the original's
            filesystem.remove(path + suffix)
    filesystem.sync_directory(directory)
    filesystem.rename(path + LOG_SUFFIX + SWAP_SUFFIX, path + LOG_SUFFIX)
    filesystem.sync_directory(directory)


def finish_swaps(filesystem: FileSystem, directory: str) -> set[str]:
    """Leave only whole segments in a partition's directory; returns the names that are there then.

    Raises `OSError`, `KafkaStorageError`.
    """
    names = set(filesystem.list(directory))
    swaps = _offsets(names, LOG_SUFFIX + SWAP_SUFFIX)
    ends = [_end_of_swap(filesystem, directory, base_offset) for base_offset in swaps]  # before anything is removed
    for name in [name for name in names if name.endswith(_UNFINISHED_SUFFIXES)]:
        filesystem.remove(f"{directory}/{name}")
        names.remove(name)
    for base_offset, end in zip(swaps, ends, strict=True):
        replaced = [base for base in _offsets(names, LOG_SUFFIX) if base_offset <= base < max(end, base_offset + 1)]
        _log.warning("%s: the swap of segment %d is completed", directory, base_offset)
        for path in put_originals_aside(filesystem, directory, replaced, base_offset):
            filesystem.remove(path)
        complete_swap(filesystem, directory, base_offset)
    if swaps:
        names = set(filesystem.list(directory))
    for name in [name for name in names if name.endswith(SWAP_SUFFIX)]:
        original = name.removesuffix(SWAP_SUFFIX)  # it may have been this one's or its successor's
        for path in (name, original):
            filesystem.remove(f"{directory}/{path}")
            names.discard(path)
    return names


def _offsets(names: set[str], suffix: str) -> list[int]:
    stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def _end_of_swap(filesystem: FileSystem, directory: str, base_offset: int) -> int:
    """Return one past the last offset of a segment that waits for its name.

    Raises `KafkaStorageError` where it is not whole: it was synced before it got this name, so that a disk went wrong.
    """
    path = f"{directory}/{format_offset(base_offset)}{LOG_SUFFIX}{SWAP_SUFFIX}"
    file = filesystem.open(path)
    end, whole_bytes, size_bytes = base_offset, 0, file.size()
    try:
        for span in walk_batches(file, 0, size_bytes):
            data = file.pread(span.size_bytes, span.position)
            batch = RecordBatch(data) if span.magic >= CURRENT_MAGIC else LegacyBatch(data)
            if not batch.is_crc_valid():
                break
            end, whole_bytes = span.last_offset + 1, span.position + span.size_bytes
    except KafkaError:  # none can begin there
        pass
    finally:
        file.close()
    if whole_bytes != size_bytes:
        raise KafkaStorageError(
            f"{path} is damaged at byte {whole_bytes}; remove it if the segments from {base_offset} on that it was to "
            "replace are there"
        )
    return end
