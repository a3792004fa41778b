"""Produce, kill the broker, start it again, and read everything back: nothing acknowledged may be missing.

    MINUTES=10 python -m benchmarks.soak

Each round starts the broker on the same data, produces numbered records to a new topic with acks=all until SIGKILL ends
it at a random moment, starts it once more and reads the topic: every number that was acknowledged must be there, once,
in order. SIGKILL leaves the page cache alone, so this is about the broker's own order of writes and its recovery, not
about power.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from benchmarks.processes import Running, find_free_port, running
from benchmarks.systems import SYSTEMS, Unavailable

READY_TIMEOUT_S: Final = 20.0
LONGEST_ROUND_S: Final = 4.0
POLL_S: Final = 0.05


def wait_until_ready(server: Running) -> None:
    """Wait for the broker's ready line; ends the program with the broker's log when it does not come."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while "ottla ready on " not in server.log.read_text(errors="replace"):
        if server.process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"soak: the broker did not start: {server.log_tail(2000)}")
        time.sleep(POLL_S)


def produce_until_dead(server: Running, address: str, topic: str, seconds: float) -> set[int]:
    """Produce numbers from 0 on and kill the broker after the time; returns the acknowledged ones."""
    acknowledged = set[int]()
    settings = {"bootstrap.servers": address, "acks": "all", "linger.ms": 1, "message.timeout.ms": 5_000, "retries": 0}
    producer = Producer({**settings, "log_level": 0})

    def delivered(error: object, message: object) -> None:
        if error is None:
            acknowledged.add(int(message.value()))  # type: ignore[attr-defined]  # librdkafka's own message

    killer = threading.Timer(seconds, lambda: os.kill(server.process.pid, signal.SIGKILL))
    killer.start()
    number = 0
    while server.process.poll() is None:
        try:
            producer.produce(topic, str(number), partition=0, on_delivery=delivered)
            number += 1
        except BufferError:
            producer.poll(POLL_S)
        producer.poll(0)
    killer.join()
    producer.purge()
    producer.flush(5)
    return acknowledged


def read_all(address: str, topic: str) -> list[int]:
    """Return every number in partition 0, in order."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "soak", "enable.auto.commit": False, "log_level": 0})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=READY_TIMEOUT_S)
        consumer.assign([TopicPartition(topic, 0, 0)])
        numbers: list[int] = []
        while len(numbers) < end:
            for message in consumer.consume(10_000, 1.0):
                if message.error():
                    raise KafkaException(message.error())
                numbers.append(int(message.value() or b""))
        return numbers
    finally:
        consumer.close()


def check(numbers: list[int], acknowledged: set[int]) -> None:
    """End the program when something acknowledged is missing, doubled, or out of order."""
    missing = acknowledged.difference(numbers)
    if missing:
        sys.exit(f"soak: {len(missing)} acknowledged records are gone, the first is {min(missing)}")
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        sys.exit("soak: records are doubled or out of order")


def main() -> None:
    try:
        SYSTEMS["ottla"].prepare()
    except Unavailable as reason:
        sys.exit(f"soak: {reason}")
    end = time.monotonic() + float(os.environ.get("MINUTES", "10")) * 60
    seed = int(os.environ.get("SEED", str(random.randrange(1 << 32))))
    dice, rounds, total = random.Random(seed), 0, 0
    print(f"soak: seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        port = find_free_port()
        address, command = f"127.0.0.1:{port}", SYSTEMS["ottla"].command(Path(folder), port)
        while time.monotonic() < end:
            topic = f"soak-{rounds}"
            with running(command, Path(folder) / "log") as server:
                wait_until_ready(server)
                acknowledged = produce_until_dead(server, address, topic, dice.uniform(0.05, LONGEST_ROUND_S))
            with running(command, Path(folder) / "log") as server:
                wait_until_ready(server)
                check(read_all(address, topic) if acknowledged else [], acknowledged)
            rounds, total = rounds + 1, total + len(acknowledged)
            print(f"soak: round {rounds}: all of {len(acknowledged):,} acknowledged records are there", flush=True)
    print(f"soak: {rounds} kills, none of {total:,} acknowledged records was lost")


if __name__ == "__main__":
    main()
