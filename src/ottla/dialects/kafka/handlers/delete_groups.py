"""DeleteGroups v0 to v3: remove groups that nobody is in, with their offsets; answered when that is durable."""

from __future__ import annotations

from functools import partial

from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import ROWS_A_STEP, LaterAnswer, RequestContext, Settled
from ottla.errors import KafkaError
from ottla.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


def handle(request: DeleteGroupsRequest, context: RequestContext) -> Steps[Settled]:
    later = LaterAnswer()
    waiting = dict.fromkeys(request.groups_names)
    results: list[DeletableGroupResult] = []

    def take(group_id: str, error: KafkaError | None) -> None:
        results.append(_result(group_id, error))
        if len(results) == len(waiting):
            later.complete(DeleteGroupsResponse(results=results))

    if not waiting:
        later.complete(DeleteGroupsResponse())
    for number, group_id in enumerate(waiting, 1):
        context.broker.groups.delete_group(group_id, partial(take, group_id))
        if number % ROWS_A_STEP == 0:
            yield
    return later


def _result(group_id: str, error: KafkaError | None) -> DeletableGroupResult:
    if error is None:
        return DeletableGroupResult(group_id=group_id)
    return DeletableGroupResult(group_id=group_id, error_code=error.code, error_message=str(error))
