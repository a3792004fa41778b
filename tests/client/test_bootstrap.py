"""How addresses are read."""

from __future__ import annotations

import pytest

from ottla.client.connection import format_address
from ottla.client.topology import parse_bootstrap


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("a:1, b:2,", [("a", 1), ("b", 2)]),
        ("broker", [("broker", 9092)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
        ("::1", [("::1", 9092)]),
    ],
)
def test_bootstrap_lists(text: str, addresses: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(text) == addresses


def test_a_list_of_addresses_will_do() -> None:
    assert parse_bootstrap(["a:1", "b:2"]) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("text", ["", " , ", "a:x", "a:0", "a:65536", ":9092", "[::1:9092", "a]:1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"HOST:PORT"):
        parse_bootstrap(text)


def test_addresses_are_written_as_they_are_read() -> None:
    assert format_address("h", 1) == "h:1"
    assert format_address("::1", 1) == "[::1]:1"
