"""Deciding AlterUserScramCredentials: setting and deleting what proves users' passwords (KIP-554, RFC 5802).

Pure. Clients send salted passwords; stored are the two keys that follow from them, in Kafka's records, so that what was
stored does not let anybody in. A user may stand once in a request, and is changed or refused alone.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.broker.metadata.decision import Decision
from ottla.broker.metadata.features import METADATA_VERSION, SCRAM_METADATA_VERSION
from ottla.broker.metadata.image import MetadataView
from ottla.broker.metadata.records import (
    MetadataRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from ottla.broker.metadata.scram_users import ScramMechanism
from ottla.errors import (
    DuplicateResource,
    KafkaError,
    ResourceNotFound,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
    UnsupportedVersion,
)

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
_HASHES: Final = {ScramMechanism.SCRAM_SHA_256: hashlib.sha256, ScramMechanism.SCRAM_SHA_512: hashlib.sha512}


@dataclass(frozen=True, slots=True)
class CredentialDeletion:
    """A credential that shall go; the mechanism is the wire's and may be unknown."""

    name: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class CredentialUpsertion:
    """A credential that shall be there. `salted_password` is what RFC 5802 makes of password, salt and iterations."""

    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


CredentialAlteration = CredentialDeletion | CredentialUpsertion
ScramAnswer = Mapping[str, KafkaError | None]


def decide_alter_scram_users(view: MetadataView, alterations: Sequence[CredentialAlteration]) -> Decision[ScramAnswer]:
    """Decide a whole request, deletions first. The answer has one entry for each user, None where it was done."""
    answer: dict[str, KafkaError | None] = {}
    records: dict[str, MetadataRecord] = {}
    for alteration in alterations:
        name = alteration.name
        if records.pop(name, None) is not None:
            answer[name] = DuplicateResource("A request can change a user's credentials only once.")
        elif name not in answer:
            try:
                records[name] = _record(view, alteration)
            except KafkaError as error:
                answer[name] = error
            else:
                answer[name] = None
    return Decision(list(records.values()), answer)


def _record(view: MetadataView, alteration: CredentialAlteration) -> MetadataRecord:
    if view.features.get(METADATA_VERSION, 0) < SCRAM_METADATA_VERSION:
        raise UnsupportedVersion(f"SCRAM users need {METADATA_VERSION} {SCRAM_METADATA_VERSION} or later.")
    if not alteration.name:
        raise UnacceptableCredential("A user needs a name.")
    if alteration.mechanism not in tuple(ScramMechanism):
        raise UnsupportedSaslMechanism(f"There is no SCRAM mechanism {alteration.mechanism}.")
    if isinstance(alteration, CredentialUpsertion):
        return _credential(alteration)
    if alteration.mechanism not in view.scram_users.of(alteration.name):
        raise ResourceNotFound("Attempt to delete a user credential that does not exist")
    return RemoveUserScramCredentialRecord(name=alteration.name, mechanism=alteration.mechanism)


def _credential(asked: CredentialUpsertion) -> UserScramCredentialRecord:
    if asked.iterations < MIN_ITERATIONS:
        raise UnacceptableCredential(f"There must be at least {MIN_ITERATIONS} iterations.")
    if asked.iterations > MAX_ITERATIONS:
        raise UnacceptableCredential(f"There may be at most {MAX_ITERATIONS} iterations.")
    if not asked.salted_password:  # Kafka answers UNKNOWN_SERVER_ERROR
        raise UnacceptableCredential("The salted password is empty.")
    digest = _HASHES[ScramMechanism(asked.mechanism)]
    client_key = hmac.digest(asked.salted_password, b"Client Key", digest)
    return UserScramCredentialRecord(
        name=asked.name,
        mechanism=asked.mechanism,
        salt=asked.salt,
        stored_key=digest(client_key).digest(),
        server_key=hmac.digest(asked.salted_password, b"Server Key", digest),
        iterations=asked.iterations,
    )
