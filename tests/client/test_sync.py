"""The client for scripts, where it is more than the asyncio client's methods one by one."""

from __future__ import annotations

import pytest

from ottla.client import sync
from ottla.client.cluster import Cluster
from ottla.client.errors import ClusterUnreachable


@pytest.mark.parametrize("kind", [sync.Producer, sync.Consumer, sync.Admin])
def test_what_does_not_reach_its_cluster_is_closed(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else can: whoever wanted it never gets hold of it."""
    closed: list[Cluster] = []

    async def fail(_: Cluster) -> None:
        raise ClusterUnreachable({"127.0.0.1:9092": "nobody is there"})

    async def close(cluster: Cluster) -> None:
        closed.append(cluster)

    monkeypatch.setattr(Cluster, "start", fail)
    monkeypatch.setattr(Cluster, "close", close)

    with pytest.raises(ClusterUnreachable):
        kind("127.0.0.1:9092")

    assert len(closed) == 1
