"""What each command prints with `--json`: the promise that docs/reference/cli.md makes and a test holds commands to.

Names of fields stay as they are; new ones may come. A shape is written as the JSON itself with the kinds of values in
place of values: `text`, `number`, `yes/no`, `any`; `?` behind it: or null. `[x]` is a list of such, `"*"` any name.
"""

from __future__ import annotations

from typing import Final

Shape = str | list["Shape"] | dict[str, "Shape"]

OUTCOMES: Final[Shape] = [{"name": "text", "error": "text?"}]
RANGE: Final[Shape] = ["number"]
PLACE: Final[dict[str, Shape]] = {"topic": "text", "partition": "number"}
RECORD: Final[Shape] = {
    **PLACE,
    "offset": "number",
    "timestamp_ms": "number",
    "key": "text?",
    "value": "text?",
    "headers": [{"name": "text", "value": "text?"}],
}
TOPIC: Final[dict[str, Shape]] = {"topic": "text", "topic_id": "text"}
GROUP: Final[dict[str, Shape]] = {
    "group": "text",
    "type": "text",
    "protocol_type": "text",
    "state": "text",
    "assignor": "text?",
    "group_epoch": "number?",
    "assignment_epoch": "number?",
}
LATENCIES: Final[Shape] = dict.fromkeys(("avg", "p50", "p90", "p95", "p99", "p99.9", "max"), "number")
RATES: Final[dict[str, Shape]] = {"seconds": "number", "records_per_second": "number", "mb_per_second": "number"}
FINDINGS: Final[Shape] = [{"path": "text", "problem": "text", "loses_bytes": "number"}]

SHAPES: Final[dict[str, Shape]] = {
    "topics create": [
        {
            "topic": "text",
            "topic_id": "text?",
            "partitions": "number?",
            "replication_factor": "number?",
            "error": "text?",
        }
    ],
    "topics list": [{**TOPIC, "is_internal": "yes/no", "partitions": "number", "replication_factor": "number"}],
    "topics describe": [
        {
            **TOPIC,
            "is_internal": "yes/no",
            "partitions": [
                {
                    "partition": "number",
                    "leader": "number?",
                    "leader_epoch": "number",
                    "replicas": ["number"],
                    "isr": ["number"],
                    "offline_replicas": ["number"],
                    "beginning_offset": "number?",
                    "end_offset": "number?",
                }
            ],
            "replication_factor": "number",
            "configs": {"*": "text?"},
        }
    ],
    "topics alter": OUTCOMES,
    "topics grow": OUTCOMES,
    "topics delete": OUTCOMES,
    "topics offsets": [{**PLACE, "beginning_offset": "number?", "end_offset": "number?", "offset_at_time": "number?"}],
    "produce": {
        "topic": "text",
        "records": "number",
        "failed": "number",
        "bytes": "number",
        "seconds": "number",
        "records_per_second": "number",
        "partitions": [
            {
                "partition": "number",
                "records": "number",
                "bytes": "number",
                "first_offset": "number?",
                "last_offset": "number?",
            }
        ],
        "error": "text?",
    },
    "consume": RECORD,
    "groups list": [{"group": "text", "type": "text", "protocol_type": "text", "state": "text"}],
    "groups describe": [
        {
            **GROUP,
            "members": "number",
            "lag": "number?",
            "partitions": [
                {
                    **PLACE,
                    "committed_offset": "number?",
                    "beginning_offset": "number?",
                    "high_watermark": "number?",
                    "lag": "number?",
                    "metadata": "text",
                    "member_id": "text?",
                }
            ],
        }
    ],
    "groups members": {
        **GROUP,
        "members": [
            {
                "member_id": "text",
                "instance_id": "text?",
                "client_id": "text",
                "host": "text",
                "member_epoch": "number?",
                "protocol": "text",
                "assignment": [PLACE],
                "target": [PLACE],
            }
        ],
    },
    "groups reset": [{**PLACE, "committed_offset": "number?", "new_offset": "number", "error": "text?"}],
    "groups forget": OUTCOMES,
    "groups delete": OUTCOMES,
    "configs get": [
        {
            "name": "text",
            "value": "text?",
            "source": "text",
            "is_read_only": "yes/no",
            "is_sensitive": "yes/no",
        }
    ],
    "configs set": OUTCOMES,
    "configs unset": OUTCOMES,
    "configs explain": [{"name": "text", "scope": "text", "facts": "text", "documentation": "text"}],
    "cluster": {
        "cluster_id": "text?",
        "controller_id": "number?",
        "brokers": [{"node_id": "number", "host": "text", "port": "number", "rack": "text?"}],
        "features": {"*": {"level": "number", "min_supported": "number?", "max_supported": "number?"}},
        "versions": [{"key": "number", "api": "text?", "served": RANGE, "known": RANGE}],
    },
    "ping": [
        {
            "address": "text",
            "cluster_id": "text?",
            "brokers": "number",
            "advertised": ["text"],
            "connect_ms": "number",
            "round_trip_ms": {"min": "number", "median": "number", "max": "number"},
            "versions": {"*": RANGE},
        }
    ],
    "ready": {"is_ready": "yes/no", "seconds": "number"},
    "decode": {
        "records": [
            {"offset": "number", "timestamp": "number", "key": "text?", "value": "text?", "headers": [["text?"]]}
        ],
        "position": "number",
        "lag": "number?",
        "next_fetch_offset": "number",
        "error": "text",
    },
    "commitlog append": {"offset": "number"},
    "commitlog read": {"offset": "number", "value": "text"},
    "commitlog verify": {"records": "number", "valid_bytes": "number", "size_bytes": "number", "problem": "text?"},
    "commitlog import": {**PLACE, "records": "number"},
    "commitlog export": {"file": "text", "records": "number"},
    "perf produce": {"records": "number", "size_bytes": "number", **RATES, "latency_ms": LATENCIES},
    "perf consume": {"records": "number", **RATES},
    "perf latency": {
        "records": "number",
        "rate": "number",
        "unit": "text",
        "acknowledged": LATENCIES,
        "received": LATENCIES,
    },
    "storage info": {
        "directory": "text",
        "cluster_id": "text?",
        "node_id": "number?",
        "directory_id": "text?",
        "was_left_cleanly": "yes/no",
        "problem": "text",
        "partitions": [
            {
                "partition": "text",
                "topic_id": "text?",
                "segments": "number",
                "bytes": "number",
                "first_offset": "number?",
                "recovery_point": "number?",
            }
        ],
    },
    "storage verify": FINDINGS,
    "storage repair": FINDINGS,
    "dump-log": {"file": "text", "*": "any"},
}

LINES: Final = ("consume", "commitlog append", "commitlog read", "dump-log")
"""Commands that print a document a line."""

OFTEN_ABSENT: Final = {"topics offsets": ("offset_at_time",), "decode": ("error",), "storage info": ("problem",)}
"""Fields that are there only where they were asked for, or where there is something to say."""

TOLD_BY_NAME: Final = "_base64"
"""Where a key or value is not UTF-8, its name has this behind it and the text is base64."""


def written(shape: Shape) -> str:
    """Return a shape as it stands on the page."""
    if isinstance(shape, str):
        return shape
    if isinstance(shape, list):
        return f"[{', '.join(map(written, shape))}]"
    fields = ", ".join(f'"{name}": {written(one)}' for name, one in shape.items())
    return f"{{{fields}}}"
