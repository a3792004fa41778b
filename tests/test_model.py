"""The text form of uuids, against Kafka's own verdicts."""

from __future__ import annotations

import gzip
from pathlib import Path

from ottla.model import TopicPartition, format_uuid, parse_uuid

GOLDEN = Path(__file__).parent / "golden" / "records"


def rows(name: str) -> list[list[str]]:
    with gzip.open(GOLDEN / name, "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n").split("\t") for line in lines][1:]


def test_uuids_print_as_kafka_prints_them_and_read_back() -> None:
    for text, hexadecimal, *_ in rows("uuid.tsv.gz"):
        uuid = bytes.fromhex(hexadecimal)
        assert format_uuid(uuid) == text
        assert parse_uuid(text) == uuid


def test_texts_are_taken_for_uuids_exactly_when_kafka_takes_them() -> None:
    for text, verdict, hexadecimal in rows("uuid-parse.tsv.gz"):
        try:
            parsed = parse_uuid(text).hex()
        except ValueError:
            parsed = ""
        assert parsed == hexadecimal, (text, verdict)


def test_a_partition_prints_as_its_directory_is_called() -> None:
    assert str(TopicPartition("orders", 3)) == "orders-3"
