"""Every group setting of Kafka 4.4 (KIP-848, KIP-932, KIP-1071).

`synonyms` name the broker setting that holds where a group sets nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from ottla.config.setting import BOOLEAN, INT, LIST, LONG, LOW, MEDIUM, STRING, Setting, Synonym, table
from ottla.config.validators import ListOf, OneOfOr, at_least, one_of
from ottla.config.values import JAVA_BLANKS, ConfigError, Value
from ottla.errors import InvalidConfig

ANY_ITEMS: Final = ListOf(may_be_empty=True)
AUTO_OFFSET_RESET: Final = OneOfOr(
    ("latest", "earliest"),
    r"by_duration:(?i:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+([.,]\d{0,9})?S)?)?)",
    "by_duration:PnDTnHnMn.nS",
)

RACK_AWARE_TAGS: Final = "streams.rack.aware.assignment.tags"
DEAD_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"
INTERNAL_PREFIX: Final = "__"

GROUP_SETTINGS: Final[Mapping[str, Setting]] = table(
    [
        Setting(
            "consumer.assignment.interval.ms",
            INT,
            1000,
            at_least(0),
            MEDIUM,
            synonyms=(Synonym("group.consumer.assignment.interval.ms"),),
        ),
        Setting(
            "consumer.assignor.offload.enable",
            BOOLEAN,
            True,
            None,
            MEDIUM,
            synonyms=(Synonym("group.consumer.assignor.offload.enable"),),
            internal=True,
        ),
        Setting(
            "consumer.heartbeat.interval.ms",
            INT,
            5000,
            at_least(1),
            MEDIUM,
            synonyms=(Synonym("group.consumer.heartbeat.interval.ms"),),
        ),
        Setting(
            "consumer.session.timeout.ms",
            INT,
            45_000,
            at_least(1),
            MEDIUM,
            synonyms=(Synonym("group.consumer.session.timeout.ms"),),
        ),
        Setting("errors.deadletterqueue.copy.record.enable", BOOLEAN, False, None, MEDIUM),
        Setting(DEAD_LETTER_TOPIC, STRING, "", None, MEDIUM),
        Setting(
            "share.assignment.interval.ms",
            INT,
            1000,
            at_least(0),
            MEDIUM,
            synonyms=(Synonym("group.share.assignment.interval.ms"),),
        ),
        Setting(
            "share.assignor.offload.enable",
            BOOLEAN,
            True,
            None,
            MEDIUM,
            synonyms=(Synonym("group.share.assignor.offload.enable"),),
            internal=True,
        ),
        Setting("share.auto.offset.reset", STRING, "latest", AUTO_OFFSET_RESET, MEDIUM),
        Setting(
            "share.delivery.count.limit",
            INT,
            5,
            at_least(2),
            MEDIUM,
            synonyms=(Synonym("group.share.delivery.count.limit"),),
        ),
        Setting(
            "share.heartbeat.interval.ms",
            INT,
            5000,
            at_least(1),
            MEDIUM,
            synonyms=(Synonym("group.share.heartbeat.interval.ms"),),
        ),
        Setting(
            "share.isolation.level", STRING, "read_uncommitted", one_of("read_committed", "read_uncommitted"), MEDIUM
        ),
        Setting(
            "share.partition.max.record.locks",
            INT,
            2000,
            at_least(100),
            MEDIUM,
            synonyms=(Synonym("group.share.partition.max.record.locks"),),
        ),
        Setting(
            "share.record.lock.duration.ms",
            INT,
            30_000,
            at_least(1000),
            MEDIUM,
            synonyms=(Synonym("group.share.record.lock.duration.ms"),),
        ),
        Setting("share.renew.acknowledge.enable", BOOLEAN, True, None, MEDIUM),
        Setting(
            "share.session.timeout.ms",
            INT,
            45_000,
            at_least(1),
            MEDIUM,
            synonyms=(Synonym("group.share.session.timeout.ms"),),
        ),
        Setting(
            "streams.acceptable.recovery.lag",
            LONG,
            10_000,
            at_least(0),
            MEDIUM,
            synonyms=(Synonym("group.streams.acceptable.recovery.lag"),),
            internal=True,
        ),
        Setting(
            "streams.assignment.interval.ms",
            INT,
            1000,
            at_least(0),
            MEDIUM,
            synonyms=(Synonym("group.streams.assignment.interval.ms"),),
        ),
        Setting("streams.assignor.name", STRING, None, None, MEDIUM, synonyms=(Synonym("group.streams.assignors"),)),
        Setting(
            "streams.assignor.offload.enable",
            BOOLEAN,
            True,
            None,
            MEDIUM,
            synonyms=(Synonym("group.streams.assignor.offload.enable"),),
            internal=True,
        ),
        Setting(
            "streams.heartbeat.interval.ms",
            INT,
            5000,
            at_least(1),
            MEDIUM,
            synonyms=(Synonym("group.streams.heartbeat.interval.ms"),),
        ),
        Setting(
            "streams.initial.rebalance.delay.ms",
            INT,
            3000,
            at_least(0),
            MEDIUM,
            synonyms=(Synonym("group.streams.initial.rebalance.delay.ms"),),
        ),
        Setting(
            "streams.num.standby.replicas",
            INT,
            0,
            at_least(0),
            MEDIUM,
            synonyms=(Synonym("group.streams.num.standby.replicas"),),
        ),
        Setting(
            "streams.num.warmup.replicas",
            INT,
            2,
            at_least(0),
            MEDIUM,
            synonyms=(Synonym("group.streams.num.warmup.replicas"),),
            internal=True,
        ),
        Setting(
            RACK_AWARE_TAGS,
            LIST,
            (),
            ANY_ITEMS,
            LOW,
            synonyms=(Synonym("group.streams.rack.aware.assignment.tags"),),
        ),
        Setting(
            "streams.session.timeout.ms",
            INT,
            45_000,
            at_least(1),
            MEDIUM,
            synonyms=(Synonym("group.streams.session.timeout.ms"),),
        ),
        Setting(
            "streams.task.offset.interval.ms",
            INT,
            60_000,
            at_least(1),
            MEDIUM,
            synonyms=(Synonym("group.streams.task.offset.interval.ms"),),
            internal=True,
        ),
    ]
)
"""What a consumer, share or streams group may set for itself."""


class Bounds(NamedTuple):
    """The broker settings between which a group's setting must stay, both included."""

    least: str | None
    most: str | None


def _of_kind(kind: str) -> dict[str, Bounds]:
    return {
        f"{kind}.{what}": Bounds(f"group.{kind}.min.{what}", f"group.{kind}.max.{what}")
        for what in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
    }


BOUNDS: Final[Mapping[str, Bounds]] = {
    **_of_kind("consumer"),
    **_of_kind("share"),
    **_of_kind("streams"),
    "share.delivery.count.limit": Bounds(
        "group.share.min.delivery.count.limit", "group.share.max.delivery.count.limit"
    ),
    "share.partition.max.record.locks": Bounds(
        "group.share.min.partition.max.record.locks", "group.share.max.partition.max.record.locks"
    ),
    "share.record.lock.duration.ms": Bounds(
        "group.share.min.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"
    ),
    "streams.num.standby.replicas": Bounds(None, "group.streams.max.standby.replicas"),
    "streams.num.warmup.replicas": Bounds(None, "group.streams.max.warmup.replicas"),
    "streams.task.offset.interval.ms": Bounds("group.streams.min.task.offset.interval.ms", None),
}
"""How far a group may go, by the broker's leave."""


class BrokerValues(Protocol):
    """What a broker's settings are (`BrokerConfig`)."""

    def integer(self, name: str) -> int: ...

    def items(self, name: str) -> tuple[str, ...]: ...


def within_bounds(name: str, value: int, broker_value: Callable[[str], int]) -> int:
    """Return what counts of a group's own value: the nearest that the broker allows. Its bounds may have changed."""
    bounds = BOUNDS.get(name, Bounds(None, None))
    if bounds.least is not None:
        value = max(value, broker_value(bounds.least))
    return value if bounds.most is None else min(value, broker_value(bounds.most))


def validate_group_configs(overrides: Mapping[str, str], broker: BrokerValues) -> None:
    """Check what a group would set for itself on a broker. Raises `InvalidConfig` naming the setting.

    What is out of the broker's bounds is refused in Kafka's words, which its tools show.
    """
    values: dict[str, Value] = {}
    for name, text in overrides.items():
        setting = GROUP_SETTINGS.get(name)
        if setting is None:
            raise InvalidConfig(f"Unknown group config name: {name}")
        try:
            values[name] = setting.parse(text)
        except ConfigError as error:
            raise InvalidConfig(str(error)) from None
        _check_bounds(name, values[name], broker.integer)
    _check_tags(overrides.get(RACK_AWARE_TAGS, ""))
    for kind in ("consumer", "share", "streams"):
        _check_session(kind, values, broker.integer)
    assignor = values.get("streams.assignor.name")
    known = broker.items("group.streams.assignors")
    if assignor is not None and assignor not in known:
        raise InvalidConfig(f"streams.assignor.name: there is no {assignor!r}, but {', '.join(known)}")
    dead_letters = values.get(DEAD_LETTER_TOPIC)
    if isinstance(dead_letters, str) and dead_letters.startswith(INTERNAL_PREFIX):
        raise InvalidConfig(f"{DEAD_LETTER_TOPIC}: a topic whose name starts with {INTERNAL_PREFIX!r} is the broker's")


def _check_bounds(name: str, value: Value, broker_value: Callable[[str], int]) -> None:
    if not isinstance(value, int) or within_bounds(name, value, broker_value) == value:
        return
    least, most = (None if bound is None else broker_value(bound) for bound in BOUNDS[name])
    if least is None:
        raise InvalidConfig(f"{name} must be less than or equal to {most}")
    if most is None:
        raise InvalidConfig(f"{name} must be greater than or equal to {least}")
    raise InvalidConfig(f"{name} must be in the range {least} to {most} inclusive.")


def _check_tags(text: str) -> None:
    """Other lists may name something twice."""
    tags = [tag.strip(JAVA_BLANKS) for tag in text.split(",")]
    if len(set(tags)) != len(tags):
        raise InvalidConfig(f"{RACK_AWARE_TAGS} names a tag twice")


def _check_session(kind: str, values: Mapping[str, Value], broker_value: Callable[[str], int]) -> None:
    """A member that beats once per session would be expelled by the first delay."""
    beat, session = f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"
    if beat not in values and session not in values:
        return
    beat_ms = values.get(beat, broker_value(f"group.{beat}"))
    session_ms = values.get(session, broker_value(f"group.{session}"))
    if isinstance(beat_ms, int) and isinstance(session_ms, int) and session_ms <= beat_ms:
        raise InvalidConfig(f"{session} must be greater than {beat}")
