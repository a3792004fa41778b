"""ApiVersions: which APIs a broker speaks, in which versions (API key 18)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, boolean, int16, int32, int64, string


class ApiVersionsRequest(Message, key=18, versions="0-5", flexible="3+"):
    """The first request of most clients, sent before the broker's versions are known.

    Version 3 names the client's software (KIP-511); 5 the broker and cluster that it believes to reach (KIP-1242).
    """

    client_software_name: str = string("3+", ignorable=True)
    client_software_version: str = string("3+", ignorable=True)
    cluster_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    node_id: int = int32("5+", default=-1, ignorable=True)


class ApiVersion(Struct):
    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


class SupportedFeatureKey(Struct):
    name: str = string()
    min_version: int = int16()
    max_version: int = int16()


class FinalizedFeatureKey(Struct):
    name: str = string()
    max_version_level: int = int16()
    min_version_level: int = int16()


class ApiVersionsResponse(Message, key=18, versions="0-5", flexible="3+"):
    """Ranges of versions by API, and features. Its header is always version 0.

    To a version that it does not know a broker answers in version 0 with UNSUPPORTED_VERSION. Version 1 adds the
    throttle time; 3 features, in tagged fields (KIP-584); 4 takes features whose lowest version is 0.
    """

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32("1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, "3+", ignorable=True, tag=0)
    finalized_features_epoch: int = int64("3+", default=-1, ignorable=True, tag=1)
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, "3+", ignorable=True, tag=2)
    zk_migration_ready: bool = boolean("3+", ignorable=True, tag=3)
