"""`verify_partition`: whether a partition's files are what they should be. Reads everything, changes nothing.

Finds what a start after a clean stop does not look for: flipped bits, indexes that lie, aborted transactions that the
transaction index has forgotten. `repairable` findings go when the directory is started without its clean-shutdown file;
the others lose records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.errors import CorruptMessage, KafkaError
from ottla.records.batch import RecordBatch
from ottla.records.control import ControlType, marker_of
from ottla.records.jafka_reading import count_records
from ottla.records.legacy import LegacyBatch
from ottla.storage.checkpoints import CorruptCheckpoint, parse_leader_epochs
from ottla.storage.files import File, FileSystem
from ottla.storage.index import CorruptIndex, OffsetIndex, TimeIndex
from ottla.storage.jafka_segment import find_starts, segment_path, walk_file
from ottla.storage.producer_state import CorruptSnapshot, decode_snapshot
from ottla.storage.recovery import LEADER_EPOCHS
from ottla.storage.segment import (
    CURRENT_MAGIC,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    BatchSpan,
    format_offset,
    walk_batches,
)
from ottla.storage.txn_index import TransactionIndex

_ANY_SIZE: Final = 2**31 - 1


class Finding(NamedTuple):
    """Something that is not as it should be. `loses_bytes` is what a repair would have to cut off, 0 for nothing."""

    path: str
    problem: str
    loses_bytes: int = 0


class _Checked(NamedTuple):
    """What reading one `.log` showed."""

    positions: dict[int, int]
    """Last offset of each batch to its position."""
    aborts: set[int]
    """Offsets of the markers that ended a transaction by aborting it."""


def verify_partition(filesystem: FileSystem, directory: str) -> Iterator[Finding]:
    """Yield what is wrong with a partition's directory, oldest segment first. Raises `OSError`."""
    names = set(filesystem.list(directory))
    bases = sorted(int(name.removesuffix(LOG_SUFFIX)) for name in names if _is_log(name))
    is_cut = False
    for base_offset, following in zip(bases, [*bases[1:], _ANY_OFFSET], strict=False):
        stem = f"{directory}/{format_offset(base_offset)}"
        findings: list[Finding] = []
        checked = _check_log(filesystem, stem + LOG_SUFFIX, base_offset, following, findings)
        if is_cut:  # a repair leaves nothing of what follows
            problem = findings[0].problem if findings else "stands behind what is damaged"
            findings = [Finding(stem + LOG_SUFFIX, problem, filesystem.size(stem + LOG_SUFFIX))]
        is_cut = is_cut or any(finding.loses_bytes for finding in findings)
        yield from findings
        yield from _check_indexes(filesystem, stem, base_offset, checked)
        yield from _check_txn_index(filesystem, stem + TXN_INDEX_SUFFIX, base_offset, checked)
    for name in sorted(names):
        if name.endswith(SNAPSHOT_SUFFIX):
            yield from _check_snapshot(filesystem, f"{directory}/{name}")
    if LEADER_EPOCHS in names:
        yield from _check_epochs(filesystem, f"{directory}/{LEADER_EPOCHS}")
    yield from _check_jafka_segments(filesystem, directory)


_ANY_OFFSET: Final = 2**63 - 1


def _check_log(
    filesystem: FileSystem, path: str, base_offset: int, following: int, findings: list[Finding]
) -> _Checked:
    file = filesystem.open(path)
    checked = _Checked({}, set())
    open_txns: set[int] = set()
    size_bytes, end, next_offset = file.size(), 0, base_offset
    try:
        for span in walk_batches(file, 0, size_bytes):
            _check_batch(file, span, next_offset, following)
            checked.positions[span.last_offset] = span.position
            if span.magic >= CURRENT_MAGIC:
                _note_txn(RecordBatch(file.pread(span.size_bytes, span.position)), open_txns, checked)
            end, next_offset = span.position + span.size_bytes, span.last_offset + 1
    except KafkaError as error:
        findings.append(Finding(path, f"byte {end}: {error}", size_bytes - end))
    else:
        if end < size_bytes:
            findings.append(Finding(path, f"byte {end}: no whole batch follows", size_bytes - end))
    finally:
        file.close()
    return checked


def _check_batch(file: File, span: BatchSpan, next_offset: int, following: int) -> None:
    """Raise `KafkaError` for a batch that is damaged or out of order."""
    data = file.pread(span.size_bytes, span.position)
    batch = RecordBatch(data) if span.magic >= CURRENT_MAGIC else LegacyBatch(data)
    if not batch.is_crc_valid():
        raise CorruptMessage(f"the batch of offset {span.base_offset} fails its checksum")
    if span.base_offset < next_offset or span.last_offset >= following:
        raise CorruptMessage(f"the batch of offset {span.base_offset} is out of order")


def _note_txn(batch: RecordBatch, open_txns: set[int], checked: _Checked) -> None:
    if not batch.is_control:
        if batch.is_transactional:
            open_txns.add(batch.producer_id)
        return
    marker = marker_of(batch)
    if marker is not None and marker.type is ControlType.ABORT and batch.producer_id in open_txns:
        checked.aborts.add(batch.last_offset)
    open_txns.discard(batch.producer_id)


def _check_indexes(filesystem: FileSystem, stem: str, base_offset: int, checked: _Checked) -> Iterator[Finding]:
    log_bytes = filesystem.size(stem + LOG_SUFFIX)
    offsets = OffsetIndex(filesystem, stem + OFFSET_INDEX_SUFFIX, base_offset, _ANY_SIZE)
    times = TimeIndex(filesystem, stem + TIME_INDEX_SUFFIX, base_offset, _ANY_SIZE)
    is_readable = True
    for index in (offsets, times):
        try:
            index.load()
            if isinstance(index, OffsetIndex):
                index.check_order(log_bytes)
            else:
                index.check_order()
        except FileNotFoundError:
            is_readable = False
            yield Finding(index.path, "is missing")
        except CorruptIndex as error:
            is_readable = False
            yield Finding(index.path, str(error).removeprefix(index.path).strip())
    if not is_readable:
        return
    wrong = [entry for entry in offsets.entries() if checked.positions.get(entry.offset) not in (None, entry.position)]
    if wrong:
        yield Finding(offsets.path, f"has {len(wrong)} entries that point elsewhere, the first is of {wrong[0].offset}")


def _check_txn_index(filesystem: FileSystem, path: str, base_offset: int, checked: _Checked) -> Iterator[Finding]:
    index = TransactionIndex(filesystem, path, base_offset)
    try:
        index.load()
    except CorruptIndex as error:
        yield Finding(path, str(error).removeprefix(path).strip())
        return
    missing = checked.aborts - {txn.last_offset for txn in index}
    if missing:
        yield Finding(path, f"does not name the transaction that was aborted at {min(missing)}")


def _check_snapshot(filesystem: FileSystem, path: str) -> Iterator[Finding]:
    try:
        decode_snapshot(filesystem.read(path))
    except CorruptSnapshot as error:
        yield Finding(path, str(error))


def _check_epochs(filesystem: FileSystem, path: str) -> Iterator[Finding]:
    try:
        parse_leader_epochs(filesystem.read(path).decode("utf-8", "replace"), path)
    except CorruptCheckpoint as error:
        yield Finding(path, str(error).removeprefix(path).strip())


def _check_jafka_segments(filesystem: FileSystem, directory: str) -> Iterator[Finding]:
    """Look through a log in Jafka's form. Only of its last segment something would be cut off."""
    starts = find_starts(filesystem, directory)
    expected = starts[0] if starts else 0
    for start in starts:
        path = segment_path(directory, start)
        if start != expected:
            yield Finding(path, f"begins at {start}, and the segment before it ends at {expected}")
        size_bytes = filesystem.size(path)
        expected = start + size_bytes
        end, problem = _read_jafka_segment(filesystem, path, size_bytes)
        if end < size_bytes:
            yield Finding(path, f"byte {end}: {problem}", size_bytes - end if start == starts[-1] else 0)


def _read_jafka_segment(filesystem: FileSystem, path: str, size_bytes: int) -> tuple[int, str]:
    """Return where the last good message ends, and what is wrong there."""
    whole_bytes, file = 0, filesystem.open(path)
    try:
        for walked in walk_file(lambda: file, 0, size_bytes, count_records):
            whole_bytes = walked.end
    except KafkaError as error:
        return whole_bytes, str(error)
    finally:
        file.close()
    return whole_bytes, "no whole message follows"


def _is_log(name: str) -> bool:
    return name.endswith(LOG_SUFFIX) and name.removesuffix(LOG_SUFFIX).isdecimal()
