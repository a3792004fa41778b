"""Good bytes to begin with: frames and batches that Apache Kafka's own classes wrote, and some that reach deep."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from ottla.protocol.apis import API
from ottla.protocol.headers import RequestHeader, encode_request_header

GOLDEN: Final = Path(__file__).parents[1] / "golden"
LARGEST_SEED_BYTES: Final = 4096


def _rows(name: str) -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / name, "rt") as file:
        return [json.loads(line) for line in file]


@cache
def request_frames() -> list[bytes]:
    """Whole requests without their size: good ones of every API and version, and damaged ones."""
    frames = [bytes.fromhex(row["hex"])[4:] for row in _rows("messages/frames.jsonl.gz") if row["kind"] == "request"]
    for name in ("messages/requests.jsonl.gz", "messages/malformed.jsonl.gz"):
        for row in _rows(name):
            key = _KEYS.get(row["msg"])
            if key is not None:
                frames.append(
                    encode_request_header(RequestHeader(key, row["v"], 1, "fuzz")) + bytes.fromhex(row["hex"])
                )
    return [frame for frame in frames if len(frame) <= LARGEST_SEED_BYTES]


_KEYS: Final = {f"{api.name}Request": api.key for api in API.values()}


@cache
def batches() -> list[bytes]:
    """Batches and message sets of every codec and format, and what was refused as a batch."""
    rows = _rows("records/batches.jsonl.gz") + _rows("records/verdicts.jsonl.gz")
    found = [bytes.fromhex(row["hex"]) for row in rows if isinstance(row.get("hex"), str)]
    return [data for data in found if 0 < len(data) <= LARGEST_SEED_BYTES]


@cache
def logs() -> list[bytes]:
    """The bytes of whole segments, some with damaged ends."""
    return [data for row in _rows("records/iterate.jsonl.gz") if (data := bytes.fromhex(row["hex"]))]


@cache
def response_bodies() -> list[bytes]:
    """Answers behind a byte for the API key and one for the version."""
    keys = {f"{api.name}Response": api.key for api in API.values()}
    rows = [row for row in _rows("messages/responses.jsonl.gz") if row["msg"] in keys]
    bodies = [bytes([keys[row["msg"]], row["v"]]) + bytes.fromhex(row["hex"]) for row in rows]
    return [body for body in bodies if len(body) <= LARGEST_SEED_BYTES]
