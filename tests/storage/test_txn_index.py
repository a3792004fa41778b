"""The transaction index: Kafka's own files and range queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.storage.files import LocalFileSystem
from ottla.storage.index import CorruptIndex
from ottla.storage.txn_index import AbortedTxn, TransactionIndex
from tests.storage.harness import golden_lines

FILES = LocalFileSystem()
CASES = list(golden_lines("indexes"))


def index_at(path: Path, start_offset: int) -> TransactionIndex:
    return TransactionIndex(FILES, str(path / "0.txnindex"), start_offset)


def aborted(row: dict[str, int]) -> AbortedTxn:
    return AbortedTxn(row["producerId"], row["firstOffset"], row["lastOffset"], row["lastStableOffset"])


@pytest.mark.parametrize("case", [case for case in CASES if case["kind"] == "txnIndex"], ids=lambda case: case["note"])
def test_written_file_and_queries_agree_with_kafka(tmp_path: Path, case: dict[str, Any]) -> None:
    index = index_at(tmp_path, case["startOffset"])
    for row in case["entries"]:
        index.append(aborted(row))

    assert FILES.exists(index.path) == (case["hex"] is not None)
    if case["hex"] is not None:
        assert FILES.read(index.path).hex() == case["hex"]
    for query in case["collect"]:
        found = index.collect(query["fetchOffset"], query["upperBound"])
        assert found.aborted == [aborted(row) for row in query["found"]], query
        assert found.is_complete == query["isComplete"], query
    if "truncateTo" in case:
        index.truncate_to(case["truncateTo"])
        assert list(index) == [aborted(row) for row in case["afterTruncate"]]


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["kind"] == "txnIndexRead"], ids=lambda case: case["note"]
)
def test_read_file_agrees_with_kafka(tmp_path: Path, case: dict[str, Any]) -> None:
    index = index_at(tmp_path, case["startOffset"])
    FILES.write(index.path, bytes.fromhex(case["hex"]))

    if case["sanity"] == "ok":
        index.load()
    else:
        with pytest.raises(CorruptIndex):
            index.load()

    if "entries" in case:
        assert list(index) == [aborted(row) for row in case["entries"]]


def test_last_offset_must_rise(tmp_path: Path) -> None:
    index = index_at(tmp_path, 0)
    index.append(AbortedTxn(1, 0, 5, 6))
    with pytest.raises(ValueError, match="not above"):
        index.append(AbortedTxn(2, 1, 5, 6))


def test_unknown_version_is_corrupt(tmp_path: Path) -> None:
    index = index_at(tmp_path, 0)
    FILES.write(index.path, b"\x00\x01" + bytes(32))
    with pytest.raises(CorruptIndex, match="version 1"):
        index.load()
