"""Deciding AlterClientQuotas: limits for users, client ids and addresses (KIP-546, KIP-612).

Pure. The checks come in Kafka's order; an entity is changed as a whole or not at all, and an entity that stands twice
in a request not at all. A name for an address is checked by its form and not looked up, since that could take long.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from ottla.broker.metadata.client_quotas import CLIENT_ID, ENTITY_TYPES, IP, USER, QuotaEntity
from ottla.broker.metadata.decision import Decision
from ottla.broker.metadata.image import MetadataView
from ottla.broker.metadata.records import ClientQuotaRecord, MetadataRecord, QuotaEntityData
from ottla.config.quota_settings import IP_QUOTAS, USER_AND_CLIENT_QUOTAS
from ottla.config.setting import DOUBLE, INT, Setting
from ottla.config.values import INT32_MAX, INT64_MAX
from ottla.errors import InvalidRequest, KafkaError

_FRACTION: Final = 1e-6
"""Numbers that are nearer to a whole one are taken for it."""
_HOST_NAME: Final = re.compile(r"(?=.{1,253}$)(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_NUMBERS: Final = re.compile(r"[0-9]+(\.[0-9]+){0,3}")


@dataclass(frozen=True, slots=True)
class QuotaAlteration:
    """The changes asked for on one entity: (key, value), a value of None removing the quota.

    Of types that stand twice the last one counts, as in Kafka.
    """

    entity: Mapping[str, str | None]
    changes: Sequence[tuple[str, float | None]]


QuotaAnswer = Sequence[tuple[Mapping[str, str | None], KafkaError | None]]


def decide_alter_client_quotas(view: MetadataView, alterations: Sequence[QuotaAlteration]) -> Decision[QuotaAnswer]:
    """Decide a whole request. The answer has one row for each entity, None where it was done."""
    times = Counter(frozenset(alteration.entity.items()) for alteration in alterations)
    answer: dict[QuotaEntity, tuple[Mapping[str, str | None], KafkaError | None]] = {}
    records: list[MetadataRecord] = []
    for alteration in alterations:
        entity = frozenset(alteration.entity.items())
        error: KafkaError | None = None
        try:
            if times[entity] > 1:
                raise InvalidRequest("The request names this entity more than once.")
            records += _alter(view, entity, alteration)
        except KafkaError as refusal:
            error = refusal
        answer[entity] = alteration.entity, error
    return Decision(records, list(answer.values()))


def _alter(view: MetadataView, entity: QuotaEntity, alteration: QuotaAlteration) -> list[MetadataRecord]:
    changes: dict[str, float | None] = {}
    for key, value in alteration.changes:
        if key in changes:
            raise InvalidRequest(f"The request changes {key} more than once.")
        changes[key] = value
    settings = quota_settings(alteration.entity)
    current = view.client_quotas.of(entity)
    records: list[MetadataRecord] = []
    for key, value in changes.items():
        if value is None:
            if key in current:
                records.append(_record(alteration.entity, key, 0.0, remove=True))
            continue
        check_quota(settings, key, value)
        if current.get(key) != value:
            records.append(_record(alteration.entity, key, value, remove=False))
    return records


def _record(entity: Mapping[str, str | None], key: str, value: float, *, remove: bool) -> ClientQuotaRecord:
    parts = [QuotaEntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    return ClientQuotaRecord(entity=parts, key=key, value=value, remove=remove)


def quota_settings(entity: Mapping[str, str | None]) -> Mapping[str, Setting]:
    """Return the quotas that an entity can have. Raises `InvalidRequest` for an entity that there cannot be."""
    if not entity:
        raise InvalidRequest("The request names no entity.")
    for kind, name in entity.items():
        if kind not in ENTITY_TYPES:
            raise InvalidRequest(f"There is no entity type '{kind}'.")
        if name == "":
            raise InvalidRequest(f"The entity's {kind} has no name.")
    if IP not in entity:
        return USER_AND_CLIENT_QUOTAS
    if USER in entity or CLIENT_ID in entity:
        raise InvalidRequest("An address has no user and no client id.")
    address = entity[IP]
    if address is not None and not is_address(address):
        raise InvalidRequest(f"'{address}' is neither an address nor the name of a host.")
    return IP_QUOTAS


def is_address(text: str) -> bool:
    """Say whether this is written like an IP address or the name of a host; `1.2.3` is an address, too."""
    try:
        ip_address(text.partition("%")[0])
    except ValueError:
        if _NUMBERS.fullmatch(text) is None:
            return _HOST_NAME.fullmatch(text) is not None
        *first, last = (int(part) for part in text.split("."))
        return all(part < 256 for part in first) and last < 256 ** (4 - len(first))
    return True


def check_quota(settings: Mapping[str, Setting], key: str, value: float) -> None:
    """Raise `InvalidRequest` unless the quota `key` is among `settings` and can be `value`."""
    setting = settings.get(key)
    if setting is None:
        raise InvalidRequest(f"The entity cannot have the quota '{key}'.")
    if not math.isfinite(value):
        raise InvalidRequest(f"{key} must be a finite number.")
    if value <= 0.0:
        raise InvalidRequest(f"Quota {key} must be greater than 0")
    if setting.type is DOUBLE:
        return
    if value > (INT32_MAX if setting.type is INT else INT64_MAX):
        raise InvalidRequest(f"{key} is too large.")
    if abs(value - round(value)) > _FRACTION:
        raise InvalidRequest(f"{key} must be a whole number.")
