"""Frames and conversations without sockets: bytes in, frames out; requests out, answers in.

A frame is a size (int32) and that many bytes. `FrameReader` says where the next received bytes should go and cuts
frames out of them; `ClientConnection` adds what a client must remember: correlation ids and which answer belongs to
which request. The serving side needs no more than a `FrameReader`, since what a request means is decided by its
dialect.

Where bytes go:

* All connections of a loop receive into one shared scratch buffer, and frames are handed out as views of it, so that an
  idle connection owns no memory. Whoever keeps bytes beyond the call that got them copies them.
* The unfinished tail of a read moves to memory of its own, and the rest of that frame is received straight behind it.
* A connection whose last frame was larger than that receives the next one into a large buffer from the start, borrowed
  for just that long: such frames are copied no more.
* A claimed size is not believed: memory runs at most `AHEAD_BYTES` ahead of the bytes that came, or doubles them.
  For the largest frames the system is asked, which gives memory page by page as bytes come: to make or to copy a
  hundred megabytes at once would hold up all other connections.

A reader's get_buffer, buffer_updated and next_frame (until it returns None) belong together: nothing else may run
between them. That is how asyncio's and uvloop's selector loops call a `BufferedProtocol`.
"""

from __future__ import annotations

from collections import deque
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from struct import Struct
from typing import Final, NamedTuple, cast

from librt.strings import read_i32_be
from mypy_extensions import i64

from ottla.protocol.apis import API, ApiKey
from ottla.protocol.codec import Message, decode
from ottla.protocol.headers import RequestHeader, decode_response_header, encode_request_frame

SCRATCH_BYTES: Final = 256 * 1024
"""How much is read at once: several large batches cost one call and one write of answers, and fit the CPU's cache."""
FRONT_BYTES: Final = 448
"""How much of a frame is shown before it is taken: request header, names, and the front of a batch. (With Python's own
fields within 512 bytes, to which its fast allocator goes.)"""
FIRST_BYTES: Final = 512
"""Memory for a frame of which not even the size is complete."""
MORE_BYTES: Final = 64 * 1024
"""Room behind frames that a connection holds back."""
AHEAD_BYTES: Final = 1024 * 1024
SMALLEST_RESTING_BYTES: Final = 16 * 1024
RESTING_BYTES: Final = 8 * 1024 * 1024
"""Buffers that wait for their next use hold at most this much together."""

MAX_FRAME_BYTES: Final = 100 * 1024 * 1024
"""Kafka's default of socket.request.max.bytes."""
MAX_UNAUTHENTICATED_FRAME_BYTES: Final = 512 * 1024
"""Kafka's default of sasl.server.max.receive.size: the limit before a peer has said who it is."""
MIN_REQUEST_BYTES: Final = 8
"""Api key, version and correlation id: no request is shorter."""
MIN_RESPONSE_BYTES: Final = 4
"""The correlation id."""

_SIZE: Final = Struct(">i")
_NO_VIEW: Final = memoryview(b"")


class InvalidFrame(ValueError):
    """The peer's bytes cannot be a frame, or answer nothing that was asked. The connection is beyond repair."""


class ReceiveBuffers:
    """What the connections of one event loop receive into: the shared scratch buffer and resting large buffers."""

    __slots__ = ("_resting", "_resting_bytes", "scratch")

    def __init__(self) -> None:
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._resting: list[memoryview] = []
        self._resting_bytes = 0

    def take(self, size_bytes: int) -> memoryview:
        """Return a buffer of at least `size_bytes`, a rested one where it fits without waste."""
        resting = self._resting
        for i in range(len(resting) - 1, -1, -1):  # the last one rested is the likeliest to be in the CPU's caches
            held = len(resting[i])
            if size_bytes <= held <= 4 * size_bytes + MORE_BYTES:
                self._resting_bytes -= held
                return resting.pop(i)
        return _new_buffer(size_bytes)

    def give_back(self, buffer: memoryview) -> None:
        """Let a buffer rest for its next use. Views of it must not be used any more."""
        held = len(buffer)
        if held < SMALLEST_RESTING_BYTES or held > RESTING_BYTES:
            return
        self._resting.append(buffer)
        self._resting_bytes += held
        while self._resting_bytes > RESTING_BYTES:
            self._resting_bytes -= len(self._resting.pop(0))


def _new_buffer(size_bytes: int) -> memoryview:
    """Return memory that can be written; a large one is the system's, and so are its zeros."""
    if size_bytes <= RESTING_BYTES:
        return memoryview(bytearray(size_bytes))
    return memoryview(mmap(-1, size_bytes, MAP_PRIVATE | MAP_ANONYMOUS))


class FrameReader:
    """Cuts one connection's received bytes into frames.

    `limit_bytes` may be changed at any time and holds for frames whose size is read from then on.
    """

    __slots__ = ("_at", "_buffers", "_end", "_expected", "_own", "_source", "limit_bytes", "minimum_bytes")

    def __init__(
        self, buffers: ReceiveBuffers, limit_bytes: int = MAX_FRAME_BYTES, minimum_bytes: int = MIN_REQUEST_BYTES
    ) -> None:
        self.limit_bytes = limit_bytes
        self.minimum_bytes = minimum_bytes
        self._buffers = buffers
        self._own: memoryview | None = None  # holds the beginning of a frame, or is borrowed for one read
        self._expected = 0  # with its size field: the last frame, where that was larger than the scratch buffer
        self._source = _NO_VIEW  # what frames are cut from: received bytes stand at [_at, _end)
        self._at = 0
        self._end = 0

    @property
    def pending_bytes(self) -> int:
        """Bytes of an unfinished frame that are waiting for the rest."""
        return self._end - self._at

    def get_buffer(self) -> memoryview:
        """Return where the next bytes go, never empty."""
        own = self._own
        if own is None:
            if not self._expected:
                self._source = scratch = self._buffers.scratch
                return scratch
            self._own = self._source = own = self._buffers.take(self._expected)
        elif self._end == len(own):
            self._keep_tail()
            own = self._source
        return own[self._end :]

    def buffer_updated(self, received_bytes: int) -> None:
        """Take note that so many bytes were written to what `get_buffer` returned."""
        self._end += received_bytes

    def next_frame(self) -> memoryview | None:
        """Return the next whole frame without its size, or None when more must be received first.

        The view holds until the next call of this reader, or of another one that shares the buffers. Raises
        `InvalidFrame`.
        """
        at = self._at
        left = self._end - at
        if left >= 4:
            size: int = _SIZE.unpack_from(self._source, at)[0]
            if size < self.minimum_bytes or size > self.limit_bytes:
                raise InvalidFrame(f"a frame of {size} bytes; allowed are {self.minimum_bytes} to {self.limit_bytes}")
            if left >= size + 4:
                self.skip(size + 4)
                return self._source[at + 4 : at + 4 + size]
        if left:
            self._keep_tail()
        else:
            self._rest()
        return None

    def front(self, behind_bytes: int = 0) -> bytes:
        """Return the beginning of the next whole frame, with its size; or of the one so many bytes behind that.

        It is a copy of at most `FRONT_BYTES`. Empty when there is no such frame, or `next_frame` would not take it.
        """
        at = self._at + behind_bytes
        left = self._end - at
        if left < 4:
            return b""
        front = bytes(self._source[at : at + min(left, FRONT_BYTES)])
        size = i64(read_i32_be(front, 0))
        if size + 4 > left or not self.minimum_bytes <= size <= self.limit_bytes:
            return b""
        return front if len(front) <= size + 4 else front[: size + 4]

    def view(self, start: int, end: int) -> memoryview:
        """Return received bytes, counted from where the next frame's size begins. It holds until that is taken."""
        at = self._at
        return self._source[at + start : at + end]

    def skip(self, frame_bytes: int) -> None:
        """Take the next frame, of which `front` told the size: so many bytes with it."""
        self._at += frame_bytes
        self._expected = frame_bytes if frame_bytes > SCRATCH_BYTES else 0

    def detach(self, frame: memoryview) -> memoryview:
        """Return the bytes of what `next_frame` returned last in memory that stays: views of `frame` may hold no more.

        The own buffer of a large frame changes hands, so that it is not copied; what is behind it gets another one.
        """
        own = self._own
        if own is None or 2 * len(frame) < len(own):
            return memoryview(bytearray(frame))
        left = self._end - self._at
        self._own, self._source = None, _NO_VIEW
        if left:
            self._own = self._source = self._buffers.take(left + MORE_BYTES)
            self._source[:left] = own[self._at : self._end]
        self._at, self._end = 0, left
        return frame

    def hold(self) -> None:
        """Keep the frames that were not taken yet, for when their time has come. Reading may go on meanwhile."""
        if self._end != self._at:
            self._keep_tail()
        else:
            self._rest()

    def close(self) -> None:
        """Drop what was received; the reader is not used afterwards."""
        self._rest()

    def _rest(self) -> None:
        """All received bytes were consumed: own nothing until more come."""
        self._at = self._end = 0
        if self._own is not None:
            self._buffers.give_back(self._own)
            self._own = None
            self._source = _NO_VIEW

    def _keep_tail(self) -> None:
        """Move what is left to the front of memory of its own that has room for more of it."""
        left = self._end - self._at
        room = self._wanted_bytes(left)
        own = self._own
        if own is None or len(own) < room:
            larger = self._buffers.take(room)
            larger[:left] = self._source[self._at : self._end]
            if own is not None:
                self._buffers.give_back(own)
            self._own = self._source = larger
        elif self._at:
            own[:left] = own[self._at : self._end]  # memoryviews move overlapping bytes safely
        self._at, self._end = 0, left

    def _wanted_bytes(self, left: int) -> int:
        """How much memory the unfinished frame gets now: more than `left`, not much more than was received."""
        wanted = _SIZE.unpack_from(self._source, self._at)[0] + 4 if left >= 4 else FIRST_BYTES
        if wanted > SCRATCH_BYTES and wanted > left:
            if left >= AHEAD_BYTES and wanted > RESTING_BYTES:  # memory that is only reserved until bytes come
                return int(wanted)
            return int(min(wanted, max(left + AHEAD_BYTES, 2 * left)))
        if wanted <= left:  # whole frames are held
            return left + MORE_BYTES
        if self._end == len(self._source):  # a full read says that more waits
            return left + SCRATCH_BYTES
        return int(wanted)


class InFlight(NamedTuple):
    """A request that waits for its answer."""

    correlation_id: int
    api_key: int
    api_version: int


class Answer(NamedTuple):
    """A decoded response. Records in it are views of memory that belongs to this answer alone."""

    correlation_id: int
    api_key: int
    api_version: int
    message: Message


class ClientConnection:
    """The client's end of one connection: numbers requests and finds out what each answer answers.

    A broker answers in the order of the requests, so an answer with another correlation id than the oldest request in
    flight is an `InvalidFrame`.
    """

    __slots__ = ("_client_id", "_in_flight", "_next_correlation_id", "reader")

    def __init__(self, client_id: str | None, limit_bytes: int = 2**31 - 1) -> None:
        self.reader = FrameReader(ReceiveBuffers(), limit_bytes, MIN_RESPONSE_BYTES)
        self._client_id = client_id
        self._in_flight: deque[InFlight] = deque()
        self._next_correlation_id = 0

    @property
    def in_flight(self) -> int:
        """How many requests wait for an answer."""
        return len(self._in_flight)

    def send(
        self, api_key: int, api_version: int, request: Message, *, has_answer: bool = True
    ) -> tuple[int, list[bytes | memoryview]]:
        """Return the request's correlation id and its frame as buffers for one gathered write.

        `has_answer` is False for Produce with acks=0, which a broker never answers. Raises `UnsupportedVersion` for a
        field that the version cannot carry.
        """
        correlation_id = self._next_correlation_id
        parts = encode_request_frame(RequestHeader(api_key, api_version, correlation_id, self._client_id), request)
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        if has_answer:
            self._in_flight.append(InFlight(correlation_id, api_key, api_version))
        return correlation_id, cast("list[bytes | memoryview]", parts)

    def get_buffer(self) -> memoryview:
        """Return where the next received bytes go."""
        return self.reader.get_buffer()

    def buffer_updated(self, received_bytes: int) -> None:
        """Take note of received bytes; then call `next_answer` until it returns None."""
        self.reader.buffer_updated(received_bytes)

    def receive(self, data: bytes | memoryview) -> list[Answer]:
        """Take received bytes from anywhere and return the answers that they complete."""
        answers: list[Answer] = []
        while data:
            buffer = self.get_buffer()
            size_bytes = min(len(buffer), len(data))
            buffer[:size_bytes] = data[:size_bytes]
            data = data[size_bytes:]
            self.buffer_updated(size_bytes)
            while (answer := self.next_answer()) is not None:
                answers.append(answer)
        return answers

    def next_answer(self) -> Answer | None:
        """Return the next whole answer, or None when more must be received. Raises `InvalidFrame`, `DecodeError`."""
        view = self.reader.next_frame()
        if view is None:
            return None
        frame = memoryview(bytes(view))  # the receive buffer is used again; the answer's records live on
        if not self._in_flight:
            raise InvalidFrame("an answer came although nothing was asked")
        asked = self._in_flight.popleft()
        api = API[asked.api_key]
        correlation_id, body_at = decode_response_header(frame, api.response_header_version(asked.api_version))
        if correlation_id != asked.correlation_id:
            raise InvalidFrame(f"answer {correlation_id} came where {asked.correlation_id} was due")
        version = asked.api_version
        if asked.api_key == ApiKey.API_VERSIONS and bytes(frame[body_at : body_at + 2]) == b"\x00\x23":
            version = 0  # UNSUPPORTED_VERSION is always written in the layout of version 0 (KIP-511)
        return Answer(correlation_id, asked.api_key, version, decode(api.response, version, frame, body_at))
