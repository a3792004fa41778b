"""Reads the data that Kafka's own classes made, and shows our messages as Kafka's JSON converter would."""

from __future__ import annotations

import base64
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from ottla.model import format_uuid
from ottla.protocol.apis import API
from ottla.protocol.messages.header import RequestHeader, ResponseHeader
from ottla.protocol.schema import Field, Message, Struct, StructType

DATA = Path(__file__).parent.parent / "golden" / "messages"

INTERNAL = (
    "consumer_protocol",
    "control_records",
    "group_records",
    "metadata_records",
    "principal",
    "producer_snapshot",
    "quorum_state",
    "remote_log_records",
    "share_group_records",
    "share_state_records",
    "streams_group_records",
    "streams_subscription",
    "transaction_index",
    "transaction_records",
)

Json = dict[str, Any]


def lines(name: str) -> Iterator[Json]:
    """Yield the objects of a `.jsonl.gz` file."""
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


@cache
def schemas() -> list[Json]:
    with gzip.open(DATA / "schemas.json.gz", "rt", encoding="utf-8") as file:
        return cast("list[Json]", json.load(file))


@cache
def message_types() -> dict[str, type[Message]]:
    """Every declared message by Kafka's name."""
    found: dict[str, type[Message]] = {"RequestHeader": RequestHeader, "ResponseHeader": ResponseHeader}
    for api in API.values():
        found[f"{api.name}Request"] = api.request
        found[f"{api.name}Response"] = api.response
    for module in INTERNAL:
        for name, value in vars(import_module(f"ottla.protocol.internal.{module}")).items():
            if isinstance(value, type) and issubclass(value, Message) and value is not Message:
                found[name] = value
    return found


def golden_cases(name: str) -> dict[str, list[Json]]:
    """The cases of one golden file by message."""
    cases: dict[str, list[Json]] = defaultdict(list)
    for case in lines(name):
        cases[case["msg"]].append(case)
    return cases


def kafka_name(name: str) -> str:
    """Kafka's camelCase of a field."""
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


class Shown:
    """A message as Kafka shows it: JSON, and beside it what JSON does not hold."""

    def __init__(self, message: Message, version: int) -> None:
        self.version = version
        self.records: list[Json] = []
        self.unknown_tags: list[Json] = []
        self.json = self._struct(message, [])

    def _struct(self, struct: Struct, path: list[str | int]) -> Json:
        for tag, data in struct.unknown_tags:
            self.unknown_tags.append({"path": path, "tag": tag, "data": data.hex()})
        shown: Json = {}
        for field in type(struct).SCHEMA.fields:
            if self.version not in field.versions:
                continue
            value = getattr(struct, field.name)
            if self.version in field.tagged and value == field.new_default():
                continue
            name = kafka_name(field.name)
            shown[name] = self._value(field, value, [*path, name])
        return shown

    def _value(self, field: Field | StructType | None, value: Any, path: list[str | int]) -> Any:
        if isinstance(field, StructType):
            return self._struct(value, path)
        assert field is not None
        if field.type == "records":
            self.records.append({"path": path, "hex": None if value is None else bytes(value).hex()})
            return None if value is None else ""
        if value is None:
            return None
        match field.type:
            case "array":
                return [self._value(field.of, item, [*path, index]) for index, item in enumerate(value)]
            case "struct":
                return self._struct(value, path)
            case "uuid":
                return format_uuid(value)
            case "bytes":
                return base64.b64encode(value).decode("ascii")
        return value
