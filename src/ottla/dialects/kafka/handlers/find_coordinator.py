"""FindCoordinator v0 to v6: who coordinates a group, a transactional id or a share group's partition.

Groups are coordinated by the owner of their id; the topic that they live in is created when somebody first asks, and
the answer leaves when that is durable. Nobody coordinates the others here: a sensible key is answered with
COORDINATOR_NOT_AVAILABLE, which clients take as "not yet". Keys and key types that make no sense are refused as in
Kafka. From v4 on a request has several keys.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import RequestContext, Settled, rows_in_steps
from ottla.dialects.kafka.durable import when_durable
from ottla.engine import BrokerEndpoint
from ottla.errors import CoordinatorNotAvailable, InvalidRequest, KafkaError
from ottla.model import parse_uuid
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

BATCHES_FROM_VERSION: Final = 4
SHARE_GROUPS_FROM_VERSION: Final = 6

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2

NOBODY: Final = BrokerEndpoint(-1, "", -1, None)


class _Found(NamedTuple):
    """Who coordinates, or why nobody does."""

    endpoint: BrokerEndpoint
    error: KafkaError | None = None


def handle(request: FindCoordinatorRequest, context: RequestContext) -> Steps[Settled]:
    ticket = context.broker.create_offsets_topic() if request.key_type == GROUP else None
    if context.api_version < BATCHES_FROM_VERSION:
        found = _find(request.key_type, request.key, context)
        return when_durable(ticket, _only(found), lambda error: _only(_Found(NOBODY, error)))
    rows = yield from rows_in_steps(
        request.coordinator_keys, lambda key: _row(request.key_type, key, _find(request.key_type, key, context))
    )
    return when_durable(ticket, FindCoordinatorResponse(coordinators=rows), partial(_refused, request))


def _refused(request: FindCoordinatorRequest, error: KafkaError) -> FindCoordinatorResponse:
    nobody = _Found(NOBODY, error)
    return FindCoordinatorResponse(
        coordinators=[_row(request.key_type, key, nobody) for key in request.coordinator_keys]
    )


def _only(found: _Found) -> FindCoordinatorResponse:
    """The answer to a request for one key."""
    return FindCoordinatorResponse(
        error_code=0 if found.error is None else found.error.code,
        error_message="NONE" if found.error is None else str(found.error),  # Kafka's name for no error
        node_id=found.endpoint.node_id,
        host=found.endpoint.host,
        port=found.endpoint.port,
    )


def _row(key_type: int, key: str, found: _Found) -> Coordinator:
    is_known_type = key_type in (GROUP, TRANSACTION, SHARE)
    return Coordinator(
        key=key,
        node_id=found.endpoint.node_id,
        host=found.endpoint.host,
        port=found.endpoint.port,
        error_code=0 if found.error is None else found.error.code,
        error_message="" if is_known_type else str(found.error),  # as in Kafka, where rows have no text
    )


def _find(key_type: int, key: str, context: RequestContext) -> _Found:
    try:
        return _Found(_coordinator(key_type, key, context))
    except KafkaError as refusal:
        return _Found(NOBODY, refusal)


def _coordinator(key_type: int, key: str, context: RequestContext) -> BrokerEndpoint:
    if key_type not in (GROUP, TRANSACTION, SHARE):
        raise InvalidRequest(f"There is no coordinator type {key_type}.")
    if key_type == SHARE and (context.api_version < SHARE_GROUPS_FROM_VERSION or not _is_share_key(key)):
        raise InvalidRequest("A share coordinator's key is GROUP:TOPIC-ID:PARTITION, from version 6 on.")
    if key_type == GROUP and context.broker.groups.is_ready:
        owner = context.broker.membership.owner(key)
        for endpoint in context.broker.membership.brokers(context.listener_name):
            if endpoint.node_id == owner:
                return endpoint
    raise CoordinatorNotAvailable


def _is_share_key(key: str) -> bool:
    group, _, rest = key.partition(":")
    topic_id, _, partition = rest.partition(":")
    try:
        parse_uuid(topic_id)
        return bool(group) and int(partition) >= 0
    except ValueError:
        return False
