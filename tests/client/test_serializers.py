"""From values to bytes and back; None stays a tombstone wherever a producer or a consumer uses these."""

from __future__ import annotations

import pytest

from ottla.client.serializers import (
    as_bytes,
    deserialize_json,
    deserialize_text,
    serialize_json,
    serialize_text,
)


def test_what_was_made_bytes_comes_back() -> None:
    assert deserialize_text(serialize_text("grüße")) == "grüße"
    assert serialize_json({"b": ["ü", None]}) == '{"b":["ü",null]}'.encode()
    assert deserialize_json(serialize_json({"b": ["ü", None]})) == {"b": ["ü", None]}


def test_without_a_serializer_bytes_and_text_pass() -> None:
    assert [as_bytes(value) for value in (b"a", "ü", bytearray(b"c"), memoryview(b"d"))] == [
        b"a",
        "ü".encode(),
        b"c",
        b"d",
    ]
    with pytest.raises(TypeError, match="give the producer a serializer"):
        as_bytes(5)  # type: ignore[arg-type]


def test_bytes_that_are_something_else_are_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        deserialize_text(b"\xff")
    with pytest.raises(ValueError, match="Expecting value"):
        deserialize_json(b"no")
