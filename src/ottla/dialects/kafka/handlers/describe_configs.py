"""DescribeConfigs v1 to v4: the settings of topics, brokers, groups and client metrics, and where they come from.

What stands in a description is decided by `ottla.config.describe`; here is which resource is meant and whether it is
there. Groups and client metrics need not exist to have settings. A type that does not exist refuses the whole request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ottla.broker.broker import Broker
from ottla.broker.loggers import describe_loggers
from ottla.broker.metadata.topic_names import check_topic_name
from ottla.broker.turns import Steps
from ottla.config.alter import check_resource
from ottla.config.describe import (
    ConfigEntry,
    describe_broker,
    describe_broker_default,
    describe_client_metrics,
    describe_group,
    describe_topic,
    documented,
)
from ottla.config.resource_type import ResourceType
from ottla.config.setting import Scope
from ottla.dialects.kafka.answers import RequestContext, rows_in_steps
from ottla.errors import InvalidRequest, KafkaError, UnknownTopicOrPartition
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

SCOPES: Final[Mapping[ResourceType, Scope]] = {
    ResourceType.TOPIC: Scope.TOPIC,
    ResourceType.BROKER: Scope.BROKER,
    ResourceType.CLIENT_METRICS: Scope.CLIENT_METRICS,
    ResourceType.GROUP: Scope.GROUP,
}


def handle(request: DescribeConfigsRequest, context: RequestContext) -> Steps[DescribeConfigsResponse]:
    unknown = next((asked.resource_type for asked in request.resources if asked.resource_type not in _TYPES), None)
    if unknown is not None:
        error = InvalidRequest(f"Resources of type {unknown} have no settings.")
        return DescribeConfigsResponse(results=[_refused(asked, error) for asked in request.resources])
    results = yield from rows_in_steps(request.resources, lambda resource: _result(resource, request, context.broker))
    return DescribeConfigsResponse(results=results)


def _refused(resource: DescribeConfigsResource, error: KafkaError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message or "",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _result(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, broker: Broker
) -> DescribeConfigsResult:
    kind = ResourceType(resource.resource_type)
    try:
        entries = _DESCRIBERS[kind](resource, broker)
    except KafkaError as error:
        return _refused(resource, error)
    scope = SCOPES.get(kind)
    if request.include_documentation and scope is not None:
        entries = documented(entries, scope)
    return DescribeConfigsResult(
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_row(entry, request) for entry in entries],
    )


def _row(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source) for one in synonyms],
        config_type=entry.config_type,
        documentation=entry.documentation,
    )


def _topic(resource: DescribeConfigsResource, broker: Broker) -> list[ConfigEntry]:
    check_topic_name(resource.resource_name)
    topic = broker.image.topic(resource.resource_name)
    if topic is None:
        raise UnknownTopicOrPartition
    return describe_topic(broker.metadata.settings.layers, topic.configs, resource.configuration_keys)


def _broker(resource: DescribeConfigsResource, broker: Broker) -> list[ConfigEntry]:
    layers = broker.metadata.settings.layers
    if not resource.resource_name:
        return describe_broker_default(layers, resource.configuration_keys)
    check_resource(resource.resource_type, resource.resource_name, broker.node_id)
    return describe_broker(layers, resource.configuration_keys)


def _loggers(resource: DescribeConfigsResource, broker: Broker) -> list[ConfigEntry]:
    check_resource(resource.resource_type, resource.resource_name, broker.node_id)
    return describe_loggers(resource.configuration_keys)


def _client_metrics(resource: DescribeConfigsResource, broker: Broker) -> list[ConfigEntry]:
    overrides = _named_overrides(ResourceType.CLIENT_METRICS, resource, broker)
    return describe_client_metrics(broker.metadata.settings.layers, overrides, resource.configuration_keys)


def _group(resource: DescribeConfigsResource, broker: Broker) -> list[ConfigEntry]:
    overrides = _named_overrides(ResourceType.GROUP, resource, broker)
    return describe_group(broker.metadata.settings.layers, overrides, resource.configuration_keys)


def _named_overrides(
    resource_type: ResourceType, resource: DescribeConfigsResource, broker: Broker
) -> Mapping[str, str]:
    if not resource.resource_name:
        raise InvalidRequest("The resource has no name.")
    return broker.image.configs(resource_type, resource.resource_name)


_DESCRIBERS: Final[Mapping[ResourceType, Callable[[DescribeConfigsResource, Broker], list[ConfigEntry]]]] = {
    ResourceType.TOPIC: _topic,
    ResourceType.BROKER: _broker,
    ResourceType.BROKER_LOGGER: _loggers,
    ResourceType.CLIENT_METRICS: _client_metrics,
    ResourceType.GROUP: _group,
}
_TYPES: Final = frozenset(map(int, _DESCRIBERS))
