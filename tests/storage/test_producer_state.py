"""Producers of a log: sequences of appends and their answers, and snapshots, as Kafka has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.errors import KafkaError, error_for_code
from ottla.model import AppendOrigin
from ottla.records.validation import ProduceRules, validate_produced
from ottla.storage.files import LocalFileSystem
from ottla.storage.log import PartitionLog
from ottla.storage.producer_state import (
    BatchFacts,
    CorruptSnapshot,
    ProducerStates,
    decode_snapshot,
    encode_snapshot,
)
from tests.storage.harness import A_DAY_MS, golden_lines, open_log
from tests.storage.producers import describe_producers, make_producer

NOW_MS = 1_750_000_000_000
RULES = ProduceRules()
CASES = list(golden_lines("indexes"))


def append_step(log: PartitionLog, step: dict[str, Any], leader_epoch: int) -> None:
    """Validate and append one step of a recorded sequence, and compare the answer."""
    origin = AppendOrigin[step["origin"]]
    try:
        records = bytearray.fromhex(step["hex"])
        validated = validate_produced(records, RULES, NOW_MS, origin=origin)
        ticket = log.append(validated.buffer, leader_epoch, origin, -1, step["transactionVersion"])
    except KafkaError as error:
        assert error.name == step["verdict"], step
    else:
        assert step["verdict"] == "ok", step
        assert (ticket.base_offset, ticket.last_offset) == (step["firstOffset"], step["lastOffset"])
        assert ticket.is_duplicate == step["duplicate"]
        assert ticket.log_append_time_ms == step["logAppendTime"]
    assert log.log_end_offset == step["logEndOffset"], step
    assert log.last_stable_offset == step["lastStableOffset"], step


def is_verified(case: dict[str, Any]) -> bool:
    """The log's own verification of transactions belongs to the coordinator, which is not there yet."""
    return "verification on" in case["note"]


@pytest.mark.parametrize(
    "case",
    [case for case in golden_lines("sequences") if not is_verified(case)],
    ids=lambda case: f"{case['id']} {case['note']}",
)
def test_sequence_of_appends_agrees_with_kafka(tmp_path: Path, case: dict[str, Any]) -> None:
    log = open_log(tmp_path / "t-0")
    for step in case["steps"]:
        append_step(log, step, case["leaderEpoch"])

    end = case["end"]
    assert describe_producers(log.producers) == end["producers"]
    assert log.last_stable_offset == end["lastStableOffset"]
    assert [list(entry) for entry in log.epochs.entries] == end["leaderEpochs"]
    assert [txn._asdict() for txn in log.active.txn_index] == [
        {
            "producer_id": txn["producerId"],
            "first_offset": txn["firstOffset"],
            "last_offset": txn["lastOffset"],
            "last_stable_offset": txn["lastStableOffset"],
        }
        for txn in end["abortedTxns"]
    ]
    files = LocalFileSystem()
    assert files.exists(log.active.txn_index.path) == (end["txnIndexHex"] is not None)
    if end["txnIndexHex"] is not None:
        assert files.read(log.active.txn_index.path).hex() == end["txnIndexHex"]
    log.store_snapshot()
    if "snapshotFile" in end:
        assert files.read(str(tmp_path / "t-0" / end["snapshotFile"])).hex() == end["snapshotHex"]


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["kind"] == "producerSnapshot"], ids=lambda case: case["note"]
)
def test_snapshot_agrees_with_kafka(case: dict[str, Any]) -> None:
    data = encode_snapshot(make_producer(row) for row in case["written"])
    assert data.hex() == case["hex"]
    assert describe_producers(decode_snapshot(data)) == case["readBack"]


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["kind"] == "producerSnapshotRead"], ids=lambda case: case["note"]
)
def test_damaged_snapshot_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(bytes.fromhex(case["hex"]))


def facts(
    producer_id: int,
    base_offset: int,
    *,
    timestamp_ms: int = NOW_MS,
    sequence: int = 0,
    is_transactional: bool = False,
) -> BatchFacts:
    return BatchFacts(producer_id, 0, sequence, base_offset, base_offset, timestamp_ms, is_transactional)


def test_silent_producer_is_forgotten() -> None:
    producers = ProducerStates(A_DAY_MS)
    producers.update(facts(1, 0, timestamp_ms=NOW_MS))
    producers.update(facts(2, 1, timestamp_ms=NOW_MS + 1))

    producers.expire(NOW_MS + A_DAY_MS)

    assert [state.producer_id for state in producers] == [2]


def test_producer_with_an_open_transaction_is_kept() -> None:
    producers = ProducerStates(A_DAY_MS)
    producers.update(facts(1, 0, is_transactional=True))
    producers.expire(NOW_MS + 10 * A_DAY_MS)
    assert len(producers) == 1


def test_expired_producers_of_a_snapshot_are_not_loaded() -> None:
    producers = ProducerStates(A_DAY_MS)
    producers.update(facts(1, 0))
    states = decode_snapshot(encode_snapshot(producers))

    producers.load(states, NOW_MS + A_DAY_MS)

    assert len(producers) == 0


def test_sixth_batch_back_is_out_of_order() -> None:
    """Five batches are remembered: the fifth last is a repeat, the sixth last is an error (45)."""
    producers = ProducerStates(A_DAY_MS)
    for sequence in range(6):
        producers.update(facts(1, sequence, sequence=sequence))

    duplicate = producers.check(facts(1, 6, sequence=1), AppendOrigin.CLIENT)

    assert duplicate is not None
    assert duplicate.first_offset == 1
    with pytest.raises(KafkaError) as raised:
        producers.check(facts(1, 6, sequence=0), AppendOrigin.CLIENT)
    assert isinstance(raised.value, type(error_for_code(45)))
