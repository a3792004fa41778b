"""From values to the bytes of keys and values, and back.

None always stays None: it is a tombstone, not an empty value.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Serializer = Callable[[Any], "bytes | None"]
"""Called with a key or value that is not None."""

Deserializer = Callable[[bytes], Any]
"""Called with the bytes of a key or value that is not None."""


def serialize_text(text: str) -> bytes:
    """UTF-8, as Kafka's StringSerializer."""
    return text.encode()


def deserialize_text(data: bytes) -> str:
    """Raises `UnicodeDecodeError` for bytes that are not UTF-8."""
    return data.decode()


def serialize_json(value: object) -> bytes:
    """Compact JSON in UTF-8."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def deserialize_json(data: bytes) -> Any:
    """Raises `ValueError` for bytes that are not JSON."""
    return json.loads(data)


def as_bytes(value: bytes | bytearray | memoryview | str) -> bytes:
    """What a producer without a serializer does: bytes pass, text becomes UTF-8. Raises `TypeError` for the rest."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"bytes or str expected, not {type(value).__name__}; give the producer a serializer")
