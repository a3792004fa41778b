"""One member of a group in a process of its own, so that it can be stopped, killed and mixed with other libraries.

    python -m tests.interop.groups.member_process LIBRARY ADDRESS GROUP TOPIC ASSIGNOR [INSTANCE_ID]

Prints one JSON line for each thing that happens: `{"assigned": [partitions]}`,
`{"record": [partition, offset, value]}`, `{"committed": {partition: offset}}`, `{"closed": true}`. Records are printed
before they are committed. SIGTERM makes it leave the group in order.

LIBRARY may end in `:consumer` for the new group protocol (KIP-848), where brokers assign and ASSIGNOR does not count.
Of `java`, which is Kafka's console consumer, it is not known what it is assigned and commits.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

SESSION_TIMEOUT_MS: Final = 3_000
HEARTBEAT_INTERVAL_MS: Final = 300
POLL_SECONDS: Final = 0.1
NEW_PROTOCOL: Final = ":consumer"

is_stopping = False


def stop(*_: object) -> None:
    global is_stopping  # noqa: PLW0603 - this process has one member
    is_stopping = True


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def say_records(records: Iterable[Any], offset_of: Callable[[Any], tuple[int, int, bytes]]) -> dict[int, int]:
    """Print records; returns the position behind them by partition."""
    positions: dict[int, int] = {}
    for record in records:
        partition, offset, value = offset_of(record)
        say(record=[partition, offset, value.decode()])
        positions[partition] = offset + 1
    return positions


def run_confluent(
    address: str, group: str, topic: str, instance_id: str | None, assignor: str, *, is_new: bool = False
) -> None:
    from confluent_kafka import Consumer, KafkaException

    settings: dict[str, Any] = {
        "bootstrap.servers": address,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    if is_new:
        settings["group.protocol"] = "consumer"
    else:
        settings["session.timeout.ms"] = SESSION_TIMEOUT_MS
        settings["heartbeat.interval.ms"] = HEARTBEAT_INTERVAL_MS
        settings["partition.assignment.strategy"] = assignor
    if instance_id is not None:
        settings["group.instance.id"] = instance_id
    consumer = Consumer(settings)

    consumer.subscribe([topic])
    known: list[int] = []
    while not is_stopping:
        records = [record for record in consumer.consume(50, POLL_SECONDS) if not record.error()]
        owned = sorted(one.partition for one in consumer.assignment())
        if owned != known:
            known = owned
            say(assigned=known)
        positions = say_records(records, lambda record: (record.partition(), record.offset(), record.value()))
        if positions:
            try:
                consumer.commit(asynchronous=False)
                say(committed=positions)
            except KafkaException as error:
                say(failed=str(error))
    consumer.close()


def run_kafka_python(address: str, group: str, topic: str, instance_id: str | None, assignor: str) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.errors import KafkaError

    assignors = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
    consumer = KafkaConsumer(
        bootstrap_servers=address,
        group_id=group,
        group_instance_id=instance_id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        partition_assignment_strategy=[assignors[assignor]],
    )

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            say(assigned=sorted(one.partition for one in assigned))

    consumer.subscribe([topic], listener=Listener())
    while not is_stopping:
        found = consumer.poll(int(POLL_SECONDS * 1000))
        records = [record for rows in found.values() for record in rows]
        positions = say_records(records, lambda record: (record.partition, record.offset, record.value))
        if positions:
            try:
                consumer.commit()
                say(committed=positions)
            except KafkaError as error:
                say(failed=repr(error))
    consumer.close()


async def run_aiokafka(address: str, group: str, topic: str, instance_id: str | None, assignor: str) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.errors import KafkaError

    assignors = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
    consumer = AIOKafkaConsumer(
        bootstrap_servers=address,
        group_id=group,
        group_instance_id=instance_id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        partition_assignment_strategy=[assignors[assignor]],
    )

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            say(assigned=sorted(one.partition for one in assigned))

    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    while not is_stopping:
        found = await consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000))
        records = [record for rows in found.values() for record in rows]
        positions = say_records(records, lambda record: (record.partition, record.offset, record.value))
        if positions:
            try:
                await consumer.commit()
                say(committed=positions)
            except KafkaError as error:
                say(failed=repr(error))
    await consumer.stop()


async def run_ottla(
    address: str, group: str, topic: str, instance_id: str | None, assignor: str, *, is_new: bool
) -> None:
    from ottla.client import Consumer, GroupSettings
    from ottla.errors import KafkaError

    settings = GroupSettings(
        group_id=group,
        group_instance_id=instance_id,
        group_protocol="consumer" if is_new else "classic",
        assignors=[assignor],
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        enable_auto_commit=False,
    )
    async with Consumer(address, group=settings, auto_offset_reset="earliest") as consumer:
        await consumer.subscribe(topic)
        known: list[int] = []
        while not is_stopping:
            batch = await consumer.next_batch(int(POLL_SECONDS * 1000))
            owned = sorted(one.partition for one in consumer.assignment)
            if owned != known:
                known = owned
                say(assigned=known)
            if batch is None:
                continue
            number = batch.partition.partition
            rows = [(number, record.offset, record.value) for record in batch.records]
            positions = say_records(rows, lambda row: row)
            try:
                await consumer.commit({batch.partition: batch.next_offset})
                say(committed=positions)
            except KafkaError as error:
                say(failed=str(error))


def run_java(address: str, group: str, topic: str, *, is_new: bool) -> None:
    command = [str(Path(os.environ["KAFKA_HOME"], "bin/kafka-console-consumer.sh"))]
    command += ["--bootstrap-server", address, "--group", group, "--topic", topic, "--from-beginning"]
    for setting in ("print.partition=true", "print.offset=true"):
        command += ["--formatter-property", setting]
    settings = [f"group.protocol={'consumer' if is_new else 'classic'}", "auto.commit.interval.ms=200"]
    for setting in settings:
        command += ["--command-property", setting]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    assert process.stdout is not None
    for line in process.stdout:
        facts = line.rstrip("\n").split("\t")
        if len(facts) == 3:  # else it is a line of its log
            partition, offset, value = facts
            say(record=[int(partition.partition(":")[2]), int(offset.partition(":")[2]), value])
    process.wait()


def main(library: str, address: str, group: str, topic: str, assignor: str, instance_id: str | None = None) -> None:
    signal.signal(signal.SIGTERM, stop)
    is_new = library.endswith(NEW_PROTOCOL)
    match library.removesuffix(NEW_PROTOCOL):
        case "aiokafka":
            asyncio.run(run_aiokafka(address, group, topic, instance_id, assignor))
        case "kafka-python":
            run_kafka_python(address, group, topic, instance_id, assignor)
        case "confluent-kafka":
            run_confluent(address, group, topic, instance_id, assignor, is_new=is_new)
        case "ottla":
            asyncio.run(run_ottla(address, group, topic, instance_id, assignor, is_new=is_new))
        case "java":
            run_java(address, group, topic, is_new=is_new)
    say(closed=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
