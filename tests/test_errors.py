"""Kafka's error table, row by row."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.errors import (
    ERRORS,
    NONE,
    InvalidMetadataError,
    InvalidTimestamp,
    KafkaError,
    OffsetOutOfRange,
    RecordValidationFailed,
    RetriableError,
    UnknownServerError,
    error_for_code,
)

TABLE = Path(__file__).parent / "golden" / "messages" / "errors.tsv"
ROWS = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]]


def camel_case(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def test_every_row_of_kafkas_table_is_a_class_and_no_other_code_is() -> None:
    assert {int(code): name for code, name, *_ in ROWS if int(code) != NONE} == {
        code: cls.name for code, cls in ERRORS.items()
    }


@pytest.mark.parametrize(("code", "name", "retriable", "superclass"), [(r[0], r[1], r[2], r[4]) for r in ROWS])
def test_row(code: str, name: str, retriable: str, superclass: str) -> None:
    error = error_for_code(int(code), "what happened")
    if int(code) == NONE:
        assert error is None
        return
    assert type(error).__name__ == camel_case(name)
    assert isinstance(error, KafkaError)
    assert (error.code, error.name, error.message) == (int(code), name, "what happened")
    assert error.retriable is (retriable == "true")
    assert isinstance(error, RetriableError) is error.retriable
    assert isinstance(error, InvalidMetadataError) is (superclass == "InvalidMetadataException")


def test_every_error_says_in_one_sentence_of_its_own_what_it_means() -> None:
    sentences = [cls.sentence for cls in ERRORS.values()]
    assert len(set(sentences)) == len(sentences)
    for sentence in sentences:
        assert sentence[0].isupper() or sentence.startswith("`"), sentence
        assert sentence.endswith("."), sentence


def test_an_error_without_a_message_prints_its_sentence() -> None:
    assert str(OffsetOutOfRange()) == OffsetOutOfRange.sentence
    assert str(OffsetOutOfRange("offset 7 of t-0")) == "offset 7 of t-0"


def test_a_code_from_a_newer_broker_is_an_unknown_server_error_that_names_it() -> None:
    error = error_for_code(9999, "why")
    assert isinstance(error, UnknownServerError)
    assert str(error) == "error code 9999: why"


def test_record_validation_carries_the_code_of_its_cause_and_the_records() -> None:
    error = RecordValidationFailed(InvalidTimestamp("too old"), [(3, "too old")])
    assert (error.code, error.name, error.message) == (32, "INVALID_TIMESTAMP", "too old")
    assert error.record_errors == [(3, "too old")]
    assert not error.retriable
