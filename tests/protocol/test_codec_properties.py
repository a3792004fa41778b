"""Whatever a message holds, it comes back as it went; whatever the bytes, they are decoded or refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.protocol.codec import DecodeError, EncodeError, decode, decode_with_end, encode
from ottla.protocol.schema import Field, Message, StructType, UnknownTag, Versions
from tests.protocol.kafka_data import golden_cases, message_types

INTEGERS = {"int8": (8, True), "int16": (16, True), "uint16": (16, False), "int32": (32, True), "int64": (64, True)}
INTEGERS["uint32"] = (32, False)


def integers(kind: str) -> st.SearchStrategy[int]:
    bits, signed = INTEGERS[kind]
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)


PLAIN: dict[str, st.SearchStrategy[Any]] = {
    **{kind: integers(kind) for kind in INTEGERS},
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": st.text(st.characters(codec="utf-8"), max_size=20),
    "bytes": st.binary(max_size=20),
    "records": st.binary(max_size=20),
}


def values(field: Field, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    if field.type == "array":
        of = field.of
        element = structs(of, version, flexible) if isinstance(of, StructType) else PLAIN[element_type(of)]
        found: st.SearchStrategy[Any] = st.lists(element, max_size=3)
    elif field.type == "struct":
        assert isinstance(field.of, StructType)
        found = structs(field.of, version, flexible)
    else:
        found = PLAIN[field.type]
    return st.none() | found if version in field.nullable else found


def element_type(of: Field | None) -> str:
    assert of is not None
    return of.type


@cache
def structs(cls: StructType, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    """Instances that have a form in this version: only fields that it has are set."""
    there = {field.name: values(field, version, flexible) for field in cls.SCHEMA.fields if version in field.versions}
    if flexible:
        there["unknown_tags"] = st.dictionaries(st.integers(1000, 2**31 - 1), st.binary(max_size=9), max_size=2).map(
            lambda tags: [UnknownTag(tag, tags[tag]) for tag in sorted(tags)]
        )
    return st.builds(cls, **there)


def all_versions(cls: type[Message]) -> range:
    return range(cls.SCHEMA.versions.lowest, cls.SCHEMA.versions.highest + 1)


VARIED = (
    "AlterClientQuotasRequest",
    "ApiVersionsResponse",
    "ConsumerGroupHeartbeatResponse",
    "ConsumerGroupMemberMetadataValue",
    "CreateTopicsResponse",
    "DescribeQuorumResponse",
    "DescribeTopicPartitionsRequest",
    "FetchRequest",
    "FetchResponse",
    "FindCoordinatorResponse",
    "GroupMetadataValue",
    "MetadataRequest",
    "MetadataResponse",
    "OffsetFetchResponse",
    "PartitionChangeRecord",
    "ProduceRequest",
    "ProduceResponse",
    "ProducerSnapshot",
    "RegisterBrokerRecord",
    "RequestHeader",
    "ShareFetchResponse",
    "StreamsGroupDescribeResponse",
    "TransactionLogValue",
    "UpdateFeaturesRequest",
)
"""Messages that between them have every type, nullability and kind of tagged field."""


@pytest.mark.parametrize("name", VARIED)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(data=st.data())
def test_messages_come_back_as_they_went(name: str, data: st.DataObject) -> None:
    cls = message_types()[name]
    version = data.draw(st.sampled_from(all_versions(cls)))
    message = data.draw(structs(cls, version, version in cls.SCHEMA.flexible))

    encoded = encode(message, version)

    assert decode_with_end(cls, version, encoded) == (message, len(encoded))


@pytest.mark.parametrize("kind", ["requests", "responses", "internal"])
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(data=st.data())
def test_damaged_bytes_are_decoded_or_refused(kind: str, data: st.DataObject) -> None:
    """Nothing but `DecodeError` comes out; what was taken is written in one lasting form, or not at all."""
    cases = golden_cases_of(kind)
    case = data.draw(st.sampled_from(cases))
    damaged = bytearray(bytes.fromhex(case["hex"]))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, max(0, len(damaged) - 1)))
        damaged[position : position + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    cls = message_types()[case["msg"]]
    try:
        message = decode(cls, case["v"], memoryview(damaged))
    except DecodeError:
        return
    try:
        encoded = encode(message, case["v"])
    except EncodeError:
        return
    assert encode(decode(cls, case["v"], encoded), case["v"]) == encoded


@cache
def golden_cases_of(kind: str) -> list[dict[str, Any]]:
    return [case for cases in golden_cases(f"{kind}.jsonl.gz").values() for case in cases]


@settings(max_examples=200, deadline=None, database=None)
@given(version=st.integers(-5, 40), low=st.integers(0, 20), width=st.integers(0, 20))
def test_ranges_hold_what_lies_between_their_ends(version: int, low: int, width: int) -> None:
    assert (version in Versions(f"{low}-{low + width}")) == (low <= version <= low + width)
    assert (version in Versions(f"{low}+")) == (version >= low)
