"""Kafka's own Java clients, through its console producer and consumer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.interop.brokers import KAFKA_HOME
from tests.interop.clients.client import BATCH_BYTES, Acks, Client, Codec, Row, format_rows, parse_rows, run, run_while

QUICK_JVM = {"KAFKA_JVM_PERFORMANCE_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"}


class ConsoleClient(Client):
    name = "kafka-clients"

    def create_topic(self, topic: str, configs: Mapping[str, str] | None = None) -> None:
        flags = [text for name, value in (configs or {}).items() for text in ("--config", f"{name}={value}")]
        self._run("kafka-topics", "--create", "--topic", topic, "--partitions", "1", *flags)

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
            "enable.idempotence": str(is_idempotent).lower(),
            "max.request.size": BATCH_BYTES,
            "buffer.memory": BATCH_BYTES * 8,
        }
        flags = [text for name, value in settings.items() for text in ("--command-property", f"{name}={value}")]
        self._run(
            "kafka-console-producer",
            *("--topic", topic, "--compression-codec", codec, "--request-required-acks", str(acks)),
            *("--reader-property", "parse.key=true"),
            *flags,
            text=format_rows(rows),
        )

    def consume(self, topic: str, count: int, *, offset: int = 0) -> list[Row]:
        return parse_rows(run(self._consume(topic, str(offset), count), environment=QUICK_JVM))

    def consume_new(self, topic: str, produce: Callable[[], None]) -> Row:
        return parse_rows(run_while(self._consume(topic, "latest", 1), produce))[0]

    def _consume(self, topic: str, offset: str, count: int) -> list[str]:
        return [
            str(KAFKA_HOME / "bin/kafka-console-consumer.sh"),
            *("--bootstrap-server", self.address, "--topic", topic, "--partition", "0"),
            *("--offset", offset, "--max-messages", str(count), "--timeout-ms", "20000"),
            *("--formatter-property", "print.key=true"),
        ]

    def _run(self, tool: str, *arguments: str, text: str = "") -> None:
        command = [str(KAFKA_HOME / f"bin/{tool}.sh"), "--bootstrap-server", self.address, *arguments]
        run(command, text=text, environment=QUICK_JVM)
