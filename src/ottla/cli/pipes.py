"""Standard streams that are not there: nobody reads any more what a command prints, or the caller closed one.

Either way a command does its work and ends with its own exit code, in silence.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO


def open_missing() -> None:
    """Let standard streams that the caller closed lead nowhere.

    Else the next file or socket would be taken for them, and libuv, below uvloop, ends the process over that.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _lead_nowhere(descriptor)
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", encoding="utf-8", closefd=False))


def drop_output(stream: TextIO) -> None:
    """Let what is left in a stream go nowhere, and keep the interpreter from complaining about it while it ends."""
    _lead_nowhere(stream.fileno())


def _lead_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != descriptor:
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
