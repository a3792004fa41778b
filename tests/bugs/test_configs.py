"""Settings over the wire: what is refused, what is stored, and where a value is said to come from."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from ottla.protocol.messages import alter_configs, create_topics, describe_configs
from ottla.protocol.messages import incremental_alter_configs as incremental
from tests.wire import Room, on_broker, open_room

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_CONFIG = 40
INVALID_REQUEST = 42
TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
DYNAMIC_TOPIC = 1

BAD = [
    ("cleanup.policy", "junk"),
    ("retention.ms", "-2"),
    ("segment.ms", "0"),
    ("max.message.bytes", "abc"),
    ("max.message.bytes", "1.5"),
    ("min.cleanable.dirty.ratio", "2"),
    ("compression.type", "brotli"),
    ("preallocate", "maybe"),
    ("segment.bytes", str(1 << 31)),
    ("no.such.setting", "1"),
    ("retention.ms", None),
]


async def set_incrementally(
    room: Room, *changes: tuple[str, int, str | None], resource: tuple[int, str] = (TOPIC, "t")
) -> tuple[int, str]:
    """Alter one resource; returns code and message."""
    configs = [incremental.AlterableConfig(name=n, config_operation=o, value=v) for n, o, v in changes]
    row = incremental.AlterConfigsResource(resource_type=resource[0], resource_name=resource[1], configs=configs)
    answer = await room.ask(incremental.IncrementalAlterConfigsRequest(resources=[row]), 1)
    (result,) = answer.responses
    return result.error_code, result.error_message or ""


async def replace(room: Room, *configs: tuple[str, str | None]) -> tuple[int, str]:
    """AlterConfigs, which replaces all settings of the topic."""
    rows = [alter_configs.AlterableConfig(name=name, value=value) for name, value in configs]
    resource = alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=rows)
    answer = await room.ask(alter_configs.AlterConfigsRequest(resources=[resource]), 2)
    (result,) = answer.responses
    return result.error_code, result.error_message or ""


async def create_with(room: Room, *configs: tuple[str, str | None]) -> tuple[int, str]:
    rows = [create_topics.CreatableTopicConfig(name=name, value=value) for name, value in configs]
    topic = create_topics.CreatableTopic(name="new", num_partitions=1, replication_factor=1, configs=rows)
    answer = await room.ask(create_topics.CreateTopicsRequest(topics=[topic]), 7)
    (result,) = answer.topics
    return result.error_code, result.error_message or ""


async def describe(
    room: Room, resource: tuple[int, str] = (TOPIC, "t"), keys: Sequence[str] | None = None
) -> describe_configs.DescribeConfigsResult:
    wanted = describe_configs.DescribeConfigsResource(
        resource_type=resource[0],
        resource_name=resource[1],
        configuration_keys=None if keys is None else list(keys),
    )
    answer = await room.ask(describe_configs.DescribeConfigsRequest(resources=[wanted], include_synonyms=True), 4)
    row: describe_configs.DescribeConfigsResult = answer.results[0]
    return row


async def stored(room: Room) -> dict[str, str | None]:
    """What the topic itself sets."""
    row = await describe(room)
    return {config.name: config.value for config in row.configs if config.config_source == DYNAMIC_TOPIC}


@pytest.mark.parametrize(("name", "value"), BAD)
@on_broker()
async def test_a_bad_setting_is_named_and_changes_nothing(room: Room, name: str, value: str | None) -> None:
    """KAFKA-13863 apache/kafka#12109 "Prevent null config value when create topic", KAFKA-9695,
    redpanda-data/redpanda#3081, KAFKA-7781, KAFKA-6637 "Avoid divide by zero error with segment.ms set to zero",
    KAFKA-13899 apache/kafka#12162 "Use INVALID_CONFIG error code consistently"."""
    await room.create("t", configs={"retention.bytes": "5000000"})
    answers = [
        await create_with(room, ("flush.ms", "5"), (name, value)),
        await replace(room, ("flush.ms", "5"), (name, value)),
        await set_incrementally(room, ("flush.ms", SET, "5"), (name, SET, value)),
    ]

    for code, message in answers:
        assert code in (INVALID_CONFIG, INVALID_REQUEST) if value is None else code == INVALID_CONFIG, answers
        assert name in message
    assert await stored(room) == {"retention.bytes": "5000000"}
    assert (await describe(room, (TOPIC, "new"))).error_code == UNKNOWN_TOPIC_OR_PARTITION


def test_lists_and_repeated_keys_never_stop_a_start(tmp_path: Path) -> None:
    """KAFKA-7466 apache/kafka#6247 (duplicate keys), KAFKA-19875 apache/kafka#20960 "Duplicated topic config prevents
    broker start", KAFKA-19931 apache/kafka#21005."""
    settings = {"log.dirs": str(tmp_path)}

    async def step(number: int) -> None:
        async with open_room(settings) as room:
            if number == 0:
                await room.create("t")
                twice = [("flush.ms", SET, "5"), ("flush.ms", SET, "6")]
                assert (await set_incrementally(room, *twice))[0] == INVALID_REQUEST
                assert (await replace(room, ("flush.ms", "5"), ("flush.ms", "6")))[0] in (INVALID_REQUEST, 0)
            elif number == 1:
                code, _ = await set_incrementally(room, ("cleanup.policy", SET, "delete,delete"))
                value = (await stored(room)).get("cleanup.policy")
                assert (code, value) in [(0, "delete"), (INVALID_CONFIG, None)]
            elif number == 2:
                for _ in range(2):
                    assert (await set_incrementally(room, ("cleanup.policy", APPEND, "compact")))[0] == 0
                assert set(str((await stored(room))["cleanup.policy"]).split(",")) == {"delete", "compact"}
            elif number == 3:
                for _ in range(2):
                    assert (await set_incrementally(room, ("cleanup.policy", SUBTRACT, "compact")))[0] == 0
                assert (await stored(room))["cleanup.policy"] == "delete"
            else:
                assert (await set_incrementally(room, ("cleanup.policy", DELETE, None)))[0] == 0
                assert "cleanup.policy" not in await stored(room)
            await room.append("t", b"v", keys=[b"k"])

    for number in range(5):
        asyncio.run(step(number))


@on_broker()
async def test_a_resource_that_is_named_twice_is_refused(room: Room) -> None:
    """KAFKA-7466 apache/kafka#6247."""
    await room.create("t")
    configs = [incremental.AlterableConfig(name="flush.ms", config_operation=SET, value="5")]
    row = incremental.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=configs)
    answer = await room.ask(incremental.IncrementalAlterConfigsRequest(resources=[row, row]), 1)

    assert {result.error_code for result in answer.responses} == {INVALID_REQUEST}
    assert await stored(room) == {}


@on_broker()
async def test_a_value_that_equals_the_default_is_still_the_topics_own(room: Room) -> None:
    """redpanda "fix config source for cleanup policy" and "revert broken fix for cleanup.policy", nisshi-io/nisshi#495,
    #496: everything reported as the topic's, or nothing."""
    await room.create("t")
    untouched = await describe(room)
    assert DYNAMIC_TOPIC not in {config.config_source for config in untouched.configs}
    assert await set_incrementally(room, ("cleanup.policy", SET, "delete")) == (0, "")
    sources = {config.name: config.config_source for config in (await describe(room)).configs}

    assert sources.pop("cleanup.policy") == DYNAMIC_TOPIC
    assert DYNAMIC_TOPIC not in sources.values()


@on_broker()
async def test_exactly_the_asked_keys_are_described(room: Room) -> None:
    """KAFKA-12235 "describeConfigs does not work on 2+ config keys", KAFKA-10220 (null keys), KAFKA-6778."""
    await room.create("t")

    async def names(keys: Sequence[str] | None) -> list[str]:
        return sorted(config.name for config in (await describe(room, keys=keys)).configs)

    every = await names(None)
    assert len(every) > 25
    assert await names(["retention.ms"]) == ["retention.ms"]
    assert await names(["retention.ms", "cleanup.policy"]) == ["cleanup.policy", "retention.ms"]
    assert await names(["retention.ms", "no.such.setting"]) == ["retention.ms"]
    assert await names([]) == every, "Kafka takes an empty list for all"


@on_broker()
async def test_resources_that_do_not_exist_are_told(room: Room) -> None:
    """KAFKA-6778, redpanda (panic on resources that are no topics)."""
    codes = {
        resource: (await describe(room, resource)).error_code
        for resource in [
            (TOPIC, "missing"),
            (TOPIC, "bad name"),
            (TOPIC, ""),
            (BROKER, "1"),
            (BROKER, ""),
            (BROKER, "77"),
            (BROKER, "x"),
            (BROKER_LOGGER, "1"),
            (99, "t"),
            (0, ""),
        ]
    }

    assert codes[TOPIC, "missing"] == UNKNOWN_TOPIC_OR_PARTITION
    assert codes[TOPIC, "bad name"] == codes[TOPIC, ""] == 17
    assert codes[BROKER, "1"] == codes[BROKER, ""] == codes[BROKER_LOGGER, "1"] == 0
    assert codes[BROKER, "77"] == codes[BROKER, "x"] == codes[99, "t"] == codes[0, ""] == INVALID_REQUEST
