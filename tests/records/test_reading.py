"""What a consumer sees of log bytes: the decoder vectors, and the rules that they leave open."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import ottla
from ottla.model import IsolationLevel
from ottla.records.batch import RecordBatch
from ottla.records.builder import BatchBuilder, assemble
from ottla.records.control import ControlType, EndTransactionMarker, control_key, end_transaction_batch
from ottla.records.reading import Decoded, decode

VECTORS = Path(__file__).parents[1] / "golden" / "decoder" / "vectors.jsonl.gz"


def load_vectors() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(VECTORS.read_bytes()).splitlines()]


def hex_or_none(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def described(found: Decoded) -> dict[str, Any]:
    """Return an answer in the vectors' form."""
    answer: dict[str, Any] = {
        "records": [
            {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": hex_or_none(record.key),
                "value": hex_or_none(record.value),
                "headers": [[name, hex_or_none(value)] for name, value in record.headers],
            }
            for record in found.records
        ],
        "position": found.position,
        "lag": found.lag,
        "next_fetch_offset": found.next_fetch_offset,
    }
    if found.error is not None:
        answer["error"] = found.error
    return answer


def batch(base_offset: int, count: int, **builder_settings: Any) -> bytes:
    builder = BatchBuilder(base_offset=base_offset, **builder_settings)
    for number in range(count):
        builder.append(1000, b"k", b"%d" % (base_offset + number))
    return builder.build()


def batch_of(payload: bytes, count: int, *, attributes: int = 0) -> bytes:
    """Build a batch around records that no builder would write."""
    return assemble(
        payload,
        base_offset=0,
        leader_epoch=0,
        attributes=attributes,
        last_offset_delta=max(count - 1, 0),
        base_timestamp=1000,
        max_timestamp=1000,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=count,
    )


def offsets(found: Decoded) -> list[int]:
    return [record.offset for record in found.records]


@pytest.mark.parametrize("vector", load_vectors(), ids=lambda vector: str(vector["name"]))
def test_every_vector_is_decoded_as_written(vector: dict[str, Any]) -> None:
    is_committed = vector.get("isolation_level") == "read_committed"

    found = decode(
        bytes.fromhex(vector["log_hex"]),
        vector["fetch_offset"],
        vector["high_watermark"],
        isolation_level=IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED,
        last_stable_offset=vector.get("last_stable_offset"),
        aborted_transactions=[(pid, first) for pid, first in vector.get("aborted_transactions", [])],
    )

    assert described(found) == vector["expected"], vector["note"]


def test_the_package_root_gives_the_decoder_when_it_is_asked() -> None:
    assert ottla.decode is decode
    with pytest.raises(AttributeError, match="nothing_of_ours"):
        ottla.nothing_of_ours  # noqa: B018


def test_any_cut_gives_the_whole_batches_before_it_and_no_error() -> None:
    log = batch(0, 2) + batch(2, 3)
    first = len(batch(0, 2))
    for end in range(len(log) + 1):
        found = decode(log[:end], 0, 5)
        expected = [] if end < first else [0, 1] if end < len(log) else [0, 1, 2, 3, 4]
        assert (offsets(found), found.error) == (expected, None), f"cut at {end}"


def test_a_cut_batch_is_left_alone_whatever_else_is_wrong_with_it() -> None:
    odd = bytearray(batch(0, 1))
    odd[16] = 9
    assert decode(bytes(odd[:-1]), 0, 1).error is None
    assert decode(bytes(odd), 0, 1).error == "unsupported_magic"


@pytest.mark.parametrize("length", [-1, 0, 13, 14, 48])
def test_a_batch_that_is_shorter_than_its_header_is_corrupt(length: int) -> None:
    log = bytearray(batch(0, 1) + bytes(64))
    log[8:12] = length.to_bytes(4, "big", signed=True)

    assert decode(bytes(log), 0, 1).error == "corrupt_batch"


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_makes_the_batch_corrupt(codec: int) -> None:
    assert decode(batch_of(b"\x10\x00\x00\x00\x02k\x02v\x00", 1, attributes=codec), 0, 1).error == "corrupt_batch"


@pytest.mark.parametrize(
    ("payload", "count"),
    [
        (b"\x0e\x00\x00\x00\x03\x02v\x00", 1),  # key length -2
        (b"\x0c\x00\x00\x00\x01\x03\x00", 1),  # value length -2
        (b"\x10\x00\x00\x00\x02k\x02v\x00", 2),  # one record too few
        (b"\x10\x00\x00\x00\x02k\x02v\x00", 0),  # one too many
        (b"\x12\x00\x00\x00\x02k\x02v\x00", 1),  # past the end of the batch
        (b"\x10\x00\x00\x00\x02k\x02v\x01", 1),  # header count -1
        (b"\x14\x00\x00\x00\x02k\x02v\x02\x01\x01", 1),  # a header without a key
    ],
)
def test_a_wrong_structure_refuses_the_whole_batch(payload: bytes, count: int) -> None:
    assert decode(batch_of(b"\x10\x00\x00\x00\x02k\x02v\x00", 1), 0, 2).error is None
    found = decode(batch_of(payload, count), 0, 2)

    assert (found.records, found.error, found.position, found.lag) == ([], "corrupt_record", 0, 2)


def test_an_empty_batch_that_compaction_left_is_passed() -> None:
    found = decode(batch_of(b"", 0), 0, 1)

    assert (found.records, found.error, found.position, found.next_fetch_offset) == ([], None, 0, 1)


def test_what_compaction_left_at_the_end_of_a_batch_does_not_hold_up_the_next_fetch() -> None:
    builder = BatchBuilder(base_offset=0)
    builder.append(1000, b"k", b"v")
    builder.extend_to(4)

    found = decode(builder.build(), 0, 10)

    assert (found.position, found.lag, found.next_fetch_offset) == (1, 9, 5)


def test_the_limit_of_committed_records_is_the_last_stable_offset() -> None:
    log = batch(0, 2) + batch(2, 2, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)

    found = decode(log, 0, 4, isolation_level=IsolationLevel.READ_COMMITTED, last_stable_offset=2)

    assert (offsets(found), found.position, found.lag) == ([0, 1], 2, 0)


def test_a_transaction_that_ended_below_the_fetch_offset_voids_nothing_above_it() -> None:
    transactional: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    marker = bytearray(
        end_transaction_batch(
            EndTransactionMarker(ControlType.ABORT, 0), producer_id=7, producer_epoch=0, timestamp_ms=1000
        )
    )
    marker[0:8] = (2).to_bytes(8, "big")
    log = batch(0, 2, base_sequence=0, **transactional) + marker + batch(3, 1, base_sequence=2, **transactional)

    for fetch_offset, seen in ((0, [3]), (3, [3])):
        found = decode(
            log, fetch_offset, 4, isolation_level=IsolationLevel.READ_COMMITTED, aborted_transactions=[(7, 0)]
        )
        assert offsets(found) == seen, fetch_offset


def test_a_broken_marker_below_the_fetch_offset_is_nobodys_concern() -> None:
    builder = BatchBuilder(base_offset=0, producer_id=7, producer_epoch=0, is_transactional=True, is_control=True)
    builder.append(1000, control_key(ControlType.ABORT)[:2], b"")
    log = builder.build() + batch(1, 1)

    found = decode(log, 1, 2, isolation_level=IsolationLevel.READ_COMMITTED, aborted_transactions=[(7, 0)])

    assert (offsets(found), found.error) == ([1], None)
    assert RecordBatch(log[: len(builder.build())]).is_control
