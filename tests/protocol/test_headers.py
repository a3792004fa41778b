"""Headers and whole frames, as Kafka writes them and as its parser judges them."""

from __future__ import annotations

import itertools
from typing import cast

import pytest

from ottla.protocol.apis import API
from ottla.protocol.codec import DecodeError, decode, encode
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

        assert header == kafka_header(case), case
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

        assert decoded == kafka_header(case)._replace(client_id=declared.client_id or ""), where
        assert Shown(request, case["v"]).json == case["body"], where
        assert Shown(declared, case["headerVersion"]).json == case["header"], where
        assert encode(declared, case["headerVersion"]) + encode(request, case["v"]) == frame, where
        if not declared.unknown_tags:
            parts = encode_request_frame(decoded._replace(client_id=declared.client_id), request)
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


def test_client_id_of_unusual_size() -> None:
    header = RequestHeader(3, 12, 7, "ü" * 16383)
    assert decode_request_header(memoryview(encode_request_header(header))) == (header, 8 + 2 + 32766 + 1)


def test_unknown_tags_of_a_header_are_passed_over() -> None:
    frame = memoryview(encode_request_header(RequestHeader(3, 12, 7, "c"))[:-1] + b"\x01\x05\x02xy" + b"body")
    _, position = decode_request_header(frame)
    assert bytes(frame[position:]) == b"body"
