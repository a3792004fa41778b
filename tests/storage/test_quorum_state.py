"""`quorum-state`: Kafka's bytes in, the same bytes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage.files import LocalFileSystem
from ottla.storage.quorum_state import (
    CorruptQuorumState,
    QuorumState,
    format_quorum_state,
    parse_quorum_state,
    read_quorum_state,
    write_quorum_state,
)

# As Apache Kafka 4.4.0 wrote them: a voter whose quorum stands in its log, and an observer that had not learnt of it.
VOTER = '{"leaderId":1,"leaderEpoch":3,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
OBSERVER = (
    '{"clusterId":"","leaderId":3000,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
    '"currentVoters":[],"data_version":0}'
)


@pytest.mark.parametrize("text", [VOTER, OBSERVER])
def test_kafkas_files_come_back_byte_for_byte(text: str) -> None:
    assert format_quorum_state(parse_quorum_state(text)) == text


def test_an_election_changes_leader_and_epoch_and_forgets_the_vote() -> None:
    state = QuorumState(leader_id=3, leader_epoch=7, voted_id=2).elected(1, 8)
    assert (state.leader_id, state.leader_epoch, state.voted_id, state.data_version) == (1, 8, -1, 1)


def test_voters_of_an_old_file_are_kept() -> None:
    text = OBSERVER.replace("[]", '[{"voterId":1},{"voterId":2}]')
    assert parse_quorum_state(text).current_voters == (1, 2)
    assert format_quorum_state(parse_quorum_state(text)) == text


@pytest.mark.parametrize(
    "text", ["", "garbage", "{}", "[]", '{"data_version":2,"leaderId":1,"leaderEpoch":1,"votedId":-1}']
)
def test_a_file_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(CorruptQuorumState):
        parse_quorum_state(text)


def test_a_state_survives_on_disk_and_a_missing_one_is_none(tmp_path: Path) -> None:
    path = str(tmp_path / "quorum-state")
    assert read_quorum_state(LocalFileSystem(), path) is None
    write_quorum_state(LocalFileSystem(), path, parse_quorum_state(VOTER))
    assert read_quorum_state(LocalFileSystem(), path) == parse_quorum_state(VOTER)
    assert (tmp_path / "quorum-state").read_text() == VOTER


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "quorum-state").write_bytes(b"\xff\xfe")
    with pytest.raises(CorruptQuorumState):
        read_quorum_state(LocalFileSystem(), str(tmp_path / "quorum-state"))
