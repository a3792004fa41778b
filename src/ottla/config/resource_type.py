"""What has settings of its own. Which of them it has, and how they change, is `alter`'s business."""

from __future__ import annotations

from enum import IntEnum


class ResourceType(IntEnum):
    """Kinds of resources that have settings; the number is the one on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
