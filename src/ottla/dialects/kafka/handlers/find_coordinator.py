"""FindCoordinator v0 to v6: who coordinates a group, a transactional id or a share group's partition.

Nobody does here: a sensible key is answered with COORDINATOR_NOT_AVAILABLE, which clients take as "not yet". Keys and
key types that make no sense are refused as in Kafka. From v4 on a request has several keys.
"""

from __future__ import annotations

from typing import Final

from ottla.dialects.kafka.answers import RequestContext
from ottla.errors import CoordinatorNotAvailable, InvalidRequest, KafkaError
from ottla.model import parse_uuid
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

BATCHES_FROM_VERSION: Final = 4
SHARE_GROUPS_FROM_VERSION: Final = 6

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2

NO_NODE: Final = -1


def handle(request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    if context.api_version < BATCHES_FROM_VERSION:
        error = _error(request.key_type, request.key, context.api_version)
        return FindCoordinatorResponse(
            error_code=error.code, error_message=str(error), node_id=NO_NODE, host="", port=NO_NODE
        )
    return FindCoordinatorResponse(
        coordinators=[_row(request.key_type, key, context.api_version) for key in request.coordinator_keys]
    )


def _row(key_type: int, key: str, version: int) -> Coordinator:
    error = _error(key_type, key, version)
    message = str(error) if key_type not in (GROUP, TRANSACTION, SHARE) else ""  # as in Kafka, where rows have no text
    return Coordinator(key=key, node_id=NO_NODE, host="", port=NO_NODE, error_code=error.code, error_message=message)


def _error(key_type: int, key: str, version: int) -> KafkaError:
    if key_type not in (GROUP, TRANSACTION, SHARE):
        return InvalidRequest(f"There is no coordinator type {key_type}.")
    if key_type == SHARE and (version < SHARE_GROUPS_FROM_VERSION or not _is_share_key(key)):
        return InvalidRequest("A share coordinator's key is GROUP:TOPIC-ID:PARTITION, from version 6 on.")
    return CoordinatorNotAvailable()


def _is_share_key(key: str) -> bool:
    group, _, rest = key.partition(":")
    topic_id, _, partition = rest.partition(":")
    try:
        parse_uuid(topic_id)
        return bool(group) and int(partition) >= 0
    except ValueError:
        return False
