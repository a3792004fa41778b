"""Settings of one group (GROUP resources, KIP-848), over those that the broker has for all groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.broker.groups.assignors import ASSIGNORS
from ottla.broker.metadata.image import MetadataView
from ottla.config.current_config import CurrentConfig
from ottla.config.group_settings import within_bounds
from ottla.config.resource_type import ResourceType

GROUP_VERSION: Final = "group.version"
"""The feature whose level 1 brings the new protocol."""


class GroupSettings:
    """Answers as of now: settings of groups and brokers change at run time."""

    __slots__ = ("_broker", "_view")

    def __init__(self, view: MetadataView, broker: CurrentConfig) -> None:
        self._view = view
        self._broker = broker

    def integer(self, group_id: str, setting: str) -> int:
        """The value of a group's setting; of `group.` and its name where the group has none of its own.

        What a group set while the broker allowed more, or less, counts as far as it does now.
        """
        broker_value = self._broker.values.integer
        own = self._view.configs(ResourceType.GROUP, group_id).get(setting)
        return broker_value(f"group.{setting}") if own is None else within_bounds(setting, int(own), broker_value)

    @property
    def are_consumer_groups_served(self) -> bool:
        """Whether there may be groups of the new protocol: the cluster's feature level says so, and the settings."""
        protocols = self._broker.values.items("group.coordinator.rebalance.protocols")
        return self._view.features.get(GROUP_VERSION, 0) > 0 and "consumer" in (name.lower() for name in protocols)

    @property
    def assignors(self) -> Sequence[str]:
        """Names of the server-side assignors that members may choose; the first is the default."""
        allowed = [name for name in self._broker.values.items("group.consumer.assignors") if name in ASSIGNORS]
        return allowed or list(ASSIGNORS)

    @property
    def max_size(self) -> int:
        """How many members a consumer group may have."""
        return self._broker.values.integer("group.consumer.max.size")

    @property
    def max_classic_size(self) -> int:
        """How many members a classic group may have."""
        return self._broker.values.integer("group.max.size")

    @property
    def migration_policy(self) -> str:
        """Which kinds of groups may become the other: `bidirectional`, `upgrade`, `downgrade` or `disabled`."""
        return (self._broker.values.text("group.consumer.migration.policy") or "").lower()
