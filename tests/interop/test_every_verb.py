"""Every verb of Kafka's tools, the rare ones too, with the output that it gives on Kafka 4.4.

`every_verb.txt` has, behind a line on where it is from, commands and what they print: `$` begins a command, `!`
something else that is done in between. With `OTTLA_INTEROP_BROKER=kafka OTTLA_RECORD_VERBS=1` what they print on
Apache Kafka is written down. What members of groups look like is in `test_kafka_group_tools`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.interop.brokers import Broker
from tests.interop.tool_runner import ToolRunner

RECORD: Final = Path(__file__).with_name("every_verb.txt")
SETTINGS: Final = ("offsets.topic.num.partitions=5", "num.partitions=1", "log.retention.ms=-1")
FILES: Final = {
    "offsets.csv": "t,0,1\nt,1,2\n",
    "groups.csv": "g1,t,0,1\ng2,t,1,2\n",
    "bad.csv": "t,0\n",
    "elect.json": json.dumps({"partitions": [{"topic": "t", "partition": 0}, {"topic": "nosuch", "partition": 0}]}),
    "topics.json": json.dumps({"version": 1, "topics": [{"topic": "t"}]}),
    "same.json": json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]}),
    "delete.json": json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "offset": 2}]}),
    "settings.properties": "flush.ms=5000\nmax.message.bytes=2000\n",
}
"""What commands read, in the folder that `@/` stands for."""

FIRST_MS: Final = 1_790_000_000_000
SECONDS: Final = 30


@pytest.fixture
def tools(start_broker: Callable[..., Broker], tmp_path: Path) -> Iterator[tuple[Broker, ToolRunner]]:
    broker = start_broker(*SETTINGS)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    runner = ToolRunner(broker.address, tmp_path / "errors")
    yield broker, runner
    runner.close()


def commands() -> dict[str, list[str]]:
    """What is done, with the lines that it prints."""
    found: dict[str, list[str]] = {}
    for line in RECORD.read_text().splitlines()[1:]:
        if line.startswith(("$ ", "! ")):
            lines = found[line] = []
        else:
            lines.append(line)
    return found


def do(what: str, broker: Broker) -> None:
    """`produce` five and three records to a topic, or have a group `commit`."""
    verb, name = what.split()
    if verb == "produce":
        producer = Producer({"bootstrap.servers": broker.address})
        for partition, count in enumerate((5, 3)):
            for number in range(count):
                producer.produce(name, b"x", partition=partition, timestamp=FIRST_MS + number * 1000)
        assert producer.flush(SECONDS) == 0
        return
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": name})
    consumer.commit(offsets=[TopicPartition("t", 0, 2), TopicPartition("t", 1, 3)], asynchronous=False)
    consumer.close()


def test_every_verb_prints_what_it_prints_on_kafka(tools: tuple[Broker, ToolRunner], tmp_path: Path) -> None:
    broker, runner = tools
    expected = commands()
    printed: dict[str, list[str]] = {}
    for line in expected:
        printed[line] = []
        if line.startswith("! "):
            do(line[2:], broker)
        else:
            tool, *words = line[2:].replace("@/", f"{tmp_path}/").split()
            printed[line] = [said.replace(f"{tmp_path}/", "@/") for said in runner.run(tool, *words)]
    if os.environ.get("OTTLA_RECORD_VERBS") == "1":
        about = RECORD.read_text().splitlines()[0]
        lines = [about, *(text for line, said in printed.items() for text in (line, *said))]
        RECORD.write_text("".join(f"{line}\n" for line in lines))
    other = {line: (printed[line], said) for line, said in expected.items() if printed[line] != said}
    assert not other, f"{len(other)} commands print something else than on Kafka: {other}"
