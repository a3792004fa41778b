"""Reads of a log: which bytes a fetch gets, offsets for times, aborted transactions, as Kafka answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.config.log_config import LogConfig
from ottla.engine import ReadLimit
from ottla.errors import OffsetOutOfRange
from ottla.storage.files import LocalFileSystem
from ottla.storage.log import PartitionLog
from ottla.storage.log_timestamps import offset_for_timestamp
from ottla.storage.recovery import LoadPoint
from ottla.storage.segment import Segment
from tests.storage.harness import golden_lines, open_log, take_bytes

FILES = LocalFileSystem()
CASES = list(golden_lines("reads"))


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [case for case in CASES if case["kind"] == kind]


def case_id(case: dict[str, Any]) -> str:
    return f"{case['id']} {case['note']} {case.get('isolation', '')}"


def load_case(path: Path, case: dict[str, Any]) -> PartitionLog:
    """Put the recorded segments on disk, without any index, and recover them."""
    for segment in case["segments"]:
        FILES.write(str(path / f"{segment['baseOffset']:020d}.log"), bytes.fromhex(segment["hex"]))
    config = LogConfig(index_interval_bytes=case["indexIntervalBytes"])
    point = LoadPoint(is_clean=False, recovery_point=0, log_start_offset=case["logStartOffset"])
    log = open_log(path, config, point=point)
    log.high_watermark = case["highWatermark"]
    return log


def up_to_offset(log: PartitionLog, isolation: str) -> int:
    return {
        "LOG_END": log.log_end_offset,
        "HIGH_WATERMARK": log.high_watermark,
        "TXN_COMMITTED": log.last_stable_offset,
    }[isolation]


def segment_of(log: PartitionLog, base_offset: int) -> Segment:
    return next(segment for segment in log.segments if segment.base_offset == base_offset)


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_recovered_log_is_the_recorded_one(tmp_path: Path, case: dict[str, Any]) -> None:
    log = load_case(tmp_path, case)
    assert log.log_start_offset == case["logStartOffset"]
    assert log.log_end_offset == case["logEndOffset"]
    assert log.last_stable_offset == case["lastStableOffset"]
    for expected in case["segments"]:
        segment = segment_of(log, expected["baseOffset"])
        segment.load_indexes()
        assert [list(entry) for entry in segment.offset_index.entries()] == expected["offsetIndex"]
        assert [list(txn) for txn in segment.txn_index] == [
            [txn["producerId"], txn["firstOffset"], txn["lastOffset"], txn["lastStableOffset"]]
            for txn in expected["abortedTxns"]
        ]


@pytest.mark.parametrize("case", of_kind("read"), ids=case_id)
def test_read_returns_the_bytes_that_kafka_returns(tmp_path: Path, case: dict[str, Any]) -> None:
    """A first batch that the limit cuts is left out here; Kafka leaves it out one step later, for Fetch v3 and up."""
    log = load_case(tmp_path, case)
    limit_offset = up_to_offset(log, case["isolation"])
    for query in case["queries"]:
        limit = ReadLimit(query["maxBytes"], limit_offset, query["minOneMessage"])
        if "error" in query:
            with pytest.raises(OffsetOutOfRange):
                log.read(query["offset"], limit)
            continue
        result = log.read(query["offset"], limit)
        if query["firstEntryIncomplete"] or not query["bytes"]:
            assert (result.size_bytes, result.spans) == (0, ()), query
            continue
        assert result.size_bytes == query["bytes"], query
        found = take_bytes(result)
        stored = FILES.read(segment_of(log, query["segmentBase"]).file.path)
        assert found == stored[query["position"] : query["position"] + query["bytes"]], query
        if query["abortedTransactions"] is not None:
            assert [list(txn) for txn in result.aborted_transactions or ()] == query["abortedTransactions"], query


@pytest.mark.parametrize("case", of_kind("offsetForTimestamp"), ids=case_id)
def test_offset_for_timestamp_agrees_with_kafka(tmp_path: Path, case: dict[str, Any]) -> None:
    log = load_case(tmp_path, case)
    for query in case["queries"]:
        found = offset_for_timestamp(log, query["timestamp"])
        if query["foundOffset"] is None:
            assert found is None, query
        else:
            epoch = -1 if query["leaderEpoch"] is None else query["leaderEpoch"]
            assert found == (query["foundTimestamp"], query["foundOffset"], epoch), query


@pytest.mark.parametrize("case", of_kind("abortedTransactions"), ids=case_id)
def test_aborted_transactions_agree_with_kafka(tmp_path: Path, case: dict[str, Any]) -> None:
    """But for transactions that ended before the range: Kafka's call for tiered storage names them, its Fetch does not.

    A consumer would take such a one for open and skip what the same producer committed later.
    """
    log = load_case(tmp_path, case)
    for query in case["queries"]:
        found = log.aborted_transactions(query["from"], query["upTo"])
        expected = [_pair(txn) for txn in query["found"] if txn["lastOffset"] >= query["from"]]
        assert [list(txn) for txn in found] == expected, query


def _pair(txn: dict[str, int]) -> list[int]:
    return [txn["producerId"], txn["firstOffset"]]
