"""Who is there, when there is only this broker: it leads every partition and coordinates every group.

What listeners are advertised at is told once they are bound, since a port of 0 is known only then.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.engine import BrokerEndpoint
from ottla.model import TopicPartition


class LocalMembership:
    """The `engine.Membership` of a broker on its own."""

    __slots__ = ("_endpoints", "_node_id", "_rack")

    def __init__(self, node_id: int, rack: str | None = None) -> None:
        self._node_id = node_id
        self._rack = rack
        self._endpoints: dict[str, BrokerEndpoint] = {}

    @property
    def node_id(self) -> int:
        return self._node_id

    def advertise(self, listener_name: str, host: str, port: int) -> None:
        """Show this broker at `host:port` to clients of that listener from now on."""
        self._endpoints[listener_name] = BrokerEndpoint(self._node_id, host, port, self._rack)

    def leader_for(self, partition: TopicPartition) -> int:
        return self._node_id

    def owner(self, key: str) -> int:
        return self._node_id

    def brokers(self, listener_name: str) -> Sequence[BrokerEndpoint]:
        endpoint = self._endpoints.get(listener_name)
        return () if endpoint is None else (endpoint,)
