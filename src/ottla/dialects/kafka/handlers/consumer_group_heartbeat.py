"""ConsumerGroupHeartbeat v0 and v1: a member of the new protocol joins, goes on, changes or leaves (KIP-848).

From v1 on members make their own ids, and may subscribe by a pattern.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.broker.groups.assignors import Assignment as Partitions
from ottla.broker.groups.consumer_member import by_topic, of_topics
from ottla.broker.groups.consumer_requests import Heartbeat, HeartbeatOutcome
from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.dialects.kafka.handlers.group_rows import client_host, complete_once
from ottla.errors import KafkaError, NotCoordinator
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

OWN_IDS_FROM_VERSION: Final = 1
UNCHANGED: Final = -1


def handle(request: ConsumerGroupHeartbeatRequest, context: RequestContext) -> LaterAnswer:
    later = LaterAnswer()
    later.hurry = lambda: later.complete(_response(NotCoordinator()))
    context.broker.groups.consumer_heartbeat(
        _heartbeat(request, context), lambda outcome: complete_once(later, _response(outcome))
    )
    return later


def _heartbeat(request: ConsumerGroupHeartbeatRequest, context: RequestContext) -> Heartbeat:
    timeout_ms = request.rebalance_timeout_ms
    return Heartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        client_id=context.client_id or "",
        client_host=client_host(context),
        rebalance_timeout_ms=None if timeout_ms == UNCHANGED else timeout_ms,
        subscribed_topics=request.subscribed_topic_names,
        subscribed_pattern=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=_owned(request.topic_partitions),
        brings_own_id=context.api_version >= OWN_IDS_FROM_VERSION,
    )


def _owned(topics: Iterable[TopicPartitions] | None) -> Partitions | None:
    return None if topics is None else of_topics((topic.topic_id, topic.partitions) for topic in topics)


def _response(outcome: HeartbeatOutcome | KafkaError) -> ConsumerGroupHeartbeatResponse:
    if isinstance(outcome, KafkaError):
        return ConsumerGroupHeartbeatResponse(error_code=outcome.code, error_message=str(outcome))
    return ConsumerGroupHeartbeatResponse(
        member_id=outcome.member_id,
        member_epoch=outcome.member_epoch,
        heartbeat_interval_ms=outcome.heartbeat_interval_ms,
        assignment=None
        if outcome.assigned is None
        else Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in by_topic(outcome.assigned).items()
            ]
        ),
    )
