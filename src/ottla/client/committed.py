"""Committed offsets of a group: commit, look up, forget. Requests and their answers, for members and for tools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.coordinator import GroupLink
from ottla.client.errors import raise_error
from ottla.errors import KafkaError, StaleMemberEpoch, UnknownTopicId, UnknownTopicOrPartition, error_for_code
from ottla.model import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

BATCHED_GROUPS_FROM: Final = 8
TOPIC_IDS_FROM: Final = 10


class OffsetAndMetadata(NamedTuple):
    """A committed position, with the leader epoch of the record before it and a note of whoever committed it."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class MemberIdentity:
    """Who commits. The defaults are nobody: an administrator, or a consumer that assigns itself."""

    member_id: str = ""
    epoch: int = -1
    """The generation (classic) or member epoch (KIP-848)."""
    instance_id: str | None = None


NOBODY: Final = MemberIdentity()
CommitAnswers = dict[TopicPartition, "KafkaError | None"]


async def commit_offsets(
    link: GroupLink, offsets: Mapping[TopicPartition, OffsetAndMetadata], identity: MemberIdentity = NOBODY
) -> CommitAnswers:
    """Commit; returns for each partition why it failed, or None. Raises what kept all of it from being answered."""
    if not offsets:
        return {}
    deadline = link.cluster.deadline()
    attempt = 0
    while True:
        try:
            answers = await _commit_once(link, offsets, identity, deadline)
            failed = next((answer for answer in answers.values() if answer is not None and answer.retriable), None)
            if failed is None or isinstance(failed, UnknownTopicOrPartition):
                return answers
            error: KafkaError = failed
        except KafkaError as raised:
            error = raised
        attempt += 1
        await link.pause_after(error, attempt, deadline)


async def _commit_once(
    link: GroupLink, offsets: Mapping[TopicPartition, OffsetAndMetadata], identity: MemberIdentity, deadline: float
) -> CommitAnswers:
    connection = await link.connection(deadline=deadline)
    version = connection.version_for(ApiKey.OFFSET_COMMIT)
    ids = await _topic_ids(link.cluster, {partition.topic for partition in offsets}, version)
    topics: defaultdict[str, list[OffsetCommitRequestPartition]] = defaultdict(list)
    for partition, committed in offsets.items():
        topics[partition.topic].append(
            OffsetCommitRequestPartition(
                partition_index=partition.partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            )
        )
    request = OffsetCommitRequest(
        group_id=link.group_id,
        generation_id_or_member_epoch=identity.epoch,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
        topics=[
            OffsetCommitRequestTopic(name=name, topic_id=ids.get(name, ZERO_TOPIC_ID), partitions=rows)
            for name, rows in topics.items()
        ],
    )
    response = await connection.send(ApiKey.OFFSET_COMMIT, request, _usable(version, ids, topics), None)
    assert isinstance(response, OffsetCommitResponse)
    names: dict[bytes, str] = {topic_id: name for name, topic_id in ids.items()}
    return {
        TopicPartition(names.get(topic.topic_id, topic.name), row.partition_index): error_for_code(row.error_code)
        for topic in response.topics
        for row in topic.partitions
    }


async def fetch_committed(
    link: GroupLink,
    partitions: Iterable[TopicPartition] | None,
    identity: MemberIdentity = NOBODY,
    *,
    require_stable: bool = True,
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return what a group has committed for these partitions, for all that it has where None; the others are left out.

    Raises what the group or a partition is refused with.
    """
    wanted = None if partitions is None else list(partitions)
    deadline = link.cluster.deadline()
    attempt = 0
    while True:
        try:
            return await _fetch_once(link, wanted, identity, deadline, require_stable=require_stable)
        except StaleMemberEpoch:
            raise
        except KafkaError as error:
            attempt += 1
            await link.pause_after(error, attempt, deadline)


async def _fetch_once(
    link: GroupLink,
    partitions: list[TopicPartition] | None,
    identity: MemberIdentity,
    deadline: float,
    *,
    require_stable: bool,
) -> dict[TopicPartition, OffsetAndMetadata]:
    connection = await link.connection(deadline=deadline)
    version = connection.version_for(ApiKey.OFFSET_FETCH)
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for partition in partitions or ():
        topics[partition.topic].append(partition.partition)
    ids = await _topic_ids(link.cluster, topics, version)
    is_by_id = partitions is None or topics.keys() <= ids.keys()
    version = min(version, TOPIC_IDS_FROM - (partitions is None or not is_by_id))
    if version >= BATCHED_GROUPS_FROM:
        group = OffsetFetchRequestGroup(
            group_id=link.group_id,
            member_id=identity.member_id or None,
            member_epoch=identity.epoch,
            topics=None
            if partitions is None
            else [
                OffsetFetchRequestTopics(name=name, topic_id=ids.get(name, ZERO_TOPIC_ID), partition_indexes=numbers)
                for name, numbers in topics.items()
            ],
        )
        request = OffsetFetchRequest(groups=[group], require_stable=require_stable)
    else:
        rows = [OffsetFetchRequestTopic(name=name, partition_indexes=numbers) for name, numbers in topics.items()]
        request = OffsetFetchRequest(group_id=link.group_id, topics=None if partitions is None else rows)
    response = await connection.send(ApiKey.OFFSET_FETCH, request, version, None)
    assert isinstance(response, OffsetFetchResponse)
    return _read(response, {topic_id: name for name, topic_id in ids.items()})


def _read(response: OffsetFetchResponse, names: Mapping[bytes, str]) -> dict[TopicPartition, OffsetAndMetadata]:
    raise_error(response.groups[0].error_code if response.groups else response.error_code)
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic in response.groups[0].topics if response.groups else ():
        name = names.get(topic.topic_id, topic.name)
        for row in topic.partitions:
            committed = OffsetAndMetadata(row.committed_offset, row.committed_leader_epoch, row.metadata or "")
            _take(found, TopicPartition(name, row.partition_index), row.error_code, committed)
    for older in response.topics:
        for single in older.partitions:
            committed = OffsetAndMetadata(single.committed_offset, single.committed_leader_epoch, single.metadata or "")
            _take(found, TopicPartition(older.name, single.partition_index), single.error_code, committed)
    return found


def _take(
    found: dict[TopicPartition, OffsetAndMetadata],
    partition: TopicPartition,
    error_code: int,
    committed: OffsetAndMetadata,
) -> None:
    error = error_for_code(error_code)
    if error is not None and not isinstance(error, UnknownTopicOrPartition | UnknownTopicId):
        raise error
    if error is None and committed.offset >= 0:
        found[partition] = committed


async def _topic_ids(cluster: Cluster, names: Iterable[str], version: int) -> dict[str, TopicId]:
    """Return the ids of those topics that have one; none where the version names topics."""
    if version < TOPIC_IDS_FROM:
        return {}
    missing = [name for name in names if name not in cluster.topics]
    if missing:
        cluster.want(missing)
        await cluster.refresh()
    known = {name: topic for name in names if (topic := cluster.topics.get(name)) is not None}
    return {name: topic.topic_id for name, topic in known.items() if topic.topic_id != ZERO_TOPIC_ID}


def _usable(version: int, ids: Mapping[str, TopicId], names: Iterable[str]) -> int:
    """Return the version to speak: the last one that names topics, where one of them has no id."""
    return version if all(name in ids for name in names) else min(version, TOPIC_IDS_FROM - 1)
