"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs and ListConfigResources, beside the recordings."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker.metadata.create_topics import NewTopic
from ottla.dialects.kafka.handlers import (
    alter_configs,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)
from ottla.protocol.messages import alter_configs as replacing
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.dialects.handlers.harness import Bench

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
NONE, UNKNOWN_TOPIC, UNSUPPORTED_VERSION, INVALID_REQUEST = 0, 3, 35, 42
SET = 0


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.controller.create_topics([NewTopic("t", 1, 1)])
    return bench


def setting(resource_type: int, name: str, key: str, value: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=key, config_operation=SET, value=value)
    resource = AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=[config])
    return IncrementalAlterConfigsRequest(resources=[resource])


def described(bench: Bench, resource_type: int, name: str, key: str) -> tuple[str | None, int]:
    """The value of one setting and its source."""
    resource = DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=[key])
    (result,) = bench.ask(describe_configs, DescribeConfigsRequest(resources=[resource]), 4).results
    (row,) = result.configs
    return row.value, row.config_source


def test_a_topics_setting_reaches_its_log_and_its_description(bench: Bench) -> None:
    bench.ask(incremental_alter_configs, setting(TOPIC, "t", "retention.ms", "5000"), 1)
    assert described(bench, TOPIC, "t", "retention.ms") == ("5000", 1)
    assert bench.broker.partition("t", 0).config.retention_ms == 5_000


def test_a_setting_of_all_brokers_reaches_topics_that_set_nothing(bench: Bench) -> None:
    bench.ask(incremental_alter_configs, setting(BROKER, "", "log.retention.ms", "7000"), 1)
    assert described(bench, TOPIC, "t", "retention.ms") == ("7000", 3)
    assert bench.broker.partition("t", 0).config.retention_ms == 7_000


def test_validating_changes_nothing(bench: Bench) -> None:
    request = setting(TOPIC, "t", "retention.ms", "5000")
    request.validate_only = True
    (row,) = incremental_alter_configs.handle(request, bench.context(1)).responses  # type: ignore[union-attr]
    assert row.error_code == NONE
    assert described(bench, TOPIC, "t", "retention.ms")[1] == 5


def test_the_older_request_replaces_what_was_set(bench: Bench) -> None:
    bench.ask(incremental_alter_configs, setting(TOPIC, "t", "retention.ms", "5000"), 1)
    config = replacing.AlterableConfig(name="segment.ms", value="9000")
    resource = replacing.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[config])
    bench.ask(alter_configs, replacing.AlterConfigsRequest(resources=[resource]), 2)
    assert described(bench, TOPIC, "t", "segment.ms") == ("9000", 1)
    assert described(bench, TOPIC, "t", "retention.ms")[1] == 5


def test_an_unknown_topic_has_no_settings(bench: Bench) -> None:
    resource = DescribeConfigsResource(resource_type=TOPIC, resource_name="nope", configuration_keys=None)
    (result,) = bench.ask(describe_configs, DescribeConfigsRequest(resources=[resource]), 4).results
    assert (result.error_code, result.error_message, result.configs) == (UNKNOWN_TOPIC, "", [])


def test_every_setting_of_the_broker_can_be_described_with_a_sentence(bench: Bench) -> None:
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
    (result,) = bench.ask(describe_configs, request, 4).results
    assert len(result.configs) > 300
    assert all(row.documentation for row in result.configs)
    assert not [row.name for row in result.configs if row.name.startswith("ottla.")]


@pytest.fixture
def _quiet() -> Iterator[None]:
    """Loggers belong to the process: give them back as they were."""
    yield
    logging.getLogger("ottla").setLevel(logging.NOTSET)


@pytest.mark.usefixtures("_quiet")
def test_levels_of_loggers_are_set_here_and_other_settings_recorded_in_one_request(bench: Bench) -> None:
    request = IncrementalAlterConfigsRequest(
        resources=[
            *setting(LOGGER, "1", "root", "ERROR").resources,
            *setting(TOPIC, "t", "retention.ms", "5000").resources,
            *setting(LOGGER, "2", "root", "ERROR").resources,
        ]
    )
    rows = bench.ask(incremental_alter_configs, request, 1).responses
    assert [(row.resource_type, row.error_code) for row in rows] == [(LOGGER, 0), (TOPIC, 0), (LOGGER, 42)]
    assert described(bench, LOGGER, "1", "root") == ("ERROR", 6)
    assert described(bench, TOPIC, "t", "retention.ms") == ("5000", 1)


def test_levels_of_loggers_cannot_be_replaced_as_a_whole(bench: Bench) -> None:
    config = replacing.AlterableConfig(name="root", value="ERROR")
    resource = replacing.AlterConfigsResource(resource_type=LOGGER, resource_name="1", configs=[config])
    (row,) = bench.ask(alter_configs, replacing.AlterConfigsRequest(resources=[resource]), 2).responses
    assert row.error_code == 42


def test_a_loggers_documentation_is_empty_and_not_missing(bench: Bench) -> None:
    resource = DescribeConfigsResource(resource_type=LOGGER, resource_name="01", configuration_keys=None)
    for include in (False, True):
        request = DescribeConfigsRequest(resources=[resource], include_documentation=include)
        (result,) = bench.ask(describe_configs, request, 4).results
        assert {row.documentation for row in result.configs} == {""}


def test_resources_are_listed_by_type_and_without_types_all_of_them(bench: Bench) -> None:
    bench.ask(incremental_alter_configs, setting(METRICS, "m", "interval.ms", "60000"), 1)
    bench.ask(incremental_alter_configs, setting(GROUP, "g", "consumer.session.timeout.ms", "50000"), 1)

    def listed(version: int, *types: int) -> list[tuple[str, int]]:
        response = bench.ask(list_config_resources, ListConfigResourcesRequest(resource_types=list(types)), version)
        return [(row.resource_name, row.resource_type) for row in response.config_resources]

    assert listed(0) == [("m", METRICS)]
    assert listed(1, TOPIC, GROUP) == [("t", TOPIC), ("g", GROUP)]
    assert listed(1) == [("t", TOPIC), ("1", BROKER), ("1", LOGGER), ("m", METRICS), ("g", GROUP)]


def test_an_unknown_type_cannot_be_listed(bench: Bench) -> None:
    response = bench.ask(list_config_resources, ListConfigResourcesRequest(resource_types=[TOPIC, 77]), 1)
    assert (response.error_code, response.config_resources) == (UNSUPPORTED_VERSION, [])


@pytest.mark.parametrize("resource_type", [0, 1, 3, 127, -1])
def test_a_type_that_does_not_exist_refuses_the_whole_request(bench: Bench, resource_type: int) -> None:
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name="t", configuration_keys=None),
        DescribeConfigsResource(resource_type=resource_type, resource_name="t", configuration_keys=None),
    ]
    results = bench.ask(describe_configs, DescribeConfigsRequest(resources=resources), 4).results
    assert [(result.resource_type, result.error_code, result.configs) for result in results] == [
        (TOPIC, INVALID_REQUEST, []),
        (resource_type, INVALID_REQUEST, []),
    ]
