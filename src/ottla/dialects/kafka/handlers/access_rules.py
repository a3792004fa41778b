"""DescribeAcls, CreateAcls and DeleteAcls v1 to v3 of a broker without an authorizer: nobody would go by rules.

The codes of kinds and operations are looked at all the same: 0 means that the client did not know itself, and Kafka
ends such connections.
"""

from __future__ import annotations

from typing import Final

from ottla.dialects.kafka.answers import RequestContext
from ottla.dialects.kafka.errors import CloseConnection
from ottla.errors import SecurityDisabled
from ottla.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from ottla.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from ottla.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

UNKNOWN: Final = 0
NO_AUTHORIZER: Final = "This broker has no authorizer."


def describe(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    _check_known(request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type)
    return DescribeAclsResponse(error_code=SecurityDisabled.code, error_message=NO_AUTHORIZER)


def create(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    for one in request.creations:
        _check_known(one.resource_type, one.resource_pattern_type, one.operation, one.permission_type)
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=SecurityDisabled.code, error_message=NO_AUTHORIZER) for _ in request.creations
        ]
    )


def delete(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    for one in request.filters:
        _check_known(one.resource_type_filter, one.pattern_type_filter, one.operation, one.permission_type)
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=SecurityDisabled.code, error_message=NO_AUTHORIZER)
            for _ in request.filters
        ]
    )


def _check_known(*codes: int) -> None:
    if UNKNOWN in codes:
        raise CloseConnection
