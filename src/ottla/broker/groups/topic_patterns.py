"""Subscriptions by pattern (KIP-848): RE2 syntax, matched on this side against whole topic names.

RE2 matches in time linear in a name's length, whatever a client sends; that is why it is RE2 and not `re`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.errors import InvalidRegularExpression
from ottla.protocol.internal.framing import CoordinatorRecord
from ottla.protocol.internal.group_records import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)

MAX_PATTERN_MEMORY_BYTES = 8 * 1024 * 1024
VALUE_VERSION = 0


class MatchedTopics(NamedTuple):
    """What a pattern matched, when, and in which version of the metadata."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int

    def record(self, group_id: str, pattern: str) -> CoordinatorRecord:
        value = ConsumerGroupRegularExpressionValue(
            topics=sorted(self.topics), version=self.version, timestamp=self.timestamp_ms
        )
        return CoordinatorRecord(pattern_key(group_id, pattern), value, VALUE_VERSION)


def pattern_key(group_id: str, pattern: str) -> ConsumerGroupRegularExpressionKey:
    return ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern)


def check_pattern(pattern: str) -> None:
    """Raise `InvalidRegularExpression` for what RE2 does not understand, such as a look-ahead."""
    match_topics(pattern, ())


def match_topics(pattern: str, topics: Iterable[str]) -> frozenset[str]:
    """Return the topics whose whole name the pattern matches. Raises `InvalidRegularExpression`."""
    import re2  # only needed by those who subscribe this way

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PATTERN_MEMORY_BYTES
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise InvalidRegularExpression(f"{pattern!r} is not a pattern in RE2 syntax: {text}") from None
    return frozenset(topic for topic in topics if compiled.fullmatch(topic) is not None)
