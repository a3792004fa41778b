"""Records of `__share_group_state`: how far share groups have come with each partition (KIP-932)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int8, int16, int32, int64, string, uuid


class ShareSnapshotKey(Message, key=0, versions="0"):
    """A share group's partition, where all its state is in one record."""

    group_id: str = string()
    topic_id: bytes = uuid()
    partition: int = int32()


class StateBatch(Struct):
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


class ShareSnapshotValue(Message, key=0, versions="0", flexible="0+"):
    """All state of a share partition. The tagged field came with KIP-1226."""

    snapshot_epoch: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(default=-1, tag=0)
    create_timestamp: int = int64()
    write_timestamp: int = int64()
    state_batches: list[StateBatch] = array(StateBatch)


class ShareUpdateKey(Message, key=1, versions="0"):
    """A share group's partition, where a record only changes its state."""

    group_id: str = string()
    topic_id: bytes = uuid()
    partition: int = int32()


class ShareUpdateValue(Message, key=1, versions="0", flexible="0+"):
    """What changed about a share partition since its snapshot."""

    snapshot_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(default=-1, tag=0)
    state_batches: list[StateBatch] = array(StateBatch)
