"""Headers of requests and responses, and whole frames.

A frame is a 4-byte size and what is counted by it: a header and a body. Which header version goes with which version of
an API stands in `apis`, what they hold in `messages.header`. The client id is never compact, also where the rest of the
header is flexible. What Kafka's parser refuses is refused: an unknown API key, a header that ends too early. A version
out of range is not its affair.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final, NamedTuple

from ottla.protocol.apis import API
from ottla.protocol.codec import encode_parts
from ottla.protocol.primitives import MAX_STRING_BYTES, DecodeError, EncodeError, Reader, part_size_bytes
from ottla.protocol.schema import Message, Span

Part = bytes | memoryview | Span

_REQUEST: Final = Layout(">hhih")
_CORRELATION_ID: Final = Layout(">i")


class RequestHeader(NamedTuple):
    """A request's header, whatever its version."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_request_header(frame: memoryview) -> tuple[RequestHeader, int]:
    """Return the header at the start of a frame (without its size) and the position of the body.

    A client id that is null comes back as the empty one, as Kafka's brokers take it.
    Raises `DecodeError` for an API key that does not exist and for a frame that ends too early.
    """
    if len(frame) < _REQUEST.size:
        raise DecodeError("a request that ends within its header")
    api_key, api_version, correlation_id, length_bytes = _REQUEST.unpack_from(frame)
    api = API.get(api_key)
    if api is None:
        raise DecodeError(f"there is no API with key {api_key}")
    position = _REQUEST.size
    client_id = ""
    if length_bytes >= 0:
        end = position + length_bytes
        if end > len(frame):
            raise DecodeError("a request that ends within its client id")
        client_id = str(frame[position:end], "utf-8", "replace")
        position = end
    if api_version >= api.flexible_from:
        position = _skip_tags(frame, position)
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def _skip_tags(frame: memoryview, position: int) -> int:
    if position < len(frame) and frame[position] == 0:
        return position + 1
    reader = Reader(frame[position:], 0)
    try:
        reader.skip_tags()
    except IndexError:
        raise DecodeError("a header that ends within its tagged fields") from None
    return position + reader.position


def encode_request_header(header: RequestHeader) -> bytes:
    """Return a request's header in the version that goes with the API's."""
    is_flexible = header.api_version >= API[header.api_key].flexible_from
    tail = b"\x00" if is_flexible else b""
    if header.client_id is None:
        return _REQUEST.pack(header.api_key, header.api_version, header.correlation_id, -1) + tail
    client_id = header.client_id.encode("utf-8")
    if len(client_id) > MAX_STRING_BYTES:
        raise EncodeError(f"a client id of {len(client_id)} bytes")
    return _REQUEST.pack(header.api_key, header.api_version, header.correlation_id, len(client_id)) + client_id + tail


def decode_response_header(frame: memoryview, header_version: int) -> tuple[int, int]:
    """Return the correlation id and the position of the body. Raises `DecodeError` for a frame that ends too early."""
    if len(frame) < _CORRELATION_ID.size:
        raise DecodeError("a response that ends within its header")
    correlation_id: int = _CORRELATION_ID.unpack_from(frame)[0]
    if header_version == 0:
        return correlation_id, _CORRELATION_ID.size
    return correlation_id, _skip_tags(frame, _CORRELATION_ID.size)


def encode_response_header(correlation_id: int, header_version: int) -> bytes:
    packed = _CORRELATION_ID.pack(correlation_id)
    return packed + b"\x00" if header_version else packed


def encode_request_frame(header: RequestHeader, request: Message) -> list[Part]:
    """Return a whole frame, size first, as parts for one gathered write."""
    return _frame(encode_request_header(header), encode_parts(request, header.api_version))


def encode_response_frame(api_key: int, api_version: int, correlation_id: int, response: Message) -> list[Part]:
    """Return a whole frame, size first, as parts for one gathered write: records uncopied, all else merged."""
    header_version = API[api_key].response_header_version(api_version)
    return _frame(encode_response_header(correlation_id, header_version), encode_parts(response, api_version))


def _frame(header: bytes, body: list[Part]) -> list[Part]:
    size_bytes = len(header)
    for part in body:
        size_bytes += part_size_bytes(part)
    front = _CORRELATION_ID.pack(size_bytes) + header
    if body and isinstance(body[0], bytes):
        body[0] = front + body[0]
    else:
        body.insert(0, front)
    return body
