"""RemoveRaftVoter v0: have a node vote on the metadata no more (KIP-853). The only voter stays."""

from __future__ import annotations

from ottla.broker.metadata.quorum import refuse_voter_removal
from ottla.dialects.kafka.answers import RequestContext
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


def handle(request: RemoveRaftVoterRequest, context: RequestContext) -> RemoveRaftVoterResponse:
    broker = context.broker
    error = refuse_voter_removal(
        broker.administration.quorum,
        broker.cluster_id,
        request.cluster_id,
        request.voter_id,
        request.voter_directory_id,
    )
    return RemoveRaftVoterResponse(error_code=error.code, error_message=str(error))
