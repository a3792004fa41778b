"""AlterUserScramCredentials, decided. The keys are held to the conversations in RFC 7677 and RFC 5802's rules."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode

import pytest

from ottla.broker.metadata.alter_scram_users import (
    CredentialAlteration,
    CredentialDeletion,
    CredentialUpsertion,
    decide_alter_scram_users,
)
from ottla.broker.metadata.records import (
    FeatureLevelRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from ottla.broker.metadata.state import MetadataState
from tests.broker.metadata.harness import LEVEL, state_of

SHA_256, SHA_512 = 1, 2
LEVELS = FeatureLevelRecord(name="metadata.version", feature_level=LEVEL)
STATE = state_of(LEVELS, UserScramCredentialRecord(name="known", mechanism=SHA_256, iterations=4096))


def upsertion(
    name: str = "u", mechanism: int = SHA_256, iterations: int = 4096, salted_password: bytes = b"p" * 32
) -> CredentialUpsertion:
    return CredentialUpsertion(name, mechanism, iterations, b"salt", salted_password)


def outcome(*alterations: CredentialAlteration, state: MetadataState = STATE) -> dict[str, str | None]:
    decision = decide_alter_scram_users(state, alterations)
    assert len(decision.records) == sum(error is None for error in decision.answer.values())
    return {name: None if error is None else error.name for name, error in decision.answer.items()}


def test_the_stored_keys_prove_the_password_of_rfc_7677() -> None:
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted_password = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    asked = CredentialUpsertion("user", SHA_256, 4096, salt, salted_password)
    (record,) = decide_alter_scram_users(STATE, [asked]).records
    assert isinstance(record, UserScramCredentialRecord)
    nonce = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    said = b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=" + nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=" + nonce
    signature = hmac.digest(record.server_key, said, "sha256")
    assert signature == b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    proof = b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    client_signature = hmac.digest(record.stored_key, said, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, client_signature, strict=True))
    assert hashlib.sha256(client_key).digest() == record.stored_key
    assert (record.name, record.mechanism, record.iterations, record.salt) == ("user", SHA_256, 4096, salt)


def test_keys_are_as_long_as_their_hash() -> None:
    (record,) = decide_alter_scram_users(STATE, [upsertion(mechanism=SHA_512)]).records
    assert isinstance(record, UserScramCredentialRecord)
    assert (len(record.stored_key), len(record.server_key)) == (64, 64)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (upsertion(), None),
        (upsertion(iterations=16384), None),
        (upsertion(iterations=4095), "UNACCEPTABLE_CREDENTIAL"),
        (upsertion(iterations=16385), "UNACCEPTABLE_CREDENTIAL"),
        (upsertion(salted_password=b""), "UNACCEPTABLE_CREDENTIAL"),
        (upsertion(name=""), "UNACCEPTABLE_CREDENTIAL"),
        (upsertion(name="", mechanism=9), "UNACCEPTABLE_CREDENTIAL"),
        (upsertion(mechanism=0), "UNSUPPORTED_SASL_MECHANISM"),
        (upsertion(mechanism=9, iterations=1), "UNSUPPORTED_SASL_MECHANISM"),
        (CredentialDeletion("known", SHA_256), None),
        (CredentialDeletion("known", SHA_512), "RESOURCE_NOT_FOUND"),
        (CredentialDeletion("nobody", SHA_256), "RESOURCE_NOT_FOUND"),
        (CredentialDeletion("", 9), "UNACCEPTABLE_CREDENTIAL"),
        (CredentialDeletion("known", 9), "UNSUPPORTED_SASL_MECHANISM"),
    ],
)
def test_one_credential_is_checked_as_by_kafka(asked: CredentialAlteration, error: str | None) -> None:
    assert outcome(asked) == {asked.name: error}


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ([upsertion(), upsertion(mechanism=SHA_512)], "DUPLICATE_RESOURCE"),
        ([upsertion(), upsertion(), upsertion()], "DUPLICATE_RESOURCE"),
        ([upsertion(iterations=1), upsertion()], "UNACCEPTABLE_CREDENTIAL"),
        ([CredentialDeletion("u", SHA_256), upsertion()], "RESOURCE_NOT_FOUND"),
        ([CredentialDeletion("u", SHA_256), CredentialDeletion("u", SHA_512)], "RESOURCE_NOT_FOUND"),
    ],
)
def test_a_user_stands_once_in_a_request(asked: list[CredentialAlteration], error: str) -> None:
    assert outcome(*asked, upsertion("other")) == {"u": error, "other": None}


def test_a_deletion_takes_the_credential_away_and_with_the_last_one_the_user() -> None:
    (record,) = decide_alter_scram_users(STATE, [CredentialDeletion("known", SHA_256)]).records
    assert record == RemoveUserScramCredentialRecord(name="known", mechanism=SHA_256)
    both = [UserScramCredentialRecord(name="known", mechanism=mechanism) for mechanism in (SHA_256, SHA_512)]
    assert list(state_of(*both, record).scram_users.of("known")) == [SHA_512]
    assert "known" not in state_of(both[0], record).scram_users


def test_users_need_a_metadata_version_that_has_them() -> None:
    old = state_of(FeatureLevelRecord(name="metadata.version", feature_level=10))
    assert outcome(upsertion(), state=old) == {"u": "UNSUPPORTED_VERSION"}
