"""Kafka's own data for this room: `tests/golden/records/README.md` says what each file holds."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from ottla.config.log_config import LogConfig
from ottla.model import TimestampType
from ottla.records.validation import ProduceRules

FOLDER = Path(__file__).parents[1] / "golden" / "records"

Case = dict[str, Any]


def cases(name: str) -> list[Case]:
    """Return the lines of a `.jsonl` file."""
    return [json.loads(line) for line in gzip.decompress((FOLDER / f"{name}.jsonl.gz").read_bytes()).splitlines()]


def rows(name: str) -> list[dict[str, str]]:
    """Return the lines of a `.tsv` file by column name."""
    lines = gzip.decompress((FOLDER / f"{name}.tsv.gz").read_bytes()).decode().rstrip("\n").split("\n")
    columns = lines[0].split("\t")
    return [dict(zip(columns, line.split("\t"), strict=True)) for line in lines[1:]]


def partitions(row: dict[str, str]) -> list[tuple[int, int]]:
    """Return the pairs of partition count and partition in a row's `p<count>` columns."""
    return [(int(name[1:]), int(value)) for name, value in row.items() if name[0] == "p" and name[1:].isdigit()]


def rules_of(case: Case) -> ProduceRules:
    """Return the rules that a case's topic settings make."""
    values: dict[str, Any] = {}
    for key, text in case["topicConfig"].items():
        value: Any = int(text) if text.lstrip("-").isdigit() else text
        if key == "cleanup.policy":
            value = frozenset(text.split(","))
        elif key == "message.timestamp.type":
            value = TimestampType.LOG_APPEND_TIME if text == "LogAppendTime" else TimestampType.CREATE_TIME
        values[key.replace(".", "_")] = value
    return ProduceRules.from_config(LogConfig(**values))


def hex_or_none(data: bytes | None) -> str | None:
    return None if data is None else data.hex()
