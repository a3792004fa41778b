"""Ottla: a message broker that speaks Apache Kafka's protocol and keeps its data in Kafka's own files.

Names of the package root are imported when they are first used, so that `import ottla` costs nothing. Nothing inside
the package imports them from here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.records.reading import Decoded, decode

__all__ = ["Decoded", "decode"]

_HOMES = {"Decoded": "ottla.records.reading", "decode": "ottla.records.reading"}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
