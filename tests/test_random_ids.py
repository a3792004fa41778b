"""Random ids: what they look like, and that no two are alike."""

from __future__ import annotations

from uuid import RFC_4122, UUID

from ottla.random_ids import random_below, random_uuid


def test_a_random_uuid_is_one_of_version_4() -> None:
    for _ in range(64):
        uuid = UUID(bytes=random_uuid())
        assert (uuid.version, uuid.variant) == (4, RFC_4122)


def test_no_two_are_alike() -> None:
    assert len({random_uuid() for _ in range(1000)}) == 1000


def test_random_numbers_lie_below_the_limit_and_reach_all_of_it() -> None:
    assert {random_below(5) for _ in range(1000)} == {0, 1, 2, 3, 4}
    assert random_below(1) == 0
