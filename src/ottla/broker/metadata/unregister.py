"""Deciding UnregisterBroker and UnregisterController (KIP-500): forgetting nodes that are gone for good.

Pure. This node is not forgotten while it runs. Kafka does that to a broker, which then serves nothing until it is
started anew.
"""

from __future__ import annotations

from ottla.broker.metadata.decision import Decision
from ottla.broker.metadata.image import MetadataView
from ottla.broker.metadata.records import UnregisterBrokerRecord, UnregisterControllerRecord
from ottla.errors import BrokerIdNotRegistered, ControllerIdNotRegistered, InvalidRequest


def decide_unregister_broker(view: MetadataView, broker_id: int) -> Decision[None]:
    """Forget a broker. Raises `BrokerIdNotRegistered`, and `InvalidRequest` for this one."""
    broker = view.broker(broker_id)
    if broker is None:
        raise BrokerIdNotRegistered(f"Broker ID {broker_id} is not currently registered")
    if broker_id == view.node_id:
        raise InvalidRequest("A broker cannot be unregistered while it runs.")
    return Decision([UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.broker_epoch)], None)


def decide_unregister_controller(view: MetadataView, controller_id: int) -> Decision[None]:
    """Forget a controller. Raises `ControllerIdNotRegistered`, and `InvalidRequest` for this node."""
    if controller_id == view.node_id:
        raise InvalidRequest("A controller cannot be unregistered while it is active.")
    if controller_id not in view.controllers():
        raise ControllerIdNotRegistered(f"Controller {controller_id} is not registered.")
    return Decision([UnregisterControllerRecord(controller_id=controller_id)], None)
