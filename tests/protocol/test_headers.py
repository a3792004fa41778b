"""Headers and whole frames, as Kafka writes them and as its parser judges them."""

from __future__ import annotations

import itertools
from typing import cast

import pytest

from ottla.protocol.apis import API
from ottla.protocol.codec import DecodeError, EncodeError, decode, encode
from ottla.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_frame,
    encode_request_header,
    encode_response_frame,
)
from ottla.protocol.messages import header
from tests.protocol.kafka_data import Json, Shown, lines

FRAMES = {
    f"{kind}-{key}": list(cases)
    for (kind, key), cases in itertools.groupby(
        sorted(lines("frames.jsonl.gz"), key=lambda case: (case["kind"], case["key"])),
        key=lambda case: (case["kind"], case["key"]),
    )
}
SIZE_BYTES = 4


def of_kind(kind: str) -> dict[str, list[Json]]:
    return {name: cases for name, cases in FRAMES.items() if name.startswith(kind)}


def kafka_header(case: Json) -> RequestHeader:
    header = case["header"]
    return RequestHeader(
        header["requestApiKey"], header["requestApiVersion"], header["correlationId"], header["clientId"]
    )


def facts(decoded: RequestHeader) -> tuple[int, int, int, str]:
    """What a broker makes of a header; a client id that is null counts as empty."""
    return decoded.api_key, decoded.api_version, decoded.correlation_id, decoded.client_id or ""


@pytest.mark.parametrize("cases", of_kind("header-verdict").values(), ids=of_kind("header-verdict"))
def test_headers_are_taken_or_refused_as_kafka_does(cases: list[Json]) -> None:
    """APIs that only a controller serves have no row in our table: their keys are unknown."""
    for case in cases:
        frame = memoryview(bytes.fromhex(case["hex"]))
        if case["verdict"] != "ok" or case["key"] not in API:
            with pytest.raises(DecodeError):
                decode_request_header(frame)
            continue

        header, position = decode_request_header(frame)

        assert facts(header) == facts(kafka_header(case)), case
        assert len(frame) - position == case["left"], case
        assert API[header.api_key].request_header_version(header.api_version) == case["headerVersion"], case


@pytest.mark.parametrize("cases", of_kind("request").values(), ids=of_kind("request"))
def test_request_frames_decode_and_encode_as_kafkas(cases: list[Json]) -> None:
    for case in cases:
        data = bytes.fromhex(case["hex"])
        frame = memoryview(data)[SIZE_BYTES:]
        where = f"{case['api']} v{case['v']}"

        decoded, position = decode_request_header(frame)
        request = decode(API[decoded.api_key].request, decoded.api_version, frame, position)
        declared = decode(header.RequestHeader, case["headerVersion"], frame)

        assert facts(decoded) == facts(kafka_header(case)), where
        assert Shown(request, case["v"]).json == case["body"], where
        assert Shown(declared, case["headerVersion"]).json == case["header"], where
        assert encode(declared, case["headerVersion"]) + encode(request, case["v"]) == frame, where
        if not declared.unknown_tags:
            parts = encode_request_frame(kafka_header(case), request)
            assert b"".join(cast("list[bytes]", parts)) == data, where


@pytest.mark.parametrize("cases", of_kind("response").values(), ids=of_kind("response"))
def test_response_frames_decode_and_encode_as_kafkas(cases: list[Json]) -> None:
    for case in cases:
        data = bytes.fromhex(case["hex"])
        frame = memoryview(data)[SIZE_BYTES:]
        where = f"{case['api']} v{case['v']}"
        api = API[case["key"]]

        correlation_id, position = decode_response_header(frame, api.response_header_version(case["v"]))
        response = decode(api.response, case["v"], frame, position)

        assert correlation_id == case["header"]["correlationId"], where
        assert Shown(response, case["v"]).json == case["body"], where
        parts = encode_response_frame(api.key, case["v"], correlation_id, response)
        assert b"".join(cast("list[bytes]", parts)) == data, where


@pytest.mark.parametrize("length", [0, 1, 116, 117, 118, 119, 32766])
def test_client_ids_of_any_length(length: int) -> None:
    """Around 118 bytes the header no longer fits into what is looked at first."""
    sent = RequestHeader(3, 12, 7, "c" * length)
    decoded, position = decode_request_header(memoryview(encode_request_header(sent) + b"body"))
    assert facts(decoded) == facts(sent)
    assert position == 8 + 2 + length + 1


def test_client_id_that_is_too_long_is_refused() -> None:
    with pytest.raises(EncodeError):
        encode_request_header(RequestHeader(3, 12, 7, "c" * 32768))


def test_unknown_tags_of_a_header_are_passed_over() -> None:
    frame = memoryview(encode_request_header(RequestHeader(3, 12, 7, "c"))[:-1] + b"\x01\x05\x02xy" + b"body")
    _, position = decode_request_header(frame)
    assert bytes(frame[position:]) == b"body"
