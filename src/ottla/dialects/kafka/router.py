"""The one table of served APIs: which handler answers which key in which versions. ApiVersions is answered from it.

An API that is not in the table is not announced, and whoever asks for it loses the connection, as in Kafka.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.dialects.kafka.admin_handlers import ADMIN_HANDLERS, UNANNOUNCED
from ottla.dialects.kafka.answers import Handler
from ottla.dialects.kafka.handlers import (
    alter_configs,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
)
from ottla.protocol.apis import API, ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse


class Route(NamedTuple):
    """How one API is served. With `is_pipelined` several of its requests may be in progress on a connection."""

    request: type[Message]
    min_version: int
    max_version: int
    handle: Handler
    is_pipelined: bool


HANDLERS: Final[dict[ApiKey, Handler]] = {
    ApiKey.PRODUCE: produce.handle,
    ApiKey.FETCH: fetch.handle,
    ApiKey.LIST_OFFSETS: list_offsets.handle,
    ApiKey.METADATA: metadata.handle,
    ApiKey.OFFSET_COMMIT: offset_commit.handle,
    ApiKey.OFFSET_FETCH: offset_fetch.handle,
    ApiKey.FIND_COORDINATOR: find_coordinator.handle,
    ApiKey.JOIN_GROUP: join_group.handle,
    ApiKey.HEARTBEAT: heartbeat.handle,
    ApiKey.LEAVE_GROUP: leave_group.handle,
    ApiKey.SYNC_GROUP: sync_group.handle,
    ApiKey.DESCRIBE_GROUPS: describe_groups.handle,
    ApiKey.LIST_GROUPS: list_groups.handle,
    ApiKey.SASL_HANDSHAKE: sasl_handshake.handle,
    ApiKey.CREATE_TOPICS: create_topics.handle,
    ApiKey.DELETE_TOPICS: delete_topics.handle,
    ApiKey.DELETE_RECORDS: delete_records.handle,
    ApiKey.INIT_PRODUCER_ID: init_producer_id.handle,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch.handle,
    ApiKey.SASL_AUTHENTICATE: sasl_authenticate.handle,
    ApiKey.CREATE_PARTITIONS: create_partitions.handle,
    ApiKey.DESCRIBE_CONFIGS: describe_configs.handle,
    ApiKey.ALTER_CONFIGS: alter_configs.handle,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs.handle,
    ApiKey.DELETE_GROUPS: delete_groups.handle,
    ApiKey.OFFSET_DELETE: offset_delete.handle,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster.handle,
    ApiKey.LIST_CONFIG_RESOURCES: list_config_resources.handle,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: consumer_group_heartbeat.handle,
    ApiKey.CONSUMER_GROUP_DESCRIBE: consumer_group_describe.handle,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions.handle,
    **ADMIN_HANDLERS,
}
"""Every served API but ApiVersions, which is made from this."""

PIPELINED: Final = frozenset({ApiKey.PRODUCE})


class Router:
    """The table, ready for sessions. `unsupported_version` is the answer to an ApiVersions version we don't know."""

    __slots__ = ("routes", "unsupported_version")

    def __init__(self) -> None:
        served = sorted({*HANDLERS, ApiKey.API_VERSIONS} - UNANNOUNCED)
        handlers: dict[ApiKey, Handler] = {
            **HANDLERS,
            ApiKey.API_VERSIONS: api_versions.handler_for(_announced(served)),
        }
        self.routes: dict[int, Route] = {key: _route(key, handler) for key, handler in handlers.items()}
        self.unsupported_version: ApiVersionsResponse = api_versions.unsupported_version()


def _route(key: ApiKey, handler: Handler) -> Route:
    api = API[key]
    return Route(api.request, api.min_version, min(api.max_version, api.announced[1]), handler, key in PIPELINED)


def _announced(served: list[ApiKey]) -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=API[key].announced[0], max_version=API[key].announced[1]) for key in served
    ]
