"""A data directory of Jafka's own server: taken over as it is, and served as that server did."""

from __future__ import annotations

import asyncio
import json
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ottla.broker.metadata.create_topics import NewTopic
from ottla.config.broker_config import BrokerConfig
from ottla.config.jafka_properties import from_jafka
from ottla.server import Server, StartError
from ottla.testing.cluster import RunningBroker, running_broker
from tests.dialects.jafka.test_dialogue import Client, fetch, kafka_append, kafka_values, message, offsets, produce

GOLDEN = Path(__file__).parents[2] / "golden" / "jafka"
NUMBERED = [b"number %03d " % number + b"x" * 100 for number in range(16)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with tarfile.open(GOLDEN / "directory.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "data"


def serve(directory: Path, test: Callable[[RunningBroker], Awaitable[None]]) -> None:
    """Run a test on a broker with the configuration that Jafka had, but for ports and what would go by age."""
    jafka = {"brokerid": "1", "log.dir": str(directory), "num.partitions": "2", "log.file.size": "400"}
    settings = from_jafka({**jafka, "topic.partition.count.map": "wide:3", "log.flush.interval": "1"})
    settings |= {"listeners": "PLAINTEXT://127.0.0.1:0,JAFKA://127.0.0.1:0", "log.retention.ms": "-1"}

    async def main() -> None:
        async with running_broker(settings) as running:
            await test(running)

    asyncio.run(main())


async def says_the_same(running: RunningBroker) -> None:
    client = await Client.connect(running)
    for request, answer in json.loads((GOLDEN / "dialogue.json").read_text()):
        if "promised" not in bytes.fromhex(request).decode("latin-1"):  # it was in Jafka's memory only
            assert await client.ask(request) == answer, request
    client.close()


def test_what_jafka_answered_is_answered_and_again_after_a_restart(directory: Path) -> None:
    before = {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*.jafka")}
    serve(directory, says_the_same)
    serve(directory, says_the_same)
    assert {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*.jafka")} == before
    assert {path.parent.name for path in directory.glob("*-*/*.log")} == {"__cluster_metadata-0"}
    assert not (directory / ".jafka_cleanshutdown").exists()


def test_kafkas_clients_see_records_that_keep_their_numbers(directory: Path) -> None:
    async def first(running: RunningBroker) -> None:
        assert [len(running.broker.find_topic(name).partitions) for name in ("t", "wide", "with-dash")] == [2, 3, 2]  # type: ignore[union-attr]
        assert kafka_values(running, "t", 0) == NUMBERED[7:]
        assert kafka_values(running, "t", 1) == [b"a" * 500, b"b" * 500]
        assert kafka_values(running, "wide", 2) == ["Käse".encode()]
        client = await Client.connect(running)
        await client.tell(produce("t", 0, message(b"more")))
        kafka_append(running, "t", b"and more", key=None)
        client.close()

    async def then(running: RunningBroker) -> None:
        assert kafka_values(running, "t", 0) == [*NUMBERED[7:], b"more", b"and more"]
        assert running.broker.partition("t", 0).offsets().log_end_offset == 11
        client = await Client.connect(running)
        answer = await client.ask(offsets("t", 0, -2))
        assert answer == "0000000e" + "0000" + "00000001" + f"{963:016x}"
        expected = message(NUMBERED[15]) + message(b"more") + message(b"and more")
        assert (await client.ask(fetch("t", 0, 1931)) or "")[12:] == expected.hex()
        client.close()

    serve(directory, first)
    serve(directory, then)


def test_what_a_crash_of_jafka_left_is_cut(directory: Path) -> None:
    (directory / ".jafka_cleanshutdown").unlink()
    last = directory / "t-0" / f"{1931:020d}.jafka"
    whole = last.read_bytes()
    with last.open("ab") as file:
        file.write(b"nine byte")
    serve(directory, says_the_same)
    assert last.read_bytes() == whole


def test_a_log_of_jafkas_that_is_put_into_a_directory_of_ours_becomes_a_topic(directory: Path, tmp_path: Path) -> None:
    ours = tmp_path / "ours"

    async def nothing(running: RunningBroker) -> None:
        running.broker.metadata.create_topics([NewTopic("wide", 1)])

    async def found(running: RunningBroker) -> None:
        assert kafka_values(running, "with-dash", 0) == [b"dash"]
        running.broker.metadata.create_topics([NewTopic("t", 1)])

    async def grown(running: RunningBroker) -> None:
        assert kafka_values(running, "with-dash", 2) == ["Käse".encode()]

    serve(ours, nothing)
    for number in (0, 1):
        (directory / f"with-dash-{number}").rename(ours / f"with-dash-{number}")
    serve(ours, found)
    (directory / "wide-2").rename(ours / "with-dash-2")
    serve(ours, grown)
    (directory / "t-1").rename(ours / "t-1")
    with pytest.raises(StartError, match="topic t, which is in Kafka's format"):
        serve(ours, found)


def test_a_topic_that_cannot_be_named_so_here_is_told(directory: Path) -> None:
    (directory / "wide-0").rename(directory / "wi de-0")
    with pytest.raises(StartError, match="'wi de' contains one or more characters other than"):
        serve(directory, says_the_same)
    (directory / "wi de-0").rename(directory / "wide-0")
    serve(directory, says_the_same)


def test_a_directory_with_logs_of_both_kinds_that_belongs_to_nobody_is_left_alone(directory: Path) -> None:
    (directory / "t-0" / f"{0:020d}.log").touch()
    with pytest.raises(StartError, match=r"meta\.properties is gone"):
        serve(directory, says_the_same)


def test_a_directory_that_is_served_read_only_stays_as_it_is(directory: Path) -> None:
    serve(directory, says_the_same)
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    listeners = {"listeners": "PLAINTEXT://127.0.0.1:0,JAFKA://127.0.0.1:0", "node.id": "1"}

    async def look() -> None:
        server = Server(BrokerConfig.from_properties({**listeners, "log.dirs": str(directory)}), is_read_only=True)
        await server.start()
        running = RunningBroker(server, str(directory), None)
        await says_the_same(running)
        assert kafka_values(running, "t", 0) == NUMBERED[7:]
        client = await Client.connect(running)
        assert await client.ask(produce("t", 0, message(b"more"))) is None
        await server.stop()

    asyncio.run(look())
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before
