"""Kafka's command line tools, one after the other in one Java process; what they print, as far as it stays the same."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.interop.clients.jvm import OUR_CLASS_PATH, java

PACKAGE: Final = "org.apache.kafka.tools."
CLASSES: Final = {
    "kafka-broker-api-versions": "BrokerApiVersionsCommand",
    "kafka-client-metrics": "ClientMetricsCommand",
    "kafka-cluster": "ClusterTool",
    "kafka-configs": "ConfigCommand",
    "kafka-consumer-groups": "consumer.group.ConsumerGroupCommand",
    "kafka-delete-records": "DeleteRecordsCommand",
    "kafka-features": "FeatureCommand",
    "kafka-get-offsets": "GetOffsetShell",
    "kafka-groups": "GroupsCommand",
    "kafka-leader-election": "LeaderElectionCommand",
    "kafka-log-dirs": "LogDirsCommand",
    "kafka-metadata-quorum": "MetadataQuorumCommand",
    "kafka-reassign-partitions": "reassign.ReassignPartitionsCommand",
    "kafka-share-groups": "consumer.group.ShareGroupCommand",
    "kafka-streams-groups": "streams.StreamsGroupCommand",
    "kafka-topics": "TopicCommand",
    "kafka-transactions": "TransactionsCommand",
}
END: Final = "\f"

OTHER_EACH_TIME: Final = (
    (re.compile(r"127\.0\.0\.1[: ]\d+"), "ADDRESS"),
    (re.compile(r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]\d+(Z|\])?"), "TIME"),
    (re.compile(r"\b1[78]\d{11}\b"), "MILLISECONDS"),
    (re.compile(r"\d+ ms ago"), "A MOMENT AGO"),
    (re.compile(r'"logDir":"[^"]*"'), '"logDir":"FOLDER"'),
    (re.compile(r'"log_dirs":\["/[^"]*"\]'), '"log_dirs":["FOLDER"]'),
    (re.compile(r"(TopicId|Cluster ID): \S+"), r"\1: ID"),
    (re.compile(r"(Epoch|HighWatermark|LeaderEpoch): \d+"), r"\1: NUMBER"),
    (re.compile(r"\tat [\w.$/]+\([^)]*\)|\t\.\.\. \d+ (more|common frames omitted)"), ""),
)


class ToolRunner:
    """One process with Kafka's tools, for one broker."""

    def __init__(self, address: str, log: Path) -> None:
        self._address = address
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                java(OUR_CLASS_PATH, "ToolRunner"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def run(self, tool: str, *arguments: str) -> list[str]:
        """Return the lines that it printed, sorted, without what is another each time, and its exit code."""
        where = ["--bootstrap-server", self._address]
        first = 1 if tool == "kafka-cluster" else 0  # takes it behind its verb, all others in front of it
        words = [PACKAGE + CLASSES[tool], *arguments[:first], *where, *arguments[first:]]
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        printed: list[str] = []
        while not (line := self._process.stdout.readline()).startswith(END):
            assert line, "the process with the tools has ended"
            printed.append(line)
        return [*stable_lines("".join(printed)), f"exit code {int(line.removeprefix(END))}"]

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def stable_lines(printed: str) -> Sequence[str]:
    for pattern, instead in OTHER_EACH_TIME:
        printed = pattern.sub(instead, printed)
    return sorted(" ".join(line.split()) for line in printed.splitlines() if line.strip())
