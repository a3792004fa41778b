"""DescribeCluster: the cluster's id and brokers, without topics (KIP-700; API key 60)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, boolean, int8, int16, int32, string


class DescribeClusterRequest(Message, key=60, versions="0-2", flexible="0+"):
    """What to show. Version 1 can ask controllers (KIP-919); 2 for brokers that are fenced."""

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8("1+", default=1)
    include_fenced_brokers: bool = boolean("2+")


class DescribeClusterBroker(Struct):
    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)
    is_fenced: bool = boolean("2+")


class DescribeClusterResponse(Message, key=60, versions="0-2", flexible="0+"):
    """Id, controller and brokers. Version 1 tells whose addresses these are; 2 who is fenced."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-(2**31))
