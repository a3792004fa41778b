"""SCRAM users as the metadata has them: what proves that somebody knows a password, never the password (KIP-554).

State only. `alter_scram_users` decides what may be set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum

from ottla.broker.metadata.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord


class ScramMechanism(IntEnum):
    """A kind of SCRAM; the number is the one on the wire."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


class ScramUsers:
    """Every credential by user and mechanism. Fed by replay; a user without credentials is not there."""

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: dict[str, dict[int, UserScramCredentialRecord]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __contains__(self, name: str) -> bool:
        return name in self._records

    def of(self, name: str) -> Mapping[int, UserScramCredentialRecord]:
        """A user's credentials by mechanism; none for somebody unknown."""
        return self._records.get(name, {})

    def replay(self, record: UserScramCredentialRecord) -> None:
        """Take in a credential."""
        self._records.setdefault(record.name, {})[record.mechanism] = record

    def replay_removal(self, record: RemoveUserScramCredentialRecord) -> None:
        """Take a credential away."""
        credentials = self._records.get(record.name, {})
        credentials.pop(record.mechanism, None)
        if not credentials:
            self._records.pop(record.name, None)

    def records(self) -> Iterator[UserScramCredentialRecord]:
        """Yield what a snapshot holds."""
        for credentials in self._records.values():
            yield from credentials.values()
