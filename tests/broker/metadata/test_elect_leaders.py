"""ElectLeaders, decided: on one broker nothing changes, and the reasons are Kafka's."""

from __future__ import annotations

import pytest

from ottla.broker.metadata.elect_leaders import (
    ElectionType,
    check_election_type,
    decide_election,
    elections_needed,
)
from ottla.broker.metadata.records import PartitionRecord, TopicRecord
from ottla.errors import InvalidRequest
from tests.broker.metadata.harness import state_of, topic_id

T1 = topic_id(1)


def partition(number: int, replicas: list[int], leader: int) -> PartitionRecord:
    return PartitionRecord(partition_id=number, topic_id=T1, replicas=replicas, isr=[1], leader=leader)


STATE = state_of(
    TopicRecord(name="t", topic_id=T1),
    partition(0, [1], 1),
    partition(1, [2, 1], 1),
    partition(2, [2], -1),
)


@pytest.mark.parametrize(
    ("election", "number", "error"),
    [
        (ElectionType.PREFERRED, 0, "ELECTION_NOT_NEEDED"),
        (ElectionType.PREFERRED, 1, "PREFERRED_LEADER_NOT_AVAILABLE"),
        (ElectionType.PREFERRED, 2, "PREFERRED_LEADER_NOT_AVAILABLE"),
        (ElectionType.UNCLEAN, 0, "ELECTION_NOT_NEEDED"),
        (ElectionType.UNCLEAN, 1, "ELECTION_NOT_NEEDED"),
        (ElectionType.UNCLEAN, 2, "ELIGIBLE_LEADERS_NOT_AVAILABLE"),
        (ElectionType.PREFERRED, 9, "UNKNOWN_TOPIC_OR_PARTITION"),
        (ElectionType.PREFERRED, -1, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_why_no_other_leader_is_elected(election: ElectionType, number: int, error: str) -> None:
    assert decide_election(STATE, election, "t", number).name == error


def test_an_unknown_topic_has_no_elections() -> None:
    assert decide_election(STATE, ElectionType.UNCLEAN, "nope", 0).name == "UNKNOWN_TOPIC_OR_PARTITION"


def test_of_all_partitions_those_are_told_whose_leader_should_change() -> None:
    ((name, rows),) = elections_needed(STATE, ElectionType.PREFERRED)
    assert (name, [number for number, _ in rows]) == ("t", [1, 2])
    ((_, unclean),) = elections_needed(STATE, ElectionType.UNCLEAN)
    assert [number for number, _ in unclean] == [2]


def test_there_are_two_kinds_of_elections() -> None:
    assert [check_election_type(number) for number in (0, 1)] == [ElectionType.PREFERRED, ElectionType.UNCLEAN]
    with pytest.raises(InvalidRequest):
        check_election_type(7)
