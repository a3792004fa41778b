"""Jafka's seven requests, done. None is the answer where Jafka says nothing; what fails otherwise ends the connection.

Jafka checks the names of topics where it reads and not where it writes, so that one may write outside of its
directory. Here a topic that cannot be named so in Kafka is refused everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ottla.broker.jafka_topics import ByteLog, JafkaTopics
from ottla.broker.metadata.topic_names import check_not_internal, is_legal_topic_name
from ottla.broker.partition import Partition
from ottla.broker.turns import Steps
from ottla.dialects.jafka.codec import (
    Create,
    Delete,
    ErrorCode,
    Fetch,
    Malformed,
    MultiFetch,
    MultiProduce,
    Offsets,
    Produce,
    Request,
    encode_count,
    encode_messages,
    encode_offsets,
    encode_several,
)
from ottla.errors import InvalidTopicException, OffsetOutOfRange, UnknownTopicOrPartition

ANY_PARTITION: Final = -1
LATEST: Final = -1
EARLIEST: Final = -2
READ_BYTES: Final = 1024 * 1024
REFUSED: Final = -1
"""The answer to a DELETE with a wrong password."""


class JafkaHandlers:
    """Answers requests. `is_password` says whether a DELETE may be done; `random_below` chooses a partition."""

    __slots__ = ("_is_password", "_max_answer_bytes", "_random_below", "topics")

    def __init__(
        self,
        topics: JafkaTopics,
        *,
        is_password: Callable[[str], bool],
        random_below: Callable[[int], int],
        max_answer_bytes: int,
    ) -> None:
        self.topics = topics
        self._is_password = is_password
        self._random_below = random_below
        self._max_answer_bytes = max_answer_bytes

    def handle(self, request: Request) -> Steps[bytes | None]:
        """Do a request, whose answer comes last, None for none.

        Raises `KafkaError`, `Malformed`, `OSError` to end the connection.
        """
        if isinstance(request, Produce):
            yield from self.produce(request)
        elif isinstance(request, Fetch):
            return (yield from self._fetch(request, self._max_answer_bytes))
        elif isinstance(request, MultiProduce):
            for produce in request.produces:
                yield from self.produce(produce)
                yield
        elif isinstance(request, MultiFetch):
            return (yield from self._multi_fetch(request.fetches))
        elif isinstance(request, Offsets):
            return encode_offsets(self._offsets(request))
        elif isinstance(request, Create):
            return encode_count(self._create(request))
        else:
            return encode_count(self._delete(request))
        return None

    def produce(self, request: Produce) -> Steps[None]:
        """Check a set and append all of it, or nothing. Raises `KafkaError`, `OSError`."""
        _check_name(request.topic)
        check_not_internal(request.topic)
        yield from self.topics.produce(request.topic, partial(self._choose, request), request.messages)

    def _choose(self, request: Produce) -> Partition:
        """The partition that is meant; its topic is made where it is missing."""
        number = request.partition
        if number == ANY_PARTITION:
            self.topics.partition(request.topic, 0)  # so that there is a number of partitions
            topic = self.topics.broker.find_topic(request.topic)
            number = self._random_below(len(topic.partitions)) if topic is not None else 0
        return self.topics.partition(request.topic, number)

    def _multi_fetch(self, requests: Sequence[Fetch]) -> Steps[bytes]:
        """What is found later has to do with the room that the others leave."""
        answers: list[bytes] = []
        left_bytes = self._max_answer_bytes
        for request in requests:
            answers.append((yield from self._fetch(request, left_bytes)))
            left_bytes = max(0, left_bytes - len(answers[-1]))
            yield
        return encode_several(answers)

    def _fetch(self, request: Fetch, left_bytes: int) -> Steps[bytes]:
        if not is_legal_topic_name(request.topic):
            return encode_messages(ErrorCode.UNKNOWN, b"")
        topic = self.topics.broker.find_topic(request.topic)
        if topic is None:
            return encode_messages(ErrorCode.NONE, b"")
        try:
            log = self.topics.log(topic.partition(request.partition))
            if request.max_bytes < 0:
                return encode_messages(ErrorCode.INVALID_FETCH_SIZE, b"")
            messages = yield from _read(log, request.offset, min(request.max_bytes, left_bytes))
        except UnknownTopicOrPartition:
            return encode_messages(ErrorCode.WRONG_PARTITION, b"")
        except OffsetOutOfRange:
            return encode_messages(ErrorCode.OFFSET_OUT_OF_RANGE, b"")
        return encode_messages(ErrorCode.NONE, messages)

    def _offsets(self, request: Offsets) -> list[int]:
        _check_name(request.topic)
        topic = self.topics.broker.find_topic(request.topic)
        if topic is None:
            return []
        log = self.topics.log(topic.partition(request.partition))
        if request.time_ms == EARLIEST:
            return [log.start]
        time_ms = None if request.time_ms == LATEST else request.time_ms
        return log.positions_before(time_ms, max(request.max_count, 0))

    def _create(self, request: Create) -> int:
        _check_name(request.topic)
        check_not_internal(request.topic)
        if request.partitions < 0:
            raise Malformed(f"{request.partitions} partitions")
        return self.topics.create(request.topic, request.partitions)

    def _delete(self, request: Delete) -> int:
        if not self._is_password(request.password):
            return REFUSED
        check_not_internal(request.topic)
        return self.topics.delete(request.topic)


def _check_name(topic: str) -> None:
    if not is_legal_topic_name(topic):
        raise InvalidTopicException(f"a topic cannot be named {topic!r}")


def _read(log: ByteLog, position: int, max_bytes: int) -> Steps[bytes]:
    """Read bytes, some at a time. Raises as `ByteLog.read`, though not for what goes while it is read."""
    parts = [log.read(position, min(max_bytes, READ_BYTES))]
    left_bytes = max_bytes - len(parts[0])
    while left_bytes > 0 and len(parts[-1]) == READ_BYTES:
        yield
        position += len(parts[-1])
        try:
            parts.append(log.read(position, min(left_bytes, READ_BYTES)))
        except OffsetOutOfRange:
            break
        left_bytes -= len(parts[-1])
    return b"".join(parts)
