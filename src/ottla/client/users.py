"""Administration of users: quotas and SCRAM credentials.

`admin.users` has it. A password never leaves the client: what is sent is its salted hash (RFC 5802).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.controller import ask_controller, named_error
from ottla.client.errors import raise_error
from ottla.errors import KafkaError, error_for_code
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    OpData,
)
from ottla.protocol.messages.alter_client_quotas import EntityData as AlteredEntity
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from ottla.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

DEFAULT_ENTITY: Final = "<default>"
"""All users, client ids or addresses that have no quota of their own."""

DEFAULT_ITERATIONS: Final = 8192
SALT_BYTES: Final = 32
EXACT: Final = 0
DEFAULT: Final = 1


class QuotaEntity(NamedTuple):
    """Whom a quota holds for; what is None plays no part. Each may be `DEFAULT_ENTITY`."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    @property
    def parts(self) -> list[tuple[str, str | None]]:
        """Types and names as on the wire, where None is the default."""
        named = (("user", self.user), ("client-id", self.client_id), ("ip", self.ip))
        return [(kind, None if name == DEFAULT_ENTITY else name) for kind, name in named if name is not None]

    @classmethod
    def of(cls, parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
        named = {kind: DEFAULT_ENTITY if name is None else name for kind, name in parts}
        return cls(named.get("user"), named.get("client-id"), named.get("ip"))


class ScramMechanism(IntEnum):
    """How a credential is hashed; the numbers are the wire's."""

    SHA_256 = 1
    SHA_512 = 2


class ScramCredential(NamedTuple):
    """What a cluster tells of a credential."""

    mechanism: ScramMechanism
    iterations: int


class Users:
    """What an administrator does with users."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def quotas(
        self, entity: QuotaEntity | None = None, *, strict: bool = False
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Return the quotas that are set, or those of entities with these parts (`strict`: with no others)."""
        components = [
            ComponentData(entity_type=kind, match_type=DEFAULT if name is None else EXACT, match=name)
            for kind, name in (entity.parts if entity is not None else ())
        ]
        request = DescribeClientQuotasRequest(components=components, strict=strict)
        response = await self._cluster.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, request, DescribeClientQuotasResponse)
        raise_error(response.error_code, response.error_message)
        return {
            QuotaEntity.of((part.entity_type, part.entity_name) for part in row.entity): {
                value.key: value.value for value in row.values
            }
            for row in response.entries or ()
        }

    async def alter_quotas(
        self, changes: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> dict[QuotaEntity, KafkaError | None]:
        """Set quotas by name (`producer_byte_rate`, ...); None takes one away."""
        request = AlterClientQuotasRequest(
            entries=[
                AlterClientQuotasRequestEntryData(
                    entity=[AlteredEntity(entity_type=kind, entity_name=name) for kind, name in entity.parts],
                    ops=[
                        OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                        for key, value in values.items()
                    ],
                )
                for entity, values in changes.items()
            ],
            validate_only=validate_only,
        )
        response = await ask_controller(self._cluster, ApiKey.ALTER_CLIENT_QUOTAS, request, AlterClientQuotasResponse)
        return {
            QuotaEntity.of((part.entity_type, part.entity_name) for part in row.entity): error_for_code(
                row.error_code, row.error_message
            )
            for row in response.entries
        }

    async def scram_credentials(
        self, users: Iterable[str] | None = None
    ) -> dict[str, list[ScramCredential] | KafkaError]:
        """Return which credentials users have, all users when None; never a secret."""
        names = None if users is None else [UserName(name=name) for name in users]
        response = await self._cluster.call(
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            DescribeUserScramCredentialsRequest(users=names),
            DescribeUserScramCredentialsResponse,
        )
        raise_error(response.error_code, response.error_message)
        return {
            row.user: named_error(row.error_code, row.error_message, row.user)
            or [ScramCredential(ScramMechanism(one.mechanism), one.iterations) for one in row.credential_infos]
            for row in response.results
        }

    async def set_scram_password(
        self,
        user: str,
        password: str,
        mechanism: ScramMechanism = ScramMechanism.SHA_512,
        iterations: int = DEFAULT_ITERATIONS,
    ) -> None:
        """Give a user a password for SCRAM. Raises `UnacceptableCredential` and the like."""
        salt = secrets.token_bytes(SALT_BYTES)
        upsertion = ScramCredentialUpsertion(
            name=user,
            mechanism=mechanism,
            iterations=iterations,
            salt=salt,
            salted_password=salted(password, salt, mechanism, iterations),
        )
        await self._alter_scram(AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion]))

    async def remove_scram_password(self, user: str, mechanism: ScramMechanism) -> None:
        """Take a credential away. Raises `ResourceNotFound` where there is none."""
        deletion = ScramCredentialDeletion(name=user, mechanism=mechanism)
        await self._alter_scram(AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[]))

    async def _alter_scram(self, request: AlterUserScramCredentialsRequest) -> None:
        response = await ask_controller(
            self._cluster, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request, AlterUserScramCredentialsResponse
        )
        for row in response.results:
            raise_error(row.error_code, row.error_message)


def salted(password: str, salt: bytes, mechanism: ScramMechanism, iterations: int) -> bytes:
    """Return the SaltedPassword of RFC 5802."""
    digest = "sha256" if mechanism is ScramMechanism.SHA_256 else "sha512"
    return hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
