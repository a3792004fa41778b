"""franz-go, through a small program of ours that `make interop` builds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.interop.brokers import ROOT
from tests.interop.clients.client import Acks, Client, Codec, Row, format_rows, parse_rows, run, run_while

FRANZ: Final = Path(os.environ.get("FRANZ", ROOT / ".cache/interop/franz"))
FROM_THE_END: Final = "-1"


class FranzClient(Client):
    name = "franz-go"

    def create_topic(self, topic: str, configs: Mapping[str, str] | None = None) -> None:
        self._run("create", topic, *(f"{name}={value}" for name, value in (configs or {}).items()))

    def produce(
        self,
        topic: str,
        rows: Sequence[Row],
        *,
        codec: Codec = "none",
        acks: Acks = -1,
        is_idempotent: bool = False,
    ) -> None:
        self._run("produce", topic, codec, str(acks), str(is_idempotent).lower(), text=format_rows(rows))

    def consume(self, topic: str, count: int, *, offset: int = 0) -> list[Row]:
        return parse_rows(self._run("consume", topic, str(count), str(offset)))

    def consume_new(self, topic: str, produce: Callable[[], None]) -> Row:
        return parse_rows(run_while(self._command("consume", topic, "1", FROM_THE_END), produce))[0]

    def administer(self, topic: str) -> str:
        """Walk a topic through its life; returns what was seen, as JSON."""
        return self._run("admin", topic)

    def _command(self, *words: str) -> list[str]:
        return [str(FRANZ), self.address, *words]

    def _run(self, *words: str, text: str = "") -> str:
        return run(self._command(*words), text=text)
