"""Which broker settings may change while the broker runs, and to what (KIP-226).

Every refusal is INVALID_REQUEST but one: with eligible leader replicas (KIP-966) `min.insync.replicas` has one value
for the whole cluster, and setting it for one broker is INVALID_CONFIG. Unknown settings may be set to anything. What
needs Java classes, or listeners to be opened and closed, is refused, though Kafka can do it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.config.broker_config import EVERY_DIRECTORY, BrokerConfig
from ottla.config.broker_settings import DYNAMIC_ONLY_SETTINGS, LISTENER_PREFIX, broker_setting
from ottla.config.setting import CLASS, PER_BROKER, READ_ONLY, Setting
from ottla.config.topic_settings import TOPIC_SETTINGS
from ottla.config.values import ConfigError, Value
from ottla.errors import InvalidConfig, InvalidRequest

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"

THREAD_COUNTS: Final = frozenset(
    {
        "background.threads",
        "log.cleaner.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
    }
)
"""What may at most be doubled or halved in one step."""

ABOVE_ZERO: Final = frozenset({"max.connections", "max.connection.creation.rate"})
"""What a configuration file may set to 0 and a change may not: nobody could connect to change it again."""

FOR_ONE_LISTENER: Final = ("ssl.key.password", "ssl.keystore.", "ssl.truststore.")
"""How settings begin that name key stores, which are changed for one listener and not in general."""

LISTENERS: Final = frozenset({"listeners", "listener.security.protocol.map"})
"""What stays as it is here while the broker runs."""

MIN_DEDUPE_BYTES: Final = 1024 * 1024
"""For each cleaner thread; less is not enough."""


def check_broker_changes(values: Mapping[str, str], name: str, broker: BrokerConfig) -> None:
    """Check settings that are to be set for the broker `name`, or for all where that is empty.

    `broker` are its settings as of now. Raises `InvalidRequest`, or `InvalidConfig` (see above).
    """
    for key in values:
        _check_scope(key, name)
    try:
        for key, text in values.items():
            setting = broker_setting(key) or DYNAMIC_ONLY_SETTINGS.get(key)
            if setting is not None:
                _check_value(key, setting, setting.parse(text), broker)
        _check_together(broker.with_changes(values))
    except ConfigError as error:
        raise InvalidRequest(str(error)) from None
    if name and MIN_INSYNC_REPLICAS in values:
        raise InvalidConfig(f"{MIN_INSYNC_REPLICAS} is set for all brokers or for a topic, not for one broker")


def _check_scope(key: str, name: str) -> None:
    setting = broker_setting(key)
    if setting is None:
        return
    if setting.update_mode is READ_ONLY and not key.startswith(LISTENER_PREFIX):
        raise InvalidRequest(f"{key} cannot be changed while the broker runs")
    if key.startswith(FOR_ONE_LISTENER):
        raise InvalidRequest(f"{key} is changed for one listener: {LISTENER_PREFIX}<name>.{key}")
    if not name and setting.update_mode is PER_BROKER:
        raise InvalidRequest(f"{key} is set for each broker, not for all")


def _check_value(key: str, setting: Setting, value: Value, broker: BrokerConfig) -> None:
    for topic_config in setting.topic_configs:  # what is handed down to topics must be allowed there
        TOPIC_SETTINGS[topic_config].check(key, value)
    if key in LISTENERS and value != broker.get(key):
        raise ConfigError(f"{key} cannot be changed while the broker runs here")
    if setting.type is CLASS and value != broker.get(setting.name):
        raise ConfigError(f"{key}: Java classes cannot run here")
    if key == "metric.reporters" and isinstance(value, tuple) and not set(value) <= set(broker.items(key)):
        raise ConfigError(f"{key}: Java classes cannot run here")
    if setting.name in ABOVE_ZERO and value == 0:
        raise ConfigError(f"{key}: 0 would let nobody in any more")
    if key in THREAD_COUNTS and isinstance(value, int):
        now = broker.integer(key)
        if not max(now // 2, 1) <= value <= now * 2:
            raise ConfigError(f"{key}: {value} is not between half and double of what it is now ({now})")


def _check_together(changed: BrokerConfig) -> None:
    """Check what the broker's settings would be as a whole."""
    changed.check_limits()
    dedupe = "log.cleaner.dedupe.buffer.size"
    if changed.integer(dedupe) <= MIN_DEDUPE_BYTES * changed.integer("log.cleaner.threads"):
        raise ConfigError(f"{dedupe}: {changed.integer(dedupe)} is not above 1 MiB for each cleaner thread")
    for directory in changed.items("cordoned.log.dirs"):
        if directory != EVERY_DIRECTORY and directory not in changed.log_dirs:
            raise ConfigError(f"cordoned.log.dirs: {directory} is not one of the data directories")
