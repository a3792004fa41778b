"""UpdateFeatures v0 to v2: raise or lower feature levels, all that are named or none (KIP-584, KIP-778)."""

from __future__ import annotations

from ottla.broker.metadata.features import KRAFT_VERSION, METADATA_VERSION
from ottla.broker.metadata.update_features import FeatureUpdate, UpgradeType
from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.dialects.kafka.durable import when_durable
from ottla.errors import KafkaError
from ottla.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE_TYPES_FROM_VERSION = 1


def handle(request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse | LaterAnswer:
    updates = [_update(asked, context.api_version) for asked in request.feature_updates]
    try:
        committed = context.broker.administration.update_features(updates, validate_only=request.validate_only)
    except KafkaError as error:
        return _refusal(error)
    results = [
        UpdatableFeatureResult(feature=name, error_message="NONE")
        for name in committed.answer
        if name not in (METADATA_VERSION, KRAFT_VERSION)  # which Kafka leaves out
    ]
    return when_durable(committed.ticket, UpdateFeaturesResponse(error_message=None, results=results), _refusal)


def _update(asked: FeatureUpdateKey, version: int) -> FeatureUpdate:
    upgrade_type = asked.upgrade_type
    if version < UPGRADE_TYPES_FROM_VERSION:
        upgrade_type = UpgradeType.SAFE_DOWNGRADE if asked.allow_downgrade else UpgradeType.UPGRADE
    return FeatureUpdate(asked.feature, asked.max_version_level, upgrade_type)


def _refusal(error: KafkaError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error.code, error_message=str(error))
