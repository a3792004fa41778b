"""`ottla ready` says yes when everything would work, and not before."""

from __future__ import annotations

from ottla.cli.ready import why_not_ready
from ottla.errors import CoordinatorLoadInProgress, KafkaError, UnsupportedVersion
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.messages.create_topics import CreateTopicsResponse
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.client.scripted import BOOTSTRAP, SERVED, ScriptedBroker, ScriptedCluster


class Starting(ScriptedBroker):
    """A broker that serves topics and producers; what of groups, its cluster says."""

    served = (*SERVED, ApiKey.CREATE_TOPICS, ApiKey.LIST_GROUPS)

    def _create_topics(self, request: Message) -> Message:
        return CreateTopicsResponse(topics=[])

    def _list_groups(self, request: ListGroupsRequest) -> Message:
        return ListGroupsResponse(error_code=0, groups=[])


class Cluster(ScriptedCluster):
    broker_type = Starting


def loading(broker: ScriptedBroker, request: Message) -> Message:
    return ListGroupsResponse(error_code=CoordinatorLoadInProgress.code, groups=[])


def old(broker: ScriptedBroker, request: Message) -> Message:
    """Versions of a broker that cannot be asked for some groups only."""
    answer = broker.usual(request)
    assert isinstance(answer, ApiVersionsResponse)
    for row in answer.api_keys:
        if row.api_key == ApiKey.LIST_GROUPS:
            row.max_version = 3
    return answer


def ask(cluster: Cluster) -> KafkaError | None:
    return cluster.run(lambda: why_not_ready(BOOTSTRAP, 1.0))


def test_a_broker_that_still_reads_its_groups_is_not_ready() -> None:
    """A member that joins now would be turned away."""
    cluster = Cluster()
    cluster.reply(ApiKey.LIST_GROUPS, loading)
    assert isinstance(ask(cluster), CoordinatorLoadInProgress)
    assert ask(cluster) is None


def test_an_old_broker_is_not_asked_about_groups() -> None:
    cluster = Cluster()
    cluster.reply(ApiKey.API_VERSIONS, old, old)
    assert not isinstance(ask(cluster), UnsupportedVersion)
    assert cluster.sent(ListGroupsRequest) == []
