"""Declarations say what Kafka's own say, and a declared class behaves as a value."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ottla.model import format_uuid
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.protocol.schema import ALL_VERSIONS, Field, Message, Struct, StructType, UnknownTag, Versions
from tests.protocol.kafka_data import Json, kafka_name, message_types, schemas


def ranges(versions: Versions, within: set[int]) -> set[int]:
    return {version for version in within if version in versions}


def kafka_ranges(text: str | None, highest: int) -> set[int]:
    if text is None or text == "none":
        return set()
    return {version for version in range(highest + 1) if version in Versions(text)}


def shown_default(field: Field) -> object:
    if field.makes_default:
        return [] if field.type == "array" else {}
    if isinstance(field.default, bytes):
        return format_uuid(field.default) if field.type == "uuid" else base64.b64encode(field.default).decode()
    return field.default


def type_names(field: Field, message: str) -> set[str]:
    """Kafka's name of a type. Where one file would have two structs of a name, ours begin with their message's."""
    of = field.of
    if field.type == "array":
        inner = type_names(of, message) if isinstance(of, Field) else struct_names(of, message)
        return {f"[]{name}" for name in inner}
    return struct_names(of, message) if field.type == "struct" else {field.type}


def struct_names(of: object, message: str) -> set[str]:
    assert isinstance(of, StructType)
    return {of.__name__, of.__name__.removeprefix(message)}


def check_fields(declared: StructType, fields: list[Json], parent: set[int], message: Json) -> None:
    """Assert that a struct has exactly these fields, in this order."""
    where = f"{message['name']}: {declared.__name__}"
    assert [kafka_name(field.name) for field in declared.SCHEMA.fields] == [field["name"] for field in fields], where
    for ours, theirs in zip(declared.SCHEMA.fields, fields, strict=True):
        check_field(ours, theirs, parent, message)


def check_field(ours: Field, theirs: Json, parent: set[int], message: Json) -> None:
    highest = message["maxVersion"]
    where = f"{message['name']}: {ours.name}"
    versions = ranges(ours.versions, parent)
    assert theirs["type"] in type_names(ours, message["name"]), where
    facts: dict[str, tuple[Any, Any]] = {
        "versions": (versions, kafka_ranges(theirs["versions"], highest)),
        "nullable": (ranges(ours.nullable, versions), kafka_ranges(theirs.get("nullable"), highest)),
        "tagged": (ranges(ours.tagged, versions), kafka_ranges(theirs.get("tagged"), highest)),
        "tag": (ours.tag, theirs.get("tag", -1)),
        "default": (shown_default(ours), theirs["default"]),
        "not compact": (ranges(ours.not_compact, versions), kafka_ranges(theirs.get("notCompact"), highest)),
    }
    if "ignorable" in theirs:
        facts["ignorable"] = (ours.ignorable, theirs["ignorable"])
    for fact, (said, meant) in facts.items():
        assert said == meant, f"{where}: {fact}"
    if "fields" in theirs:
        assert isinstance(ours.of, StructType), where
        check_fields(ours.of, theirs["fields"], versions, message)


def test_every_message_of_kafka_is_declared_and_no_other() -> None:
    assert message_types().keys() == {message["name"] for message in schemas()}


@pytest.mark.parametrize("message", schemas(), ids=lambda message: message["name"])
def test_declaration_says_what_kafka_says(message: Json) -> None:
    declared = message_types()[message["name"]]
    schema = declared.SCHEMA
    versions = set(range(message["minVersion"], message["maxVersion"] + 1))
    flexible_from = message["flexibleFrom"]

    assert schema.key == message["key"]
    assert (schema.versions.lowest, schema.versions.highest) == (message["minVersion"], message["maxVersion"])
    assert ranges(schema.flexible, versions) == {
        version for version in versions if flexible_from is not None and version >= flexible_from
    }
    check_fields(declared, message["fields"], versions, message)


def test_every_message_says_what_it_is() -> None:
    undescribed = [name for name, cls in message_types().items() if len((vars(cls)["__doc__"] or "").split()) < 3]
    assert undescribed == []


def test_fields_left_out_have_kafkas_defaults() -> None:
    request = ProduceRequest()
    assert (request.transactional_id, request.acks, request.timeout_ms, request.topic_data) == (None, 0, 0, [])
    assert request.unknown_tags == ()


def test_defaults_that_can_change_are_not_shared() -> None:
    ProduceRequest().topic_data.append(TopicProduceData())
    assert ProduceRequest().topic_data == []


def test_messages_compare_by_value_and_by_unknown_tags() -> None:
    assert ProduceRequest(acks=1) == ProduceRequest(acks=1)
    assert ProduceRequest(acks=1) != ProduceRequest(acks=-1)
    assert ProduceRequest() != ProduceRequest(unknown_tags=[UnknownTag(1000, b"")])
    assert ProduceRequest() != ProduceResponse()


def test_message_shows_its_fields() -> None:
    assert repr(PartitionProduceData(index=3)) == "PartitionProduceData(index=3, records=None)"


def test_unknown_field_is_refused() -> None:
    with pytest.raises(AttributeError):
        ProduceRequest(ack=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        ProduceRequest().ack = 1  # type: ignore[attr-defined]


def test_structs_hold_nothing_but_their_fields() -> None:
    for cls in message_types().values():
        assert not hasattr(cls(), "__dict__"), cls


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3+", [3, 4, 99], [2]), ("4", [4], [3, 5]), ("0-2", [0, 2], [3]), ("6-8,10+", [6, 8, 10, 11], [5, 9])],
)
def test_version_ranges(text: str, inside: list[int], outside: list[int]) -> None:
    versions = Versions(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)


def test_versions_left_out_are_all() -> None:
    class Anything(Message):
        """Declares nothing."""

    assert Anything.SCHEMA.versions is ALL_VERSIONS
    assert Struct in Anything.__mro__
