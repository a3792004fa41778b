"""Damaged files of a partition: the log opens with what is still whole, and goes on from there."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hypothesis import strategies as st

from ottla.config.log_config import LogConfig
from ottla.engine import ReadLimit
from ottla.errors import CorruptMessage, KafkaError
from ottla.model import MAX_TIMESTAMP
from ottla.records.legacy import split_any
from ottla.storage.log import PartitionLog
from ottla.storage.log_timestamps import offset_for_timestamp
from tests.fuzz.corpus import logs
from tests.fuzz.mutation import fuzz, mutated
from tests.storage.harness import UNCLEAN, make_batch, make_host, open_log, take_bytes

FIRST = f"{0:020d}"
CONFIG = LogConfig(index_interval_bytes=1)


def whole_log() -> dict[str, bytes]:
    """The files of a log with indexes, producers and a leader epoch."""
    with tempfile.TemporaryDirectory() as name:
        host, offload = make_host()
        log = open_log(Path(name), CONFIG, host=host)
        for number in range(20):
            log.append(make_batch(3, producer_id=7, producer_epoch=0, base_sequence=3 * number), number // 10)
        offload.run_all()
        log.close()
        return {path.name: path.read_bytes() for path in Path(name).iterdir() if path.is_file()}


def check_usable(log: PartitionLog) -> None:
    """All that is there can be read, and more can follow.

    No checksum covers a batch's magic and base offset; where those are damaged recovery keeps them, as in Kafka.
    """
    position = log.log_start_offset
    while position < log.log_end_offset:
        data = take_bytes(log.read(position, ReadLimit(1 << 20, log.log_end_offset, True)))
        try:
            batches = list(split_any(data))
        except CorruptMessage as error:
            assert "has magic" in str(error)
            break
        assert batches, f"nothing at {position} of {log.log_end_offset}"
        assert all(batch.is_crc_valid() for batch in batches)
        if batches[-1].last_offset < position:
            break
        position = batches[-1].last_offset + 1
    for timestamp in (0, 1_750_000_000_000, MAX_TIMESTAMP):
        with suppress(KafkaError):
            offset_for_timestamp(log, timestamp)
    end = log.log_end_offset
    assert log.append(make_batch(), 9).base_offset == end


def open_damaged(files: Mapping[str, bytes]) -> None:
    """Open a log that was not closed in order and use it, twice: the second time it was closed."""
    with tempfile.TemporaryDirectory() as name:
        for file_name, data in files.items():
            (Path(name) / file_name).write_bytes(data)
        for _ in range(2):
            host, offload = make_host()
            log = open_log(Path(name), CONFIG, host=host, point=UNCLEAN)
            check_usable(log)
            offload.run_all()
            log.close()


def test_any_segment_keeps_its_whole_beginning() -> None:
    def check(data: bytes) -> None:
        open_damaged({f"{FIRST}.log": data})

    fuzz(mutated([*logs(), whole_log()[f"{FIRST}.log"]]), check)


def test_any_side_file_is_used_or_made_anew() -> None:
    """Indexes, producer snapshot, leader epochs: the segment decides, whatever they say."""
    files = whole_log()
    names = sorted(name for name in files if not name.endswith(".log"))
    assert len(names) >= 4, names

    def check(damage: dict[str, bytes]) -> None:
        open_damaged({**files, **damage})

    fuzz(st.fixed_dictionaries({}, optional={name: mutated([files[name], b"0", b""]) for name in names}), check)
