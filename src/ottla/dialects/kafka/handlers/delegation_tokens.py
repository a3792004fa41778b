"""The delegation token APIs (KIP-48, KIP-373) on a listener without authentication: nobody gets a token there."""

from __future__ import annotations

from typing import Final

from ottla.dialects.kafka.answers import RequestContext
from ottla.errors import DelegationTokenRequestNotAllowed
from ottla.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ottla.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ottla.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from ottla.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

NO_TIMESTAMP: Final = -1
REQUESTER_FROM_VERSION: Final = 3


def create(request: CreateDelegationTokenRequest, context: RequestContext) -> CreateDelegationTokenResponse:
    kind, _, name = context.principal.partition(":")
    response = CreateDelegationTokenResponse(
        error_code=DelegationTokenRequestNotAllowed.code,
        principal_type=kind,
        principal_name=name,
        issue_timestamp_ms=NO_TIMESTAMP,
        expiry_timestamp_ms=NO_TIMESTAMP,
        max_timestamp_ms=NO_TIMESTAMP,
    )
    if context.api_version >= REQUESTER_FROM_VERSION:
        response.token_requester_principal_type = kind
        response.token_requester_principal_name = name
    return response


def renew(request: RenewDelegationTokenRequest, context: RequestContext) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(
        error_code=DelegationTokenRequestNotAllowed.code, expiry_timestamp_ms=NO_TIMESTAMP
    )


def expire(request: ExpireDelegationTokenRequest, context: RequestContext) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(
        error_code=DelegationTokenRequestNotAllowed.code, expiry_timestamp_ms=NO_TIMESTAMP
    )


def describe(request: DescribeDelegationTokenRequest, context: RequestContext) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=DelegationTokenRequestNotAllowed.code)
