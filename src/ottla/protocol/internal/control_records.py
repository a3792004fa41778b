"""control_records."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int16, int32, int64, string, struct, uint16, uuid


class ControlRecordTypeSchema(Message, versions="0"):
    """ControlRecordTypeSchema."""

    type: int = int16()


class EndTxnMarker(Message, versions="0"):
    """EndTxnMarker."""

    coordinator_epoch: int = int32()


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    """KRaftVersionRecord."""

    version: int = int16()
    k_raft_version: int = int16()


class LeaderChangeMessageVoter(Struct):
    voter_id: int = int32()
    voter_directory_id: bytes = uuid("1+")


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    """LeaderChangeMessage."""

    version: int = int16()
    leader_id: int = int32()
    voters: list[LeaderChangeMessageVoter] = array(LeaderChangeMessageVoter)
    granting_voters: list[LeaderChangeMessageVoter] = array(LeaderChangeMessageVoter)


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    """SnapshotFooterRecord."""

    version: int = int16()


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    """SnapshotHeaderRecord."""

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
    """VotersRecord."""

    version: int = int16()
    voters: list[VotersRecordVoter] = array(VotersRecordVoter)
