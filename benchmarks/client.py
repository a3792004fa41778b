"""Our client beside aiokafka and kafka-python: records of 100 bytes, one partition, one broker, one run.

    python -m benchmarks.client [-b HOST:PORT] [--records 100000] [--rounds 3] [--batch-size 65536]

Without -b it starts an Ottla. Rounds are interleaved; a cell is the median of records per second (lowest to highest).
"batches" reads as many records at a time as the client likes, "one by one" iterates. All clients get the same batch
size and linger; kafka-python and aiokafka keep their other defaults.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

import uvloop

from ottla.client import Admin, Consumer, Producer, ProducerSettings

VALUE: Final = b"x" * 100
LINGER_MS: Final = 5

Timing = Callable[[str, str, int, int], float]
"""Bootstrap, topic, records, batch size to seconds."""


async def _ottla_produce(bootstrap: str, topic: str, records: int, batch_size: int) -> float:
    async with Producer(bootstrap, settings=ProducerSettings(batch_size=batch_size, linger_ms=LINGER_MS)) as producer:
        await producer.send_and_wait(topic, VALUE)
        started = time.perf_counter()
        for _ in range(records):
            await producer.send(topic, VALUE)
        await producer.flush()
        return time.perf_counter() - started


async def _ottla_batches(bootstrap: str, topic: str, records: int, batch_size: int) -> float:
    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        started = time.perf_counter()
        await consumer.assign_topics(topic)
        count = 0
        while count < records:
            batch = await consumer.next_batch()
            count += len(batch.records) if batch is not None else 0
        return time.perf_counter() - started


async def _ottla_single(bootstrap: str, topic: str, records: int, batch_size: int) -> float:
    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        started = time.perf_counter()
        await consumer.assign_topics(topic)
        count = 0
        async for _ in consumer:
            count += 1
            if count == records:
                break
        return time.perf_counter() - started


async def _aiokafka_produce(bootstrap: str, topic: str, records: int, batch_size: int) -> float:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, max_batch_size=batch_size, linger_ms=LINGER_MS, enable_idempotence=True, acks="all"
    )
    await producer.start()
    try:
        await producer.send_and_wait(topic, VALUE)
        started = time.perf_counter()
        for _ in range(records):
            await producer.send(topic, VALUE)
        await producer.flush()
        return time.perf_counter() - started
    finally:
        await producer.stop()


async def _aiokafka_consume(bootstrap: str, topic: str, records: int, *, is_single: bool) -> float:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        started = time.perf_counter()
        count = 0
        if is_single:
            async for _ in consumer:
                count += 1
                if count == records:
                    break
        while count < records:
            count += sum(map(len, (await consumer.getmany(timeout_ms=1000)).values()))
        return time.perf_counter() - started
    finally:
        await consumer.stop()


def _kafka_python_produce(bootstrap: str, topic: str, records: int, batch_size: int) -> float:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=bootstrap, batch_size=batch_size, linger_ms=LINGER_MS, acks="all", enable_idempotence=True
    )
    try:
        producer.send(topic, VALUE).get(30)
        started = time.perf_counter()
        for _ in range(records):
            producer.send(topic, VALUE)
        producer.flush()
        return time.perf_counter() - started
    finally:
        producer.close()


def _kafka_python_consume(bootstrap: str, topic: str, records: int, *, is_single: bool) -> float:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    try:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        started = time.perf_counter()
        count = 0
        if is_single:
            for _ in consumer:
                count += 1
                if count == records:
                    break
        while count < records:
            count += sum(map(len, consumer.poll(timeout_ms=1000).values()))
        return time.perf_counter() - started
    finally:
        consumer.close()


def _on_loop(work: Callable[..., Any]) -> Timing:
    return lambda *arguments: float(uvloop.run(work(*arguments)))


SYSTEMS: Final[dict[str, dict[str, Timing]]] = {
    "ottla": {
        "produce": _on_loop(_ottla_produce),
        "batches": _on_loop(_ottla_batches),
        "one by one": _on_loop(_ottla_single),
    },
    "aiokafka": {
        "produce": _on_loop(_aiokafka_produce),
        "batches": lambda b, t, n, s: float(uvloop.run(_aiokafka_consume(b, t, n, is_single=False))),
        "one by one": lambda b, t, n, s: float(uvloop.run(_aiokafka_consume(b, t, n, is_single=True))),
    },
    "kafka-python": {
        "produce": _kafka_python_produce,
        "batches": lambda b, t, n, s: _kafka_python_consume(b, t, n, is_single=False),
        "one by one": lambda b, t, n, s: _kafka_python_consume(b, t, n, is_single=True),
    },
}


@contextmanager
def broker() -> Iterator[str]:
    """Run an Ottla in a process of its own and yield its address."""
    with tempfile.TemporaryDirectory(prefix="bench-client-") as folder:
        command = [sys.executable, "-m", "ottla.cli.main", "serve", "--data", folder, "--listen", "127.0.0.1:0"]
        with subprocess.Popen(
            [*command, "-o", "ottla.flush.policy=os"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            try:
                yield process.stdout.readline().rsplit(" ", 1)[1].strip()
            finally:
                process.terminate()


async def _create(bootstrap: str, topic: str) -> None:
    async with Admin(bootstrap) as admin:
        await admin.create_topic(topic, partitions=1)


def measure(bootstrap: str, records: int, rounds: int, batch_size: int) -> dict[str, dict[str, list[float]]]:
    """Return records per second by line and system, one for each round."""
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(rounds):
        for system, loads in SYSTEMS.items():
            topic = f"bench-{uuid4().hex[:8]}"
            asyncio.run(_create(bootstrap, topic))
            for line, load in loads.items():
                rate = records / load(bootstrap, topic, records, batch_size)
                found.setdefault(line, {}).setdefault(system, []).append(rate)
    return found


def print_table(found: dict[str, dict[str, list[float]]]) -> None:
    """Print medians, ranges and how many times faster ours is."""
    print("| records/s | " + " | ".join(SYSTEMS) + " |")
    print("|---|" + "---|" * len(SYSTEMS))
    for line, systems in found.items():
        ours = statistics.median(systems["ottla"])
        cells = []
        for system, rates in systems.items():
            median = statistics.median(rates)
            times = "" if system == "ottla" else f", {ours / median:.1f}x"
            cells.append(f"{median:,.0f} ({min(rates):,.0f}-{max(rates):,.0f}{times})")
        print(f"| {line} | " + " | ".join(cells) + " |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure our client beside aiokafka and kafka-python.")
    parser.add_argument("-b", "--bootstrap")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=65_536)
    options = parser.parse_args()
    if options.bootstrap:
        print_table(measure(options.bootstrap, options.records, options.rounds, options.batch_size))
        return
    with broker() as bootstrap:
        print_table(measure(bootstrap, options.records, options.rounds, options.batch_size))


if __name__ == "__main__":
    main()
