"""DescribeCluster v0 to v2: the brokers of the cluster, and which of them acts as its controller.

On a client's listener only brokers are told of; whoever asks for controllers here is sent away (KIP-919).
"""

from __future__ import annotations

from typing import Final

from ottla.dialects.kafka.answers import RequestContext
from ottla.dialects.kafka.authorized_operations import CLUSTER_OPERATIONS
from ottla.errors import KafkaError, MismatchedEndpointType, UnsupportedEndpointType
from ottla.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS: Final = 1
CONTROLLERS: Final = 2


def handle(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    error = _check_endpoint_type(request.endpoint_type)
    if error is not None:
        return DescribeClusterResponse(error_code=error.code, error_message=str(error))
    broker = context.broker
    response = DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        brokers=[
            DescribeClusterBroker(broker_id=one.node_id, host=one.host, port=one.port, rack=one.rack)
            for one in broker.membership.brokers(context.listener_name)
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _check_endpoint_type(endpoint_type: int) -> KafkaError | None:
    if endpoint_type == BROKERS:
        return None
    if endpoint_type == CONTROLLERS:
        return MismatchedEndpointType("This listener is for brokers; it does not tell of controllers.")
    return UnsupportedEndpointType(f"There is no endpoint type {endpoint_type}.")
