r"""Java's `.properties` format, as `java.util.Properties` reads it.

A logical line is a key, a separator (`=`, `:` or blanks) and a value; a backslash at the end of a line joins the next,
whose leading blanks do not count; `#` and `!` begin comments; `\t`, `\n`, `\r`, `\f` and `\uXXXX` mean what they mean
in Java and any other escaped character means itself. Of a key that stands twice the last value holds. What the keys
mean is left to `broker_config`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.config.values import ConfigError

BLANKS: Final = " \t\f"
ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
UNICODE_DIGITS: Final = 4


def decode_properties(data: bytes) -> dict[str, str]:
    """Parse a file's bytes: UTF-8 where they are valid UTF-8, else Latin-1, which is what Java takes a file for."""
    try:
        return parse_properties(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return parse_properties(data.decode("latin-1"))


def parse_properties(text: str) -> dict[str, str]:
    """Return keys and values in the order of the file. Raises `ConfigError` for a bad `\\uXXXX`, naming the line."""
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key_end, value_start = _split(line)
        key = _unescape(line[:key_end], number)
        # Delete first: a key that is set again takes its new place in the order.
        properties.pop(key, None)
        properties[key] = _unescape(line[value_start:], number)
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield line numbers (of the first physical line) and joined lines, without comments and blank lines."""
    joined: str | None = None
    first = 0
    for number, physical in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = physical.lstrip(BLANKS)
        if joined is None:
            if not line or line[0] in "#!":
                continue
            joined, first = "", number
        joined += line
        if _ends_open(line):
            joined = joined[:-1]
            continue
        yield first, joined
        joined = None
    if joined is not None:
        yield first, joined


def _ends_open(line: str) -> bool:
    """True when the last backslash is not itself escaped."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[int, int]:
    """Return where the key ends and where the value begins."""
    end = 0
    while end < len(line) and line[end] not in "=:" + BLANKS:
        end += 2 if line[end] == "\\" else 1
    end = min(end, len(line))
    start = _skip_blanks(line, end)
    if start < len(line) and line[start] in "=:":
        start = _skip_blanks(line, start + 1)
    return end, start


def _skip_blanks(line: str, position: int) -> int:
    while position < len(line) and line[position] in BLANKS:
        position += 1
    return position


def _unescape(text: str, number: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            out.append(character)
            continue
        escaped = text[position : position + 1]
        position += 1
        if escaped == "u":
            out.append(_code_point(text[position : position + UNICODE_DIGITS], number))
            position += UNICODE_DIGITS
        else:
            out.append(ESCAPES.get(escaped, escaped))
    # Java's characters are UTF-16 units, so what lies beyond the first plane comes as a pair of escapes.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _code_point(digits: str, number: int) -> str:
    if len(digits) != UNICODE_DIGITS or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
        raise ConfigError(f"line {number}: \\u{digits} is not a character (four hexadecimal digits are)")
    return chr(int(digits, 16))
