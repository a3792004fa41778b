"""Access rules (ACLs) as the metadata has them. State only: they are kept for an authorizer; nobody asks them yet."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.broker.metadata.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord


class AccessRules:
    """Every rule by its id. Fed by replay."""

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: dict[bytes, AccessControlEntryRecord] = {}

    def __iter__(self) -> Iterator[AccessControlEntryRecord]:
        return iter(self._records.values())

    def __len__(self) -> int:
        return len(self._records)

    def replay(self, record: AccessControlEntryRecord) -> None:
        """Take in a rule."""
        self._records[record.id] = record

    def replay_removal(self, record: RemoveAccessControlEntryRecord) -> None:
        """Take a rule away."""
        self._records.pop(record.id, None)
