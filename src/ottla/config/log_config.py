"""The settings of one topic's logs, typed.

One field per topic setting, named after its key; the defaults are Kafka's. Decides nothing: where each value
comes from (topic override, dynamic or static broker setting, default) is `LogConfig.resolve`'s one loop over the table
in `topic_settings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ottla.config.broker_config import BrokerConfig
from ottla.config.broker_settings import BROKER_SETTINGS
from ottla.config.setting import Setting
from ottla.config.topic_settings import JAFKA_FORMAT, KAFKA_FORMAT, TOPIC_SETTINGS
from ottla.config.values import INT64_MAX, ConfigError, Value
from ottla.model import TimestampType

TIMESTAMP_TYPES: Final = {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}


class LogConfig(NamedTuple):
    """What holds for every partition of a topic: sizes in bytes, times in milliseconds."""

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
    ottla_format: str = KAFKA_FORMAT

    @property
    def is_jafka(self) -> bool:
        """True where the topic's files are Jafka's, which was decided when it was made."""
        return self.ottla_format == JAFKA_FORMAT

    @property
    def is_compacted(self) -> bool:
        """True where of records with the same key only the last must stay."""
        return "compact" in self.cleanup_policy

    @classmethod
    def resolve(cls, broker: BrokerConfig, dynamic: Mapping[str, str], overrides: Mapping[str, str]) -> LogConfig:
        """Return the settings of a topic: its overrides, else the broker's, else the defaults.

        `dynamic` are broker settings changed at run time, one broker's over the cluster's; they come before those of
        the configuration file. A stored text that is not allowed (any more) counts as not set.
        """
        values: dict[str, Any] = {}
        for setting in TOPIC_SETTINGS.values():
            text = overrides.get(setting.name)
            value = None if text is None else setting.parse_stored(text)
            if value is None:
                value = _inherited(setting, broker, dynamic)
            values[setting.name.replace(".", "_")] = value
        values["cleanup_policy"] = frozenset(values["cleanup_policy"])
        values["message_timestamp_type"] = TIMESTAMP_TYPES[values["message_timestamp_type"]]
        return cls(**values)


def _inherited(setting: Setting, broker: BrokerConfig, dynamic: Mapping[str, str]) -> Value:
    """The value of the first synonym that is set, in the topic setting's own unit."""
    for synonym in setting.synonyms:
        text = dynamic.get(synonym.name)
        changed = None if text is None else _allowed(setting, BROKER_SETTINGS[synonym.name].parse_stored(text))
        value = broker.explicit(synonym.name) if changed is None else changed
        if isinstance(value, int) and not isinstance(value, bool):
            return synonym.in_our_unit(value)
        if value is not None:
            return value
    return setting.effective_default


def _allowed(setting: Setting, value: Value) -> Value:
    """The value if a topic may have it. Only settings in the topic's own unit are dynamic, so none is converted."""
    try:
        return None if value is None else setting.check(setting.name, value)
    except ConfigError:
        return None
