"""The quorum of one voter, and why it stays one. The errors were seen on a running 4.4.0."""

from __future__ import annotations

import pytest

from ottla.broker.metadata.control import kraft_version_body, kraft_version_level, quorum_voter, voters_body
from ottla.broker.metadata.quorum import (
    NO_DIRECTORY,
    QuorumImage,
    QuorumListener,
    Voter,
    refuse_new_voter,
    refuse_voter_removal,
)
from tests.broker.metadata.harness import DIRECTORY_ID, MemoryStore, start

CONTROLLER = QuorumListener("CONTROLLER", "localhost", 9093)
OTHER = QuorumListener("OTHER", "localhost", 9094)
VOTER = Voter(1, DIRECTORY_ID, [CONTROLLER])
QUORUM = QuorumImage(1, 5, 100, 102, VOTER)
SOMEWHERE = b"somewhere else.."


@pytest.mark.parametrize(
    ("cluster_id", "voter", "error"),
    [
        ("wrong", Voter(7, SOMEWHERE, []), "INCONSISTENT_CLUSTER_ID"),
        ("", Voter(0, NO_DIRECTORY, []), "INCONSISTENT_CLUSTER_ID"),
        ("c", Voter(-7, SOMEWHERE, [CONTROLLER]), "INVALID_REQUEST"),
        ("c", Voter(7, NO_DIRECTORY, [CONTROLLER]), "INVALID_REQUEST"),
        (None, Voter(7, SOMEWHERE, []), "INVALID_REQUEST"),
        (None, Voter(7, SOMEWHERE, [OTHER]), "INVALID_REQUEST"),
        (None, Voter(1, DIRECTORY_ID, [CONTROLLER]), "DUPLICATE_VOTER"),
        ("c", Voter(7, SOMEWHERE, [CONTROLLER, OTHER]), "REQUEST_TIMED_OUT"),
    ],
)
def test_no_voter_is_added(cluster_id: str | None, voter: Voter, error: str) -> None:
    assert refuse_new_voter(QUORUM, "c", cluster_id, voter).name == error


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "directory_id", "error"),
    [
        ("", 0, NO_DIRECTORY, "INCONSISTENT_CLUSTER_ID"),
        ("c", -7, SOMEWHERE, "INVALID_REQUEST"),
        (None, 77, SOMEWHERE, "VOTER_NOT_FOUND"),
        (None, 1, SOMEWHERE, "VOTER_NOT_FOUND"),
        (None, 1, DIRECTORY_ID, "VOTER_NOT_FOUND"),
    ],
)
def test_no_voter_is_removed(cluster_id: str | None, node_id: int, directory_id: bytes, error: str) -> None:
    assert refuse_voter_removal(QUORUM, "c", cluster_id, node_id, directory_id).name == error


def test_who_votes_is_read_from_the_logs_own_record() -> None:
    body = voters_body(Voter(1, SOMEWHERE, [CONTROLLER, OTHER]))
    assert quorum_voter(body, 1, DIRECTORY_ID) == Voter(1, SOMEWHERE, [CONTROLLER, OTHER])


def test_a_log_without_that_record_is_voted_on_by_this_node() -> None:
    assert quorum_voter(None, 1, DIRECTORY_ID) == Voter(1, DIRECTORY_ID, ())
    assert quorum_voter(voters_body(Voter(3, SOMEWHERE, [])), 1, DIRECTORY_ID) == Voter(1, DIRECTORY_ID, ())


def test_kraft_version_is_finalized_where_the_log_has_it() -> None:
    assert (kraft_version_level(None), kraft_version_level(kraft_version_body())) == (0, 1)
    store = MemoryStore()
    controller = start(store)
    assert "kraft.version" not in controller.features
    store.kraft_version = kraft_version_body()
    assert controller.features["kraft.version"] == 1


def test_the_quorum_is_shown_as_the_log_stands() -> None:
    store = MemoryStore()
    controller = start(store)
    quorum = controller.quorum
    assert (quorum.leader_id, quorum.leader_epoch) == (1, 1)
    assert quorum.log_end_offset == quorum.high_watermark == store.next_offset
    assert controller.features_epoch == store.next_offset - 1
