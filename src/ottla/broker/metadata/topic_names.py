"""Topic names: which are legal, which are ours, and which would collide.

Kafka joins topic and key with `.` or `_` in metric names, so two topics that differ only in these cannot both exist.
"""

from __future__ import annotations

import re
from typing import Final

from ottla.errors import InvalidTopicException
from ottla.model import OFFSETS_TOPIC, TRANSACTION_TOPIC

SHARE_GROUP_STATE_TOPIC: Final = "__share_group_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_GROUP_STATE_TOPIC})

MAX_NAME_LENGTH: Final = 249
"""So that `NAME-PARTITION`, with up to six digits more, is a legal file name."""

_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Raise `InvalidTopicException` with what is wrong about `name`."""
    if not name:
        raise InvalidTopicException("A topic name must not be empty.")
    if name in {".", ".."}:
        raise InvalidTopicException(f"Topic name is invalid: '{name}' is not allowed")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidTopicException(
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
        )
    if _LEGAL_NAME.fullmatch(name) is None:
        raise InvalidTopicException(
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'"
        )


def is_legal_topic_name(name: str) -> bool:
    """Say whether a topic of this name could be created."""
    try:
        check_topic_name(name)
    except InvalidTopicException:
        return False
    return True


def check_not_internal(name: str) -> None:
    """Raise `InvalidTopicException` for a topic whose records only the broker may write and remove."""
    if name in INTERNAL_TOPICS:
        raise InvalidTopicException(f"records of {name} are the broker's own")


def collision_key(name: str) -> str:
    """Return what two colliding names have in common."""
    return name.replace(".", "_")
