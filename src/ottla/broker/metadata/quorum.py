"""The metadata quorum as clients see it (KIP-595, KIP-853): one voter, which is this node, and no way to have more.

Decides what DescribeQuorum shows and why voters are neither added nor removed. Who votes stands in the log's control
records, which the store keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.errors import (
    DuplicateVoter,
    InconsistentClusterId,
    InvalidRequest,
    KafkaError,
    RequestTimedOut,
    VoterNotFound,
)
from ottla.model import ZERO_TOPIC_ID, format_uuid

NO_DIRECTORY = bytes(ZERO_TOPIC_ID)


class QuorumListener(NamedTuple):
    """Where a voter is reached by others of the quorum."""

    name: str
    host: str
    port: int


class Voter(NamedTuple):
    """A voter, the directory that it votes from, and where it listens for the quorum."""

    node_id: int
    directory_id: bytes
    listeners: Sequence[QuorumListener]


class QuorumImage(NamedTuple):
    """The state of the quorum. Offsets are those of the metadata log; the leader is always caught up."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    log_end_offset: int
    voter: Voter


def refuse_new_voter(quorum: QuorumImage, cluster_id: str, asked_cluster_id: str | None, voter: Voter) -> KafkaError:
    """Return why a voter is not added. Kafka reaches for the new voter first; we never find anybody."""
    if asked_cluster_id is not None and asked_cluster_id != cluster_id:
        return InconsistentClusterId(f"This is the cluster {cluster_id}.")
    if voter.node_id < 0 or voter.directory_id == NO_DIRECTORY:
        return InvalidRequest("The request names no voter.")
    if not {one.name for one in quorum.voter.listeners} <= {one.name for one in voter.listeners}:
        return InvalidRequest("The request does not say where the voter listens for the quorum.")
    if voter.node_id == quorum.voter.node_id:
        return DuplicateVoter(f"{voter.node_id} is a voter already.")
    return RequestTimedOut("This node votes alone and reaches no other.")


def refuse_voter_removal(
    quorum: QuorumImage, cluster_id: str, asked_cluster_id: str | None, node_id: int, directory_id: bytes
) -> KafkaError:
    """Return why a voter is not removed: it is none, or the only one."""
    if asked_cluster_id is not None and asked_cluster_id != cluster_id:
        return InconsistentClusterId(f"This is the cluster {cluster_id}.")
    if node_id < 0 or directory_id == NO_DIRECTORY:
        return InvalidRequest("The request names no voter.")
    only = f"{quorum.voter.node_id} (directory {format_uuid(quorum.voter.directory_id)})"
    return VoterNotFound(f"{node_id} (directory {format_uuid(directory_id)}) cannot go; the only voter is {only}.")
