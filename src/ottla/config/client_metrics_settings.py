"""Every setting of a client metrics subscription (KIP-714)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.config.setting import INT, LIST, MEDIUM, Setting, table
from ottla.config.validators import ListOf

ANY_ITEMS: Final = ListOf(may_be_empty=True)

CLIENT_METRICS_SETTINGS: Final[Mapping[str, Setting]] = table(
    [
        Setting("interval.ms", INT, 300_000, None, MEDIUM),
        Setting("match", LIST, (), ANY_ITEMS, MEDIUM),
        Setting("metrics", LIST, (), ANY_ITEMS, MEDIUM),
    ]
)
"""Which clients push which metrics, and how often."""
