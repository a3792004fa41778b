"""DeleteTopics, decided: by name, by id, and by confused mixtures of both."""

from __future__ import annotations

from ottla.broker.metadata.delete_topics import TopicReference, decide_delete_topics
from ottla.broker.metadata.records import RemoveTopicRecord, TopicRecord
from ottla.model import TopicId
from tests.broker.metadata.harness import state_of, topic_id

T1, T2, NOBODY = topic_id(1), topic_id(2), topic_id(9)
STATE = state_of(TopicRecord(name="a", topic_id=T1), TopicRecord(name="b", topic_id=T2))


def rows(*references: TopicReference) -> list[tuple[str | None, TopicId, str | None]]:
    answer = decide_delete_topics(STATE, references).answer
    return [(row.name, row.topic_id, None if row.error is None else row.error.name) for row in answer]


def by_name(name: str) -> TopicReference:
    return TopicReference(name)


def by_id(topic: TopicId) -> TopicReference:
    return TopicReference(None, topic)


ZERO = TopicReference().topic_id


def test_topics_go_by_name_and_by_id_and_are_answered_with_both() -> None:
    decision = decide_delete_topics(STATE, [by_name("a"), by_id(T2)])
    assert decision.records == [RemoveTopicRecord(topic_id=T1), RemoveTopicRecord(topic_id=T2)]
    assert rows(by_name("a"), by_id(T2)) == [("a", T1, None), ("b", T2, None)]


def test_unknown_topics_keep_what_they_were_called_by() -> None:
    assert rows(by_name("nope"), by_id(NOBODY)) == [
        ("nope", ZERO, "UNKNOWN_TOPIC_OR_PARTITION"),
        (None, NOBODY, "UNKNOWN_TOPIC_ID"),
    ]


def test_a_topic_that_is_named_twice_stays() -> None:
    assert rows(by_name("a"), by_name("a")) == [("a", ZERO, "INVALID_REQUEST")]
    assert rows(by_id(T1), by_id(T1)) == [(None, T1, "INVALID_REQUEST")]
    assert rows(by_name("a"), by_id(T1)) == [("a", T1, "INVALID_REQUEST")]
    assert decide_delete_topics(STATE, [by_name("a"), by_id(T1)]).records == []


def test_an_unknown_topic_that_is_named_twice_is_an_invalid_request_too() -> None:
    assert rows(by_name("nope"), by_name("nope")) == [("nope", ZERO, "INVALID_REQUEST")]


def test_neither_and_both_are_refused_and_count_for_nothing() -> None:
    """Kafka deletes the topic by the second, sensible entry (seen on a running 4.4.0)."""
    assert rows(TopicReference(), TopicReference("a", NOBODY), by_name("a")) == [
        (None, ZERO, "INVALID_REQUEST"),
        ("a", NOBODY, "INVALID_REQUEST"),
        ("a", T1, None),
    ]
