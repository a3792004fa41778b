"""AddRaftVoter v0 and v1: have another node vote on the metadata (KIP-853). This node votes alone, and stays alone."""

from __future__ import annotations

from ottla.broker.metadata.quorum import QuorumListener, Voter, refuse_new_voter
from ottla.dialects.kafka.answers import RequestContext
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


def handle(request: AddRaftVoterRequest, context: RequestContext) -> AddRaftVoterResponse:
    broker = context.broker
    listeners = [QuorumListener(one.name, one.host, one.port) for one in request.listeners]
    voter = Voter(request.voter_id, request.voter_directory_id, listeners)
    error = refuse_new_voter(broker.administration.quorum, broker.cluster_id, request.cluster_id, voter)
    return AddRaftVoterResponse(error_code=error.code, error_message=str(error))
