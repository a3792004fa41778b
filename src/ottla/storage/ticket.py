"""`LogTicket`: one append on its way to durability, and `SegmentSpan`: one read on its way to a socket.

The local form of `engine.Ticket` and `engine.FileSpan`. A log settles its tickets in order when a flush has finished;
their callbacks run on the owner's loop, each once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from ottla.engine import Offload
from ottla.errors import KafkaError
from ottla.storage.open_files import SegmentFile


@final
class LogTicket:
    """An append whose offsets are known; `is_durable` or `error` follow."""

    __slots__ = (
        "_callbacks",
        "_offload",
        "base_offset",
        "error",
        "is_duplicate",
        "is_durable",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
    )

    def __init__(
        self,
        offload: Offload,
        base_offset: int,
        last_offset: int,
        log_append_time_ms: int,
        log_start_offset: int,
        is_durable: bool,
        is_duplicate: bool = False,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.is_duplicate = is_duplicate
        self.is_durable = is_durable
        self.error: KafkaError | None = None
        self._callbacks: list[Callable[[], None]] | None = None
        self._offload = offload

    def on_done(self, callback: Callable[[], None]) -> None:
        if self.is_durable or self.error is not None:
            self._offload.call_soon(callback)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def settle(self, error: KafkaError | None) -> None:
        """Report the end: durable when there is no error. Called once, by the log, on the owner's loop."""
        if error is None:
            self.is_durable = True
        else:
            self.error = error
        callbacks, self._callbacks = self._callbacks, None
        if callbacks is not None:
            for callback in callbacks:
                callback()


@final
class SegmentSpan:
    """A run of bytes in a segment file that stays open until `release`."""

    __slots__ = ("_file", "file_descriptor", "position", "size_bytes")

    def __init__(self, file: SegmentFile, position: int, size_bytes: int) -> None:
        self._file = file
        self.file_descriptor = file.lease().descriptor
        self.position = position
        self.size_bytes = size_bytes

    @property
    def is_resident(self) -> bool:
        return self._file.get().is_resident(self.position, self.size_bytes)

    def read(self) -> bytes:
        """Return the bytes. May run on another thread: the lease keeps the file open."""
        return self._file.get().pread(self.size_bytes, self.position)

    def release(self) -> None:
        self._file.release()
