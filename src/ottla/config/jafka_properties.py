"""A Jafka `server.properties` as settings of ours, so that `ottla serve` takes it as it is.

Such a file is known by `brokerid`, which Jafka requires and Kafka never had. What needs ZooKeeper is refused, what has
no counterpart is told in a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ottla.config.values import ConfigError

JAFKA_KEY: Final = "brokerid"
DEFAULT_PORT: Final = "9092"


def _same(text: str) -> str:
    return text


def _minutes_to_ms(text: str) -> str:
    return str(int(text) * 60_000)


_RENAMED: Final[Mapping[str, tuple[str, Callable[[str], str]]]] = {
    "brokerid": ("node.id", _same),
    "log.dir": ("log.dirs", _same),
    "topic.partition.count.map": ("ottla.jafka.partition.counts", _same),
    "log.file.size": ("ottla.jafka.file.size", _same),
    "log.flush.interval": ("ottla.jafka.flush.messages", _same),
    "log.default.flush.scheduler.interval.ms": ("ottla.jafka.flush.ms", _same),
    "log.default.flush.interval.ms": ("ottla.jafka.flush.ms", _same),  # behind the one that it overrides
    "topic.flush.intervals.ms": ("ottla.jafka.flush.intervals", _same),
    "topic.log.retention.hours": ("ottla.jafka.retention.hours", _same),
    "log.retention.size": ("log.retention.bytes", _same),
    "log.cleanup.interval.mins": ("log.retention.check.interval.ms", _minutes_to_ms),
    "max.message.size": ("ottla.jafka.max.message.bytes", _same),
    "max.socket.request.bytes": ("socket.request.max.bytes", _same),
    "socket.send.buffer": ("socket.send.buffer.bytes", _same),
    "socket.receive.buffer": ("socket.receive.buffer.bytes", _same),
    "password": ("ottla.jafka.password", _same),
}
_PLACES: Final = ("port", "http.port")
_WITHOUT_MEANING: Final = frozenset(
    {
        "enable.zookeeper",
        "zk.connect",
        "zk.sessiontimeout.ms",
        "zk.connectiontimeout.ms",
        "zk.synctime.ms",
        "hostname",
        "topic.autocreated",
        "num.threads",
        "monitoring.period.secs",
    }
)
"""What only steers ZooKeeper, threads and reports."""


def is_jafka(properties: Mapping[str, str]) -> bool:
    """Say whether these are Jafka's properties."""
    return JAFKA_KEY in properties


def from_jafka(properties: Mapping[str, str]) -> dict[str, str]:
    """Return Jafka's properties by our names; what is none of Jafka's stays as it is. Raises `ConfigError`."""
    if properties.get("enable.zookeeper", "false").strip().lower() == "true":
        raise ConfigError("enable.zookeeper: there is no ZooKeeper here; clients must name the broker themselves")
    ours = {
        name: text
        for name, text in properties.items()
        if name not in _RENAMED and name not in _PLACES and name not in _WITHOUT_MEANING
    }
    for name, (our_name, convert) in _RENAMED.items():
        if name in properties:
            try:
                ours[our_name] = convert(properties[name].strip())
            except ValueError:
                raise ConfigError(f"{name}: {properties[name]!r} is not a whole number") from None
    ours.setdefault("listeners", _listeners(properties))
    return ours


def _listeners(properties: Mapping[str, str]) -> str:
    listeners = [f"JAFKA://:{properties.get('port', DEFAULT_PORT).strip()}"]
    http_port = properties.get("http.port", "0").strip()
    if http_port not in ("0", ""):
        listeners.append(f"JAFKA_HTTP://:{http_port}")
    return ",".join(listeners)
