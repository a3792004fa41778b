"""Headers of requests and responses, and whole frames.

A frame is a 4-byte size and what is counted by it: a header and a body. Which header version goes with which version of
an API stands in `apis`, what they hold in `messages.header`. The client id is never compact, also where the rest of the
header is flexible. What Kafka's parser refuses is refused: an unknown API key, a header that ends too early. A version
out of range is not its affair.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from librt.strings import BytesWriter, read_i16_be, read_i32_be, write_i16_be, write_i32_be
from mypy_extensions import i64

from ottla.protocol.apis import API
from ottla.protocol.codec import encode_parts, encode_parts_in_steps
from ottla.protocol.primitives import MAX_STRING_BYTES, DecodeError, EncodeError, Reader, part_size_bytes
from ottla.protocol.schema import Message, Span

Part = bytes | memoryview | Span

LEAST_BYTES: Final = 10
"""Key, version, correlation id, and the length of the client id."""
USUAL_BYTES: Final = 128
"""Most headers are not longer; that much is looked at before more is copied."""
CORRELATION_ID_BYTES: Final = 4


class RequestHeader:
    """A request's header, whatever its version."""

    __slots__ = ("api_key", "api_version", "client_id", "correlation_id")

    def __init__(self, api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id

    def __repr__(self) -> str:
        return f"RequestHeader({self.api_key}, {self.api_version}, {self.correlation_id}, {self.client_id!r})"


def decode_request_header(frame: memoryview) -> tuple[RequestHeader, int]:
    """Return the header at the start of a frame (without its size) and the position of the body.

    A client id that is null comes back as the empty one, as Kafka's brokers take it.
    Raises `DecodeError` for an API key that does not exist and for a frame that ends too early.
    """
    head = bytes(frame[:USUAL_BYTES])
    if len(head) < LEAST_BYTES:
        raise DecodeError("a request that ends within its header")
    api_key = int(read_i16_be(head, 0))
    api_version = int(read_i16_be(head, 2))
    length_bytes = i64(read_i16_be(head, 8))
    api = API.get(api_key)
    if api is None:
        raise DecodeError(f"there is no API with key {api_key}")
    end: i64 = LEAST_BYTES + max(length_bytes, 0)
    if end > len(frame):
        raise DecodeError("a request that ends within its client id")
    if end >= USUAL_BYTES:
        head = bytes(frame[: end + 1])
    client_id = head[LEAST_BYTES:end].decode("utf-8", "replace")
    header = RequestHeader(api_key, api_version, int(read_i32_be(head, 4)), client_id)
    if api_version < api.flexible_from:
        return header, int(end)
    if end < len(head) and head[end] == 0:
        return header, int(end + 1)
    return header, _after_tags(frame, int(end))


def _after_tags(frame: memoryview, position: int) -> int:
    reader = Reader(frame, position)
    try:
        reader.skip_tags()
    except IndexError:
        raise DecodeError("a header that ends within its tagged fields") from None
    return reader.absolute_position


def encode_request_header(header: RequestHeader) -> bytes:
    """Return a request's header in the version that goes with the API's."""
    writer = BytesWriter()
    write_i16_be(writer, header.api_key)
    write_i16_be(writer, header.api_version)
    write_i32_be(writer, header.correlation_id)
    if header.client_id is None:
        write_i16_be(writer, -1)
    else:
        client_id = header.client_id.encode("utf-8")
        if len(client_id) > MAX_STRING_BYTES:
            raise EncodeError(f"a client id of {len(client_id)} bytes")
        write_i16_be(writer, len(client_id))
        writer.write(client_id)
    if header.api_version >= API[header.api_key].flexible_from:
        writer.append(0)
    return writer.getvalue()


def decode_response_header(frame: memoryview, header_version: int) -> tuple[int, int]:
    """Return the correlation id and the position of the body. Raises `DecodeError` for a frame that ends too early."""
    head = bytes(frame[: CORRELATION_ID_BYTES + 1])
    if len(head) < CORRELATION_ID_BYTES + (header_version > 0):
        raise DecodeError("a response that ends within its header")
    correlation_id = int(read_i32_be(head, 0))
    if header_version == 0:
        return correlation_id, CORRELATION_ID_BYTES
    if head[CORRELATION_ID_BYTES] == 0:
        return correlation_id, CORRELATION_ID_BYTES + 1
    return correlation_id, _after_tags(frame, CORRELATION_ID_BYTES)


def encode_response_header(correlation_id: int, header_version: int) -> bytes:
    """Return a response's header. Which version goes with the API's is told by `Api.response_header_version`."""
    writer = BytesWriter()
    write_i32_be(writer, correlation_id)
    if header_version > 0:
        writer.append(0)
    return writer.getvalue()


def encode_request_frame(header: RequestHeader, request: Message) -> list[Part]:
    """Return a whole frame, size first, as parts for one gathered write: records uncopied, all else merged."""
    body = encode_parts(request, header.api_version)
    front = encode_request_header(header)
    return _frame(front, body)


def encode_response_frame(api_key: int, api_version: int, correlation_id: int, response: Message) -> list[Part]:
    """Return a whole frame, size first, as parts for one gathered write: records uncopied, all else merged."""
    body = encode_parts(response, api_version)
    front = encode_response_header(correlation_id, API[api_key].response_header_version(api_version))
    return _frame(front, body)


def encode_response_frame_in_steps(
    api_key: int, api_version: int, correlation_id: int, response: Message
) -> Generator[None, None, list[Part]]:
    """As `encode_response_frame`, some elements of an array at a time: others may do theirs at each yield."""
    body = yield from encode_parts_in_steps(response, api_version)
    front = encode_response_header(correlation_id, API[api_key].response_header_version(api_version))
    return _frame(front, body)


def _frame(header: bytes, body: list[Part]) -> list[Part]:
    size_bytes = len(header)
    for part in body:
        size_bytes += part_size_bytes(part)
    front = BytesWriter()
    write_i32_be(front, size_bytes)
    front.write(header)
    first = body[0] if body else None
    if isinstance(first, bytes):
        front.write(first)
        body[0] = front.getvalue()
    else:
        body.insert(0, front.getvalue())
    return body
