"""Java's `.properties` format."""

from __future__ import annotations

import pytest

from ottla.config.properties import decode_properties, parse_properties
from ottla.config.values import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1", {"a": "1"}),
        ("a:1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a\t=\t1 ", {"a": "1 "}),
        ("a==1", {"a": "=1"}),
        ("a : = 1", {"a": "= 1"}),
        ("a", {"a": ""}),
        ("  a=1", {"a": "1"}),
        ("=1", {"": "1"}),
        ("# a=1\n! b=2\n\n  # c=3\nd=4", {"d": "4"}),
        ("a=1\rb=2\r\nc=3\n", {"a": "1", "b": "2", "c": "3"}),
        ("a=1,\\\n    2,\\\n    3", {"a": "1,2,3"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a=1\\\n# no comment here", {"a": "1# no comment here"}),
        ("# no continuation \\\na=1", {"a": "1"}),
        (r"a\=b\:c\ d=1", {"a=b:c d": "1"}),
        (r"path=C:\\kafka\tlogs\q", {"path": "C:\\kafka\tlogsq"}),
        (r"a=\u00e9\u20AC", {"a": "é€"}),
        (r"a=\ud83d\ude00", {"a": "\U0001f600"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b#c", {"a": "b#c"}),
    ],
)
def test_a_text_means_what_it_means_to_java(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_broken_escape_names_its_line() -> None:
    with pytest.raises(ConfigError, match="line 3"):
        parse_properties("a=1\n\nb=\\u12x4\n")


def test_bytes_are_utf_8_where_they_can_be_and_latin_1_where_not() -> None:
    assert decode_properties("a=é".encode()) == {"a": "é"}
    assert decode_properties("a=é".encode("latin-1")) == {"a": "é"}
    assert decode_properties(b"\xef\xbb\xbfa=1") == {"a": "1"}
