"""ElectLeaders v0 to v2: have partitions led by their first replica, or by any (KIP-183, KIP-460).

One broker leads all it has, so rows say why nothing changed. Asked about all partitions, only those are told of whose
leader should change.
"""

from __future__ import annotations

from ottla.broker.metadata.elect_leaders import (
    ElectionType,
    check_election_type,
    decide_election,
    elections_needed,
)
from ottla.broker.metadata.image import MetadataView
from ottla.dialects.kafka.answers import RequestContext
from ottla.errors import InvalidRequest, KafkaError
from ottla.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)


def handle(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    if request.topic_partitions is not None and not request.topic_partitions:
        return ElectLeadersResponse()  # as in Kafka, whatever the type
    try:
        election = check_election_type(request.election_type)
    except InvalidRequest as error:
        return _refusal(request, error)
    image = context.broker.image
    if request.topic_partitions is None:
        rows = [_topic(name, outcomes) for name, outcomes in elections_needed(image, election)]
    else:
        rows = [_asked_topic(image, election, asked) for asked in request.topic_partitions]
    return ElectLeadersResponse(replica_election_results=rows)


def _asked_topic(image: MetadataView, election: ElectionType, asked: TopicPartitions) -> ReplicaElectionResult:
    return _topic(
        asked.topic, [(number, decide_election(image, election, asked.topic, number)) for number in asked.partitions]
    )


def _refusal(request: ElectLeadersRequest, error: KafkaError) -> ElectLeadersResponse:
    rows = [
        _topic(asked.topic, [(number, error) for number in asked.partitions])
        for asked in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(error_code=error.code, replica_election_results=rows)


def _topic(name: str, outcomes: list[tuple[int, KafkaError]]) -> ReplicaElectionResult:
    return ReplicaElectionResult(
        topic=name,
        partition_result=[
            PartitionResult(partition_id=number, error_code=error.code, error_message=str(error))
            for number, error in outcomes
        ],
    )
