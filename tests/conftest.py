"""What holds for every test: an interrupt reaches the programs that a test starts.

A shell lets its background jobs ignore SIGINT, and what ignores it here would be ignored by every child.
"""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
