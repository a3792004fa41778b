"""Deciding IncrementalAlterConfigs and AlterConfigs: settings of topics, brokers, groups and client metrics.

Pure. Which values a resource gets is decided by `ottla.config.alter`; here is what needs the metadata: does the topic
exist, what is set now, which records follow. Resources that fail change nothing for the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.broker.metadata.create_topics import config_records
from ottla.broker.metadata.decision import Decision
from ottla.broker.metadata.features import ELIGIBLE_LEADER_REPLICAS
from ottla.broker.metadata.image import MetadataView
from ottla.broker.metadata.records import ClearElrRecord, MetadataRecord
from ottla.broker.metadata.topic_names import check_topic_name
from ottla.config.alter import (
    ConfigChange,
    Operation,
    Resource,
    alter_incrementally,
    check_resource,
    check_values,
    replace_all,
)
from ottla.config.broker_changes import MIN_INSYNC_REPLICAS
from ottla.config.broker_config import BrokerConfig
from ottla.config.resource_type import ResourceType
from ottla.errors import InvalidConfig, InvalidRequest, KafkaError, UnknownTopicOrPartition

_OPERATIONS: Final = frozenset(Operation)


class ConfigAlteration(NamedTuple):
    """The changes asked for on one resource; numbers are the wire's and may be unknown.

    `changes` are (key, operation, value). With `replaces` they are all that shall be set afterwards (AlterConfigs), and
    the operation does not count.
    """

    resource_type: int
    name: str
    changes: Sequence[tuple[str, int, str | None]]
    replaces: bool = False

    @property
    def is_for_loggers(self) -> bool:
        """True for levels of loggers, which are not metadata; replacing all of them is refused like a bad type."""
        return self.resource_type == ResourceType.BROKER_LOGGER and not self.replaces


AlterConfigsAnswer = Sequence[KafkaError | None]


def decide_alter_configs(
    view: MetadataView, alterations: Sequence[ConfigAlteration], config: BrokerConfig
) -> Decision[AlterConfigsAnswer]:
    """Decide a whole request; `config` are the broker's settings as of now.

    The answer has one entry per alteration, in their order: None where it was done.
    """
    times = Counter((alteration.resource_type, alteration.name) for alteration in alterations)
    answer: list[KafkaError | None] = []
    records: list[MetadataRecord] = []
    for alteration in alterations:
        try:
            if times[alteration.resource_type, alteration.name] > 1:
                raise InvalidRequest("The request names this resource more than once.")
            records += _alter(view, alteration, config)
        except KafkaError as error:
            answer.append(error)
        else:
            answer.append(None)
    return Decision(records, answer)


def _alter(view: MetadataView, alteration: ConfigAlteration, config: BrokerConfig) -> list[MetadataRecord]:
    resource = check_resource(alteration.resource_type, alteration.name, view.node_id)
    current = view.configs(resource.type, resource.name)
    changes = _changed_values(current, resource, alteration)
    if resource.type is ResourceType.TOPIC and resource.name:
        check_topic_name(resource.name)
    check_values(resource, current, changes, config)
    if resource.type is ResourceType.TOPIC and view.topic(resource.name) is None:
        raise UnknownTopicOrPartition(f"The topic '{resource.name}' does not exist.")
    records = config_records(resource.type, resource.name, changes)
    if MIN_INSYNC_REPLICAS in changes and view.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0:
        records += _clear_eligible_leaders(resource, changes)
    return records


def _changed_values(
    current: Mapping[str, str], resource: Resource, alteration: ConfigAlteration
) -> dict[str, str | None]:
    if alteration.replaces:
        return replace_all(resource, current, [(key, value) for key, _, value in alteration.changes])
    changes = []
    for key, operation, value in alteration.changes:
        if operation not in _OPERATIONS:
            raise InvalidRequest(f"{key}: there is no operation {operation}.")
        changes.append(ConfigChange(key, Operation(operation), value))
    return alter_incrementally(resource, current, changes)


def _clear_eligible_leaders(resource: Resource, changes: Mapping[str, str | None]) -> list[MetadataRecord]:
    """Eligible leader replicas (KIP-966) were chosen by the old min.insync.replicas, so they go with it."""
    if resource.type is ResourceType.BROKER and changes[MIN_INSYNC_REPLICAS] is None:
        raise InvalidConfig(f"{MIN_INSYNC_REPLICAS} of the cluster cannot be removed.")
    return [ClearElrRecord(topic_name=resource.name if resource.type is ResourceType.TOPIC else "")]
