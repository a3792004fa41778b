"""Every topic setting of Kafka 4.4, and ours.

`synonyms` are the broker settings that hold where a topic sets nothing, nearest first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.config.setting import BOOLEAN, DOUBLE, INT, LIST, LONG, MEDIUM, STRING, Setting, Synonym, table
from ottla.config.validators import Items, RangeOr, at_least, between, list_of, one_of
from ottla.config.values import INT64_MAX, ConfigError, Value
from ottla.errors import InvalidConfig

THROTTLED_REPLICAS: Final = Items(r"[0-9]+:[0-9]+", "[partitionId]:[brokerId],[partitionId]:[brokerId],...", whole="*")

FORMAT: Final = "ottla.format"
KAFKA_FORMAT: Final = "kafka"
JAFKA_FORMAT: Final = "jafka"

KAFKA_TOPIC_SETTINGS: Final[Mapping[str, Setting]] = table(
    [
        Setting(
            "cleanup.policy",
            LIST,
            ("delete",),
            list_of("compact", "delete", may_be_empty=True),
            MEDIUM,
            synonyms=(Synonym("log.cleanup.policy"),),
        ),
        Setting(
            "compression.gzip.level", INT, -1, RangeOr(1, 9, -1), MEDIUM, synonyms=(Synonym("compression.gzip.level"),)
        ),
        Setting("compression.lz4.level", INT, 9, between(1, 17), MEDIUM, synonyms=(Synonym("compression.lz4.level"),)),
        Setting(
            "compression.type",
            STRING,
            "producer",
            one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
            MEDIUM,
            synonyms=(Synonym("compression.type"),),
        ),
        Setting(
            "compression.zstd.level",
            INT,
            3,
            between(-131_072, 22),
            MEDIUM,
            synonyms=(Synonym("compression.zstd.level"),),
        ),
        Setting(
            "delete.retention.ms",
            LONG,
            86_400_000,
            at_least(0),
            MEDIUM,
            synonyms=(Synonym("log.cleaner.delete.retention.ms"),),
        ),
        Setting("errors.deadletterqueue.group.enable", BOOLEAN, False, None, MEDIUM),
        Setting(
            "file.delete.delay.ms",
            LONG,
            60_000,
            at_least(0),
            MEDIUM,
            synonyms=(Synonym("log.segment.delete.delay.ms"),),
        ),
        Setting(
            "flush.messages", LONG, INT64_MAX, at_least(1), MEDIUM, synonyms=(Synonym("log.flush.interval.messages"),)
        ),
        Setting(
            "flush.ms",
            LONG,
            INT64_MAX,
            at_least(0),
            MEDIUM,
            synonyms=(Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")),
        ),
        Setting("follower.replication.throttled.replicas", LIST, (), THROTTLED_REPLICAS, MEDIUM),
        Setting(
            "index.interval.bytes", INT, 4096, at_least(0), MEDIUM, synonyms=(Synonym("log.index.interval.bytes"),)
        ),
        Setting("internal.segment.bytes", INT, None, None, MEDIUM, internal=True),
        Setting("leader.replication.throttled.replicas", LIST, (), THROTTLED_REPLICAS, MEDIUM),
        Setting(
            "local.retention.bytes", LONG, -2, at_least(-2), MEDIUM, synonyms=(Synonym("log.local.retention.bytes"),)
        ),
        Setting("local.retention.ms", LONG, -2, at_least(-2), MEDIUM, synonyms=(Synonym("log.local.retention.ms"),)),
        Setting(
            "max.compaction.lag.ms",
            LONG,
            INT64_MAX,
            at_least(1),
            MEDIUM,
            synonyms=(Synonym("log.cleaner.max.compaction.lag.ms"),),
        ),
        Setting(
            "max.decompressed.message.bytes",
            INT,
            2_147_483_639,
            between(1, 2_147_483_639),
            MEDIUM,
            synonyms=(Synonym("max.decompressed.message.bytes"),),
        ),
        Setting("max.message.bytes", INT, 1_048_588, at_least(0), MEDIUM, synonyms=(Synonym("message.max.bytes"),)),
        Setting(
            "message.timestamp.after.max.ms",
            LONG,
            3_600_000,
            at_least(0),
            MEDIUM,
            synonyms=(Synonym("log.message.timestamp.after.max.ms"),),
        ),
        Setting(
            "message.timestamp.before.max.ms",
            LONG,
            INT64_MAX,
            at_least(0),
            MEDIUM,
            synonyms=(Synonym("log.message.timestamp.before.max.ms"),),
        ),
        Setting(
            "message.timestamp.type",
            STRING,
            "CreateTime",
            one_of("CreateTime", "LogAppendTime"),
            MEDIUM,
            synonyms=(Synonym("log.message.timestamp.type"),),
        ),
        Setting(
            "min.cleanable.dirty.ratio",
            DOUBLE,
            0.5,
            between(0, 1),
            MEDIUM,
            synonyms=(Synonym("log.cleaner.min.cleanable.ratio"),),
        ),
        Setting(
            "min.compaction.lag.ms",
            LONG,
            0,
            at_least(0),
            MEDIUM,
            synonyms=(Synonym("log.cleaner.min.compaction.lag.ms"),),
        ),
        Setting("min.insync.replicas", INT, 1, at_least(1), MEDIUM, synonyms=(Synonym("min.insync.replicas"),)),
        Setting("preallocate", BOOLEAN, False, None, MEDIUM, synonyms=(Synonym("log.preallocate"),)),
        Setting(
            "remote.copy.lag.bytes", LONG, -1, at_least(-1), MEDIUM, synonyms=(Synonym("log.remote.copy.lag.bytes"),)
        ),
        Setting("remote.copy.lag.ms", LONG, 0, at_least(-1), MEDIUM, synonyms=(Synonym("log.remote.copy.lag.ms"),)),
        Setting("remote.log.copy.disable", BOOLEAN, False, None, MEDIUM),
        Setting("remote.log.delete.on.disable", BOOLEAN, False, None, MEDIUM),
        Setting("remote.storage.enable", BOOLEAN, False, None, MEDIUM),
        Setting("retention.bytes", LONG, -1, None, MEDIUM, synonyms=(Synonym("log.retention.bytes"),)),
        Setting(
            "retention.ms",
            LONG,
            604_800_000,
            at_least(-1),
            MEDIUM,
            synonyms=(
                Synonym("log.retention.ms"),
                Synonym("log.retention.minutes", 60_000),
                Synonym("log.retention.hours", 3_600_000),
            ),
        ),
        Setting(
            "segment.bytes", INT, 1_073_741_824, at_least(1_048_576), MEDIUM, synonyms=(Synonym("log.segment.bytes"),)
        ),
        Setting(
            "segment.index.bytes", INT, 10_485_760, at_least(4), MEDIUM, synonyms=(Synonym("log.index.size.max.bytes"),)
        ),
        Setting(
            "segment.jitter.ms",
            LONG,
            0,
            at_least(0),
            MEDIUM,
            synonyms=(Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", 3_600_000)),
        ),
        Setting(
            "segment.ms",
            LONG,
            604_800_000,
            at_least(1),
            MEDIUM,
            synonyms=(Synonym("log.roll.ms"), Synonym("log.roll.hours", 3_600_000)),
        ),
        Setting(
            "unclean.leader.election.enable",
            BOOLEAN,
            False,
            None,
            MEDIUM,
            synonyms=(Synonym("unclean.leader.election.enable"),),
        ),
    ]
)
"""What a topic may set for itself in Kafka."""

OTTLA_TOPIC_SETTINGS: Final = table(
    [Setting(FORMAT, STRING, KAFKA_FORMAT, one_of(KAFKA_FORMAT, JAFKA_FORMAT), MEDIUM, internal=True)]
)
"""Settings of our own. They show only where they are set."""

TOPIC_SETTINGS: Final[Mapping[str, Setting]] = {**KAFKA_TOPIC_SETTINGS, **OTTLA_TOPIC_SETTINGS}
"""What a topic may set for itself."""


def validate_topic_configs(overrides: Mapping[str, str | None]) -> None:
    """Check what a topic wants to set for itself. Raises `InvalidConfig` naming the setting.

    An unknown name, a missing value, a wrong form or a forbidden value is refused; so is tiered storage, which needs a
    broker that has it (KIP-405).
    """
    values: dict[str, Value] = {}
    for name, text in overrides.items():
        setting = TOPIC_SETTINGS.get(name)
        if setting is None:
            raise InvalidConfig(f"Unknown topic config name: {name}")
        if text is None:
            raise InvalidConfig(f"{name} needs a value")
        try:
            values[name] = setting.parse(text)
        except ConfigError as error:
            raise InvalidConfig(str(error)) from None
    _check_together(values)


def _check_together(values: Mapping[str, Value]) -> None:
    least = values.get("min.compaction.lag.ms", 0)
    most = values.get("max.compaction.lag.ms", INT64_MAX)
    if isinstance(least, int) and isinstance(most, int) and least > most:
        raise InvalidConfig(f"min.compaction.lag.ms ({least}) is above max.compaction.lag.ms ({most})")
    if values.get("remote.storage.enable"):
        raise InvalidConfig("remote.storage.enable: this broker has no tiered storage")
    policies = values.get("cleanup.policy")
    if values.get(FORMAT) == JAFKA_FORMAT and isinstance(policies, tuple) and "compact" in policies:
        raise InvalidConfig("cleanup.policy: messages of Jafka have no keys to compact by")
