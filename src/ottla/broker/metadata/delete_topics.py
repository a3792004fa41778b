"""Deciding DeleteTopics: by name or by id, each row on its own.

Pure. A topic's settings go with its record; its partitions' files are the broker's matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ottla.broker.metadata.decision import Decision
from ottla.broker.metadata.image import MetadataView, TopicImage
from ottla.broker.metadata.records import MetadataRecord, RemoveTopicRecord
from ottla.errors import InvalidRequest, KafkaError, UnknownTopicId, UnknownTopicOrPartition
from ottla.model import ZERO_TOPIC_ID, TopicId, format_uuid


class TopicReference(NamedTuple):
    """A topic by name, by id, or, from a confused client, by both or neither."""

    name: str | None = None
    topic_id: TopicId = ZERO_TOPIC_ID


class DeletedTopic(NamedTuple):
    """One row of the answer: the topic as far as it is known, and what went wrong, if anything did."""

    name: str | None
    topic_id: TopicId
    error: KafkaError | None = None


def decide_delete_topics(view: MetadataView, references: Sequence[TopicReference]) -> Decision[list[DeletedTopic]]:
    """Decide a whole request. A topic that is named twice, by name or id, is not deleted, and has one row."""
    answer: list[DeletedTopic] = []
    asked: list[TopicReference] = []
    for reference in references:
        error = reference_error(reference)
        if error is None:
            asked.append(reference)
        else:
            answer.append(DeletedTopic(reference.name, reference.topic_id, error))
    records: list[MetadataRecord] = []
    for reference, error in _without_repeats(view, asked):
        topic = None if error is not None else _find_topic(view, reference)
        if topic is None:
            answer.append(DeletedTopic(reference.name, reference.topic_id, error or _unknown(reference)))
        else:
            answer.append(DeletedTopic(topic.name, topic.topic_id))
            records.append(RemoveTopicRecord(topic_id=topic.topic_id))
    return Decision(records, answer)


def reference_error(reference: TopicReference) -> KafkaError | None:
    """Return why a reference names no topic at all, None when it does."""
    if reference.name is None and reference.topic_id == ZERO_TOPIC_ID:
        return InvalidRequest("Neither a topic's name nor its id was given.")
    if reference.name is not None and reference.topic_id != ZERO_TOPIC_ID:
        return InvalidRequest("A topic's name and its id cannot be given together.")
    return None


def _without_repeats(
    view: MetadataView, references: Sequence[TopicReference]
) -> Iterator[tuple[TopicReference, KafkaError | None]]:
    """Yield each topic once: as it was named, or with all its names and the error when it was named repeatedly."""
    groups: dict[object, list[TopicReference]] = {}
    for reference in references:
        topic = _find_topic(view, reference)
        groups.setdefault(reference if topic is None else topic.topic_id, []).append(reference)
    for group in groups.values():
        if len(group) == 1:
            yield group[0], None
        else:
            names = [reference.name for reference in group if reference.name is not None]
            ids = [reference.topic_id for reference in group if reference.topic_id != ZERO_TOPIC_ID]
            merged = TopicReference(names[0] if names else None, ids[0] if ids else ZERO_TOPIC_ID)
            yield merged, InvalidRequest("The request names this topic more than once.")


def _find_topic(view: MetadataView, reference: TopicReference) -> TopicImage | None:
    if reference.name is not None:
        return view.topic(reference.name)
    return view.topic_by_id(reference.topic_id)


def _unknown(reference: TopicReference) -> KafkaError:
    if reference.name is None:
        return UnknownTopicId(f"There is no topic with the id {format_uuid(reference.topic_id)}.")
    return UnknownTopicOrPartition(f"There is no topic '{reference.name}'.")
