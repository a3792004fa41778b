"""DescribeQuorum v0 to v2: who votes on the metadata and how far each voter is (KIP-595, KIP-836, KIP-853).

There is one partition to ask about. A request for anything else, or for more, gets the same error for all it names.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.metadata.quorum import QuorumImage
from ottla.dialects.kafka.answers import RequestContext
from ottla.errors import UnknownTopicOrPartition
from ottla.model import METADATA_TOPIC
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)

NODES_FROM_VERSION: Final = 2


def handle(request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    asked = [(topic.topic_name, [one.partition_index for one in topic.partitions]) for topic in request.topics]
    if asked != [(METADATA_TOPIC, [0])]:
        return _refusal(request)
    quorum = context.broker.administration.quorum
    partition = _partition(quorum, context.broker.clock.wall_ms())
    topic = DescribeQuorumResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    response = DescribeQuorumResponse(error_message="", topics=[topic])
    if context.api_version >= NODES_FROM_VERSION:
        partition.current_voters[0].replica_directory_id = quorum.voter.directory_id
        response.nodes = [_node(quorum)]
    return response


def _partition(quorum: QuorumImage, now_ms: int) -> DescribeQuorumResponsePartitionData:
    voter = ReplicaState(
        replica_id=quorum.voter.node_id,
        log_end_offset=quorum.log_end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return DescribeQuorumResponsePartitionData(
        error_message="",
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[voter],
    )


def _node(quorum: QuorumImage) -> Node:
    listeners = [Listener(name=one.name, host=one.host, port=one.port) for one in quorum.voter.listeners]
    return Node(node_id=quorum.voter.node_id, listeners=listeners)


def _refusal(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    error = UnknownTopicOrPartition("Only the partition of the metadata has a quorum.")
    return DescribeQuorumResponse(
        error_message="",
        topics=[
            DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    DescribeQuorumResponsePartitionData(
                        partition_index=partition.partition_index,
                        error_code=error.code,
                        error_message=error.message,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
