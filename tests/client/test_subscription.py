"""Positions, lag and what an assignment keeps."""

from __future__ import annotations

import pytest

from ottla.client.errors import NotAssigned
from ottla.client.subscription import PartitionState, Subscription
from ottla.model import LATEST_TIMESTAMP, TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_partitions_that_stay_keep_their_position_and_others_are_outdated() -> None:
    subscription = Subscription()
    subscription.assign([A, B])
    subscription.state(A).seek(5)
    gone = subscription.state(B)

    new = subscription.assign([A, TopicPartition("u", 0)])

    assert [state.partition for state in new] == [TopicPartition("u", 0)]
    assert subscription.state(A).position == 5
    assert gone.seek_count == 1
    with pytest.raises(NotAssigned, match="t-1"):
        subscription.state(B)


def test_lag_is_counted_from_the_position_or_the_log_start_and_never_negative() -> None:
    state = PartitionState(A)
    lags = [state.lag]
    state.seek(10)
    lags.append(state.lag)
    assert lags == [None, None]

    state.high_watermark, state.log_start_offset = 30, 0
    assert state.lag == 20
    state.log_start_offset = 25
    assert state.lag == 5
    state.high_watermark, state.log_start_offset = 8, 0
    assert state.lag == 0


def test_seeking_to_a_time_leaves_no_position_until_the_leader_answers() -> None:
    subscription = Subscription()
    subscription.assign([A])
    state = subscription.state(A)
    state.seek_to_time(LATEST_TIMESTAMP)

    assert not state.has_position
    assert subscription.without_position() == [state]
