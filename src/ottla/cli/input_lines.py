"""Input as it comes: lines or chunks of a file, a pipe or a terminal, for an event loop that has more to do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from io import RawIOBase
from typing import BinaryIO, Final

CHUNK_BYTES: Final = 256 * 1024


async def read_lines(stream: BinaryIO) -> AsyncIterator[list[bytes]]:
    """Yield lists of lines, without their ends, as soon as they can be read; a last line needs no end."""
    tail = b""
    async for chunk in read_chunks(stream):
        *lines, tail = (tail + chunk).split(b"\n")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if tail:
        yield [tail.removesuffix(b"\r")]


async def read_chunks(stream: BinaryIO) -> AsyncIterator[bytes]:
    """Yield what can be read as soon as it can be.

    Reading happens on a thread that dies with the process, since a read from a terminal cannot be called off. It reads
    below Python's buffer: the thread would hold that one's lock, without which the interpreter cannot end.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes | Exception] = asyncio.Queue()
    room = threading.Semaphore(4)

    def pump() -> None:
        with suppress(RuntimeError):  # the loop is gone, and with it whoever would read
            try:
                for chunk in _chunks(getattr(stream, "raw", stream)):
                    room.acquire()
                    loop.call_soon_threadsafe(chunks.put_nowait, chunk)
                loop.call_soon_threadsafe(chunks.put_nowait, b"")
            except (OSError, ValueError) as error:
                loop.call_soon_threadsafe(chunks.put_nowait, error)

    threading.Thread(target=pump, name="input", daemon=True).start()
    while chunk := await chunks.get():
        if isinstance(chunk, Exception):
            raise chunk
        room.release()
        yield chunk


def _chunks(stream: RawIOBase | BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk
