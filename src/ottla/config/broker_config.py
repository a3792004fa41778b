"""A broker's configuration: Kafka's own keys, from a file, flags or the environment, checked and typed.

Decides which configurations we start with. Unknown settings are one warning each, known ones without effect are one
together. A setting whose silent loss would open a door (a TLS or SASL listener, an authorizer, super users, a policy)
ends the start until it is served, and so does one for brokers to meet at a listener that there is not, as in Kafka.
Where the configuration says nothing we bind loopback and write to `./ottla-data`.
Listeners named by `controller.listener.names` are parsed and not opened: there is no separate controller.

Where the texts come from, and which source wins, is left to the caller, who hands in one mapping.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ottla.config.broker_settings import (
    BROKER_SETTINGS,
    DYNAMIC_ONLY_SETTINGS,
    LISTENER_PREFIX,
    LISTENER_SETTINGS,
    broker_setting,
)
from ottla.config.jafka_properties import from_jafka, is_jafka
from ottla.config.listeners import OTHER_DIALECTS, Listener, check_ports, parse_listeners, parse_protocol_map
from ottla.config.setting import READ_ONLY, Scope
from ottla.config.topic_settings import TOPIC_SETTINGS
from ottla.config.values import ConfigError, Value

__all__ = ["BrokerConfig", "ConfigError", "environment_properties", "parse_overrides"]

REFUSED: Final = {
    "authorizer.class.name": "access control lists are not served yet",
    "super.users": "access control lists are not served yet",
    "create.topic.policy.class.name": "policies are Java classes, which cannot run here",
    "alter.config.policy.class.name": "policies are Java classes, which cannot run here",
    "config.providers": "placeholders in values are not replaced",
}
"""Settings that guard something. With a value that is not empty they end the start."""

ENVIRONMENT_PREFIX: Final = "KAFKA_"
ENVIRONMENT_MARKS: Final = {"_": ".", "__": "_", "___": "-"}
"""What stands in a variable's name for what cannot stand there."""
ADVERTISED: Final = "advertised.listeners"
MEETING_LISTENER: Final = "inter.broker.listener.name"
MEETING_PROTOCOL: Final = "security.inter.broker.protocol"
REBALANCE_PROTOCOLS: Final = "group.coordinator.rebalance.protocols"
SERVED_PROTOCOLS: Final = ("classic", "consumer")
EVERY_DIRECTORY: Final = "*"
LAST_CODEC: Final = 4
"""zstd; the codecs are numbered as in a batch's attributes."""
PER_IP_OVERRIDES: Final = "max.connections.per.ip.overrides"
PLAINLY_EFFECTIVE: Final = frozenset({"listeners", "log.dirs", "ottla.flush.policy"})
"""What starts without a file set: known to do something without a look at the texts."""
_EXCEPTION: Final = r"\[?(?P<host>[0-9a-zA-Z%._:-]+?)\]?\s*:\s*(?P<limit>-?[0-9]{1,9})"


def parse_overrides(items: Iterable[str]) -> dict[str, str]:
    """Parse `key=value` flags; later ones win. Raises `ConfigError` for an item without `=` or key."""
    overrides: dict[str, str] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"{item!r} is not of the form key=value")
        overrides[key.strip()] = value.strip()
    return overrides


def environment_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings among environment variables, by the rule of Apache Kafka's container image.

    `KAFKA_LOG_RETENTION_MS` is `log.retention.ms`; two underscores are one, three are a dash. Variables that name no
    setting (`KAFKA_OPTS`) are left alone.
    """
    properties: dict[str, str] = {}
    for variable, value in environment.items():
        if variable.startswith(ENVIRONMENT_PREFIX):
            name = re.sub("_{1,3}", _setting_mark, variable.removeprefix(ENVIRONMENT_PREFIX).lower())
            if _is_known(name):
                properties[name] = value
    return properties


def _setting_mark(found: re.Match[str]) -> str:
    return ENVIRONMENT_MARKS[found[0]]


def parse_connection_overrides(text: str) -> dict[str, int]:
    """Parse `max.connections.per.ip.overrides`: `address:number,...`. Raises `ConfigError`."""
    limits: dict[str, int] = {}
    for item in text.split(","):
        entry = re.fullmatch(_EXCEPTION, item.strip())
        if entry is not None:
            limits[entry["host"]] = int(entry["limit"])
        elif item.strip():
            raise ConfigError(f"{PER_IP_OVERRIDES}: {item.strip()!r} is not of the form address:number")
    return limits


class BrokerConfig:
    """A checked configuration.

    `raw` holds the texts of what was set explicitly, `warnings` what the start should tell, one line each.
    """

    __slots__ = (
        "_values",
        "advertised_listeners",
        "controller_listeners",
        "listeners",
        "log_dirs",
        "node_id",
        "raw",
        "warnings",
    )

    def __init__(self, raw: Mapping[str, str], values: Mapping[str, Value], warnings: list[str]) -> None:
        self.raw = raw
        self._values = values
        self.warnings = warnings
        self.node_id = self.integer("node.id")
        self.log_dirs: tuple[str, ...] = self.items("log.dirs") or self.items("log.dir")
        self.listeners: tuple[Listener, ...] = ()
        self.advertised_listeners: tuple[Listener, ...] = ()
        self.controller_listeners: tuple[Listener, ...] = ()
        """Where others would reach the quorum if a Kafka took over; we open none of them."""

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> BrokerConfig:
        """Check a configuration, Kafka's or Jafka's. Raises `ConfigError`: one line that says which setting and why."""
        if is_jafka(properties):
            properties = from_jafka(properties)
        _refuse_unguarded(properties)
        raw = _with_one_node_id(properties)
        values = {
            name: setting.parse(text) for name, text in raw.items() if (setting := broker_setting(name)) is not None
        }
        warnings = [_unknown(name) for name in properties if not _is_known(name)] + _without_effect(properties)
        config = cls(raw, values, warnings)
        warnings += config._values_without_effect()
        config._take_listeners()
        config._check_together()
        return config

    def with_changes(self, changes: Mapping[str, str]) -> BrokerConfig:
        """Return these settings with others laid over them that were changed while the broker runs.

        What cannot be changed then, or is not allowed (any more), counts as not changed. Listeners stay as they are.
        """
        raw, values = dict(self.raw), dict(self._values)
        for name, text in changes.items():
            setting = broker_setting(name) or DYNAMIC_ONLY_SETTINGS.get(name)
            if setting is None or (setting.update_mode is READ_ONLY and name == setting.name):
                continue
            value = setting.parse_stored(text)
            if value is not None:
                raw[name], values[name] = text, value
        changed = BrokerConfig(raw, values, self.warnings)
        changed.listeners, changed.advertised_listeners = self.listeners, self.advertised_listeners
        changed.controller_listeners = self.controller_listeners
        return changed

    def listener_integer(self, listener: str, name: str) -> int:
        """`integer` for one listener: `listener.name.<listener>.<name>` where that is set, else `name`."""
        value = self.listener_get(listener, name)
        return value if isinstance(value, int) else self.integer(name)

    def listener_get(self, listener: str, name: str) -> Value:
        """`get` for one listener: `listener.name.<listener>.<name>` where that is set, else `name`."""
        for_it = f"{LISTENER_PREFIX}{listener.lower()}.{name}"
        return self._values[for_it] if for_it in self._values else self.get(name)

    def get(self, name: str) -> Value:
        """Return a setting's typed value: as set, else the default. Raises `KeyError` for a name that is no setting."""
        if name in self._values:
            return self._values[name]
        setting = BROKER_SETTINGS.get(name) or DYNAMIC_ONLY_SETTINGS[name]
        return setting.effective_default

    def integer(self, name: str) -> int:
        """`get` for a whole number. Raises `TypeError` where the setting is none or has no value."""
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is not a whole number: {value!r}")
        return value

    def boolean(self, name: str) -> bool:
        """`get` for a truth value. Raises `TypeError` where the setting is none."""
        value = self.get(name)
        if not isinstance(value, bool):
            raise TypeError(f"{name} is not a truth value: {value!r}")
        return value

    def text(self, name: str) -> str | None:
        """`get` for a string, class or password. Raises `TypeError` where the setting is none."""
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} is not a text: {value!r}")
        return value

    def items(self, name: str) -> tuple[str, ...]:
        """`get` for a list; one that is not set is empty. Raises `TypeError` where the setting is none."""
        value = self.get(name)
        if value is not None and not isinstance(value, tuple):
            raise TypeError(f"{name} is not a list: {value!r}")
        return value or ()

    def explicit(self, name: str) -> Value:
        """Return the typed value that was set, None when the default holds."""
        return self._values.get(name)

    @property
    def flushes_before_ack(self) -> bool:
        """True when an acknowledged record must survive power loss (`ottla.flush.policy=fsync`)."""
        return self.get("ottla.flush.policy") == "fsync"

    @property
    def rack(self) -> str | None:
        return self.text("broker.rack")

    @property
    def num_partitions(self) -> int:
        return self.integer("num.partitions")

    @property
    def default_replication_factor(self) -> int:
        return self.integer("default.replication.factor")

    @property
    def auto_create_topics_enable(self) -> bool:
        return self.boolean("auto.create.topics.enable")

    @property
    def delete_topic_enable(self) -> bool:
        return self.boolean("delete.topic.enable")

    @property
    def fetch_max_bytes(self) -> int:
        return self.integer("fetch.max.bytes")

    @property
    def socket_request_max_bytes(self) -> int:
        return self.integer("socket.request.max.bytes")

    @property
    def connections_max_idle_ms(self) -> int:
        return self.integer("connections.max.idle.ms")

    @property
    def max_connections_per_ip_overrides(self) -> dict[str, int]:
        """Connections, at most, from these addresses, instead of `max.connections.per.ip`."""
        return parse_connection_overrides(self.text(PER_IP_OVERRIDES) or "")

    def is_cordoned(self, log_dir: str) -> bool:
        """True for a log directory that takes no new partitions (KIP-1066)."""
        cordoned = self.items("cordoned.log.dirs")
        return log_dir in cordoned or EVERY_DIRECTORY in cordoned

    @property
    def is_closed(self) -> bool:
        """True when no log directory takes new partitions."""
        return all(self.is_cordoned(log_dir) for log_dir in self.log_dirs)

    def _take_listeners(self) -> None:
        told = parse_protocol_map(self.text("listener.security.protocol.map") or "")
        protocols = {**{name: name for name in OTHER_DIALECTS}, **told}
        controllers = {name.upper() for name in self.items("controller.listener.names")}
        # Kafka lets a controller listener go without an entry in the map; it is then plain text.
        every = parse_listeners(
            "listeners", self.items("listeners"), dict.fromkeys(controllers, "PLAINTEXT") | protocols
        )
        check_ports("listeners", every)
        self.listeners = tuple(listener for listener in every if listener.name not in controllers)
        if not self.listeners:
            raise ConfigError("listeners: none is left for clients, all are named by controller.listener.names")
        for listener in self.listeners:
            if listener.security_protocol not in ("PLAINTEXT", *OTHER_DIALECTS):
                raise ConfigError(
                    f"listeners: {listener} asks for {listener.security_protocol}, which is not served yet"
                )
        self.controller_listeners = tuple(listener for listener in every if listener.name in controllers)
        self._take_advertised(dict.fromkeys(controllers, "PLAINTEXT") | protocols)
        self._check_where_brokers_meet()

    def _check_where_brokers_meet(self) -> None:
        """Kafka's rule, for what is set; where nothing is, one broker needs no such listener."""
        name, protocol = self.explicit(MEETING_LISTENER), self.explicit(MEETING_PROTOCOL)
        if name is not None and protocol is not None:
            raise ConfigError(f"{MEETING_PROTOCOL}: only one of this and {MEETING_LISTENER} may be set")
        ours = [listener.name for listener in self.listeners]
        for setting, wanted in ((MEETING_LISTENER, name), (MEETING_PROTOCOL, protocol)):
            if isinstance(wanted, str) and wanted.upper() not in ours:
                raise ConfigError(
                    f"{setting}: no listener has the name {wanted.upper()!r}; there are {', '.join(ours)}"
                )

    def _values_without_effect(self) -> list[str]:
        idle = [name for name in self.items(REBALANCE_PROTOCOLS) if name not in SERVED_PROTOCOLS]
        return (
            [f"{REBALANCE_PROTOCOLS}: not served here: {', '.join(idle)}"]
            if idle and REBALANCE_PROTOCOLS in self.raw
            else []
        )

    def _take_advertised(self, protocols: Mapping[str, str]) -> None:
        """What others are told, one for each listener; a host that binds any address becomes the empty one."""
        told = {item.name: item for item in parse_listeners(ADVERTISED, self.items(ADVERTISED), protocols)}
        controllers = {name.upper() for name in self.items("controller.listener.names")}
        names = {listener.name for listener in self.listeners} | controllers
        for name, listener in told.items():
            if name not in names:
                raise ConfigError(f"{ADVERTISED}: {listener} has no listener of that name")
            if listener.binds_any_address:
                raise ConfigError(f"{ADVERTISED}: nobody can connect to {listener}; name a host")

        def advertised(listener: Listener) -> Listener:
            return told.get(listener.name, listener._replace(host="") if listener.binds_any_address else listener)

        self.advertised_listeners = tuple(advertised(listener) for listener in self.listeners)
        self.controller_listeners = tuple(advertised(listener) for listener in self.controller_listeners)

    def _check_together(self) -> None:
        if "broker" not in self.items("process.roles"):
            raise ConfigError("process.roles: a node that is a controller only cannot be served; add broker")
        self.check_limits()
        self._check_topic_defaults()
        self._check_codec("offsets.topic.compression.codec")
        self._check_order("group.min.session.timeout.ms", "group.max.session.timeout.ms")
        for kind in ("consumer", "share", "streams"):
            for middle in ("session.timeout", "heartbeat.interval", "assignment.interval"):
                self._check_order(f"group.{kind}.min.{middle}.ms", f"group.{kind}.{middle}.ms")
                self._check_order(f"group.{kind}.{middle}.ms", f"group.{kind}.max.{middle}.ms")
            self._check_heartbeat(kind)

    def check_limits(self) -> None:
        """Check limits that nothing could live with. Raises `ConfigError`."""
        if not self.max_connections_per_ip_overrides and self.integer("max.connections.per.ip") == 0:
            raise ConfigError(f"max.connections.per.ip: 0 lets nobody in unless {PER_IP_OVERRIDES} makes exceptions")
        for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
            value = self.explicit(name)
            if isinstance(value, int) and (value == 0 or value < -1):
                raise ConfigError(f"{name}: {value} is neither -1 (no limit) nor above 0")

    def _check_topic_defaults(self) -> None:
        """What is handed down to topics must be allowed there, though Kafka gives some of it no rule of its own."""
        for setting in TOPIC_SETTINGS.values():
            for name, factor in setting.synonyms:
                value = self.explicit(name)
                if value is not None and factor == 1:
                    setting.check(name, value)

    def _check_codec(self, name: str) -> None:
        if not 0 <= self.integer(name) <= LAST_CODEC:
            raise ConfigError(f"{name}: no codec has the number {self.integer(name)}")

    def _check_heartbeat(self, kind: str) -> None:
        """A member that is heard of less often than its session lasts would be expelled each time."""
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if self.integer(heartbeat) >= self.integer(session):
            raise ConfigError(
                f"{heartbeat}: {self.integer(heartbeat)} is not below {session} ({self.integer(session)})"
            )

    def _check_order(self, smaller: str, larger: str) -> None:
        if self.integer(smaller) > self.integer(larger):
            raise ConfigError(f"{smaller}: {self.integer(smaller)} is above {larger} ({self.integer(larger)})")


def _refuse_unguarded(properties: Mapping[str, str]) -> None:
    for name, reason in REFUSED.items():
        if properties.get(name, "").strip():
            raise ConfigError(f"{name}: {reason}, and starting without would be less safe than asked")


def _with_one_node_id(properties: Mapping[str, str]) -> dict[str, str]:
    """Give `node.id` and its old name `broker.id` the same value, as Kafka does. -1 means not set."""
    raw = dict(properties)
    ids = {name: raw[name].strip() for name in ("node.id", "broker.id") if raw.get(name, "-1").strip() != "-1"}
    if len(set(ids.values())) > 1:
        raise ConfigError(f"node.id: {ids['node.id']} differs from broker.id, which is {ids['broker.id']}")
    for text in ids.values():
        raw["node.id"] = raw["broker.id"] = text
    return raw


def _is_known(name: str) -> bool:
    return name in REFUSED or broker_setting(name) is not None


def _unknown(name: str) -> str:
    import difflib  # only a mistake pays for loading it

    near = difflib.get_close_matches(name, BROKER_SETTINGS, n=1, cutoff=0.85)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{name} is not a setting and has no effect{hint}"


def _without_effect(names: Iterable[str]) -> list[str]:
    """One line for all known settings that do nothing here: a file made for Kafka has many."""
    names = [name for name in names if name not in PLAINLY_EFFECTIVE]
    if not names:
        return []
    from ottla.config.documentation import has_effect  # hundreds of texts that a start without a file does not need

    def is_idle(name: str) -> bool:
        setting = broker_setting(name)
        if setting is None:
            return False
        is_for_all = name == setting.name or setting.name in LISTENER_SETTINGS
        return not is_for_all or not has_effect(Scope.BROKER, setting.name)

    idle = [name for name in names if is_idle(name)]
    return [f"without effect here: {', '.join(idle)}"] if idle else []
