"""Frames out of received bytes, whatever the pieces they come in; answers paired with requests."""

from __future__ import annotations

import struct
from mmap import mmap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import encode
from ottla.protocol.connection import (
    AHEAD_BYTES,
    FRONT_BYTES,
    RESTING_BYTES,
    SCRATCH_BYTES,
    ClientConnection,
    FrameReader,
    InvalidFrame,
    ReceiveBuffers,
)
from ottla.protocol.headers import encode_response_header
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.protocol.receiving import received


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def body(size_bytes: int, seed: int = 1) -> bytes:
    return bytes((i * 31 + seed) & 0xFF for i in range(min(size_bytes, 251))).ljust(size_bytes, bytes([seed & 0xFF]))


def feed(reader: FrameReader, data: bytes) -> list[bytes]:
    """Give a reader bytes as a socket would. Return copies of the frames."""
    frames = []
    for _ in received(reader, data):
        while (view := reader.next_frame()) is not None:
            frames.append(bytes(view))
    return frames


def own_bytes(reader: FrameReader) -> int:
    return 0 if reader._own is None else len(reader._own)


def test_frames_of_one_read_come_out_in_order() -> None:
    reader = FrameReader(ReceiveBuffers())

    assert feed(reader, frame(body(8)) + frame(body(100, 2)) + frame(body(9, 3))) == [body(8), body(100, 2), body(9, 3)]
    assert own_bytes(reader) == 0


def test_frames_that_are_there_may_be_looked_at_before_they_are_taken() -> None:
    reader = FrameReader(ReceiveBuffers())
    bodies = [body(8 + 300 * number, number) for number in range(4)]
    data = b"".join(frame(each) for each in bodies) + frame(body(50))[:-1]
    reader.get_buffer()[: len(data)] = data
    assert reader.front() == b"", "nothing was received yet"
    reader.buffer_updated(len(data))

    behind_bytes = 0
    for each in bodies:
        assert reader.front(behind_bytes) == frame(each)[:FRONT_BYTES]
        assert reader.view(behind_bytes, behind_bytes + len(frame(each))) == frame(each)
        behind_bytes += len(frame(each))
    assert reader.front(behind_bytes) == b"", "the last one is not whole"

    reader.skip(len(frame(bodies[0])))
    assert bytes(reader.next_frame() or b"") == bodies[1]
    reader.skip(len(frame(bodies[2])))
    assert bytes(reader.next_frame() or b"") == bodies[3]
    assert reader.next_frame() is None
    assert reader.pending_bytes == 53


def test_the_next_frame_is_received_apart_when_the_one_that_was_skipped_was_large() -> None:
    reader = FrameReader(ReceiveBuffers())
    large = frame(body(SCRATCH_BYTES))
    for left_bytes in received(reader, large):
        if left_bytes:
            assert reader.next_frame() is None
    assert reader.front() == large[:FRONT_BYTES]
    reader.skip(len(large))
    assert reader.next_frame() is None
    assert len(reader.get_buffer()) >= len(large)


@pytest.mark.parametrize("size_bytes", [-(2**31), -1, 0, 7, 101, 2**31 - 1])
def test_a_size_that_no_frame_has_is_no_frame_that_is_there(size_bytes: int) -> None:
    reader = FrameReader(ReceiveBuffers(), limit_bytes=100)
    data = struct.pack(">i", size_bytes) + bytes(200)
    reader.get_buffer()[: len(data)] = data
    reader.buffer_updated(len(data))
    assert reader.front() == b""


@settings(max_examples=50, deadline=None)
@given(
    sizes=st.lists(st.integers(8, 3 * SCRATCH_BYTES), min_size=1, max_size=5),
    cuts=st.lists(st.integers(3000, 2 * SCRATCH_BYTES), min_size=1, max_size=8),
)
def test_frames_do_not_depend_on_how_bytes_arrive(sizes: list[int], cuts: list[int]) -> None:
    bodies = [body(size, seed) for seed, size in enumerate(sizes)]
    data = b"".join(map(frame, bodies))
    buffers = ReceiveBuffers()
    reader, neighbour = FrameReader(buffers), FrameReader(buffers)
    frames = []
    i = 0
    while data:
        cut = cuts[i % len(cuts)]
        frames += feed(reader, data[:cut])
        data = data[cut:]
        feed(neighbour, frame(body(5000, 77)))  # another connection uses the shared memory in between
        i += 1

    assert frames == bodies
    assert reader.pending_bytes == 0


def test_a_frame_that_comes_byte_by_byte_is_read() -> None:
    reader = FrameReader(ReceiveBuffers())
    frames = [got for byte in frame(body(12)) for got in feed(reader, bytes([byte]))]

    assert frames == [body(12)]


@pytest.mark.parametrize("size_bytes", [-1, -(2**31), 0, 7, 1001, 2**31 - 1])
def test_sizes_that_no_frame_has_are_refused(size_bytes: int) -> None:
    reader = FrameReader(ReceiveBuffers(), limit_bytes=1000)

    with pytest.raises(InvalidFrame):
        feed(reader, struct.pack(">i", size_bytes))


def test_the_limit_itself_is_allowed_and_may_be_raised() -> None:
    reader = FrameReader(ReceiveBuffers(), limit_bytes=1000)
    assert feed(reader, frame(body(1000))) == [body(1000)]

    reader.limit_bytes = 2000

    assert feed(reader, frame(body(2000))) == [body(2000)]


def test_a_claimed_size_gets_no_memory_far_ahead_of_its_bytes() -> None:
    reader = FrameReader(ReceiveBuffers())
    claimed = 90 * 1024 * 1024
    feed(reader, struct.pack(">i", claimed))
    received = 4
    while received < 8 * AHEAD_BYTES:
        if reader._own is None or not isinstance(reader._own.obj, mmap):  # which has pages where bytes came, no others
            assert own_bytes(reader) <= max(received + AHEAD_BYTES, 2 * received)
        feed(reader, bytes(100_000))
        received += 100_000


def test_small_unfinished_frames_get_memory_of_their_size() -> None:
    reader = FrameReader(ReceiveBuffers())
    feed(reader, frame(body(2000))[:100])

    assert own_bytes(reader) == 2004


def test_an_idle_connection_owns_no_memory() -> None:
    reader = FrameReader(ReceiveBuffers())
    feed(reader, frame(body(2 * SCRATCH_BYTES)) * 3)

    assert own_bytes(reader) == 0


def test_large_frames_of_equal_size_are_received_whole_into_one_reused_buffer() -> None:
    """So a producer of large batches costs no copy and one receive call for each."""
    reader = FrameReader(ReceiveBuffers())
    large = frame(body(SCRATCH_BYTES + 500))
    feed(reader, large)

    first = reader.get_buffer()
    assert len(first) == len(large)
    first[:] = large
    reader.buffer_updated(len(large))
    view = reader.next_frame()
    assert view is not None
    assert view.obj is first.obj
    assert reader.next_frame() is None

    second = reader.get_buffer()
    assert second.obj is first.obj


def test_batches_of_a_usual_size_are_received_several_at_once() -> None:
    """So a producer with several requests in progress costs one receive call for all that it has sent."""
    reader = FrameReader(ReceiveBuffers())
    usual = frame(body(64 * 1024))
    feed(reader, usual)

    buffer = reader.get_buffer()
    assert len(buffer) >= 3 * len(usual)
    buffer[: 3 * len(usual)] = 3 * usual
    reader.buffer_updated(3 * len(usual))
    for _ in range(3):
        view = reader.next_frame()
        assert view is not None
        assert bytes(view) == usual[4:]
        assert view.obj is buffer.obj


def test_a_read_that_was_full_is_followed_by_one_as_large() -> None:
    reader = FrameReader(ReceiveBuffers())
    usual = frame(body(64 * 1024))
    sent = 20 * usual

    reads = frames = 0
    while frames < 20:
        buffer = reader.get_buffer()
        received_bytes = min(len(buffer), len(sent))
        buffer[:received_bytes], sent = sent[:received_bytes], sent[received_bytes:]
        reader.buffer_updated(received_bytes)
        reads += 1
        while reader.next_frame() is not None:
            frames += 1

    assert reads <= 20 * len(usual) // SCRATCH_BYTES + 1


def test_after_large_frames_a_small_one_leads_back_to_the_shared_buffer() -> None:
    buffers = ReceiveBuffers()
    reader = FrameReader(buffers)
    feed(reader, frame(body(2 * SCRATCH_BYTES)) + frame(body(50)))

    assert reader.get_buffer() is buffers.scratch


def test_resting_buffers_are_bounded() -> None:
    buffers = ReceiveBuffers()
    for _ in range(40):
        buffers.give_back(memoryview(bytearray(1024 * 1024)))

    assert sum(len(buffer) for buffer in buffers._resting) <= 8 * 1024 * 1024


def test_held_frames_are_there_when_their_time_has_come() -> None:
    buffers = ReceiveBuffers()
    reader, neighbour = FrameReader(buffers), FrameReader(buffers)
    data = frame(body(30)) + frame(body(40, 2)) + frame(body(50, 3))[:20]
    buffer = reader.get_buffer()
    buffer[: len(data)] = data
    reader.buffer_updated(len(data))
    first = reader.next_frame()
    assert first is not None
    assert bytes(first) == body(30)
    reader.hold()
    feed(neighbour, frame(body(5000, 9)))
    late = frame(body(50, 3))[20:]
    buffer = reader.get_buffer()
    buffer[: len(late)] = late
    reader.buffer_updated(len(late))
    reader.hold()

    assert reader.pending_bytes == len(frame(body(40)) + frame(body(50)))
    second = reader.next_frame()
    assert second is not None
    assert bytes(second) == body(40, 2)
    third = reader.next_frame()
    assert third is not None
    assert bytes(third) == body(50, 3)
    assert reader.next_frame() is None
    assert own_bytes(reader) == 0


# -- the client's end ---------------------------------------------------------------------------------------------


def answer(correlation_id: int, response: ApiVersionsResponse | MetadataResponse, version: int, header: int) -> bytes:
    return frame(encode_response_header(correlation_id, header) + encode(response, version))


def test_answers_are_paired_with_requests_in_order() -> None:
    connection = ClientConnection("test")
    first, _ = connection.send(ApiKey.API_VERSIONS, 3, ApiVersionsRequest())
    second, _ = connection.send(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
    data = answer(first, ApiVersionsResponse(), 3, 0) + answer(second, MetadataResponse(cluster_id="c"), 9, 1)

    answers = connection.receive(data[:11])
    answers += connection.receive(data[11:])

    assert [(got.correlation_id, got.api_key, got.api_version) for got in answers] == [(0, 18, 3), (1, 3, 9)]
    assert answers[1].message == MetadataResponse(cluster_id="c")
    assert connection.in_flight == 0


def test_a_request_is_a_frame_with_its_header() -> None:
    _, parts = ClientConnection("me").send(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())

    assert b"".join(parts) == bytes.fromhex("0000000c001200000000000000026d65")


def test_unknown_api_versions_is_read_in_the_layout_of_version_0() -> None:
    connection = ClientConnection("test")
    connection.send(ApiKey.API_VERSIONS, 5, ApiVersionsRequest())
    row = ApiVersion(api_key=18, min_version=0, max_version=4)

    (got,) = connection.receive(answer(0, ApiVersionsResponse(error_code=35, api_keys=[row]), 0, 0))

    assert got.api_version == 0
    assert got.message == ApiVersionsResponse(error_code=35, api_keys=[row])


def test_an_answer_to_another_request_is_refused() -> None:
    connection = ClientConnection("test")
    connection.send(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())

    with pytest.raises(InvalidFrame):
        connection.receive(answer(7, ApiVersionsResponse(), 0, 0))


def test_an_answer_to_nothing_is_refused() -> None:
    with pytest.raises(InvalidFrame):
        ClientConnection("test").receive(answer(0, ApiVersionsResponse(), 0, 0))


def test_a_request_without_an_answer_waits_for_none() -> None:
    connection = ClientConnection("test")
    connection.send(ApiKey.API_VERSIONS, 0, ApiVersionsRequest(), has_answer=False)

    assert connection.in_flight == 0


def detached(reader: FrameReader, data: bytes) -> list[memoryview]:
    """Give a reader bytes as `feed` does, and have it detach every frame."""
    frames = []
    for _ in received(reader, data):
        while (view := reader.next_frame()) is not None:
            frames.append(reader.detach(view))
    return frames


@pytest.mark.parametrize("size_bytes", [100, SCRATCH_BYTES, 2 * SCRATCH_BYTES, 5 * AHEAD_BYTES])
@pytest.mark.parametrize("behind_bytes", [8, 50, SCRATCH_BYTES])
def test_a_detached_frame_stays_whatever_comes_behind_it(size_bytes: int, behind_bytes: int) -> None:
    reader = FrameReader(ReceiveBuffers())

    frames = detached(reader, frame(body(size_bytes)) + frame(body(behind_bytes, 2)))
    feed(reader, frame(body(SCRATCH_BYTES - 4, 3)) * 2)

    assert frames == [body(size_bytes), body(behind_bytes, 2)]
    assert not any(view.readonly for view in frames)


def test_a_large_frame_is_detached_without_a_copy() -> None:
    """It has what stood before it, its size, in the memory below it."""
    reader = FrameReader(ReceiveBuffers())

    (view,) = detached(reader, frame(body(4 * SCRATCH_BYTES)))

    assert bytes(memoryview(view.obj)[:4]) == frame(body(4 * SCRATCH_BYTES))[:4]
    assert own_bytes(reader) == 0


def test_a_very_large_frame_is_moved_once_and_not_while_it_is_large() -> None:
    """What is moved, or made to be written, at once holds up everybody for as long."""
    reader = FrameReader(ReceiveBuffers())
    data = frame(body(3 * RESTING_BYTES))
    owned: list[int] = []
    for at in range(0, len(data) - SCRATCH_BYTES, SCRATCH_BYTES):
        assert feed(reader, data[at : at + SCRATCH_BYTES]) == []
        owned.append(own_bytes(reader))
    assert max(size for size in owned if size < len(data)) <= 4 * AHEAD_BYTES
    assert feed(reader, data[len(owned) * SCRATCH_BYTES :]) == [body(3 * RESTING_BYTES)]
