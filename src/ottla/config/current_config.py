"""`CurrentConfig`: a broker's settings as they are now. The one door to them for whoever runs while they change.

Lays what was changed while the broker runs, for this broker and for all, over the configuration that it was started
with (KIP-226). Nearer layers win; where a setting has synonyms the nearest layer wins first. Who decides about changes
and stores them is the metadata; it calls `change`. Whoever needs a setting asks `values` when it needs it, or `watch`es
where something must be done about a change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ottla.config.broker_config import BrokerConfig
from ottla.config.broker_layers import BrokerLayers
from ottla.config.log_config import LogConfig

REMEMBERED_TOPIC_CONFIGS: Final = 1000


class CurrentConfig:
    """The settings of a running broker."""

    __slots__ = ("_topic_configs", "_watchers", "layers", "values")

    def __init__(self, started_with: BrokerConfig) -> None:
        self.layers = BrokerLayers(started_with, {}, {})
        self.values = started_with
        """Typed settings as of now. Not changed but replaced: ask again, or `watch`."""
        self._watchers: list[Callable[[BrokerConfig], None]] = []
        self._topic_configs: dict[frozenset[tuple[str, str]], LogConfig] = {}

    def change(self, for_this_broker: Mapping[str, str], for_all_brokers: Mapping[str, str]) -> None:
        """Use these changed settings, and no others, from now on."""
        layers = BrokerLayers(self.layers.broker, dict(for_this_broker), dict(for_all_brokers))
        if layers == self.layers:
            return
        self.layers = layers
        self.values = layers.broker.with_changes(self._changed())
        self._topic_configs.clear()
        for apply in self._watchers:
            apply(self.values)

    def watch(self, apply: Callable[[BrokerConfig], None]) -> None:
        """Call `apply` with the settings now and whenever they changed."""
        self._watchers.append(apply)
        apply(self.values)

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        """The settings of a topic that sets `overrides` for itself. Topics with the same ones share it."""
        key = frozenset(overrides.items())
        config = self._topic_configs.get(key)
        if config is None:
            if len(self._topic_configs) >= REMEMBERED_TOPIC_CONFIGS:
                self._topic_configs.clear()
            config = self._topic_configs[key] = LogConfig.resolve(self.layers.broker, self._changed(), overrides)
        return config

    def _changed(self) -> dict[str, str]:
        return {**self.layers.for_all_brokers, **self.layers.for_this_broker}
