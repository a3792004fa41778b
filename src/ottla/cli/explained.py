"""What the settings tables say of a setting, for people; the reference page `settings.md` is made from the same."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from ottla.config.documentation import sentence
from ottla.config.reference import SECTIONS, facts


class Explained(NamedTuple):
    """One setting in words."""

    name: str
    scope: str
    facts: str
    documentation: str


def explained(pattern: str) -> Iterator[Explained]:
    """Yield the settings of every scope whose names match, in the order of the reference page."""
    for _, _, scope, table in SECTIONS:
        for name, setting in table.items():
            if fnmatchcase(name, pattern):
                told = "; ".join(facts(setting)).replace("`", "")
                yield Explained(name, scope.value, told, sentence(scope, name) or "")
