"""Pauses grow, within bounds; errors are sorted by what helps."""

from __future__ import annotations

from ottla.client.errors import ClusterUnreachable, ConnectionLost
from ottla.client.retry import Backoff, Reaction, reaction_to
from ottla.errors import (
    InvalidTopicException,
    MessageTooLarge,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
)


def test_pauses_double_up_to_the_maximum() -> None:
    backoff = Backoff(100, 1000)

    assert [backoff.delay_seconds(failures, lambda: 0.5) for failures in (1, 2, 3, 4, 5, 100)] == [
        0.1,
        0.2,
        0.4,
        0.8,
        1.0,
        1.0,
    ]


def test_pauses_are_spread_by_a_fifth() -> None:
    backoff = Backoff(100, 1000)

    assert round(backoff.delay_seconds(1, lambda: 0.0), 6) == 0.08
    assert round(backoff.delay_seconds(1, lambda: 0.999999999), 6) == 0.12


def test_errors_say_what_helps() -> None:
    assert reaction_to(NotLeaderOrFollower()) is Reaction.REFRESH
    assert reaction_to(UnknownTopicOrPartition()) is Reaction.REFRESH
    assert reaction_to(ConnectionLost("h:1", "gone")) is Reaction.REFRESH
    assert reaction_to(NotEnoughReplicas()) is Reaction.RETRY
    assert reaction_to(MessageTooLarge()) is Reaction.GIVE_UP
    assert reaction_to(InvalidTopicException()) is Reaction.GIVE_UP


def test_an_unreachable_cluster_names_every_address_and_why() -> None:
    error = ClusterUnreachable({"a:1": "connection refused", "b:2": "no route"})

    assert str(error) == "a:1: connection refused; b:2: no route"
    assert (error.name, error.code) == ("NETWORK_EXCEPTION", 13)
