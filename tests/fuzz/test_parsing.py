"""Any bytes as a request or as an answer: a message, or a `DecodeError`, within memory that the bytes account for."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ottla.protocol.apis import API
from ottla.protocol.codec import DecodeError, decode, encode
from ottla.protocol.connection import FrameReader, InvalidFrame, ReceiveBuffers
from ottla.protocol.headers import decode_request_header
from ottla.protocol.primitives import EncodeError
from ottla.protocol.schema import Message
from tests.fuzz.corpus import request_frames, response_bodies
from tests.fuzz.mutation import fuzz, memory_within, mutated

OBJECT_BYTES = 160
"""What a byte on the wire may become: the smallest struct of one byte is an object with a few slots."""
FIXED_BYTES = 64 * 1024


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    for api in API.values():  # import all of them before memory is counted
        assert api.request, api.response
    tracemalloc.start()
    yield
    tracemalloc.stop()


def check_stable(message: Message, version: int) -> None:
    """What was read reads again as the same bytes once written. Repeated tags are read, not written, as in Kafka."""
    try:
        first = encode(message, version)
    except EncodeError as error:
        assert "tag" in str(error)
        return
    assert encode(decode(type(message), version, memoryview(first)), version) == first


def read(message: type[Message], version: int, body: memoryview, position: int = 0) -> None:
    """Read twice: the first time makes what the codec keeps for a version, the second one is measured."""
    with suppress(DecodeError):
        check_stable(decode(message, version, body, position), version)
    with memory_within(FIXED_BYTES + OBJECT_BYTES * len(body)), suppress(DecodeError):
        decode(message, version, body, position)


def test_any_bytes_are_a_request_or_refused() -> None:
    def check(frame: bytes) -> None:
        try:
            header, body_at = decode_request_header(memoryview(frame))
        except DecodeError:
            return
        api = API[header.api_key]
        if api.min_version <= header.api_version <= api.max_version:
            read(api.request, header.api_version, memoryview(frame), body_at)

    fuzz(mutated(request_frames()), check)


def test_any_bytes_are_an_answer_or_refused() -> None:
    """Our client reads what any broker says."""

    def check(data: bytes) -> None:
        read(API[data[0]].response, data[1], memoryview(data)[2:])

    fuzz(mutated(response_bodies(), from_position=2), check)


def test_any_stream_is_cut_into_frames_or_refused() -> None:
    """Sizes that lie, and bytes that come in pieces."""
    seeds = [
        b"".join(len(frame).to_bytes(4, "big") + frame for frame in request_frames()[at : at + 4]) for at in range(400)
    ]
    buffers = ReceiveBuffers()

    def check(stream: bytes) -> None:
        reader = FrameReader(buffers, limit_bytes=1 << 20)
        with memory_within(FIXED_BYTES + (1 << 20) + 4 * len(stream)):
            position, taken, piece = 0, 0, 1
            try:
                while position < len(stream):
                    buffer = reader.get_buffer()
                    assert len(buffer) > 0
                    count = min(len(buffer), piece, len(stream) - position)
                    buffer[:count] = stream[position : position + count]
                    position += count
                    piece = piece * 3 % 1009
                    reader.buffer_updated(count)
                    while (frame := reader.next_frame()) is not None:
                        assert bytes(frame) == stream[taken + 4 : taken + 4 + len(frame)]
                        taken += 4 + len(frame)
            except InvalidFrame:
                pass
            reader.close()

    fuzz(mutated(seeds), check)
