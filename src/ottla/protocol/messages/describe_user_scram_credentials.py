"""DescribeUserScramCredentials: who has SCRAM credentials (KIP-554; API key 50)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int8, int16, int32, string


class UserName(Struct):
    name: str = string()


class DescribeUserScramCredentialsRequest(Message, key=50, versions="0", flexible="0+"):
    """Users to look for; null or none means all."""

    users: list[UserName] | None = array(UserName, nullable="0+")


class CredentialInfo(Struct):
    mechanism: int = int8()
    iterations: int = int32()


class DescribeUserScramCredentialsResult(Struct):
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    credential_infos: list[CredentialInfo] = array(CredentialInfo)


class DescribeUserScramCredentialsResponse(Message, key=50, versions="0", flexible="0+"):
    """Mechanisms and iterations by user, never secrets."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)
