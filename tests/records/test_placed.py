"""What followers and Raft leaders append gets Kafka's verdicts."""

from __future__ import annotations

from ottla.errors import KafkaError
from ottla.model import AppendOrigin
from ottla.records.placed import check_placed
from tests.records.golden import cases

FITTING = {"CORRUPT_MESSAGE", "INVALID_RECORD"}

CASES = [case for case in cases("verdicts") if case["origin"] in ("REPLICATION", "RAFT_LEADER")]


def test_every_verdict_is_kafkas() -> None:
    for case in CASES:
        try:
            batches = check_placed(
                bytes.fromhex(case["hex"]),
                origin=AppendOrigin[case["origin"]],
                leader_epoch=case["leaderEpoch"],
                log_end_offset=case["logEndOffset"],
            )
        except KafkaError as error:
            allowed = FITTING if case["verdict"] == "UNKNOWN_SERVER_ERROR" else {case["verdict"]}
            assert error.name in allowed, (case["id"], case["note"])
            continue
        expected = case["detail"]["append"]
        assert case["verdict"] == "ok", (case["id"], case["note"])
        assert sum(batch.size_in_bytes for batch in batches) == expected["validBytes"], case["id"]
        next_offset = batches[-1].next_offset if batches else case["logEndOffset"]
        assert next_offset == expected["logEndOffset"], case["id"]


def test_a_torn_end_is_left_out() -> None:
    case = next(case for case in CASES if case["verdict"] == "ok" and case["note"] == "good then half a batch")

    assert (
        len(check_placed(bytes.fromhex(case["hex"]), origin=AppendOrigin.REPLICATION, leader_epoch=7, log_end_offset=0))
        == 1
    )
