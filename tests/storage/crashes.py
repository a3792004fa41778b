"""A workload on a log manager that a crash may end at any call, and what must be there after it.

The workload appends plain and idempotent batches, rolls, flushes, checkpoints, deletes records, lets old
segments go and compacts, on two partitions, by a seed. `crash` runs it up to the n-th change of the file system, lets
the process die or the power fail, starts again, and checks: nothing acknowledged is missing, at its offset and byte for
byte; what is there is whole and in order; a producer that repeats its last acknowledged batch is told so, and may go
on.
"""

from __future__ import annotations

import logging
import os
from itertools import pairwise
from random import Random

from ottla.clock import Timers
from ottla.config.broker_config import BrokerConfig
from ottla.config.log_config import LogConfig
from ottla.engine import ReadLimit, Ticket
from ottla.errors import KafkaError
from ottla.model import TopicPartition
from ottla.records.batch import RecordBatch, split_batches
from ottla.records.builder import BatchBuilder
from ottla.storage.directory import MetaProperties
from ottla.storage.files import FileSystem
from ottla.storage.manager import LogManager
from ottla.testing.clock import ManualClock
from ottla.testing.faults import Faults, FaultyFileSystem, PowerCut
from ottla.testing.memory import MemoryFileSystem
from tests.storage.harness import TOPIC_ID, ManualOffload, take_bytes

KEPT, COMPACTED = TopicPartition("kept", 0), TopicPartition("compacted", 0)
CONFIGS = {
    KEPT: LogConfig(internal_segment_bytes=700, retention_ms=-1, index_interval_bytes=100, file_delete_delay_ms=0),
    COMPACTED: LogConfig(
        internal_segment_bytes=700,
        cleanup_policy=frozenset({"compact"}),
        min_cleanable_dirty_ratio=0.01,
        index_interval_bytes=100,
        file_delete_delay_ms=0,
    ),
}
PROPERTIES = {
    "log.dirs": "/data",
    "log.cleaner.backoff.ms": "1000",
    "log.flush.offset.checkpoint.interval.ms": "2000",
    "log.retention.check.interval.ms": "3000",
}
KEYS = 5
META = MetaProperties("cluster", 1, bytes(15) + b"\x01")


class Acknowledged:
    """What a partition's producers were told."""

    def __init__(self) -> None:
        self.batches: dict[int, bytes] = {}
        """By base offset, as appended."""
        self.newest: dict[bytes, tuple[int, bytes | None]] = {}
        self.sent: dict[bytes, list[tuple[int, bytes | None]]] = {}
        """All values of a key in the order in which they were sent, with their offsets."""
        self.log_start_offset = 0
        self.last_of_producer: tuple[int, bytes] | None = None
        """Sequence and bytes of the idempotent producer's newest acknowledged batch."""


class Workload:
    """Runs on one file system until it is done or cut off."""

    def __init__(self, files: FileSystem, clock: ManualClock, seed: int) -> None:
        self.dice = Random(seed)
        self.clock = clock
        self.timers = Timers()
        self.offload = ManualOffload()
        self.manager = open_manager(files, clock, self.offload)
        self.manager.start_housekeeping(self.timers, BrokerConfig.from_properties(PROPERTIES))
        self.acknowledged = {partition: Acknowledged() for partition in CONFIGS}
        self.sequence = {partition: 0 for partition in CONFIGS}

    def run(self, steps: int) -> None:
        for step in range(steps):
            self._step(step)
        self.manager.prepare_close()
        self.offload.run_all()
        self.manager.close()

    def _step(self, step: int) -> None:
        partition = self.dice.choice(list(CONFIGS))
        chosen = self.dice.random()
        if chosen < 0.7:
            self._append(partition, step)
            if self.dice.random() < 0.5:
                self.offload.run_all()
        elif chosen < 0.9:
            self.clock.advance(1)
            self.timers.run_due(self.clock.monotonic())
            self.offload.run_all()
        elif chosen < 0.95:
            self.manager.log(partition).roll()
        else:
            self._delete_records()

    def _append(self, partition: TopicPartition, step: int) -> None:
        is_idempotent = self.dice.random() < 0.5
        sequence = self.sequence[partition]
        builder = (
            BatchBuilder(producer_id=9, producer_epoch=0, base_sequence=sequence) if is_idempotent else BatchBuilder()
        )
        pairs = [
            (b"k%d" % self.dice.randrange(KEYS), None if self.dice.random() < 0.1 else b"%d-%d" % (step, number))
            for number in range(self.dice.randrange(1, 4))
        ]
        for key, value in pairs:
            builder.append(self.clock.wall_ms(), key, value)
        batch = bytearray(builder.build())
        told = self.acknowledged[partition]
        end = self.manager.offsets(partition).log_end_offset
        for number, (key, value) in enumerate(pairs):  # before the append: a cut within it may leave all of it
            told.sent.setdefault(key, []).append((end + number, value))
        ticket = self.manager.begin_append(partition, batch, leader_epoch=0)
        if is_idempotent:
            self.sequence[partition] += len(pairs)
        data, first_sequence = bytes(batch), sequence if is_idempotent else None

        def done() -> None:
            note_acknowledged(told, ticket, data, pairs, first_sequence)

        ticket.on_done(done)

    def _delete_records(self) -> None:
        offsets = self.manager.offsets(KEPT)
        if offsets.high_watermark > offsets.log_start_offset + 5:
            before = self.dice.randrange(offsets.log_start_offset, offsets.high_watermark - 3)
            self.acknowledged[KEPT].log_start_offset = self.manager.delete_records(KEPT, before)


def note_acknowledged(
    told: Acknowledged,
    ticket: Ticket,
    data: bytes,
    pairs: list[tuple[bytes, bytes | None]],
    sequence: int | None,
) -> None:
    assert ticket.error is None
    told.batches[ticket.base_offset] = data
    for number, (key, value) in enumerate(pairs):
        told.newest[key] = (ticket.base_offset + number, value)
    if sequence is not None:
        told.last_of_producer = (sequence, data)


def open_manager(files: FileSystem, clock: ManualClock, offload: ManualOffload) -> LogManager:
    """Open the log directory, with both partitions in it."""
    manager = LogManager(BrokerConfig.from_properties(PROPERTIES), clock, offload, files)
    manager.open()
    for directory in manager.directories:
        if directory.meta is None:
            directory.format(META)
    manager.load(lambda topic: CONFIGS[TopicPartition(topic, 0)])
    for partition, config in CONFIGS.items():
        manager.create(partition, TOPIC_ID, config)
    return manager


def count_calls(seed: int, steps: int) -> int:
    """Return how many changes of the file system a whole workload makes."""
    clock = ManualClock()
    faults = Faults(Random(seed))
    Workload(FaultyFileSystem(MemoryFileSystem(clock), faults), clock, seed).run(steps)
    return faults.calls


def crash(seed: int, steps: int, cut_at: int, *, is_power_cut: bool) -> None:
    """Run, crash at a call, start again and check; then crash while starting, at a random call, and check again."""
    clock = ManualClock()
    dice = Random(seed * 1_000_003 + cut_at)
    memory = MemoryFileSystem(clock)
    workload: Workload | None = None
    try:
        workload = Workload(FaultyFileSystem(memory, Faults(dice, cut_at)), clock, seed)
        workload.run(steps)
    except PowerCut:
        pass
    left = memory.cut_power(dice) if is_power_cut else memory.kill()
    again = FaultyFileSystem(left, Faults(dice, dice.randrange(60)))
    try:
        open_manager(again, clock, ManualOffload())
    except PowerCut:
        left = left.cut_power(dice) if is_power_cut else left.kill()
    else:
        left = left.kill()
    manager = open_manager(left, clock, ManualOffload())
    if workload is not None:
        for partition, told in workload.acknowledged.items():
            check(manager, partition, told)


def kill_then_cut_power(seed: int, steps: int, cut_at: int) -> None:
    """Kill the process at a call, start again, perhaps stop in order, and cut the power: what was readable stays."""
    clock = ManualClock()
    dice = Random(seed * 7_919 + cut_at)
    memory = MemoryFileSystem(clock)
    workload: Workload | None = None
    try:
        workload = Workload(FaultyFileSystem(memory, Faults(dice, cut_at)), clock, seed)
        workload.run(steps)
    except PowerCut:
        pass
    left, offload = memory.kill(), ManualOffload()
    manager = open_manager(left, clock, offload)
    offload.run_all()
    readable = {partition: manager.offsets(partition).high_watermark for partition in CONFIGS}
    if dice.random() < 1 / 2:
        manager.checkpoint()
    if dice.random() < 1 / 3:
        manager.prepare_close()
        offload.run_all()
        manager.close()
    manager = open_manager(left.cut_power(dice), clock, ManualOffload())
    for partition, end in readable.items():
        assert manager.offsets(partition).log_end_offset >= end, "records that could be read are gone"
    if workload is not None:
        for partition, told in workload.acknowledged.items():
            check(manager, partition, told)


def check(manager: LogManager, partition: TopicPartition, told: Acknowledged) -> None:
    offsets = manager.offsets(partition)
    batches = read_all(manager, partition)
    assert all(batch.is_crc_valid() for batch in batches)
    assert all(earlier.last_offset < later.base_offset for earlier, later in pairwise(batches))
    acknowledged_end = max((RecordBatch(data).next_offset for data in told.batches.values()), default=0)
    assert offsets.log_end_offset >= acknowledged_end, "acknowledged records are gone"
    if partition == COMPACTED:
        check_compacted(batches, told)
    else:
        found = {batch.base_offset: bytes(batch.buffer) for batch in batches}
        for base_offset, data in told.batches.items():
            if RecordBatch(data).last_offset >= max(told.log_start_offset, offsets.log_start_offset):
                assert found.get(base_offset) == data, f"the batch at {base_offset} is gone or changed"
    check_producer(manager, partition, told)


def check_compacted(batches: list[RecordBatch], told: Acknowledged) -> None:
    """Of every key the newest acknowledged value is there, or one that was sent after it."""
    state: dict[bytes | None, tuple[int, bytes | None]] = {}
    for batch in batches:
        for record in batch.records():
            assert (record.offset, record.value) in told.sent[record.key or b""], "a record that nobody sent"
            state[record.key] = (record.offset, record.value)
    for key, newest in told.newest.items():
        found = state.get(key)
        assert found is not None and found[0] >= newest[0], f"{key!r} is {found}, and {newest} was acknowledged"


def check_producer(manager: LogManager, partition: TopicPartition, told: Acknowledged) -> None:
    if told.last_of_producer is None:
        return
    sequence, data = told.last_of_producer
    state = manager.log(partition).producers.find(9)
    assert state is not None, "the producer is forgotten"
    repeated = (
        manager.begin_append(partition, bytearray(data), leader_epoch=0)
        if state.last_sequence == (RecordBatch(data).last_sequence)
        else None
    )
    assert repeated is None or repeated.is_duplicate
    assert state.last_sequence >= RecordBatch(data).last_sequence >= sequence
    following = BatchBuilder(producer_id=9, producer_epoch=0, base_sequence=state.last_sequence + 1)
    following.append(0, b"k0", b"after")
    try:
        ticket = manager.begin_append(partition, bytearray(following.build()), leader_epoch=0)
    except KafkaError as error:
        raise AssertionError(f"the producer cannot go on: {error}") from error
    assert not ticket.is_duplicate


def read_all(manager: LogManager, partition: TopicPartition) -> list[RecordBatch]:
    offsets = manager.offsets(partition)
    offset = offsets.log_start_offset
    found: list[RecordBatch] = []
    while offset < offsets.log_end_offset:
        limit = ReadLimit(100_000, offsets.log_end_offset, at_least_one_batch=True)
        batches = list(split_batches(take_bytes(manager.read(partition, offset, limit))))
        if not batches:
            break  # compaction left nothing behind this offset
        found += batches
        offset = batches[-1].next_offset
    return found


def main() -> None:
    """Take every cut of SEEDS workloads (20), from seed SEED (0) on; ends with the first that loses something."""
    first, count, steps = int(os.environ.get("SEED", "0")), int(os.environ.get("SEEDS", "20")), 80
    logging.disable()
    for seed in range(first, first + count):
        calls = count_calls(seed, steps)
        for cut_at in range(calls):
            for is_power_cut in (False, True):
                try:
                    crash(seed, steps, cut_at, is_power_cut=is_power_cut)
                except BaseException as error:
                    error.add_note(f"seed {seed}, {steps} steps, cut at call {cut_at} of {calls}, {is_power_cut=}")
                    raise
        print(f"seed {seed}: nothing acknowledged was lost in {2 * calls} crashes", flush=True)


if __name__ == "__main__":
    main()
