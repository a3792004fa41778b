"""The files that the challenge "Build your own Kafka" lays down before it starts a program, made from their facts.

`server.properties`, a data directory, in it the metadata log of a one-node KRaft cluster and a log for each partition.
The real ones are at fixed places; here they are where the test wants them.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ottla.records.builder import BatchBuilder, assemble

CLUSTER_ID: Final = "IAAAAAAAQACAAAAAAAAAAQ"
DIRECTORY_ID: Final = bytes.fromhex("10000000000040008000000000000001")
FEATURE_TIMESTAMP_MS: Final = 1726045943832
TOPIC_TIMESTAMP_MS: Final = 1726045957397
MESSAGE_TIMESTAMP_MS: Final = 1726045973899
LOG_NAME: Final = "00000000000000000000.log"

PROPERTIES: Final = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
listeners=PLAINTEXT://{listen},CONTROLLER://:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
log.dirs={directory}"""
META: Final = f"""#
#Wed Sep 11 09:12:23 UTC 2024
cluster.id={CLUSTER_ID}
directory.id=EAAAAAAAQACAAAAAAAAAAQ==
node.id=1
version=1
"""


class TopicFiles(NamedTuple):
    """A topic that exists before the start: for each partition the texts of its messages."""

    name: str
    topic_id: bytes
    partitions: Sequence[Sequence[str]]


def topic_id(number: int) -> bytes:
    """Return an id of the kind that the challenge gives its topics."""
    return bytes.fromhex("71a59a5189684f8b937e") + number.to_bytes(6, "big")


def lay_down(root: Path, topics: Sequence[TopicFiles] | None, *, listen: str = ":9092") -> Path:
    """Write everything below `root` and return the path of `server.properties`. No topics: no metadata log either."""
    directory = root / "kraft-combined-logs"
    directory.mkdir()
    (directory / "meta.properties").write_text(META)
    (directory / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":10}')
    if topics is not None:
        metadata = directory / "__cluster_metadata-0"
        metadata.mkdir()
        (metadata / LOG_NAME).write_bytes(metadata_log(topics))
        (metadata / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
        for topic in topics:
            _lay_down_partitions(directory, topic)
    properties = root / "server.properties"
    properties.write_text(PROPERTIES.format(directory=directory, listen=listen))
    return properties


def _lay_down_partitions(directory: Path, topic: TopicFiles) -> None:
    encoded_id = base64.b64encode(topic.topic_id).decode("ascii")
    for number, messages in enumerate(topic.partitions):
        partition = directory / f"{topic.name}-{number}"
        partition.mkdir()
        (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {encoded_id}")
        (partition / LOG_NAME).write_bytes(b"".join(message_batch(*pair) for pair in enumerate(messages)))


def message_batch(offset: int, text: str) -> bytes:
    """Return a batch of one message whose header count is -1, which no other program writes."""
    value = text.encode()
    body = b"\x00\x00\x00\x01" + _varint(len(value)) + value + b"\x01"
    return assemble(
        _varint(len(body)) + body,
        base_offset=offset,
        leader_epoch=0,
        attributes=0,
        last_offset_delta=0,
        base_timestamp=MESSAGE_TIMESTAMP_MS,
        max_timestamp=MESSAGE_TIMESTAMP_MS,
        producer_id=0,
        producer_epoch=0,
        base_sequence=0,
        count=1,
    )


def metadata_log(topics: Sequence[TopicFiles]) -> bytes:
    """Return a `__cluster_metadata` log: a batch of the feature level, then one for each topic. Begins at offset 1."""
    log = _metadata_batch(1, FEATURE_TIMESTAMP_MS, [bytes.fromhex("010c00116d657461646174612e76657273696f6e001400")])
    next_offset = 2
    for topic in topics:
        name = topic.name.encode()
        values = [b"\x01\x02\x00" + bytes([len(name) + 1]) + name + topic.topic_id + b"\x00"]
        values += [_partition_value(topic.topic_id, number) for number in range(len(topic.partitions))]
        log += _metadata_batch(next_offset, TOPIC_TIMESTAMP_MS, values)
        next_offset += len(values)
    return log


def _partition_value(of: bytes, number: int) -> bytes:
    one_node = b"\x02\x00\x00\x00\x01"
    return (
        b"\x01\x03\x01"
        + number.to_bytes(4, "big")
        + of
        + one_node
        + one_node
        + b"\x01\x01"
        + bytes.fromhex("000000010000000000000000")
        + b"\x02"
        + DIRECTORY_ID
        + b"\x00"
    )


def _metadata_batch(base_offset: int, timestamp_ms: int, values: Sequence[bytes]) -> bytes:
    builder = BatchBuilder(base_offset=base_offset, leader_epoch=1)
    for value in values:
        builder.append(timestamp_ms, None, value)
    return builder.build()


def _varint(value: int) -> bytes:
    """Zigzag, for the small numbers that occur here."""
    doubled = value * 2
    return bytes([doubled]) if doubled < 0x80 else bytes([doubled & 0x7F | 0x80, doubled >> 7])
