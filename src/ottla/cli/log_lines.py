"""`LogLines`: how a record of the broker's log stands in a line.

    2026-01-31 12:00:00,000 INFO ottla.dialects.kafka.session: connection ended: reset by peer peer="::1, port 5"

What code passes as `extra=` comes behind the message, as key=value; a value with blanks, quotes or control characters
is quoted, and control characters in the message are escaped, so that nothing that a client or a file says can look like
another field or another line.
"""

from __future__ import annotations

import json
import logging
import re
from typing import Final

_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_OWN_NAMES: Final = frozenset({*vars(logging.makeLogRecord({})), "asctime", "message"})
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_PLAIN: Final = re.compile(r"[^\s\"'=\x00-\x1f\x7f-\x9f]+")


class LogLines(logging.Formatter):
    """Formats a record with all that it carries."""

    def __init__(self) -> None:
        super().__init__(_FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line, before any traceback."""
        fields = (f"{name}={_quote(value)}" for name, value in vars(record).items() if name not in _OWN_NAMES)
        return " ".join((_CONTROL.sub(_escape, super().formatMessage(record)), *fields))


def _escape(control: re.Match[str]) -> str:
    return control[0].encode("unicode_escape").decode("ascii")


def _quote(value: object) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
