"""One connection: versions are negotiated, silence and nonsense end it with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ottla.client.connection import Connection, ConnectionSettings, open_connection
from ottla.client.errors import ConnectionLost
from ottla.errors import UnsupportedVersion
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import encode
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
SETTINGS = ConnectionSettings(connect_timeout_ms=2000, request_timeout_ms=50)


def against(peer: Peer, work: Callable[[Connection], Awaitable[None]] | None = None) -> None:
    """Connect to a peer that behaves as scripted, and do some work."""

    async def main() -> None:
        server = await asyncio.start_server(peer, "127.0.0.1", 0)
        async with server:
            host, port = server.sockets[0].getsockname()
            connection = await open_connection(host, port, SETTINGS)
            if work is not None:
                await work(connection)
            await connection.close()

    asyncio.run(main())


async def read_request(reader: asyncio.StreamReader) -> tuple[int, int, bytes]:
    """Return api key, version and the correlation id's bytes."""
    frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    return int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big"), frame[4:8]


def answer(writer: asyncio.StreamWriter, correlation_id: bytes, body: bytes) -> None:
    writer.write((len(body) + 4).to_bytes(4, "big") + correlation_id + body)


async def old_broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Knows ApiVersions up to 2 and Metadata up to 1, and answers no Metadata."""
    keys = [
        ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=2),
        ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=1),
    ]
    _, version, correlation_id = await read_request(reader)
    assert version == 4
    answer(writer, correlation_id, encode(ApiVersionsResponse(error_code=35, api_keys=keys[:1]), 0))
    _, version, correlation_id = await read_request(reader)
    assert version == 2
    answer(writer, correlation_id, encode(ApiVersionsResponse(api_keys=keys), 2))
    await reader.read()
    writer.close()


def test_an_old_broker_is_asked_again_in_its_own_version() -> None:
    async def work(connection: Connection) -> None:
        assert connection.version_for(ApiKey.METADATA) == 1
        with pytest.raises(
            UnsupportedVersion, match=r"Fetch cannot be asked of 127\.0\.0\.1:\d+, which does not serve"
        ):
            connection.version_for(ApiKey.FETCH)
        with pytest.raises(UnsupportedVersion, match="serves versions 0 to 2"):
            connection.version_for(ApiKey.API_VERSIONS, at_most=-1)

    against(old_broker, work)


def test_an_overdue_answer_ends_the_connection() -> None:
    async def work(connection: Connection) -> None:
        with pytest.raises(ConnectionLost, match=r"no answer to Metadata within 0.05 s"):
            await connection.call(ApiKey.METADATA, MetadataRequest(topics=[]), MetadataResponse)
        assert not connection.is_open

    against(old_broker, work)


def test_a_peer_that_is_no_kafka_is_told_apart() -> None:
    async def web_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        await reader.read()
        writer.close()

    with pytest.raises(ConnectionLost, match="no answer of a Kafka broker"):
        against(web_server)


def test_a_peer_that_hangs_up_is_told_apart() -> None:
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    with pytest.raises(ConnectionLost, match=r"the broker closed the connection|reset"):
        against(mute)


@pytest.mark.parametrize(
    ("host", "port", "reason"),
    [
        ("a..b", 9092, "no host can have that name"),
        ("h" * 300, 9092, "no host can have that name"),
        ("\udcff", 9092, "no host can have that name"),
        ("local\0host", 9092, "that is no address"),
        ("127.0.0.1", 70_000, "that is no address"),
    ],
)
def test_what_can_be_no_address_is_a_connection_that_cannot_be_made(host: str, port: int, reason: str) -> None:
    """Brokers advertise whatever they are told to."""

    async def work() -> None:
        with pytest.raises(ConnectionLost, match=reason):
            await open_connection(host, port, SETTINGS)

    asyncio.run(work())
