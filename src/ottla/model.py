"""The nouns that every room shares: partitions, topic ids, isolation levels, special offsets.

Values only. Nothing here knows bytes, files or time.
"""

from __future__ import annotations

import base64
from enum import IntEnum
from typing import Final, NamedTuple, NewType

TopicId = NewType("TopicId", bytes)
"""A topic's 16-byte id, as on the wire and in files. Its text form is `format_uuid`."""

ZERO_TOPIC_ID: Final = TopicId(bytes(16))
METADATA_TOPIC_ID: Final = TopicId(bytes(15) + b"\x01")
"""The id that Kafka reserves for `__cluster_metadata` (KIP-516)."""

METADATA_TOPIC: Final = "__cluster_metadata"
OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTION_TOPIC: Final = "__transaction_state"

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP: Final = -6

NO_OFFSET: Final = -1
NO_TIMESTAMP_MS: Final = -1
NO_LEADER_EPOCH: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1


class TopicPartition(NamedTuple):
    """One partition of a named topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class IsolationLevel(IntEnum):
    """How far a consumer reads: to the high watermark, or to the last stable offset (KIP-98)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class TimestampType(IntEnum):
    """Who set a batch's timestamps; the value is the bit in the batch attributes."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class AppendOrigin(IntEnum):
    """Where an append comes from, which decides how hard it is checked (Kafka's own four)."""

    CLIENT = 0
    COORDINATOR = 1
    RAFT_LEADER = 2
    REPLICATION = 3


def format_uuid(uuid: bytes) -> str:
    """Return Kafka's text form of 16 bytes: 22 characters of URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode("ascii")


UUID_TEXT_LENGTH: Final = 22
UUID_ALPHABET: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def parse_uuid(text: str) -> bytes:
    """Return the 16 bytes of Kafka's text form; `==` at the end is taken, spare bits are ignored, as Kafka does.

    Raises `ValueError` for anything else, the form with hyphens of other programs included.
    """
    digits = text.removesuffix("==")
    if len(digits) != UUID_TEXT_LENGTH or not UUID_ALPHABET.issuperset(digits):
        raise ValueError(f"{text!r} is not a uuid: 22 characters of URL-safe base64 are")
    return base64.urlsafe_b64decode(digits + "==")
