"""Ctrl-C while a command is still being imported: the process ends at once, without a traceback from somewhere.

`hold_off` comes first of all; when a command is there to clean up after itself, `take_again` gives Ctrl-C back to it.
"""

from __future__ import annotations

import signal
import threading


def hold_off() -> None:
    """Let Ctrl-C end the process as the system does, unless it is ignored or somebody else's affair."""
    if _is_ours() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def take_again() -> None:
    """Let Ctrl-C be a `KeyboardInterrupt` again, and what asyncio makes of it."""
    if _is_ours() and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_ours() -> bool:
    return threading.current_thread() is threading.main_thread()
