"""When nobody reads what a command prints any more: it ends in silence, as if it had been read."""

from __future__ import annotations

import os
from typing import TextIO


def drop_output(stream: TextIO) -> None:
    """Let what is left in a stream go nowhere, and keep the interpreter from complaining about it while it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
