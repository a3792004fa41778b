"""AlterClientQuotas, decided. What is refused was seen on a running 4.4.0."""

from __future__ import annotations

import math

import pytest

from ottla.broker.metadata.alter_client_quotas import QuotaAlteration, decide_alter_client_quotas, is_address
from ottla.broker.metadata.records import ClientQuotaRecord, QuotaEntityData
from ottla.broker.metadata.state import MetadataState
from tests.broker.metadata.harness import state_of

ALICE = {"user": "alice"}


def quota(entity: dict[str, str | None], key: str, value: float, *, remove: bool = False) -> ClientQuotaRecord:
    parts = [QuotaEntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    return ClientQuotaRecord(entity=parts, key=key, value=value, remove=remove)


STATE = state_of(quota({"user": "alice"}, "producer_byte_rate", 1000.0))


def error_of(entity: dict[str, str | None], *changes: tuple[str, float | None], state: MetadataState = STATE) -> str:
    decision = decide_alter_client_quotas(state, [QuotaAlteration(entity, changes)])
    ((answered, error),) = decision.answer
    assert answered == entity
    assert error is None or not decision.records
    return "" if error is None else error.name


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        ({"user": "u"}, "producer_byte_rate", 5.0),
        ({"user": "u"}, "consumer_byte_rate", 2.0**62),
        ({"user": "u"}, "producer_byte_rate", 5.0000001),
        ({"user": "u"}, "request_percentage", 12.5),
        ({"user": None, "client-id": "c"}, "controller_mutation_rate", 0.25),
        ({"client-id": None}, "producer_byte_rate", 1.0),
        ({"ip": "1.2.3.4"}, "connection_creation_rate", 5.0),
        ({"ip": None}, "connection_creation_rate", 2.0**31 - 1),
    ],
)
def test_a_quota_that_can_be_is_recorded(entity: dict[str, str | None], key: str, value: float) -> None:
    decision = decide_alter_client_quotas(STATE, [QuotaAlteration(entity, [(key, value)])])
    assert decision.records == [quota(entity, key, value)]
    assert decision.answer == [(entity, None)]


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        ({}, "producer_byte_rate", 5.0),
        ({"": "x"}, "producer_byte_rate", 5.0),
        ({"group": "x"}, "producer_byte_rate", 5.0),
        ({"user": "a", "group": "x"}, "producer_byte_rate", 5.0),
        ({"user": ""}, "producer_byte_rate", 5.0),
        ({"user": "a", "ip": "1.2.3.4"}, "connection_creation_rate", 5.0),
        ({"ip": "no ip !"}, "connection_creation_rate", 5.0),
        ({"ip": "999.1.1.1"}, "connection_creation_rate", 5.0),
        ({"ip": "1.2.3.4"}, "producer_byte_rate", 5.0),
        ({"user": "a"}, "connection_creation_rate", 5.0),
        ({"user": "a"}, "nope", 5.0),
        ({"user": "a"}, "producer_byte_rate", 0.0),
        ({"user": "a"}, "producer_byte_rate", -5.0),
        ({"user": "a"}, "producer_byte_rate", 5.00001),
        ({"user": "a"}, "producer_byte_rate", 1e30),
        ({"user": "a"}, "request_percentage", math.nan),
        ({"user": "a"}, "request_percentage", math.inf),
        ({"ip": None}, "connection_creation_rate", 5.5),
        ({"ip": None}, "connection_creation_rate", 3e9),
    ],
)
def test_a_quota_that_cannot_be_is_refused(entity: dict[str, str | None], key: str, value: float) -> None:
    assert error_of(entity, (key, value)) == "INVALID_REQUEST"


def test_what_is_so_already_is_not_recorded_again() -> None:
    changes = [("producer_byte_rate", 1000.0), ("consumer_byte_rate", None)]
    decision = decide_alter_client_quotas(STATE, [QuotaAlteration(ALICE, changes)])
    assert (decision.records, decision.answer) == ([], [(ALICE, None)])


def test_a_removal_is_recorded_and_leaves_nothing_behind() -> None:
    decision = decide_alter_client_quotas(STATE, [QuotaAlteration(ALICE, [("producer_byte_rate", None)])])
    assert decision.records == [quota({"user": "alice"}, "producer_byte_rate", 0.0, remove=True)]
    state = state_of(quota({"user": "alice"}, "producer_byte_rate", 1000.0), *decision.records)
    assert list(state.client_quotas.records()) == []


def test_an_unknown_quota_may_be_removed() -> None:
    assert error_of({"user": "alice"}, ("nope", None)) == ""


def test_an_entity_is_changed_as_a_whole() -> None:
    assert error_of({"user": "u"}, ("consumer_byte_rate", 5.0), ("producer_byte_rate", -1.0)) == "INVALID_REQUEST"
    assert error_of({"user": "u"}, ("consumer_byte_rate", 5.0), ("consumer_byte_rate", 6.0)) == "INVALID_REQUEST"


def test_an_entity_that_is_named_twice_is_not_changed_and_the_others_are() -> None:
    changes = [("producer_byte_rate", 5.0)]
    decision = decide_alter_client_quotas(
        STATE,
        [QuotaAlteration(ALICE, changes), QuotaAlteration({"user": "bob"}, changes), QuotaAlteration(ALICE, changes)],
    )
    assert [(entity["user"], error and error.name) for entity, error in decision.answer] == [
        ("alice", "INVALID_REQUEST"),
        ("bob", None),
    ]
    assert decision.records == [quota({"user": "bob"}, "producer_byte_rate", 5.0)]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("::1", True),
        ("fe80::1%eth0", True),
        ("localhost", True),
        ("a.example.org", True),
        ("1.2.3", True),
        ("5", True),
        ("4294967296", False),
        ("1.2.3.256", False),
        ("a b", False),
        ("-a", False),
        ("a" * 254, False),
    ],
)
def test_addresses_are_known_by_their_form(text: str, is_one: bool) -> None:
    assert is_address(text) is is_one
