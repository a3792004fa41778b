"""What a consumer says in an incremental fetch session, and what it says after trouble (KIP-227)."""

from __future__ import annotations

from ottla.client.fetch_session import FetchPosition, FetchSession
from ottla.model import TopicId, TopicPartition

ID, OTHER_ID = TopicId(b"i" * 16), TopicId(b"o" * 16)
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def at(offset: int, topic_id: TopicId = ID) -> FetchPosition:
    return FetchPosition(topic_id, offset, 0, 1000)


def established(session: FetchSession) -> FetchSession:
    session.plan({A: at(5), B: at(7)})
    session.accept(42)
    return session


def test_the_first_request_names_everything() -> None:
    said = FetchSession().plan({A: at(5), B: at(7)})

    assert (said.session_id, said.session_epoch) == (0, 0)
    assert said.positions == [(A, at(5)), (B, at(7))]


def test_later_requests_name_what_moved() -> None:
    session = established(FetchSession())

    said = session.plan({A: at(6), B: at(7)})

    assert (said.session_id, said.session_epoch) == (42, 1)
    assert (said.positions, said.forgotten) == ([(A, at(6))], [])
    session.accept(42)
    assert session.plan({A: at(6), B: at(7)}).session_epoch == 2


def test_a_partition_that_is_not_wanted_is_forgotten_under_its_old_id() -> None:
    session = established(FetchSession())

    assert session.plan({B: at(7)}).forgotten == [(A, ID)]


def test_a_topic_made_anew_is_forgotten_and_named_again() -> None:
    session = established(FetchSession())

    said = session.plan({A: at(0, OTHER_ID), B: at(7)})

    assert said.forgotten == [(A, ID)]
    assert said.positions == [(A, at(0, OTHER_ID))]


def test_a_broker_without_sessions_is_told_everything_each_time() -> None:
    session = FetchSession()
    session.plan({A: at(5)})
    session.accept(0)

    said = session.plan({A: at(5)})

    assert (said.session_id, said.session_epoch, said.positions) == (0, 0, [(A, at(5))])


def test_after_trouble_everything_is_named_and_the_session_replaced() -> None:
    session = established(FetchSession())
    session.reset()
    assert session.plan({A: at(5)})[:2] == (42, 0)

    session.reset(is_forgotten=True)
    assert session.plan({A: at(5)})[:2] == (0, 0)


def test_the_epoch_goes_on_at_one_after_its_largest() -> None:
    session = established(FetchSession())
    session._epoch = 2**31 - 1
    session.accept(42)

    assert session.plan({A: at(5)}).session_epoch == 1
