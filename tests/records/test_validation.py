"""Produced batches get Kafka's verdicts, and the log gets Kafka's bytes.

Lines whose outcome a log decides (sequences, epochs, transactions, segment size) are answered in two steps: here they
must pass, and storage's append says the rest. Where Kafka fails without an error code, or keeps what no consumer can
read, an error that fits takes its place; `allowed_errors` knows these kinds as `docs/differences.md` does.
"""

from __future__ import annotations

import re
from contextlib import nullcontext

import pytest

from ottla.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    KafkaError,
    MessageTooLarge,
    RecordValidationFailed,
)
from ottla.model import AppendOrigin
from ottla.records.batch import (
    ATTRIBUTES_AT,
    CRC_AT,
    MAX_TIMESTAMP_AT,
    TIMESTAMP_TYPE_BIT,
    RecordBatch,
    stamp,
)
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.records.crc32c import crc32c
from ottla.records.validation import ProduceRules, ValidatedBatch, has_transactional_batch, validate_produced
from tests.records.golden import Case, cases, hex_or_none, rules_of

NOW_MS = 1_750_000_000_000

VERDICTS = [case for case in cases("verdicts") if case["origin"] in ("CLIENT", "COORDINATOR")]

LOG_DECIDES = {"INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "RECORD_LIST_TOO_LARGE"}

FITTING = {"CORRUPT_MESSAGE", "INVALID_RECORD", "UNSUPPORTED_COMPRESSION_TYPE"}


def decide(case: Case) -> ValidatedBatch:
    buffer = bytearray.fromhex(case["hex"])
    if case["origin"] == "CLIENT":
        has_transactional_batch(buffer)
    validated = validate_produced(
        buffer,
        rules_of(case),
        case["now"],
        origin=AppendOrigin[case["origin"]],
        is_zstd_allowed=case.get("produceVersion", 13) >= 7,
    )
    stamp(validated.buffer, case["logEndOffset"], case["leaderEpoch"])
    return validated


def allowed_errors(case: Case) -> set[str]:
    """Return the verdicts that are right for a case, Kafka's own or those that `docs/differences.md` names."""
    verdict = case["verdict"]
    if verdict == "UNKNOWN_SERVER_ERROR":
        return FITTING
    if verdict in LOG_DECIDES:
        return {"ok"}
    if verdict == "ok" and is_kept_unreadable(case):
        return {"INVALID_RECORD"}
    if verdict == "ok" and is_nothing_to_append(case):
        return {"INVALID_RECORD"}
    return {verdict}


def is_kept_unreadable(case: Case) -> bool:
    """Kafka does not look at the length of single records in a batch that stays compressed; consumers do."""
    topic_codec = case["topicConfig"].get("compression.type", "producer")
    is_compressed_in_place = case["producerCodec"] != "none" and topic_codec in ("producer", case["producerCodec"])
    return is_compressed_in_place and re.match(r"record \d length", case["note"]) is not None


def is_nothing_to_append(case: Case) -> bool:
    """Kafka lets a coordinator append nothing; ours never does."""
    return bool(case["origin"] == "COORDINATOR" and case["note"].startswith("only the first"))


def test_every_verdict_is_kafkas() -> None:
    for case in VERDICTS:
        try:
            decide(case)
            verdict = "ok"
        except KafkaError as error:
            verdict = error.name
        assert verdict in allowed_errors(case), (case["id"], case["note"])


def test_accepted_batches_have_kafkas_bytes_and_facts() -> None:
    for case in VERDICTS:
        if case["verdict"] != "ok" or "ok" not in allowed_errors(case):
            continue
        expected = case["detail"]["append"]
        validated = decide(case)
        facts = (validated.max_timestamp_ms, validated.log_append_time_ms, validated.count)
        assert facts == (expected["maxTimestamp"], expected["logAppendTime"], expected["numMessages"]), case["id"]
        assert validated.is_rebuilt == (expected["recordsConverted"] > 0), case["id"]
        if expected["offsetOfMaxTimestamp"] != [None]:
            offset = case["logEndOffset"] + validated.max_timestamp_offset_delta
            assert [offset] == expected["offsetOfMaxTimestamp"], case["id"]
        if "hex" in expected and (not validated.is_rebuilt or expected["targetCompression"] == "none"):
            assert bytes(validated.buffer).hex() == expected["hex"], case["id"]


def test_refused_records_are_named_by_their_index() -> None:
    seen = 0
    for case in VERDICTS:
        expected = case["detail"].get("append")
        if case.get("stage") == "append" and isinstance(expected, dict) and "recordErrors" in expected:
            with pytest.raises(RecordValidationFailed) as caught:
                decide(case)
            assert [index for index, _ in caught.value.record_errors] == expected["recordErrors"], case["id"]
            seen += 1
    assert seen > 50


def test_a_scan_error_comes_before_all_partitions() -> None:
    for case in VERDICTS:
        if case["origin"] != "CLIENT":
            continue
        buffer = bytes.fromhex(case["hex"])
        if case.get("stage") == "scan":
            with pytest.raises(CorruptMessage):
                has_transactional_batch(buffer)
        else:
            assert has_transactional_batch(buffer) == case["detail"]["hasTransactional"], case["id"]


@pytest.mark.parametrize("case", cases("recompress"), ids=lambda case: case["id"])
def test_recompression_gives_kafkas_batches(case: Case) -> None:
    if case["verdict"] != "ok":
        with pytest.raises(KafkaError) as caught:
            decide(case)
        assert caught.value.name == case["verdict"]
        return
    validated, expected = decide(case), case["result"]
    batch, expected_batch = RecordBatch(validated.buffer), expected["batches"][0]

    assert batch.is_crc_valid()
    assert validated.is_rebuilt != expected["payloadUnchanged"]
    if expected["bytesAreBinding"]:
        assert bytes(validated.buffer).hex() == expected["hex"]
    assert header_facts(batch) == [expected_batch[name] for name in HEADER_NAMES]
    assert [
        (record.offset, record.timestamp, record.sequence, hex_or_none(record.key), hex_or_none(record.value))
        for record in batch.records()
    ] == [tuple(record[name] for name in RECORD_NAMES) for record in expected_batch["records"]]


HEADER_NAMES = ("baseOffset", "attributes", "lastOffsetDelta", "rawBaseTimestamp", "maxTimestamp", "producerId")
RECORD_NAMES = ("offset", "timestamp", "sequence", "key", "value")


def header_facts(batch: RecordBatch) -> list[int]:
    return [
        batch.base_offset,
        batch.attributes,
        batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.producer_id,
    ]


def produced(codec: Codec = Codec.NONE, value: bytes = b"value", count: int = 3) -> memoryview:
    builder = BatchBuilder(codec=codec)
    for number in range(count):
        builder.append(NOW_MS + number, b"key", value)
    return memoryview(bytearray(builder.build()))


def test_a_clean_batch_keeps_its_memory() -> None:
    records = produced()

    validated = validate_produced(records, ProduceRules(), NOW_MS)

    assert validated.buffer.obj is records.obj
    assert (validated.count, validated.last_offset_delta, validated.max_timestamp_ms) == (3, 2, NOW_MS + 2)


@pytest.mark.parametrize(("codec", "is_taken"), [(Codec.NONE, True), (Codec.GZIP, False)])
def test_a_coordinators_compressed_batch_begins_at_0(codec: Codec, is_taken: bool) -> None:
    """Kafka gives an uncompressed one new offsets, and fails at a compressed one without an error code."""
    records = produced(codec)
    stamp(records, 5, 0)

    with nullcontext() if is_taken else pytest.raises(InvalidRecord):
        validate_produced(records, ProduceRules(), NOW_MS, origin=AppendOrigin.COORDINATOR)


def test_junk_behind_the_batch_is_cut_off() -> None:
    records = produced()

    validated = validate_produced(memoryview(bytearray(records) + b"junk"), ProduceRules(), NOW_MS)

    assert bytes(validated.buffer) == bytes(records)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_bomb_is_refused_at_the_bound(codec: Codec) -> None:
    records = produced(codec, value=bytes(1_000_000), count=8)

    with pytest.raises(InvalidRecord):
        validate_produced(records, ProduceRules(max_inflated_bytes=4_000_000), NOW_MS)


def test_a_batch_that_grows_past_the_limit_when_inflated_is_too_large() -> None:
    records = produced(Codec.GZIP, value=bytes(10_000), count=3)

    with pytest.raises(MessageTooLarge):
        validate_produced(records, ProduceRules(codec=Codec.NONE, max_message_bytes=10_000), NOW_MS)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("rules", [ProduceRules(), ProduceRules(codec=Codec.LZ4)], ids=["kept", "recompressed"])
@pytest.mark.parametrize("append_time", [-(1 << 63), 1 - (1 << 63), (1 << 63) - 1])
def test_the_time_of_a_batch_marked_log_append_time_is_its_maximum(
    append_time: int, rules: ProduceRules, codec: Codec
) -> None:
    """No number of 64 bits stands for none: as in Kafka 4.4, the smallest is further off than a topic allows."""
    records = produced(codec)
    records[ATTRIBUTES_AT + 1] |= TIMESTAMP_TYPE_BIT
    records[MAX_TIMESTAMP_AT:][:8] = append_time.to_bytes(8, "big", signed=True)
    records[CRC_AT:][:4] = crc32c(records[ATTRIBUTES_AT:]).to_bytes(4, "big")

    with pytest.raises(RecordValidationFailed) as caught:
        validate_produced(records, rules, NOW_MS)

    assert caught.value.code == InvalidTimestamp.code
    assert [index for index, _ in caught.value.record_errors] == [0, 1, 2]
