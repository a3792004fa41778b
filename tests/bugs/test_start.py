"""Start-up: ready means ready, and what cannot start says why in a line and is gone."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from benchmarks.processes import find_free_port
from ottla.config.broker_config import BrokerConfig
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.process import KILL, SECONDS, command, refused, started
from tests.wire import open_room, room_at


def test_the_first_request_after_the_ready_line_is_served(tmp_path: Path) -> None:
    """KAFKA-14658 apache/kafka#13169 "Do not open broker ports until we are ready to accept traffic",
    twmb/franz-go#866, redpanda-data/redpanda#2572, bitnami/bitnami-docker-kafka#107: an open port, and errors for
    seconds."""

    async def use(address: str, name: str) -> None:
        async with room_at(address) as room:
            await room.create(name)
            assert await room.append(name, b"v") == 0
            assert await room.read_all(name) == [(0, b"v")]
            answer = await room.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
            assert answer.error_code == 0

    for number in range(3):
        with started(tmp_path) as broker:
            asyncio.run(use(broker.address, f"t{number}"))


def test_a_port_that_answers_serves(tmp_path: Path) -> None:
    """KAFKA-14658: whoever connects in a loop from the start on is served by the first connection that stands."""

    async def main() -> None:
        address = f"127.0.0.1:{find_free_port()}"

        async def use_first_connection() -> None:
            while True:
                try:
                    async with room_at(address) as room:
                        await room.create("first")
                        assert await room.append("first", b"v") == 0
                    return
                except ConnectionRefusedError:
                    await asyncio.sleep(0)

        using = asyncio.ensure_future(use_first_connection())
        async with open_room({"listeners": f"PLAINTEXT://{address}", "log.dirs": str(tmp_path)}):
            await asyncio.wait_for(using, SECONDS)

    asyncio.run(main())


def test_a_port_in_use_ends_the_start_with_a_reason(tmp_path: Path) -> None:
    """KAFKA-4428 "Kafka does not exit if port is already bound", KAFKA-16369 "Broker may not shut down when
    SocketServer fails to bind"."""
    with started(tmp_path / "first") as first:
        begin = time.monotonic()
        code, said = refused(command(tmp_path / "second", listen=first.address))
        duration = time.monotonic() - begin
        port = first.address.rpartition(":")[2]
        everywhere_code, everywhere_said = refused(command(tmp_path / "third", listen=f":{port}"))

    assert duration < SECONDS
    assert (code, everywhere_code) == (1, 1)
    (line,) = [line for line in said.splitlines() if line.startswith("ottla: ")]
    assert first.address in line
    assert "Traceback" not in said + everywhere_said
    with started(tmp_path / "second"):
        """What the failed start left behind does not hinder the next one."""


def test_a_directory_in_use_ends_the_start_and_is_free_after_a_kill(tmp_path: Path) -> None:
    """KAFKA-4428 and its kind: two brokers that write the same logs."""
    with started(tmp_path) as first:
        code, said = refused(command(tmp_path))
        assert code == 1
        assert str(tmp_path) in said
        assert "Traceback" not in said
        first.process.send_signal(KILL)
        first.process.wait(SECONDS)
    with started(tmp_path):
        """The lock went with the process."""


def test_a_file_that_cannot_be_read_ends_the_start_with_its_name(tmp_path: Path) -> None:
    """KAFKA-4428 and its kind, for what the system refuses."""
    (tmp_path / "meta.properties").mkdir()

    code, said = refused(command(tmp_path))

    assert code == 1
    assert "meta.properties" in said
    assert "Traceback" not in said


def test_settings_that_cannot_work_end_the_start_with_a_reason(tmp_path: Path) -> None:
    """KAFKA-6394 "Prevent misconfiguration of advertised listeners": clients were told to connect to 0.0.0.0."""
    bad = {
        "advertised.listeners=PLAINTEXT://0.0.0.0:9092": "advertised.listeners",
        "listeners=PLAINTEXT://127.0.0.1:99999": "99999",
        "listeners=nonsense": "nonsense",
        "num.partitions=0": "num.partitions",
        "log.segment.bytes=abc": "log.segment.bytes",
        "no-equals-sign": "no-equals-sign",
    }
    for setting, named in bad.items():
        code, said = refused(command(tmp_path, setting))
        assert code == 2, (setting, said)
        assert named in said, said
        assert "Traceback" not in said


def test_an_unknown_option_of_the_command_line_is_refused(tmp_path: Path) -> None:
    """KAFKA-6394 and its kind."""
    code, said = refused([*command(tmp_path), "--no-such-option"])

    assert code == 2
    assert "--no-such-option" in said


def test_an_unknown_setting_is_one_warning() -> None:
    """KAFKA-6394 and its kind: a typing error must be seen, and a file made for another version must still work."""
    config = BrokerConfig.from_properties({"no.such.setting": "1", "listeners": "PLAINTEXT://127.0.0.1:0"})

    assert len([warning for warning in config.warnings if "no.such.setting" in warning]) == 1
