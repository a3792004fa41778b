"""A cluster's brokers, topics and leaders as values, and the addresses by which one finds it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.client.connection import format_address
from ottla.model import TopicId
from ottla.protocol.messages.metadata import MetadataResponseTopic

DEFAULT_PORT: Final = 9092


class BrokerAddress(NamedTuple):
    """A broker as Metadata shows it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return format_address(self.host, self.port)


class PartitionInfo(NamedTuple):
    """A partition as Metadata shows it; `leader` is -1 while there is none."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    offline_replicas: Sequence[int]


class TopicInfo(NamedTuple):
    """A topic as Metadata shows it; the position of a partition is its number."""

    name: str
    topic_id: TopicId
    is_internal: bool
    partitions: Sequence[PartitionInfo]


def parse_bootstrap(bootstrap: str | Iterable[str]) -> list[tuple[str, int]]:
    """Return hosts and ports of "HOST[:PORT],..." or a list of such. Raises `ValueError`."""
    entries = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    addresses = [_parse_address(entry.strip()) for entry in entries if entry.strip()]
    if not addresses:
        raise ValueError("no bootstrap address given; HOST:PORT is expected")
    return addresses


def _parse_address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if text.endswith("]") or not colon or (":" in host and not host.startswith("[")):
        host, port = text, str(DEFAULT_PORT)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host or "[" in host or "]" in host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ValueError(f"{text!r} is no address; HOST:PORT is expected")
    return host, int(port)


def topic_info(row: MetadataResponseTopic) -> TopicInfo:
    """Return a Metadata row as a value, partitions in order."""
    partitions = tuple(
        PartitionInfo(
            partition.partition_index,
            partition.leader_id,
            partition.leader_epoch,
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
            tuple(partition.offline_replicas),
        )
        for partition in sorted(row.partitions, key=lambda partition: partition.partition_index)
    )
    return TopicInfo(row.name or "", TopicId(row.topic_id), row.is_internal, partitions)


def newest_epochs(old: Sequence[PartitionInfo], new: Sequence[PartitionInfo]) -> tuple[PartitionInfo, ...]:
    """Keep what is known under a later leader epoch: brokers learn of a new leader at different moments (KIP-320)."""
    return tuple(
        old[index] if index < len(old) and old[index].leader_epoch > partition.leader_epoch else partition
        for index, partition in enumerate(new)
    )
