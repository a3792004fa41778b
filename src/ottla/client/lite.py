"""A client for listeners that speak the lite dialect: one question, one connection, as the protocol has it.

    with LiteClient("localhost", 9095) as client:
        offset = client.produce("events", 0, [b"hello"])
        values = client.fetch("events", 0, offset)

A refusal is raised as the `KafkaError` that it names; a connection that ends too early as `NetworkException`.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from ottla.errors import NetworkException, error_for_code

_NO_COUNT = 0xFFFFFFFF


class LiteClient:
    """Blocks until there is an answer, or `timeout_seconds` have gone without a byte."""

    def __init__(self, host: str, port: int, *, timeout_seconds: float = 10.0) -> None:
        self._address = (host, port)
        self._timeout_seconds = timeout_seconds
        self._socket: socket.socket | None = None

    def produce(self, topic: str, partition: int, values: Sequence[bytes]) -> int:
        """Append values and return the offset of the first; they are all there or none is."""
        records = b"".join(struct.pack(">I", len(value)) + value for value in values)
        self._ask(1, topic, struct.pack(">II", partition, len(values)) + records)
        return self._number(8)

    def fetch(self, topic: str, partition: int, start_offset: int) -> list[bytes]:
        """Return the values from an offset on, as far as one answer holds them."""
        return self._values(2, topic, struct.pack(">IQ", partition, start_offset))

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
        return self._values(
            4, topic, struct.pack(">IQIII", partition, start_offset, max_wait_ms, min_records, max_bytes)
        )

    def create_topic(self, topic: str, partitions: int) -> int:
        """Create a topic, or leave it as it is; returns how many partitions it has."""
        return self._ask(3, topic, struct.pack(">I", partitions))

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the first offset that there is, and the one that comes next."""
        return self._ask(5, topic, struct.pack(">I", partition)) << 32 | self._number(4), self._number(8)

    def close(self) -> None:
        """End the connection; the next question makes one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _values(self, kind: int, topic: str, body: bytes) -> list[bytes]:
        return [self._read(self._number(4)) for _ in range(self._ask(kind, topic, body))]

    def _ask(self, kind: int, topic: str, body: bytes) -> int:
        """Send a request and return the first four bytes of its answer. Raises what the server refuses with."""
        name = topic.encode()
        self.close()
        self._socket = socket.create_connection(self._address, self._timeout_seconds)
        self._socket.sendall(struct.pack(">HH", kind, len(name)) + name + body)
        first = self._number(4)
        if first == _NO_COUNT:
            size, code = self._number(4), self._number(2)
            raise error_for_code(-1 if code == 0xFFFF else code, self._read(size - 2).decode()) or NetworkException()
        return first

    def _number(self, size: int) -> int:
        return int.from_bytes(self._read(size), "big")

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data)) if self._socket is not None else b""
            if not piece:
                raise NetworkException("the server closed the connection before its answer was whole")
            data += piece
        return bytes(data)
