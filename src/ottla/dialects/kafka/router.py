"""The one table of served APIs: which handler answers which key in which versions. ApiVersions is answered from it.

An API that is not in the table is not announced, and whoever asks for it loses the connection, as in Kafka. Handlers
and the messages that they speak are named, and imported when somebody first asks for them, since a start waits for
nothing that it does not need; the rest follows, one by one, once the broker has run for a while. Then what it serves
depends neither on a descriptor that is left nor on files that an upgrade has replaced meanwhile.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple, cast

from ottla.dialects.kafka.answers import Handler
from ottla.dialects.kafka.handlers import api_versions
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


HANDLERS: Final[dict[ApiKey, str]] = {
    ApiKey.PRODUCE: "produce.handle",
    ApiKey.FETCH: "fetch.handle",
    ApiKey.LIST_OFFSETS: "list_offsets.handle",
    ApiKey.METADATA: "metadata.handle",
    ApiKey.OFFSET_COMMIT: "offset_commit.handle",
    ApiKey.OFFSET_FETCH: "offset_fetch.handle",
    ApiKey.FIND_COORDINATOR: "find_coordinator.handle",
    ApiKey.JOIN_GROUP: "join_group.handle",
    ApiKey.HEARTBEAT: "heartbeat.handle",
    ApiKey.LEAVE_GROUP: "leave_group.handle",
    ApiKey.SYNC_GROUP: "sync_group.handle",
    ApiKey.DESCRIBE_GROUPS: "describe_groups.handle",
    ApiKey.LIST_GROUPS: "list_groups.handle",
    ApiKey.SASL_HANDSHAKE: "sasl_handshake.handle",
    ApiKey.CREATE_TOPICS: "create_topics.handle",
    ApiKey.DELETE_TOPICS: "delete_topics.handle",
    ApiKey.DELETE_RECORDS: "delete_records.handle",
    ApiKey.INIT_PRODUCER_ID: "init_producer_id.handle",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "offset_for_leader_epoch.handle",
    ApiKey.DESCRIBE_ACLS: "access_rules.describe",
    ApiKey.CREATE_ACLS: "access_rules.create",
    ApiKey.DELETE_ACLS: "access_rules.delete",
    ApiKey.DESCRIBE_CONFIGS: "describe_configs.handle",
    ApiKey.ALTER_CONFIGS: "alter_configs.handle",
    ApiKey.ALTER_REPLICA_LOG_DIRS: "alter_replica_log_dirs.handle",
    ApiKey.DESCRIBE_LOG_DIRS: "describe_log_dirs.handle",
    ApiKey.SASL_AUTHENTICATE: "sasl_authenticate.handle",
    ApiKey.CREATE_PARTITIONS: "create_partitions.handle",
    ApiKey.CREATE_DELEGATION_TOKEN: "delegation_tokens.create",
    ApiKey.RENEW_DELEGATION_TOKEN: "delegation_tokens.renew",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "delegation_tokens.expire",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "delegation_tokens.describe",
    ApiKey.DELETE_GROUPS: "delete_groups.handle",
    ApiKey.ELECT_LEADERS: "elect_leaders.handle",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "incremental_alter_configs.handle",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "alter_partition_reassignments.handle",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "list_partition_reassignments.handle",
    ApiKey.OFFSET_DELETE: "offset_delete.handle",
    ApiKey.DESCRIBE_CLIENT_QUOTAS: "describe_client_quotas.handle",
    ApiKey.ALTER_CLIENT_QUOTAS: "alter_client_quotas.handle",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: "describe_user_scram_credentials.handle",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "alter_user_scram_credentials.handle",
    ApiKey.DESCRIBE_QUORUM: "describe_quorum.handle",
    ApiKey.UPDATE_FEATURES: "update_features.handle",
    ApiKey.DESCRIBE_CLUSTER: "describe_cluster.handle",
    ApiKey.DESCRIBE_PRODUCERS: "describe_producers.handle",
    ApiKey.UNREGISTER_BROKER: "unregister_broker.handle",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "consumer_group_heartbeat.handle",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "consumer_group_describe.handle",
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: "get_telemetry_subscriptions.handle",
    ApiKey.PUSH_TELEMETRY: "push_telemetry.handle",
    ApiKey.LIST_CONFIG_RESOURCES: "list_config_resources.handle",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "describe_topic_partitions.handle",
    ApiKey.ADD_RAFT_VOTER: "add_raft_voter.handle",
    ApiKey.REMOVE_RAFT_VOTER: "remove_raft_voter.handle",
    ApiKey.UNREGISTER_CONTROLLER: "unregister_controller.handle",
}
"""Module and function, below `handlers`, of every served API but ApiVersions, which is made from this."""

UNANNOUNCED: Final = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
"""Served to whoever asks, as in Kafka, where they are announced only once something collects telemetry (KIP-714)."""

PIPELINED: Final = frozenset({ApiKey.PRODUCE})


class Router:
    """The table, ready for sessions. `unsupported_version` is the answer to an ApiVersions version we don't know."""

    __slots__ = ("known", "unsupported_version")

    def __init__(self) -> None:
        announced = sorted({*HANDLERS, ApiKey.API_VERSIONS} - UNANNOUNCED)
        answer_versions = api_versions.handler_for([_announced(key) for key in announced])
        self.known: dict[int, Route] = {ApiKey.API_VERSIONS: _route(ApiKey.API_VERSIONS, answer_versions)}
        """The routes that somebody asked for already."""
        self.unsupported_version: ApiVersionsResponse = api_versions.unsupported_version()

    def find(self, api_key: int) -> Route | None:
        """Return how an API is served, importing its handler if need be; None when it is not."""
        route = self.known.get(api_key)
        if route is None and api_key in HANDLERS:
            key = ApiKey(api_key)
            route = self.known[api_key] = _route(key, _import_handler(HANDLERS[key]))
        return route

    def import_next(self) -> bool:
        """Import one handler that nobody has asked for; False when none is left."""
        missing = next((key for key in HANDLERS if key not in self.known), None)
        if missing is not None:
            self.find(missing)
        return missing is not None

    def served(self) -> dict[int, Route]:
        """Return all routes, everything imported."""
        return {key: route for key in sorted({*HANDLERS, *self.known}) if (route := self.find(key)) is not None}


def _import_handler(name: str) -> Handler:
    module, _, function = name.partition(".")
    return cast(Handler, getattr(import_module(f"ottla.dialects.kafka.handlers.{module}"), function))


def _route(key: ApiKey, handler: Handler) -> Route:
    api = API[key]
    return Route(api.request, api.min_version, min(api.max_version, api.announced[1]), handler, key in PIPELINED)


def _announced(key: ApiKey) -> ApiVersion:
    min_version, max_version = API[key].announced
    return ApiVersion(api_key=key, min_version=min_version, max_version=max_version)
