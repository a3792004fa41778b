"""Where a server keeps its metadata, and what of its configuration goes into it."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from ottla.broker.metadata.alter_configs import ConfigAlteration
from ottla.broker.metadata.create_topics import NewTopic
from ottla.broker.metadata.quorum import QuorumListener
from ottla.config.broker_config import BrokerConfig
from ottla.config.resource_type import ResourceType
from ottla.dialects.listener import Listener
from ottla.model import TopicPartition
from ottla.server import Server, StartError
from ottla.testing.clock import ManualClock
from ottla.testing.cluster import running_broker
from tests.storage.harness import make_batch

METADATA = "__cluster_metadata-0"
HOUR_S = 3600.0


def test_the_record_of_voters_has_the_configured_controller_listeners(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = {
            "log.dirs": str(tmp_path),
            "process.roles": "broker,controller",
            "listeners": "PLAINTEXT://127.0.0.1:0,QUORUM://127.0.0.1:9193,OTHER://:9194",
            "advertised.listeners": "OTHER://quorum.example.org:9195",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,QUORUM:PLAINTEXT,OTHER:PLAINTEXT",
            "controller.listener.names": "QUORUM,OTHER",
        }
        async with running_broker(settings) as running:
            voter = running.broker.administration.quorum.voter
        assert voter.listeners == [
            QuorumListener("QUORUM", "127.0.0.1", 9193),
            QuorumListener("OTHER", "quorum.example.org", 9195),
        ]

    asyncio.run(scenario())


def test_without_any_it_has_those_of_kafkas_own_configuration(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_broker({"log.dirs": str(tmp_path)}) as running:
            quorum = running.broker.administration.quorum
        assert quorum.voter.listeners == [QuorumListener("CONTROLLER", "localhost", 9093)]
        assert (quorum.leader_id, quorum.voter.node_id) == (1, 1)
        assert quorum.voter.directory_id != bytes(16)

    asyncio.run(scenario())


def test_metadata_may_have_a_directory_of_its_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        logs, metadata = tmp_path / "logs", tmp_path / "metadata"
        settings = {"log.dirs": str(logs), "metadata.log.dir": str(metadata)}
        async with running_broker(settings) as running:
            running.broker.metadata.create_topics([NewTopic("t", 1, 1)])
            assert [one.path for one in running.broker.administration.log_directories()] == [str(logs)]
        assert (metadata / METADATA).is_dir()
        assert not (logs / METADATA).exists()
        assert (logs / "t-0").is_dir()
        for directory in (logs, metadata):
            assert (directory / ".kafka_cleanshutdown").is_file()
            assert (directory / "meta.properties").is_file()
        async with running_broker(settings) as again:
            assert again.broker.find_topic("t") is not None

    asyncio.run(scenario())


def test_segments_of_metadata_may_be_as_small_as_a_test_wants_them(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = {"log.dirs": str(tmp_path), "internal.metadata.log.segment.bytes": "2000"}
        async with running_broker(settings) as running:
            for number in range(40):
                running.broker.metadata.create_topics([NewTopic(f"topic-{number}", 1, 1)])
        async with running_broker(settings) as running:
            assert len(list(running.broker.image.topics())) == 40

    asyncio.run(scenario())
    sizes = [path.stat().st_size for path in (tmp_path / METADATA).glob("*.log")]
    assert len(sizes) > 2
    assert max(sizes) <= 2000


def test_metadata_is_not_begun_anew_in_another_directory(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_broker({"log.dirs": str(tmp_path / "logs")}):
            pass
        config = BrokerConfig.from_properties(
            {
                "log.dirs": str(tmp_path / "logs"),
                "metadata.log.dir": str(tmp_path / "new"),
                "listeners": "P://127.0.0.1:0",
            }
            | {"listener.security.protocol.map": "P:PLAINTEXT"}
        )
        with pytest.raises(StartError, match="holds the metadata log"):
            await Server(config).start()

    asyncio.run(scenario())


def test_a_topic_whose_deletion_was_lost_has_its_records(tmp_path: Path) -> None:
    """The directory had its new name when the power went, and the record of the deletion was not on disk."""

    async def scenario() -> None:
        settings = {"log.dirs": str(tmp_path)}
        async with running_broker(settings) as running:
            running.broker.metadata.create_topics([NewTopic("t", 2, 1)])
            topic = running.broker.find_topic("t")
            assert topic is not None
            running.broker.append(topic.partition(1), memoryview(make_batch(3)))
        for number in range(2):
            (tmp_path / f"t-{number}").rename(tmp_path / f"t-{number}.{topic.topic_id.hex()}-delete")
        async with running_broker(settings) as again:
            offsets = [again.broker.partition("t", number).offsets().log_end_offset for number in range(2)]
        assert offsets == [0, 3]

    asyncio.run(scenario())


def test_a_snapshot_is_written_by_age(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = {"log.dirs": str(tmp_path), "metadata.log.max.snapshot.interval.ms": "3600000"}
        async with running_broker(settings, clock=ManualClock()) as running:
            assert len(list((tmp_path / METADATA).glob("*.checkpoint"))) == 1
            running.advance(HOUR_S)
            assert len(list((tmp_path / METADATA).glob("*.checkpoint"))) == 2

    asyncio.run(scenario())


def test_of_two_that_bind_one_port_at_once_the_second_to_listen_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has begun with its directory by then, and leaves it as after a clean stop."""

    async def refuse(_: Listener) -> None:
        raise OSError(errno.EADDRINUSE, "Address already in use")

    async def scenario() -> None:
        with pytest.raises(StartError, match=r"cannot listen at 127\.0\.0\.1:\d+: the port is in use; --listen"):
            async with running_broker({"log.dirs": str(tmp_path)}):
                pass
        assert (tmp_path / ".kafka_cleanshutdown").exists()
        monkeypatch.undo()
        async with running_broker({"log.dirs": str(tmp_path)}):
            """Nothing was left locked."""

    monkeypatch.setattr(Listener, "start", refuse)
    asyncio.run(scenario())


def test_chores_begin_with_the_settings_that_were_changed_before_the_start(tmp_path: Path) -> None:
    """The throttle of a move outlives the broker, as the move does."""

    async def scenario() -> None:
        directories = [tmp_path / "one", tmp_path / "two"]
        settings = {"log.dirs": ",".join(map(str, directories))}
        throttle = ("replica.alter.log.dirs.io.max.bytes.per.second", 0, "1")
        async with running_broker(settings) as running:
            broker = running.broker
            broker.alter_configs([ConfigAlteration(ResourceType.BROKER, "1", [throttle])])
            broker.metadata.create_topics([NewTopic("t", 1, 1)])
            for _ in range(5):
                broker.append(broker.partition("t", 0), memoryview(make_batch(value=b"x" * 100_000)))
            source = next(path for path in directories if (path / "t-0").exists())
            target = next(path for path in directories if path != source)
            broker.administration.keep_log_in(str(target), TopicPartition("t", 0))
        async with running_broker(settings) as running:
            (future,) = [
                future for facts in running.broker.administration.log_directories() for future in facts.futures
            ]
            assert future.offset_lag > 0

    asyncio.run(scenario())
