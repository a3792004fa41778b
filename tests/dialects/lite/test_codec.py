"""Lite requests from bytes in any pieces, and answers to bytes."""

from __future__ import annotations

import pytest

from ottla.dialects.lite.codec import (
    CreateTopic,
    Fetch,
    Offsets,
    Produce,
    Request,
    encode_error,
    encode_values,
    read_request,
)
from ottla.errors import (
    InvalidRequest,
    InvalidTopicException,
    KafkaError,
    MessageTooLarge,
    RecordListTooLarge,
    UnknownServerError,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)

EVENTS = "0006 6576656e7473"
MAX_BYTES = 1000


def batch_bytes(topic: str, partition: int) -> int:
    if partition:
        raise UnknownTopicOrPartition
    return MAX_BYTES // 2


def parse(text: str) -> tuple[Request | None, bytes]:
    """Return the request in hex text, None where it is not whole, and the bytes that were not asked for."""
    data = bytes.fromhex(text)
    reading = read_request(MAX_BYTES, batch_bytes)
    needed = next(reading)
    try:
        while len(data) >= needed:
            piece, data = data[:needed], data[needed:]
            needed = reading.send(piece)
    except StopIteration as whole:
        request: Request = whole.value
        return request, data
    return None, data


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        (f"0002 {EVENTS} 00000000 0000000000000001", Fetch("events", 0, 1)),
        ("0002 0000 00000007 ffffffffffffffff", Fetch("", 7, 2**64 - 1)),
        (f"0001 {EVENTS} 00000000 00000002 00000005 68656c6c6f 00000000", Produce("events", 0, [b"hello", b""])),
        (f"0001 {EVENTS} 00000000 00000003 00000000 00000002 6162 00000000", Produce("events", 0, [b"", b"ab", b""])),
        (f"0001 {EVENTS} 00000000 0000007c" + "00000000" * 124, Produce("events", 0, [b""] * 124)),
        (f"0003 {EVENTS} 00000004", CreateTopic("events", 4)),
        (f"0004 {EVENTS} 00000000 0000000000000003 000003e8 00000002 00001000", Fetch("events", 0, 3, 1000, 2, 4096)),
        (f"0005 {EVENTS} 00000001", Offsets("events", 1)),
    ],
)
def test_a_request_is_read_once_all_of_it_is_there_and_never_a_byte_beyond(text: str, request_: Request) -> None:
    assert parse(text + "abcd") == (request_, b"\xab\xcd")
    digits = text.replace(" ", "")
    for cut in range(0, len(digits), 2):
        assert parse(digits[:cut])[0] is None, cut


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("0000", UnsupportedVersion),
        ("0006", UnsupportedVersion),
        ("0009", UnsupportedVersion),
        ("0002 0001 ff", InvalidRequest),
        (f"0001 {EVENTS} 00000000 00000000", InvalidRequest),
        (f"0001 {EVENTS} 00000000 00000001 000003e5", MessageTooLarge),
        (f"0001 {EVENTS} 00000000 ffffffff", MessageTooLarge),
        (f"0001 {EVENTS} 00000000 00000002 000003e1 00000000", MessageTooLarge),
    ],
)
def test_what_is_no_request_is_refused_as_soon_as_that_is_known(text: str, error: type[KafkaError]) -> None:
    with pytest.raises(error):
        parse(text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (f"0001 {EVENTS} 00000000 0000007e" + "00000000" * 126, MessageTooLarge),
        (f"0001 {EVENTS} 00000000 00000002 000001f0" + "61" * 496 + "00000000", MessageTooLarge),
        (f"0001 {EVENTS} 00000001 00000001 00000002 6162", UnknownTopicOrPartition),
    ],
)
def test_what_a_partition_does_not_take_is_read_to_its_end_and_refused_then(text: str, error: type[KafkaError]) -> None:
    """Else the client would meet a closed connection while it sends, and not the error."""
    digits = text.replace(" ", "")
    assert parse(digits[:-2]) == (None, parse(digits[:-2])[1])
    with pytest.raises(error):
        parse(digits)


def test_values_are_sized() -> None:
    assert encode_values([b"", b"world!"]).hex() == "0000000000000006776f726c6421"
    assert encode_values([]) == b""


def test_an_error_stands_where_a_count_would_stand() -> None:
    error = UnknownTopicOrPartition("unknown topic or partition")

    assert encode_error(error).hex() == ("ffffffff0000001c0003756e6b6e6f776e20746f706963206f7220706172746974696f6e")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidTopicException(), 42),
        (RecordListTooLarge(), 10),
        (UnsupportedVersion(), 35),
        (UnknownServerError(), 0xFFFF),
    ],
)
def test_errors_have_kafkas_numbers_as_far_as_the_protocol_knows_them(error: KafkaError, code: int) -> None:
    assert int.from_bytes(encode_error(error)[8:10], "big") == code
