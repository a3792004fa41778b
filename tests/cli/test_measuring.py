"""Loads are as large as was asked for, and what is counted is what Kafka's tools count."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator

import pytest

from ottla.cli import measuring
from ottla.cli.measuring import consume_load, produce_load
from ottla.client import ProducerSettings, sync
from ottla.testing.cluster import broker_in_thread


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with broker_in_thread() as running:
        with sync.Admin(running.address) as admin:
            for topic in ("read", "letters", "slow"):
                admin.create_topic(topic, partitions=1)
        with sync.Producer(running.address) as producer:
            producer.send("read", b"12345", key=b"123")
            producer.send("read", None, key=b"1")
            producer.send_many("read", [b"x"] * 998)
        yield running.address


def quiet(line: str) -> None:
    """A machine that is busy may be told of an interval."""


@pytest.mark.parametrize("asked", [1, 2, 500, 1000])
def test_exactly_so_many_records_are_counted(address: str, asked: int) -> None:
    """kafka-consumer-perf-test counts whole polls, up to 499 records more than were asked for."""
    count, size_bytes, seconds = asyncio.run(consume_load(address, "read", asked, quiet))
    assert count == asked
    assert size_bytes == {1: 8, 2: 9}.get(asked, asked + 7)
    assert seconds > 0


def test_the_end_ends_a_load_as_well(address: str) -> None:
    assert asyncio.run(consume_load(address, "read", None, quiet))[0] == 1000
    assert asyncio.run(consume_load(address, "read", 1001, quiet))[0] == 1000


def test_values_are_letters_that_do_not_compress_to_nothing(address: str) -> None:
    settings = ProducerSettings(linger_ms=0)
    seconds, latencies = asyncio.run(produce_load(address, "letters", 400, 1000, None, settings, quiet))
    with sync.Consumer(address, auto_offset_reset="earliest") as consumer:
        consumer.assign_topics("letters")
        values: list[bytes] = []
        while len(values) < 400:
            batch = consumer.next_batch(5000)
            assert batch is not None
            values += [record.value or b"" for record in batch.records]
    assert {len(value) for value in values} == {1000}
    text = b"".join(values)
    assert text.isalpha()
    assert text.isupper()
    assert len(zlib.compress(text)) > len(text) / 2
    assert len(latencies) == 400
    assert 0 < latencies.figures()["max"] / 1000 <= seconds


def test_a_long_load_says_how_far_it_is(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "INTERVAL_SECONDS", 0.02)
    told: list[str] = []
    settings = ProducerSettings(linger_ms=0)
    asyncio.run(produce_load(address, "slow", 100, 10, 500.0, settings, told.append))
    assert len(told) > 1
    assert all(line.endswith(" records/s") and " so far, " in line for line in told)
    counts = [int(line.split()[0]) for line in told]
    assert counts == sorted(counts)
    assert 0 < counts[-1] <= 100
