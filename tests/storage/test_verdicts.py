"""Produced batches through validation into a log at offset 1000, with the answers that Kafka gave.

`tests/records` holds validation to every line; here are those lines again that get past it, since what the log knows
(producers, its segment size) decides the rest.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.errors import KafkaError
from ottla.model import AppendOrigin
from ottla.records.validation import ProduceRules, validate_produced
from ottla.storage.recovery import LoadPoint
from tests.storage.harness import golden_lines, open_log

BROKER = BrokerConfig.from_properties({})
LOG_END_OFFSET = 1000
AT_1000 = LoadPoint(is_clean=True, recovery_point=0, log_start_offset=LOG_END_OFFSET)

CASES: dict[str, list[dict[str, Any]]] = {}
for _case in golden_lines("verdicts"):
    if _case["origin"] in (
        "CLIENT",
        "COORDINATOR",
    ):  # the other origins bring their own offsets, which no append here does
        CASES.setdefault(_case["group"], []).append(_case)


def is_verified(case: dict[str, Any]) -> bool:
    """The log's own verification of transactions belongs to the coordinator, which is not there yet."""
    return bool(case.get("transactionVerification"))


@pytest.mark.parametrize("group", sorted(CASES))
def test_log_answers_as_kafka_does(tmp_path: Path, group: str) -> None:
    appended = 0
    for number, case in enumerate(CASES[group]):
        config = LogConfig.resolve(BROKER, {}, case["topicConfig"])
        origin = AppendOrigin[case["origin"]]
        try:
            batch = validate_produced(
                bytearray.fromhex(case["hex"]),
                ProduceRules.from_config(config),
                case["now"],
                origin=origin,
                is_zstd_allowed=case.get("produceVersion", 13) >= 7,
            )
        except KafkaError:
            continue
        if is_verified(case):
            continue
        log = open_log(tmp_path / str(number), config, point=AT_1000)
        try:
            ticket = log.append(
                batch.buffer, case["leaderEpoch"], origin, batch.log_append_time_ms, case.get("transactionVersion", 0)
            )
        except KafkaError as error:
            assert error.name == case["verdict"], case["id"]
            continue
        assert case["verdict"] == "ok", case["id"]
        expected = case["detail"]["append"]
        assert ticket.base_offset == expected["firstOffset"] == LOG_END_OFFSET, case["id"]
        assert ticket.last_offset == expected["lastOffset"], case["id"]
        assert ticket.log_append_time_ms == expected["logAppendTime"], case["id"]
        if "hex" in expected and not expected["messageSizeMaybeChanged"]:
            assert log.active.file.get().pread(log.size_bytes, 0).hex() == expected["hex"], case["id"]
        appended += 1
        log.retire()
    assert appended > 0 or group == "legacy"  # which no leader takes
