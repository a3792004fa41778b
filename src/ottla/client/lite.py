"""A client for listeners that speak the lite dialect: one question, one connection, as the protocol has it.

    client = LiteClient("localhost", 9095)
    offset = client.produce("events", 0, [b"hello"])
    values = client.fetch("events", 0, offset)

A refusal is raised as the `KafkaError` that it names; an answer that is not whole as `NetworkException`.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence

from ottla.errors import NetworkException, error_for_code


class LiteClient:
    """Each call blocks until there is an answer, or until `timeout_seconds` have gone without a byte."""

    def __init__(self, host: str, port: int, *, timeout_seconds: float = 10.0) -> None:
        self._address = (host, port)
        self._timeout_seconds = timeout_seconds

    def produce(self, topic: str, partition: int, values: Sequence[bytes]) -> int:
        """Append values and return the offset of the first; they are all there or none is."""
        records = b"".join(struct.pack(">I", len(value)) + value for value in values)
        answer = self._ask(1, topic, struct.pack(">II", partition, len(values)) + records, 12)
        return _number(answer[4:12])

    def fetch(self, topic: str, partition: int, start_offset: int) -> list[bytes]:
        """Return the values from an offset on, as far as one answer holds them."""
        return _values(self._ask(2, topic, struct.pack(">IQ", partition, start_offset), 4))

    def fetch_wait(
        self,
        topic: str,
        partition: int,
        start_offset: int,
        *,
        max_wait_ms: int,
        min_records: int = 1,
        max_bytes: int = 1 << 20,
    ) -> list[bytes]:
        """Return the values from an offset on; waits until there are so many, or for so long."""
        body = struct.pack(">IQIII", partition, start_offset, max_wait_ms, min_records, max_bytes)
        return _values(self._ask(4, topic, body, 4))

    def create_topic(self, topic: str, partitions: int) -> int:
        """Create a topic, or leave it as it is; returns how many partitions it has."""
        return _number(self._ask(3, topic, struct.pack(">I", partitions), 4))

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the first offset that there is, and the one that comes next."""
        answer = self._ask(5, topic, struct.pack(">I", partition), 16)
        return _number(answer[:8]), _number(answer[8:])

    def _ask(self, kind: int, topic: str, body: bytes, least_bytes: int) -> bytes:
        """Return the whole answer. Raises what the server refuses with."""
        name = topic.encode()
        with socket.create_connection(self._address, self._timeout_seconds) as connection:
            connection.sendall(struct.pack(">HH", kind, len(name)) + name + body)
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as stream:
                answer = stream.read()
        if answer[:4] == b"\xff\xff\xff\xff":
            code = _number(answer[8:10])
            raise error_for_code(-1 if code == 0xFFFF else code, answer[10:].decode()) or NetworkException()
        _check_length(answer, least_bytes)
        return answer


def _values(answer: bytes) -> list[bytes]:
    values: list[bytes] = []
    position = 4
    for _ in range(_number(answer[:4])):
        _check_length(answer, position + 4)
        end = position + 4 + _number(answer[position : position + 4])
        _check_length(answer, end)
        values.append(answer[position + 4 : end])
        position = end
    return values


def _check_length(answer: bytes, least_bytes: int) -> None:
    if len(answer) < least_bytes:
        raise NetworkException("the connection ended before the answer was whole")


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")
