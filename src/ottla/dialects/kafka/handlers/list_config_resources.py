"""ListConfigResources v0 and v1: which resources have, or can have, settings (KIP-1142).

Version 0 knows client metrics only. Topics and brokers are listed because they are there, the others because something
is set for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.broker.broker import Broker
from ottla.config.resource_type import ResourceType
from ottla.dialects.kafka.answers import RequestContext
from ottla.errors import UnsupportedVersion
from ottla.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

TYPES_FROM_VERSION: Final = 1
KNOWN_TYPES: Final = frozenset(ResourceType)


def handle(request: ListConfigResourcesRequest, context: RequestContext) -> ListConfigResourcesResponse:
    types: Iterable[int] = (ResourceType.CLIENT_METRICS,)
    if context.api_version >= TYPES_FROM_VERSION:
        types = dict.fromkeys(request.resource_types or sorted(KNOWN_TYPES))
    if not KNOWN_TYPES.issuperset(types):
        return ListConfigResourcesResponse(error_code=UnsupportedVersion.code)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=number)
            for number in types
            for name in _names(ResourceType(number), context.broker)
        ]
    )


def _names(resource_type: ResourceType, broker: Broker) -> Iterable[str]:
    if resource_type is ResourceType.TOPIC:
        return broker.image.topic_names()
    if resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(one.node_id) for one in broker.image.brokers()]
    return broker.image.config_resources(resource_type)
