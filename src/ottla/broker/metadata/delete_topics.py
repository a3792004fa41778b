"""Deciding DeleteTopics: by name or by id, each row on its own.

Pure. A topic's settings go with its record; its partitions' files are the broker's matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.broker.metadata.decision import Decision
from ottla.broker.metadata.image import MetadataView, TopicImage
from ottla.broker.metadata.records import MetadataRecord, RemoveTopicRecord
from ottla.broker.turns import Steps, at_once
from ottla.errors import InvalidRequest, KafkaError, UnknownTopicId, UnknownTopicOrPartition
from ottla.model import ZERO_TOPIC_ID, TopicId, format_uuid

REFERENCES_A_STEP: Final = 256


class TopicReference(NamedTuple):
    """A topic by name, by id, or, from a confused client, by both or neither."""

    name: str | None = None
    topic_id: TopicId = ZERO_TOPIC_ID


NamedTopic = tuple[TopicReference, KafkaError | None]
"""What a request names, and what is wrong with how it does."""


class DeletedTopic(NamedTuple):
    """One row of the answer: the topic as far as it is known, and what went wrong, if anything did."""

    name: str | None
    topic_id: TopicId
    error: KafkaError | None = None


def decide_delete_topics(view: MetadataView, references: Sequence[TopicReference]) -> Decision[list[DeletedTopic]]:
    """Decide a whole request. A topic that is named twice, by name or id, is not deleted, and has one row."""
    return decide_each(view, at_once(named_once(view, references)))


def decide_each(view: MetadataView, asked: Iterable[NamedTopic]) -> Decision[list[DeletedTopic]]:
    """Decide a request, or a part of it, whose topics are named once."""
    answer: list[DeletedTopic] = []
    records: list[MetadataRecord] = []
    for reference, error in asked:
        topic = None if error is not None else find_topic(view, reference)
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


def named_once(view: MetadataView, references: Sequence[TopicReference]) -> Steps[list[NamedTopic]]:
    """Return what names no topic, then each topic once: as it was named, or with all its names and the error for that.

    That is an order of the answer. Goes in steps.
    """
    refused: list[NamedTopic] = []
    groups: dict[object, list[TopicReference]] = {}
    for number, reference in enumerate(references, 1):
        error = reference_error(reference)
        if error is not None:
            refused.append((reference, error))
        else:
            topic = find_topic(view, reference)
            groups.setdefault(reference if topic is None else topic.topic_id, []).append(reference)
        if number % REFERENCES_A_STEP == 0:
            yield
    return refused + [_merged(group) for group in groups.values()]


def _merged(group: Sequence[TopicReference]) -> NamedTopic:
    if len(group) == 1:
        return group[0], None
    names = [reference.name for reference in group if reference.name is not None]
    ids = [reference.topic_id for reference in group if reference.topic_id != ZERO_TOPIC_ID]
    merged = TopicReference(names[0] if names else None, ids[0] if ids else ZERO_TOPIC_ID)
    return merged, InvalidRequest("The request names this topic more than once.")


def find_topic(view: MetadataView, reference: TopicReference) -> TopicImage | None:
    if reference.name is not None:
        return view.topic(reference.name)
    return view.topic_by_id(reference.topic_id)


def _unknown(reference: TopicReference) -> KafkaError:
    if reference.name is None:
        return UnknownTopicId(f"There is no topic with the id {format_uuid(reference.topic_id)}.")
    return UnknownTopicOrPartition(f"There is no topic '{reference.name}'.")
