"""Control records: ends of transactions, and the quorum's own entries in the metadata log.

A control record's key is a `ControlRecordTypeSchema` with its version in front: 0 abort, 1 commit, 2 leader change, 3
snapshot header, 4 snapshot footer, 5 KRaft version, 6 voters.
"""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int16, int32, int64, string, struct, uint16, uuid


class ControlRecordTypeSchema(Message, versions="0"):
    """The kind of a control record, as its key tells it."""

    type: int = int16()


class EndTxnMarker(Message, versions="0"):
    """The end of a transaction in a partition; the key tells whether it committed."""

    coordinator_epoch: int = int32()


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    """The level of the feature `kraft.version`: 1 where voters can change (KIP-853)."""

    version: int = int16()
    k_raft_version: int = int16()


class LeaderChangeMessageVoter(Struct):
    voter_id: int = int32()
    voter_directory_id: bytes = uuid("1+")


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    """A new leader of the metadata quorum, first in its epoch. Version 1 adds directories (KIP-853)."""

    version: int = int16()
    leader_id: int = int32()
    voters: list[LeaderChangeMessageVoter] = array(LeaderChangeMessageVoter)
    granting_voters: list[LeaderChangeMessageVoter] = array(LeaderChangeMessageVoter)


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    """The last record of a metadata snapshot."""

    version: int = int16()


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    """The first record of a metadata snapshot: how new its contents are."""

    version: int = int16()
    last_contained_log_timestamp: int = int64()


class Endpoint(Struct):
    name: str = string()
    host: str = string()
    port: int = uint16()


class KRaftVersionFeature(Struct):
    min_supported_version: int = int16()
    max_supported_version: int = int16()


class VotersRecordVoter(Struct):
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    endpoints: list[Endpoint] = array(Endpoint)
    k_raft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature)


class VotersRecord(Message, versions="0", flexible="0+"):
    """The voters of the metadata quorum with their directories and addresses (KIP-853)."""

    version: int = int16()
    voters: list[VotersRecordVoter] = array(VotersRecordVoter)
