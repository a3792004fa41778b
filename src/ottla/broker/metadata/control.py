"""The bodies of KRaft's control records, for the log to write: who leads, who votes, where a snapshot begins and ends.

Encodes only. The log (`storage.metadata_log`) decides when each is written and puts the keys in front.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.metadata.features import KRAFT_VERSION, SUPPORTED_FEATURES
from ottla.broker.metadata.image import ListenerImage
from ottla.protocol.codec import encode
from ottla.protocol.internal.control_records import (
    Endpoint,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    VotersRecordVoter,
)

_FORMAT_KRAFT_VERSION: Final = 1
"""Voters stand in the log, with the directories that they vote from (KIP-853)."""


def leader_change_body(node_id: int) -> bytes:
    """This node leads, elected by itself alone."""
    voters = [LeaderChangeMessageVoter(voter_id=node_id)]
    return encode(LeaderChangeMessage(leader_id=node_id, voters=voters, granting_voters=voters), 0)


def snapshot_header_body(last_contained_log_timestamp_ms: int) -> bytes:
    """What a snapshot begins with: the time of the last record that is in it."""
    return encode(SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_log_timestamp_ms), 0)


def snapshot_footer_body() -> bytes:
    """What a whole snapshot ends with."""
    return encode(SnapshotFooterRecord(), 0)


def kraft_version_body() -> bytes:
    """The kraft.version of a new directory."""
    return encode(KRaftVersionRecord(k_raft_version=_FORMAT_KRAFT_VERSION), 0)


def voters_body(node_id: int, directory_id: bytes, controller: ListenerImage) -> bytes:
    """The only voter of a new directory. `controller` is where a Kafka that takes over would listen for its quorum."""
    supported = SUPPORTED_FEATURES[KRAFT_VERSION]
    voter = VotersRecordVoter(
        voter_id=node_id,
        voter_directory_id=directory_id,
        endpoints=[Endpoint(name=controller.name, host=controller.host, port=controller.port)],
        k_raft_version_feature=KRaftVersionFeature(
            min_supported_version=supported.min_level, max_supported_version=supported.max_level
        ),
    )
    return encode(VotersRecord(voters=[voter]), 0)
