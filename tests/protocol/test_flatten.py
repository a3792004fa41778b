"""The flat codecs are up to date, and the schema-driven one does the same for the hot messages."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from ottla.protocol import flatten
from ottla.protocol.codec import FLAT, DecodeError, decode, encode
from ottla.protocol.flat.produce import new_partition_produce_response
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from ottla.protocol.plans import StructCodec
from ottla.protocol.primitives import LOW_WINDOW_BYTES, WINDOW_BYTES, Reader, Writer
from ottla.protocol.schema import Message, UnknownTag
from tests.protocol.kafka_data import golden_cases, lines, message_types

HOT = ("ProduceRequest", "ProduceResponse", "FetchRequest", "FetchResponse")


def schema_driven(cls: type[Message], version: int) -> StructCodec:
    return StructCodec(cls, version, flexible=version in cls.SCHEMA.flexible)


@pytest.mark.parametrize("module", FLAT)
def test_flat_modules_are_up_to_date(module: str) -> None:
    """If this fails: `python -m ottla.protocol.flatten`."""
    path = Path(flatten.__file__).parent / "flat" / f"{module.rpartition('.')[2]}.py"
    assert path.read_text(encoding="utf-8") == flatten.module_source(module)


@pytest.mark.parametrize("name", HOT)
def test_hot_messages_have_flat_codecs(name: str) -> None:
    cls = message_types()[name]
    assert hasattr(import_module(FLAT[cls.__module__]), f"{name}Codec")


@pytest.mark.parametrize("name", HOT)
def test_both_codecs_read_and_write_the_same(name: str) -> None:
    cls = message_types()[name]
    for case in golden_cases("requests.jsonl.gz").get(name) or golden_cases("responses.jsonl.gz")[name]:
        data = bytes.fromhex(case["hex"])
        codec = schema_driven(cls, case["v"])
        writer = Writer()

        message = codec.read(Reader(data, 0))
        codec.write(writer, message)

        assert message == decode(cls, case["v"], data), case["case"]
        assert b"".join(bytes(part) for part in writer.finish() if isinstance(part, (bytes, memoryview))) == data


@pytest.mark.parametrize("module", FLAT)
def test_new_structs_are_what_their_classes_make(module: str) -> None:
    flat = import_module(FLAT[module])
    made = [make() for name, make in vars(flat).items() if name.startswith("new_")]

    assert made
    assert made == [type(struct)() for struct in made]


def test_a_new_struct_has_what_it_is_given_and_lists_of_its_own() -> None:
    first, second = new_partition_produce_response(index=3, base_offset=7), new_partition_produce_response()

    assert first == PartitionProduceResponse(index=3, base_offset=7)
    assert first.record_errors is not second.record_errors
    assert first.current_leader is not second.current_leader


def test_both_codecs_refuse_the_same() -> None:
    for case in lines("malformed.jsonl.gz"):
        if case["msg"] not in HOT:
            continue
        cls = message_types()[case["msg"]]
        data = bytes.fromhex(case["hex"])
        codec = schema_driven(cls, case["v"])
        if case["verdict"] == "ok":
            assert codec.read(Reader(data, 0)) == decode(cls, case["v"], data), case
        else:
            with pytest.raises((DecodeError, IndexError)):
                codec.read(Reader(data, 0))


def request_of(partitions: int, records_bytes: int, tag_bytes: int = 0) -> ProduceRequest:
    """A request whose partitions have records of this size, and tagged fields of that size behind them."""
    tags = [UnknownTag(1000, bytes(tag_bytes))] if tag_bytes else ()
    rows = [
        PartitionProduceData(index=index, records=index.to_bytes(4, "big") * (records_bytes // 4), unknown_tags=tags)
        for index in range(partitions)
    ]
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=rows)])


@pytest.mark.parametrize("records_bytes", [0, 4, 100, WINDOW_BYTES - 32, WINDOW_BYTES, WINDOW_BYTES + 4, 100_000])
@pytest.mark.parametrize("tag_bytes", [0, 1, LOW_WINDOW_BYTES, WINDOW_BYTES, 3 * WINDOW_BYTES])
def test_windows_change_nothing(records_bytes: int, tag_bytes: int) -> None:
    """A large buffer is read through windows, a bytes object as it is; both give the same."""
    request = request_of(30, records_bytes, tag_bytes)
    data = encode(request, 9)

    through_windows = decode(ProduceRequest, 9, memoryview(bytearray(b"header" + data)), len(b"header"))

    assert through_windows == decode(ProduceRequest, 9, data) == request


def test_end_in_a_later_window_is_found() -> None:
    data = encode(request_of(3, 10_000), 9)
    for cut in range(1, 60):
        with pytest.raises(DecodeError):
            decode(ProduceRequest, 9, memoryview(bytearray(data[:-cut])))


def test_windows_serve_responses_too() -> None:
    row = PartitionData(records=bytes(5000), unknown_tags=[UnknownTag(7, b"x" * 700)])
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[row] * 20)])
    assert decode(FetchResponse, 12, bytearray(encode(response, 12))) == response
