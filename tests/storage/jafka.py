"""What tests of Jafka's logs stand on: a log of each kind, and its files."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

from ottla.config.log_config import LogConfig
from ottla.storage.host import LogHost
from ottla.storage.jafka_copy import JafkaCopy
from ottla.storage.jafka_log import JafkaLogSettings
from ottla.storage.jafka_topic_log import JafkaTopicLog
from tests.storage.harness import TP, make_host

EVERY_MESSAGE = JafkaLogSettings(flush_messages=1)
SMALL = JafkaLogSettings(file_size_bytes=300, flush_messages=1)
KEPT_A_SECOND = LogConfig(retention_ms=1000, ottla_format="jafka")


def open_copy(
    path: Path,
    settings: JafkaLogSettings = EVERY_MESSAGE,
    *,
    host: LogHost | None = None,
    config: LogConfig = KEPT_A_SECOND,
    kafka_offset: int = 0,
) -> JafkaCopy:
    host = make_host()[0] if host is None else host
    return JafkaCopy(host, str(path), config, settings, kafka_offset=kafka_offset)


def open_topic_log(
    path: Path,
    settings: JafkaLogSettings = EVERY_MESSAGE,
    *,
    host: LogHost | None = None,
    config: LogConfig = KEPT_A_SECOND,
    is_clean: bool = True,
) -> JafkaTopicLog:
    host = make_host()[0] if host is None else host
    return JafkaTopicLog(host, TP, str(path), config, settings, is_clean=is_clean)


def segments(path: Path) -> dict[int, int]:
    """Return the size of each segment by its start."""
    return {int(file.stem): file.stat().st_size for file in sorted(path.glob("*.jafka"))}


def message(payload: bytes, *, attributes: int = 0) -> bytes:
    return struct.pack(">ibBI", 6 + len(payload), 1, attributes, zlib.crc32(payload)) + payload


def packed(*payloads: bytes) -> bytes:
    """Return one compressed message with these inside."""
    return message(gzip.compress(b"".join(message(payload) for payload in payloads), mtime=0), attributes=1)
