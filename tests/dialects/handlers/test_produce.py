"""Produce to a log that is damaged: the client is answered, whatever else is wrong with what it sends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ottla.testing.cluster import running_broker
from tests.wire import Peer, Room, batch

KAFKA_STORAGE_ERROR = 56
INVALID_RECORD = 87
NO_OFFSET = -1


@pytest.mark.parametrize(("keys", "code"), [((b"k",), KAFKA_STORAGE_ERROR), ((None,), INVALID_RECORD)])
def test_a_batch_for_a_log_that_cannot_be_opened_is_answered(
    tmp_path: Path, keys: tuple[bytes | None], code: int
) -> None:
    """Also one that is refused for itself, whose answer would tell where the log starts."""

    async def scenario(*, is_damaged: bool) -> None:
        async with running_broker({"log.dirs": str(tmp_path)}) as running:
            room = Room(running.address, await Peer.connect(running.address), running)
            if not is_damaged:
                await room.create("t", configs={"cleanup.policy": "compact"})
                await room.append("t", b"v", keys=[b"k"])
            else:
                row = await room.produce("t", batch(b"v", keys=keys))
                assert (row.error_code, row.base_offset, row.log_start_offset) == (code, NO_OFFSET, NO_OFFSET)
            await room.close()

    asyncio.run(scenario(is_damaged=False))
    log = tmp_path / "t-0" / f"{0:020d}.log"
    log.unlink()
    log.mkdir()
    asyncio.run(scenario(is_damaged=True))
