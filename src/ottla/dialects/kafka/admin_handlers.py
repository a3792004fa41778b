"""The part of the table of served APIs that only administrators' tools ask for."""

from __future__ import annotations

from typing import Final

from ottla.dialects.kafka.answers import Handler
from ottla.dialects.kafka.handlers import (
    access_rules,
    add_raft_voter,
    alter_client_quotas,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    delegation_tokens,
    describe_client_quotas,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_user_scram_credentials,
    elect_leaders,
    get_telemetry_subscriptions,
    list_partition_reassignments,
    push_telemetry,
    remove_raft_voter,
    unregister_broker,
    unregister_controller,
    update_features,
)
from ottla.protocol.apis import ApiKey

ADMIN_HANDLERS: Final[dict[ApiKey, Handler]] = {
    ApiKey.DESCRIBE_ACLS: access_rules.describe,
    ApiKey.CREATE_ACLS: access_rules.create,
    ApiKey.DELETE_ACLS: access_rules.delete,
    ApiKey.ALTER_REPLICA_LOG_DIRS: alter_replica_log_dirs.handle,
    ApiKey.DESCRIBE_LOG_DIRS: describe_log_dirs.handle,
    ApiKey.CREATE_DELEGATION_TOKEN: delegation_tokens.create,
    ApiKey.RENEW_DELEGATION_TOKEN: delegation_tokens.renew,
    ApiKey.EXPIRE_DELEGATION_TOKEN: delegation_tokens.expire,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: delegation_tokens.describe,
    ApiKey.ELECT_LEADERS: elect_leaders.handle,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: alter_partition_reassignments.handle,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: list_partition_reassignments.handle,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: describe_client_quotas.handle,
    ApiKey.ALTER_CLIENT_QUOTAS: alter_client_quotas.handle,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: describe_user_scram_credentials.handle,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: alter_user_scram_credentials.handle,
    ApiKey.DESCRIBE_QUORUM: describe_quorum.handle,
    ApiKey.UPDATE_FEATURES: update_features.handle,
    ApiKey.DESCRIBE_PRODUCERS: describe_producers.handle,
    ApiKey.UNREGISTER_BROKER: unregister_broker.handle,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: get_telemetry_subscriptions.handle,
    ApiKey.PUSH_TELEMETRY: push_telemetry.handle,
    ApiKey.ADD_RAFT_VOTER: add_raft_voter.handle,
    ApiKey.REMOVE_RAFT_VOTER: remove_raft_voter.handle,
    ApiKey.UNREGISTER_CONTROLLER: unregister_controller.handle,
}

UNANNOUNCED: Final = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
"""Served to whoever asks, and not told of: Kafka announces them only when something takes clients' metrics."""
