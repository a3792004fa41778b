"""What can go wrong between a client and a cluster before any broker has a say.

These have Kafka's own names and codes for the same troubles (NETWORK_EXCEPTION, REQUEST_TIMED_OUT), so that one
`except KafkaError` serves, and remember the addresses that were tried. What brokers answer is in `ottla.errors`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.errors import (
    InvalidRecord,
    KafkaError,
    NetworkException,
    OffsetOutOfRange,
    RequestTimedOut,
    error_for_code,
)
from ottla.model import TopicPartition


class ConnectionLost(NetworkException):
    """A connection could not be made, or ended while an answer was due, or because one did not come in time.

    `address` is HOST:PORT, `reason` a few words.
    """

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = address
        self.reason = reason


class ClusterUnreachable(NetworkException):
    """No address of the cluster could be reached. `failures` says for each address why."""

    def __init__(self, failures: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{address}: {reason}" for address, reason in failures.items()))
        self.failures = dict(failures)


class DeliveryExpired(RequestTimedOut):
    """Records waited longer than delivery.timeout.ms; they may or may not have been written."""


class RefusedWithBatch(InvalidRecord):
    """Nothing is wrong with this record, but with another one of its batch: none was written, send it again."""


class BufferFull(RequestTimedOut):
    """No room for another record came free within max.block.ms."""


class LogTruncated(OffsetOutOfRange):
    """Records that were read are gone: another broker took the lead without them, and no default says where to go on.

    `divergent_offset` is the first offset that differs, -1 when the leader cannot tell.
    """

    def __init__(self, message: str, divergent_offset: int = -1) -> None:
        super().__init__(message)
        self.divergent_offset = divergent_offset


class NotAssigned(LookupError):
    """A consumer was asked about a partition that it does not read."""


def about_partition(partition: TopicPartition, error: KafkaError) -> KafkaError:
    """Return an error of the same kind whose message names the partition."""
    if error.message is not None and str(partition) in error.message:
        return error
    named = KafkaError.__new__(type(error))
    KafkaError.__init__(named, f"{partition}: {error}")
    return named


def raise_error(code: int, message: str | None = None) -> None:
    """Raise what a broker answered, unless that is no error."""
    error = error_for_code(code, message)
    if error is not None:
        raise error
