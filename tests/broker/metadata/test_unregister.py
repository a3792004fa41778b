"""Forgetting brokers and controllers, decided."""

from __future__ import annotations

import pytest

from ottla.broker.metadata.records import (
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from ottla.broker.metadata.unregister import decide_unregister_broker, decide_unregister_controller
from ottla.errors import BrokerIdNotRegistered, ControllerIdNotRegistered, InvalidRequest
from tests.broker.metadata.harness import state_of

RECORDS = [
    RegisterBrokerRecord(broker_id=1, broker_epoch=5),
    RegisterBrokerRecord(broker_id=2, broker_epoch=7),
    RegisterControllerRecord(controller_id=1),
    RegisterControllerRecord(controller_id=3),
]
STATE = state_of(*RECORDS)


def test_a_broker_that_is_gone_is_forgotten() -> None:
    records = decide_unregister_broker(STATE, 2).records
    assert records == [UnregisterBrokerRecord(broker_id=2, broker_epoch=7)]
    assert [broker.node_id for broker in state_of(*RECORDS, *records).brokers()] == [1]


def test_a_controller_that_is_gone_is_forgotten() -> None:
    records = decide_unregister_controller(STATE, 3).records
    assert records == [UnregisterControllerRecord(controller_id=3)]
    assert list(state_of(*RECORDS, *records).controllers()) == [1]


def test_nobody_is_forgotten_who_is_not_known() -> None:
    with pytest.raises(BrokerIdNotRegistered):
        decide_unregister_broker(STATE, 9)
    with pytest.raises(ControllerIdNotRegistered):
        decide_unregister_controller(STATE, 9)


def test_this_node_is_not_forgotten_while_it_runs() -> None:
    with pytest.raises(InvalidRequest):
        decide_unregister_broker(STATE, 1)
    with pytest.raises(InvalidRequest):
        decide_unregister_controller(state_of(), 1)
