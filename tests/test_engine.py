"""The conformance suite of the engine seam: the rules that `ottla.engine` states hold for every engine.

Asked through `RecordLog` alone. An engine is one more entry in `ENGINES`; here they are the two forms that a topic has
on this machine, Kafka's and Jafka's, with appends that wait for the disk and with those that do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.config.log_config import LogConfig
from ottla.engine import ReadLimit, ReadResult, RecordLog, Ticket
from ottla.errors import KafkaError, OffsetOutOfRange, UnknownTopicOrPartition
from ottla.model import TopicId, TopicPartition
from ottla.records.builder import BatchBuilder
from ottla.records.reading import decode
from tests.storage.harness import ManualOffload, start_manager

TP, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
ENOUGH_BYTES = 1 << 20


class Engine(NamedTuple):
    """An engine with the partitions `TP` and `OTHER`, whose disk and loop do nothing until `run` is called."""

    log: RecordLog
    run: Callable[[], None]
    is_durable_at_once: bool

    def append(self, *values: bytes, partition: TopicPartition = TP) -> Ticket:
        return self.log.begin_append(partition, batch_of(*values), leader_epoch=0)

    def read(self, offset: int, up_to_offset: int | None = None, *, max_bytes: int = ENOUGH_BYTES) -> list[bytes]:
        """Return the values from `offset` on, as a consumer of what is read up to there would see them."""
        result = self.read_batches(offset, up_to_offset, max_bytes=max_bytes)
        return [record.value or b"" for record in decode(bytes_of(result), offset, 1 << 40).records]

    def read_batches(self, offset: int, up_to_offset: int | None = None, *, max_bytes: int) -> ReadResult:
        end = self.log.offsets(TP).log_end_offset if up_to_offset is None else up_to_offset
        return self.log.read(TP, offset, ReadLimit(max_bytes, end, at_least_one_batch=False))


def batch_of(*values: bytes) -> bytearray:
    builder = BatchBuilder()
    for value in values:
        builder.append(1_750_000_000_000, None, value)
    return bytearray(builder.build())


def bytes_of(result: ReadResult) -> bytes:
    """Return the bytes of a read and give its leases back."""
    parts = []
    for part in result.spans:
        if isinstance(part, (bytes, memoryview)):
            parts.append(bytes(part))
        else:
            parts.append(part.read())
            part.release()
    return b"".join(parts)


def local(directory: Path, config: LogConfig, *, fsync: bool) -> Iterator[Engine]:
    offload = ManualOffload()
    manager = start_manager(directory, fsync=fsync, offload=offload)
    for number, partition in enumerate((TP, OTHER)):
        manager.create(partition, TopicId(bytes([*bytes(15), 7 + number])), config)
    yield Engine(manager.keeping(config), offload.run_all, is_durable_at_once=not fsync)
    offload.run_all()
    manager.close()


ENGINES = {
    f"{form} {'fsync' if fsync else 'os'}": (LogConfig(ottla_format=form), fsync)
    for form in ("kafka", "jafka")
    for fsync in (True, False)
}


@pytest.fixture(params=list(ENGINES.values()), ids=list(ENGINES))
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    config, fsync = request.param
    yield from local(tmp_path, config, fsync=fsync)


def test_offsets_rise_in_the_order_of_the_calls(engine: Engine) -> None:
    tickets = [engine.append(b"0", b"1"), engine.append(b"2"), engine.append(b"3", b"4", b"5")]
    alone = engine.append(b"0", partition=OTHER)

    assert [(ticket.base_offset, ticket.last_offset) for ticket in tickets] == [(0, 1), (2, 2), (3, 5)]
    assert (alone.base_offset, alone.last_offset) == (0, 0)
    assert engine.log.offsets(TP).log_end_offset == 6


def test_what_was_appended_is_the_callers_again(engine: Engine) -> None:
    """Receive buffers are reused as soon as `begin_append` has returned."""
    buffer = batch_of(b"one", b"two")
    engine.log.begin_append(TP, memoryview(buffer), leader_epoch=0)
    buffer[:] = bytes(len(buffer))
    engine.run()

    assert engine.read(0) == [b"one", b"two"]


def test_a_ticket_is_settled_once_and_never_within_an_append(engine: Engine) -> None:
    told: list[str] = []
    first = engine.append(b"0")
    first.on_done(lambda: told.append("first"))
    engine.append(b"1").on_done(lambda: told.append("second"))
    assert told == []
    assert first.is_durable is engine.is_durable_at_once

    engine.run()
    assert first.is_durable and first.error is None
    first.on_done(lambda: told.append("late"))
    assert told == ["first", "second"]

    engine.append(b"2")
    engine.run()
    assert told == ["first", "second", "late"]


def test_the_high_watermark_is_that_of_what_is_durable_and_moves_before_that_is_told(engine: Engine) -> None:
    seen: list[int] = []
    for number in range(4):
        ticket = engine.append(b"%d" % number)
        ticket.on_done(lambda: seen.append(engine.log.offsets(TP).high_watermark))
        assert (engine.log.offsets(TP).high_watermark > ticket.last_offset) is ticket.is_durable
    engine.run()

    assert seen == [4, 4, 4, 4]
    assert engine.log.offsets(TP).high_watermark == engine.log.offsets(TP).log_end_offset == 4


def test_whoever_listens_is_told_of_partitions_that_advance(engine: Engine) -> None:
    told: list[TopicPartition] = []
    engine.log.on_advance(told.append)
    engine.append(b"0")
    engine.append(b"0", partition=OTHER)
    engine.run()

    assert set(told) == {TP, OTHER}


def test_a_read_begins_with_the_batch_that_has_the_offset_and_ends_below_its_limit(engine: Engine) -> None:
    values = [b"0", b"1", b"2", b"3", b"4"]
    for pair in ((b"0", b"1"), (b"2", b"3"), (b"4",)):
        engine.append(*pair)
    engine.run()

    for offset in range(5):
        assert engine.read(offset) == values[offset:]
    assert engine.read(0, 4) == values[:4]
    assert engine.read(4, 4) == engine.read(5, 5) == []


def test_a_read_outside_the_log_is_refused(engine: Engine) -> None:
    engine.append(b"0", b"1", b"2")
    engine.run()
    assert engine.log.delete_records(TP, 2) == engine.log.offsets(TP).log_start_offset == 2

    assert engine.read(2) == [b"2"]
    for offset in (-1, 1, 4):
        with pytest.raises(OffsetOutOfRange):
            engine.read(offset)
    with pytest.raises(UnknownTopicOrPartition):
        engine.log.offsets(TopicPartition("t", 2))


def test_a_first_batch_that_does_not_fit_comes_whole_or_not_at_all(engine: Engine) -> None:
    engine.append(b"a" * 5_000)
    engine.run()

    assert bytes_of(engine.read_batches(0, max_bytes=100)) == b""
    whole = engine.log.read(TP, 0, ReadLimit(100, 1, at_least_one_batch=True))
    assert [record.value for record in decode(bytes_of(whole), 0, 1).records] == [b"a" * 5_000]


def test_what_was_read_can_be_sent_after_its_log_was_deleted(engine: Engine) -> None:
    engine.append(b"one", b"two")
    engine.run()
    result = engine.read_batches(0, max_bytes=ENOUGH_BYTES)
    engine.log.delete(TP)
    engine.run()

    assert [record.value for record in decode(bytes_of(result), 0, 2).records] == [b"one", b"two"]
    assert not engine.log.contains(TP)
    with pytest.raises(KafkaError):
        engine.append(b"three")


def test_appends_that_wait_when_their_log_goes_are_told_so(engine: Engine) -> None:
    ticket = engine.append(b"0")
    told: list[KafkaError | None] = []
    ticket.on_done(lambda: told.append(ticket.error))
    engine.log.delete(TP)
    engine.run()

    assert len(told) == 1
    assert (told[0] is None) is ticket.is_durable is engine.is_durable_at_once
