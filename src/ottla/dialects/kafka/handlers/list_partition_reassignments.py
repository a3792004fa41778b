"""ListPartitionReassignments v0: partitions that are on their way to other brokers (KIP-455).

Only a directory that came from a larger cluster can have any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ottla.broker.metadata.image import MetadataView, PartitionImage
from ottla.dialects.kafka.answers import RequestContext
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(request: ListPartitionReassignmentsRequest, context: RequestContext) -> ListPartitionReassignmentsResponse:
    topics = [
        OngoingTopicReassignment(name=name, partitions=moving)
        for name, partitions in _asked(request, context.broker.image)
        if (moving := [_row(one) for one in partitions if one.adding_replicas or one.removing_replicas])
    ]
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


def _asked(
    request: ListPartitionReassignmentsRequest, image: MetadataView
) -> Iterator[tuple[str, Iterable[PartitionImage]]]:
    if request.topics is None:
        for topic in image.topics():
            yield topic.name, topic.partitions
        return
    for asked in request.topics:
        found = image.topic(asked.name)
        if found is not None:
            numbers = dict.fromkeys(asked.partition_indexes)
            yield asked.name, [one for number in numbers if (one := found.find_partition(number)) is not None]


def _row(partition: PartitionImage) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        partition_index=partition.partition,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding_replicas),
        removing_replicas=list(partition.removing_replicas),
    )
