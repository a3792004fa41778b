"""Client quotas as the metadata has them: which limits hold for which users, client ids and addresses (KIP-546).

State only; what may be set is decided by `alter_client_quotas`, and nothing is limited here. An entity is a set of
(type, name) pairs, a name of None standing for all that have no limit of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.broker.metadata.records import ClientQuotaRecord
from ottla.errors import InvalidRequest, UnsupportedVersion

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)

QuotaEntity = frozenset[tuple[str, str | None]]


class MatchType(IntEnum):
    """How a component of a filter looks at the name of an entity; the number is the one on the wire."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class QuotaFilter(NamedTuple):
    """One component of a filter: entities that have this type, with such a name. `match_type` may be unknown."""

    entity_type: str
    match_type: int
    match: str | None


class ClientQuotas:
    """Every quota by entity and key. Fed by replay; a key that is gone leaves nothing behind."""

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: dict[QuotaEntity, dict[str, ClientQuotaRecord]] = {}

    def of(self, entity: QuotaEntity) -> Mapping[str, float]:
        """The quotas of exactly this entity, by key."""
        return {key: record.value for key, record in self._records.get(entity, {}).items()}

    def matching(self, filters: Sequence[QuotaFilter], *, strict: bool) -> Iterator[QuotaEntity]:
        """Yield the entities that every filter matches and, with `strict`, that have no other types than filters name.

        Raises `InvalidRequest` for filters that make no sense, `UnsupportedVersion` for a type that there is not.
        """
        check_filters(filters)
        for entity in self._records:
            names = dict(entity)
            if strict and len(names) != len(filters):
                continue
            if all(_matches(one, names) for one in filters):
                yield entity

    def replay(self, record: ClientQuotaRecord) -> None:
        """Take in one record."""
        entity = frozenset((part.entity_type, part.entity_name) for part in record.entity)
        quotas = self._records.setdefault(entity, {})
        if record.remove:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record
        if not quotas:
            del self._records[entity]

    def records(self) -> Iterator[ClientQuotaRecord]:
        """Yield what a snapshot holds."""
        for quotas in self._records.values():
            yield from quotas.values()


def check_filters(filters: Iterable[QuotaFilter]) -> None:
    """Raise what Kafka raises for filters that it does not take, in its order."""
    types: set[str] = set()
    for one in filters:
        if not one.entity_type:
            raise InvalidRequest("A filter needs an entity type.")
        if one.entity_type not in ENTITY_TYPES:
            raise UnsupportedVersion(f"There is no entity type '{one.entity_type}'.")
        if one.match_type == MatchType.EXACT and one.match is None:
            raise InvalidRequest("An exact match needs a name.")
        if one.match_type in (MatchType.DEFAULT, MatchType.ANY) and one.match is not None:
            raise InvalidRequest("A match of the default or of any name takes no name.")
        if one.match_type not in tuple(MatchType):
            raise InvalidRequest(f"There is no match type {one.match_type}.")
        if one.entity_type in types:
            raise InvalidRequest(f"Two filters ask for the entity type '{one.entity_type}'.")
        types.add(one.entity_type)
    if IP in types and len(types) > 1:
        raise InvalidRequest("An address has no user and no client id.")


def _matches(one: QuotaFilter, names: Mapping[str, str | None]) -> bool:
    if one.entity_type not in names:
        return False
    return one.match_type == MatchType.ANY or names[one.entity_type] == one.match
