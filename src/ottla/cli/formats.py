"""How `ottla consume` writes records: a small format language, JSON lines, or plain values.

The language has kcat's letters, so that habits carry over:

    %t topic    %p partition   %o offset    %T timestamp (ms)   %D timestamp (ISO 8601)
    %k key      %K its size    %s value     %S its size         %h headers (name=value,...)
    %% percent  \\n newline     \\t tab       \\0 zero byte        \\xHH any byte        \\\\ backslash

Sizes are bytes, -1 for null. JSON has the same fields each time, so that `ottla produce --input json` takes it back.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from string import hexdigits
from typing import Final

from ottla.cli.options import format_time
from ottla.model import TopicPartition
from ottla.records.record import Headers, Record

Writer = Callable[[TopicPartition, Sequence[Record]], bytes]
"""Turns records of one partition into bytes for stdout."""

_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_Part = Callable[[TopicPartition, Record], bytes]


def value_writer(*, null: bytes, is_hex: bool, with_key: bool, with_headers: bool) -> Writer:
    """Values a line each, after headers and key and a tab where wanted."""
    show = _hex if is_hex else _same

    def line(record: Record) -> bytes:
        fields = []
        if with_headers:
            fields.append(format_headers(record.headers))
        if with_key:
            fields.append(null if record.key is None else show(record.key))
        fields.append(null if record.value is None else show(record.value))
        return b"\t".join(fields)

    def write(partition: TopicPartition, records: Sequence[Record]) -> bytes:
        if not (with_key or with_headers or is_hex):
            return b"\n".join([null if record.value is None else record.value for record in records]) + b"\n"
        return b"\n".join([line(record) for record in records]) + b"\n"

    return write


def format_writer(template: str, *, null: bytes, is_hex: bool) -> Writer:
    """Records as a template says. Raises `ValueError` for a letter that the language does not have."""
    parts = _parse(template, null, _hex if is_hex else _same)

    def write(partition: TopicPartition, records: Sequence[Record]) -> bytes:
        return b"".join([part(partition, record) for record in records for part in parts])

    return write


def write_json(partition: TopicPartition, records: Sequence[Record]) -> bytes:
    """Records as JSON, a line each."""
    return b"".join([record_json(partition, record) + b"\n" for record in records])


def record_json(partition: TopicPartition, record: Record) -> bytes:
    """Return one record as JSON; what is not UTF-8 is in base64 under another name (`value_base64`)."""
    fields: dict[str, object] = {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp,
        **_json_field("key", record.key),
        **_json_field("value", record.value),
        "headers": [{"name": name, **_json_field("value", value)} for name, value in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def _json_field(name: str, data: bytes | None) -> dict[str, object]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode("ascii")}


def bytes_from_json(fields: dict[str, object], name: str) -> bytes | None:
    """Return what `_json_field` wrote. Raises `ValueError`; numbers and structures are kept as JSON."""
    encoded = fields.get(f"{name}_base64")
    if isinstance(encoded, str):
        return base64.b64decode(encoded, validate=True)
    value = fields.get(name)
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else json.dumps(value, separators=(",", ":")).encode()


def format_headers(headers: Headers) -> bytes:
    """NAME=VALUE, with commas between."""
    return b",".join([name.encode() + (b"" if value is None else b"=" + value) for name, value in headers])


def _parse(template: str, null: bytes, show: Callable[[bytes], bytes]) -> list[_Part]:
    parts: list[_Part] = []
    literal = bytearray()
    fields = _fields(null, show)
    position = 0
    while position < len(template):
        character = template[position]
        position += 1
        if character == "\\":
            data, position = _escape(template, position)
            literal += data
        elif character != "%":
            literal += character.encode("utf-8", "surrogateescape")
        else:
            letter = template[position : position + 1]
            position += 1
            if letter == "%":
                literal += b"%"
                continue
            if not letter:
                raise ValueError("a format does not end with %; %% is a percent sign")
            if letter not in fields:
                raise ValueError(f"a format has no %{letter}; it has {' '.join('%' + name for name in fields)} %%")
            parts += [_literal(bytes(literal)), fields[letter]]
            literal.clear()
    return [*parts, _literal(bytes(literal))]


def _escape(template: str, position: int) -> tuple[bytes, int]:
    letter = template[position : position + 1]
    if letter == "x":
        digits = template[position + 1 : position + 3]
        if len(digits) != 2 or not set(digits) <= set(hexdigits):
            raise ValueError(f"a format has two hexadecimal digits behind \\x, not {digits!r}")
        return bytes.fromhex(digits), position + 3
    if letter not in _ESCAPES:
        raise ValueError(f"a format has no \\{letter}; it has \\n \\t \\r \\0 \\xHH \\\\")
    return _ESCAPES[letter], position + 1


def _fields(null: bytes, show: Callable[[bytes], bytes]) -> dict[str, _Part]:
    return {
        "t": lambda partition, record: partition.topic.encode(),
        "p": lambda partition, record: str(partition.partition).encode(),
        "o": lambda partition, record: str(record.offset).encode(),
        "T": lambda partition, record: str(record.timestamp).encode(),
        "D": lambda partition, record: format_time(record.timestamp).encode(),
        "k": lambda partition, record: null if record.key is None else show(record.key),
        "K": lambda partition, record: str(-1 if record.key is None else len(record.key)).encode(),
        "s": lambda partition, record: null if record.value is None else show(record.value),
        "S": lambda partition, record: str(-1 if record.value is None else len(record.value)).encode(),
        "h": lambda partition, record: format_headers(record.headers),
    }


def _literal(data: bytes) -> _Part:
    return lambda partition, record: data


def _same(data: bytes) -> bytes:
    return data


def _hex(data: bytes) -> bytes:
    return data.hex().encode()
