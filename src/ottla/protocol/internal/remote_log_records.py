"""Records of `__remote_log_metadata`: what is where in tiered storage (KIP-405)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, boolean, int8, int32, int64, octets, string, struct, uuid


class TopicIdPartitionEntry(Struct):
    name: str = string()
    id: bytes = uuid()
    partition: int = int32()


class RemoteLogSegmentIdEntry(Struct):
    topic_id_partition: TopicIdPartitionEntry = struct(TopicIdPartitionEntry)
    id: bytes = uuid()


class SegmentLeaderEpochEntry(Struct):
    leader_epoch: int = int32()
    offset: int = int64()


class RemoteLogSegmentMetadataRecord(Message, key=0, versions="0", flexible="0+"):
    """A segment is being copied to tiered storage, or has been."""

    remote_log_segment_id: RemoteLogSegmentIdEntry = struct(RemoteLogSegmentIdEntry)
    start_offset: int = int64()
    end_offset: int = int64()
    broker_id: int = int32()
    max_timestamp_ms: int = int64()
    event_timestamp_ms: int = int64()
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = array(SegmentLeaderEpochEntry)
    segment_size_in_bytes: int = int32()
    custom_metadata: bytes | None = octets(nullable="0+", default=None)
    remote_log_segment_state: int = int8()
    txn_index_empty: bool = boolean(tag=0)


class RemoteLogSegmentMetadataUpdateRecord(Message, key=1, versions="0", flexible="0+"):
    """The state of a tiered segment changed."""

    remote_log_segment_id: RemoteLogSegmentIdEntry = struct(RemoteLogSegmentIdEntry)
    broker_id: int = int32()
    event_timestamp_ms: int = int64()
    custom_metadata: bytes | None = octets(nullable="0+", default=None)
    remote_log_segment_state: int = int8()


class RemotePartitionDeleteMetadataRecord(Message, key=2, versions="0", flexible="0+"):
    """A partition's tiered segments are being deleted, or have been."""

    topic_id_partition: TopicIdPartitionEntry = struct(TopicIdPartitionEntry)
    broker_id: int = int32()
    event_timestamp_ms: int = int64()
    remote_partition_delete_state: int = int8()


class RemoteLogSegmentMetadataSnapshotRecord(Message, key=3, versions="0", flexible="0+"):
    """A tiered segment in a snapshot of a partition's remote metadata."""

    segment_id: bytes = uuid()
    start_offset: int = int64()
    end_offset: int = int64()
    broker_id: int = int32()
    max_timestamp_ms: int = int64()
    event_timestamp_ms: int = int64()
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = array(SegmentLeaderEpochEntry)
    segment_size_in_bytes: int = int32()
    custom_metadata: bytes | None = octets(nullable="0+", default=None)
    remote_log_segment_state: int = int8()
    txn_index_empty: bool = boolean(tag=0)
