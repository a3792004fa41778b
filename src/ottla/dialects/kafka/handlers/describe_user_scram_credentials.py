"""DescribeUserScramCredentials v0: which users can prove a password and how, never with what (KIP-554)."""

from __future__ import annotations

from collections import Counter

from ottla.broker.metadata.scram_users import ScramUsers
from ottla.dialects.kafka.answers import RequestContext
from ottla.errors import DuplicateResource, KafkaError, ResourceNotFound
from ottla.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def handle(
    request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    users = context.broker.image.scram_users
    times = Counter([user.name for user in request.users] if request.users else list(users))
    return DescribeUserScramCredentialsResponse(
        error_message="", results=[_result(users, name, count) for name, count in times.items()]
    )


def _result(users: ScramUsers, name: str, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        return _refused(name, DuplicateResource(f"The request names the user {name} more than once."))
    if name not in users:
        return _refused(name, ResourceNotFound(f"The user {name} has no credentials."))
    return DescribeUserScramCredentialsResult(
        user=name,
        error_message="",
        credential_infos=[
            CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
            for mechanism, credential in sorted(users.of(name).items())
        ],
    )


def _refused(name: str, error: KafkaError) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(user=name, error_code=error.code, error_message=str(error))
