"""The bodies of KRaft's control records, for the log to keep: who leads, who votes, where a snapshot begins and ends.

Encodes and decodes only. The log (`storage.metadata_log`) decides when each is written and puts the keys in front.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.metadata.features import KRAFT_VERSION, SUPPORTED_FEATURES
from ottla.broker.metadata.quorum import QuorumListener, Voter
from ottla.protocol.codec import decode, encode
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


def voters_body(voter: Voter) -> bytes:
    """The only voter of a new directory. Its listeners are those of a Kafka that takes over."""
    supported = SUPPORTED_FEATURES[KRAFT_VERSION]
    record = VotersRecordVoter(
        voter_id=voter.node_id,
        voter_directory_id=voter.directory_id,
        endpoints=[Endpoint(name=one.name, host=one.host, port=one.port) for one in voter.listeners],
        k_raft_version_feature=KRaftVersionFeature(
            min_supported_version=supported.min_level, max_supported_version=supported.max_level
        ),
    )
    return encode(VotersRecord(voters=[record]), 0)


def kraft_version_level(body: bytes | None) -> int:
    """The kraft.version that a record says; 0 where there is none. Raises `DecodeError`."""
    return 0 if body is None else decode(KRaftVersionRecord, 0, body).k_raft_version


def quorum_voter(body: bytes | None, node_id: int, directory_id: bytes) -> Voter:
    """This node as a voter, as the record of voters shows it, or as it is where that does not name it."""
    voters = [] if body is None else decode(VotersRecord, 0, body).voters
    for voter in voters:
        if voter.voter_id == node_id:
            listeners = [QuorumListener(one.name, one.host, one.port) for one in voter.endpoints]
            return Voter(node_id, voter.voter_directory_id, listeners)
    return Voter(node_id, directory_id, ())
