"""One row of a settings table: the name, the type and everything else that is true of one setting.

The tables (`broker_settings`, `topic_settings`, ...) are made of `Setting`; parsing, validation, DescribeConfigs,
altering and the reference pages all read them, so that nothing about a setting is said twice. Names, types, defaults,
validators, importance and update modes are Kafka's. Sentences for people stand in `documentation`, which only those who
print them import.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from ottla.config.validators import Validator
from ottla.config.values import ConfigError, ConfigType, Value, format_value, parse_value

BOOLEAN: Final = ConfigType.BOOLEAN
STRING: Final = ConfigType.STRING
INT: Final = ConfigType.INT
SHORT: Final = ConfigType.SHORT
LONG: Final = ConfigType.LONG
DOUBLE: Final = ConfigType.DOUBLE
LIST: Final = ConfigType.LIST
CLASS: Final = ConfigType.CLASS
PASSWORD: Final = ConfigType.PASSWORD


class Scope(Enum):
    """What a table's settings belong to."""

    BROKER = "broker"
    TOPIC = "topic"
    GROUP = "group"
    CLIENT_METRICS = "client metrics"
    QUOTA = "quota"


class Importance(Enum):
    """How much a setting matters, in Kafka's judgement."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class UpdateMode(Enum):
    """Whether a broker setting may be changed while the broker runs, and for whom (KIP-226)."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


HIGH: Final = Importance.HIGH
MEDIUM: Final = Importance.MEDIUM
LOW: Final = Importance.LOW
READ_ONLY: Final = UpdateMode.READ_ONLY
PER_BROKER: Final = UpdateMode.PER_BROKER
CLUSTER_WIDE: Final = UpdateMode.CLUSTER_WIDE


class Default(Enum):
    """What stands in place of a default value."""

    REQUIRED = "required"
    """Kafka has no default: its configuration must name the setting."""
    KAFKA = "kafka"
    """Ottla's default is Kafka's."""


REQUIRED: Final = Default.REQUIRED


class Synonym(NamedTuple):
    """Another setting that gives the value where the nearer ones are not set; `factor` turns its unit into ours."""

    name: str
    factor: int = 1

    def in_our_unit(self, value: int) -> int:
        """Convert a value of the other setting. Negative ones mean no limit in every unit."""
        return max(value * self.factor, -1) if self.factor != 1 else value


class Setting:
    """A setting of one scope.

    `synonyms` are in order of precedence; those of a broker setting include its own name, where it has any.
    `ottla_default` is set where our default differs from Kafka's; the reason stands in the setting's documentation.
    """

    __slots__ = (
        "default",
        "importance",
        "internal",
        "name",
        "ottla_default",
        "synonyms",
        "topic_configs",
        "type",
        "update_mode",
        "validator",
    )

    def __init__(
        self,
        name: str,
        type: ConfigType,
        default: Value | Default,
        validator: Validator | None = None,
        importance: Importance = Importance.MEDIUM,
        update_mode: UpdateMode | None = None,
        *,
        synonyms: tuple[Synonym, ...] = (),
        topic_configs: tuple[str, ...] = (),
        internal: bool = False,
        ottla_default: Value | Default = Default.KAFKA,
    ) -> None:
        self.name = name
        self.type = type
        self.default = default
        self.validator = validator
        self.importance = importance
        self.update_mode = update_mode
        self.synonyms = synonyms
        self.topic_configs = topic_configs
        self.internal = internal
        self.ottla_default = ottla_default

    @property
    def sensitive(self) -> bool:
        """True when the value must never be shown."""
        return self.type is ConfigType.PASSWORD

    @property
    def effective_default(self) -> Value:
        """The value when nobody has set one: ours where it differs, else Kafka's."""
        value = self.default if self.ottla_default is Default.KAFKA else self.ottla_default
        return None if isinstance(value, Default) else value

    def parse(self, text: str) -> Value:
        """Return the typed value of a text. Raises `ConfigError` when it has the wrong form or is not allowed."""
        return self.check(self.name, parse_value(self.name, self.type, text))

    def parse_stored(self, text: str) -> Value:
        """Return the value of a text that was stored earlier, None where it is no longer allowed.

        What was taken by an older version may be refused by this one (KIP-1030 raised several lower limits), and must
        not keep a broker from starting.
        """
        try:
            return self.parse(text)
        except ConfigError:
            return None

    def check(self, name: str, value: Value) -> Value:
        """Return the value to use if it is allowed. Raises `ConfigError` that blames `name`, a synonym perhaps."""
        return value if self.validator is None else self.validator.check(name, value)

    def format(self, value: Value) -> str | None:
        """Return Kafka's text form of a typed value, None for None."""
        return format_value(self.type, value)


def table(settings: Iterable[Setting]) -> Mapping[str, Setting]:
    """Key rows by name, in their order. Raises `ValueError` when a name stands twice."""
    rows = list(settings)
    by_name = {row.name: row for row in rows}
    if len(by_name) != len(rows):
        raise ValueError("a setting stands twice in its table")
    return by_name
