"""Client quotas as state: which entities a filter finds. Seen on a running 4.4.0."""

from __future__ import annotations

import pytest

from ottla.broker.metadata.client_quotas import QuotaFilter
from ottla.errors import KafkaError
from tests.broker.metadata.harness import state_of
from tests.broker.metadata.test_alter_client_quotas import quota

EXACT, DEFAULT, ANY = 0, 1, 2

QUOTAS = state_of(
    quota({"user": "a"}, "producer_byte_rate", 5.0),
    quota({"user": None}, "producer_byte_rate", 7.0),
    quota({"client-id": "x", "user": None}, "request_percentage", 7.5),
    quota({"client-id": "x", "user": "a"}, "request_percentage", 1.5),
    quota({"ip": None}, "connection_creation_rate", 7.0),
).client_quotas


def found(*filters: tuple[str, int, str | None], strict: bool = False) -> list[dict[str, str | None]]:
    return [dict(entity) for entity in QUOTAS.matching([QuotaFilter(*one) for one in filters], strict=strict)]


def test_no_filter_finds_all_and_strictly_none() -> None:
    assert len(found()) == 5
    assert found(strict=True) == []


def test_names_match_exactly_or_as_the_default_or_at_all() -> None:
    assert found(("user", EXACT, "a")) == [{"user": "a"}, {"user": "a", "client-id": "x"}]
    assert found(("user", DEFAULT, None)) == [{"user": None}, {"user": None, "client-id": "x"}]
    assert len(found(("user", ANY, None))) == 4
    assert found(("user", EXACT, "")) == []


def test_strictly_other_types_do_not_match() -> None:
    assert found(("user", EXACT, "a"), strict=True) == [{"user": "a"}]
    assert len(found(("user", ANY, None), ("client-id", ANY, None), strict=True)) == 2


@pytest.mark.parametrize(
    ("filters", "error"),
    [
        ([("foo", EXACT, "x")], "UNSUPPORTED_VERSION"),
        ([("foo", 9, None)], "UNSUPPORTED_VERSION"),
        ([("", EXACT, "x")], "INVALID_REQUEST"),
        ([("user", 9, "x")], "INVALID_REQUEST"),
        ([("user", EXACT, None)], "INVALID_REQUEST"),
        ([("user", DEFAULT, "x")], "INVALID_REQUEST"),
        ([("user", ANY, "x")], "INVALID_REQUEST"),
        ([("user", EXACT, "a"), ("user", EXACT, "b")], "INVALID_REQUEST"),
        ([("ip", EXACT, "a"), ("user", EXACT, "b")], "INVALID_REQUEST"),
    ],
)
def test_filters_that_make_no_sense_are_refused(filters: list[tuple[str, int, str | None]], error: str) -> None:
    with pytest.raises(KafkaError) as caught:
        found(*filters)
    assert caught.value.name == error


def test_a_quota_that_is_set_again_has_the_newer_value() -> None:
    state = state_of(
        quota({"user": "a"}, "producer_byte_rate", 5.0),
        quota({"user": "a"}, "producer_byte_rate", 6.0),
        quota({"user": "a"}, "consumer_byte_rate", 7.0),
    )
    entity = frozenset({("user", "a")})
    assert state.client_quotas.of(entity) == {"producer_byte_rate": 6.0, "consumer_byte_rate": 7.0}
    assert state.client_quotas.of(frozenset()) == {}
