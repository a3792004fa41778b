"""What the challenge does not ask, on its files: a second start, and a metadata log that is gone."""

from __future__ import annotations

import shutil
import struct
import time
from pathlib import Path

import pytest

from ottla.config.properties import decode_properties
from ottla.records.builder import BatchBuilder
from ottla.testing.cluster import broker_in_thread
from tests.codecrafters.files import MESSAGE_TIMESTAMP_MS, TopicFiles, lay_down, topic_id
from tests.codecrafters.messages import produce
from tests.codecrafters.tester import STAGE_SECONDS, Client

MANGO = TopicFiles("mango", topic_id(5), [[]])


def test_a_second_start_finds_everything_again(tmp_path: Path) -> None:
    apple = TopicFiles("apple", topic_id(3), [["first"]])
    settings = decode_properties(lay_down(tmp_path, [apple], listen="127.0.0.1:0").read_bytes())
    for number in range(1, 4):
        with broker_in_thread(settings) as running:
            client = Client(running.server.listeners[0].port, time.monotonic() + STAGE_SECONDS)
            answer = client.ask(produce([("apple", [(0, batch_of_nobody("more"))])]))
            assert struct.pack(">ihqqq", 0, 0, number, -1, 0) in answer
            client.close()


def batch_of_nobody(text: str) -> bytes:
    builder = BatchBuilder()
    builder.append(MESSAGE_TIMESTAMP_MS, None, text.encode())
    return builder.build()


@pytest.mark.parametrize("keeps_clean_shutdown", [True, False])
def test_partitions_whose_metadata_log_is_gone_are_not_forgotten(tmp_path: Path, keeps_clean_shutdown: bool) -> None:
    settings = decode_properties(lay_down(tmp_path, [MANGO], listen="127.0.0.1:0").read_bytes())
    directory = tmp_path / "kraft-combined-logs"
    shutil.rmtree(directory / "__cluster_metadata-0")
    if not keeps_clean_shutdown:
        (directory / ".kafka_cleanshutdown").unlink()
    with pytest.raises(RuntimeError) as refused, broker_in_thread(settings):
        pass
    assert "metadata log" in str(refused.value.__cause__)
