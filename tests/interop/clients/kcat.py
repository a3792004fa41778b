"""kcat, from Debian. It cannot create a topic by request: it asks for its metadata, and the broker creates it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.interop.clients.client import BATCH_BYTES, Acks, Client, Codec, Row, format_rows, parse_rows, run, run_while
from tests.interop.clients.confluent import ConfluentClient


class KcatClient(Client):
    name = "kcat"

    def create_topic(self, topic: str, configs: Mapping[str, str] | None = None) -> None:
        if configs:
            ConfluentClient(self.address).create_topic(topic, configs)
        else:
            run(["kcat", "-b", self.address, "-L", "-t", topic, "-X", "allow.auto.create.topics=true"])

    def produce(
        self,
        topic: str,
        rows: Sequence[Row],
        *,
        codec: Codec = "none",
        acks: Acks = -1,
        is_idempotent: bool = False,
    ) -> None:
        settings = {
            "acks": acks,
            "compression.codec": codec,
            "enable.idempotence": str(is_idempotent).lower(),
            "message.max.bytes": BATCH_BYTES,
        }
        flags = [text for name, value in settings.items() for text in ("-X", f"{name}={value}")]
        run(["kcat", "-b", self.address, "-P", "-t", topic, "-p", "0", "-K", "\t", *flags], text=format_rows(rows))

    def consume(self, topic: str, count: int, *, offset: int = 0) -> list[Row]:
        return parse_rows(run([*self._consume(topic, str(offset)), "-c", str(count)]))

    def consume_new(self, topic: str, produce: Callable[[], None]) -> Row:
        return parse_rows(run_while([*self._consume(topic, "end"), "-c", "1"], produce))[0]

    def _consume(self, topic: str, offset: str) -> list[str]:
        return [
            "kcat",
            "-b",
            self.address,
            "-C",
            "-q",
            "-t",
            topic,
            "-p",
            "0",
            "-o",
            offset,
            "-K",
            "\t",
            "-X",
            "check.crcs=true",
        ]
