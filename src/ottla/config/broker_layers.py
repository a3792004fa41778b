"""Where a broker's settings come from. What they are then is `current_config`'s business, and how they are told of
`describe`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.config.broker_config import BrokerConfig


class BrokerLayers(NamedTuple):
    """What was changed at run time, for this broker and for all, over what the broker was started with."""

    broker: BrokerConfig
    for_this_broker: Mapping[str, str]
    for_all_brokers: Mapping[str, str]
