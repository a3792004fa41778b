"""ApiVersions: what this broker serves, from the router's table, and which features are switched on.

A version that is not served is answered in the layout of version 0 (the session sees to that), with the one row that
lets a client try again (KIP-511). Features steer clients: only those are named whose protocols work here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ottla.dialects.kafka.answers import Handler, RequestContext
from ottla.errors import InvalidRequest, RebootstrapRequired, UnsupportedVersion
from ottla.protocol.apis import API, ApiKey
from ottla.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

SOFTWARE_FROM_VERSION: Final = 3
CLUSTER_FROM_VERSION: Final = 5
ZERO_LEVELS_FROM_VERSION: Final = 4
"""Older clients take a supported level of 0 for an error and are not told of such features."""

ANNOUNCED_FEATURES: Final = frozenset(
    {"metadata.version", "kraft.version", "eligible.leader.replicas.version", "group.version"}
)
"""Features that are served, and those without a protocol of their own that a client could miss here."""

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handler_for(served: Sequence[ApiVersion]) -> Handler:
    """Return the handler that answers with these rows."""

    def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
        version = context.api_version
        if version >= SOFTWARE_FROM_VERSION and not _names_its_software(request):
            return ApiVersionsResponse(error_code=InvalidRequest.code)
        if version >= CLUSTER_FROM_VERSION:
            error_code = _check_address(request, context)
            if error_code:
                return ApiVersionsResponse(error_code=error_code)
        response = ApiVersionsResponse(api_keys=list(served))
        if version >= SOFTWARE_FROM_VERSION:
            _add_features(response, context)
        return response

    return handle


def unsupported_version() -> ApiVersionsResponse:
    """The answer to a version that is not served: the range of this API and no other."""
    api = API[ApiKey.API_VERSIONS]
    row = ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
    return ApiVersionsResponse(error_code=UnsupportedVersion.code, api_keys=[row])


def _names_its_software(request: ApiVersionsRequest) -> bool:
    return bool(
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    )


def _check_address(request: ApiVersionsRequest, context: RequestContext) -> int:
    """The error of a client that meant another cluster or node, 0 when it meant this one."""
    broker = context.broker
    if request.cluster_id is None:
        return InvalidRequest.code if request.node_id != -1 else 0
    is_this = request.cluster_id == broker.cluster_id and request.node_id in (-1, broker.node_id)
    return 0 if is_this else RebootstrapRequired.code


def _add_features(response: ApiVersionsResponse, context: RequestContext) -> None:
    for name, (low, high) in context.broker.supported_features.items():
        if name in ANNOUNCED_FEATURES and (low > 0 or context.api_version >= ZERO_LEVELS_FROM_VERSION):
            response.supported_features.append(SupportedFeatureKey(name=name, min_version=low, max_version=high))
    for name, level in context.broker.features.items():
        if name in ANNOUNCED_FEATURES:
            response.finalized_features.append(
                FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            )
    response.finalized_features_epoch = context.broker.features_epoch
