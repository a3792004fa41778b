"""Deciding DeleteTopics: by name or by id, each row on its own.

Pure. A topic's settings go with its record; its partitions' files are the broker's matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ottla.broker.metadata.decision import Decision
from ottla.broker.metadata.image import MetadataView, TopicImage
from ottla.broker.metadata.records import MetadataRecord, RemoveTopicRecord
from ottla.errors import InvalidRequest, KafkaError, UnknownTopicId, UnknownTopicOrPartition
from ottla.model import ZERO_TOPIC_ID, TopicId, format_uuid


@dataclass(frozen=True, slots=True)
class TopicReference:
    """A topic by name, by id, or, from a confused client, by both or neither."""

    name: str | None = None
    topic_id: TopicId = ZERO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    """One row of the answer: the topic as far as it is known, and what went wrong, if anything did."""

    name: str | None
    topic_id: TopicId
    error: KafkaError | None = None


def decide_delete_topics(view: MetadataView, references: Sequence[TopicReference]) -> Decision[list[DeletedTopic]]:
    """Decide a whole request. A topic that is named more than once, in whatever way, is not deleted."""
    topics = [_find_topic(view, reference) for reference in references]
    times = Counter(_identity(reference, topic) for reference, topic in zip(references, topics, strict=True))
    answer: dict[object, DeletedTopic] = {}
    records: list[MetadataRecord] = []
    for reference, topic in zip(references, topics, strict=True):
        identity = _identity(reference, topic)
        if times[identity] > 1:
            answer[identity] = _repeated(reference, answer.get(identity))
            continue
        try:
            found = _check_reference(reference, topic)
        except KafkaError as error:
            answer[identity] = DeletedTopic(reference.name, reference.topic_id, error)
        else:
            answer[identity] = DeletedTopic(found.name, found.topic_id)
            records.append(RemoveTopicRecord(topic_id=found.topic_id))
    return Decision(records, list(answer.values()))


def _find_topic(view: MetadataView, reference: TopicReference) -> TopicImage | None:
    if reference.topic_id != ZERO_TOPIC_ID:
        return view.topic_by_id(reference.topic_id)
    return None if reference.name is None else view.topic(reference.name)


def _identity(reference: TopicReference, topic: TopicImage | None) -> object:
    return topic.topic_id if topic is not None else reference


def _repeated(reference: TopicReference, earlier: DeletedTopic | None) -> DeletedTopic:
    """The one row of a topic that is named several times shows every name and id that it was called by."""
    name = reference.name if earlier is None or reference.name is not None else earlier.name
    topic_id = reference.topic_id if earlier is None or reference.topic_id != ZERO_TOPIC_ID else earlier.topic_id
    return DeletedTopic(name, topic_id, InvalidRequest("The request names this topic more than once."))


def _check_reference(reference: TopicReference, topic: TopicImage | None) -> TopicImage:
    by_id = reference.topic_id != ZERO_TOPIC_ID
    if reference.name is None and not by_id:
        raise InvalidRequest("Neither a topic's name nor its id was given.")
    if reference.name is not None and by_id:
        raise InvalidRequest("A topic's name and its id cannot be given together.")
    if topic is not None:
        return topic
    if by_id:
        raise UnknownTopicId(f"There is no topic with the id {format_uuid(reference.topic_id)}.")
    raise UnknownTopicOrPartition(f"There is no topic '{reference.name}'.")
