"""The settings of one topic's logs, typed.

One field per topic setting of Kafka, named after its key; the defaults are Kafka's. Decides nothing: where each value
comes from (topic override, dynamic or static broker setting, default) is `LogConfig.resolve`'s one loop over the table
in `topic_settings`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ottla.model import TimestampType

INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogConfig:
    """What holds for every partition of a topic. Sizes in bytes, times in milliseconds, -1 without limit where so said."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    errors_deadletterqueue_group_enable: bool = False
    file_delete_delay_ms: int = 60_000
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    internal_segment_bytes: int | None = None
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = INT64_MAX
    max_decompressed_message_bytes: int = 2_147_483_639
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    remote_copy_lag_bytes: int = -1
    remote_copy_lag_ms: int = 0
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False
