"""One recorded conversation with Apache Kafka: its variables, its record bytes, and how an answer is compared.

Pure: the wire belongs to `replayer`. The format is described in `tests/golden/behaviour/README.md`.
"""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crc32c import crc32c

GOLDEN = Path(__file__).parents[1] / "golden" / "behaviour"
Json = Any
"""What `json.loads` gives."""

_VARIABLE = re.compile(r"\$([a-zA-Z]+[0-9]*)")
_FRESH = re.compile(r"[TGXUI][0-9]")
_REPEATED = re.compile(r"\[([0-9a-f]{2})\*(\d+)\]")
_WILDCARDS = frozenset({"$any", "$text", "$positive"})
_run_numbers = itertools.count(1)

SERVED_LISTS = {"apiKeys": "apiKey", "supportedFeatures": "name", "finalizedFeatures": "name"}
"""Lists of what a broker serves: rows that we lack are reported by name, so that the rest still counts."""


@dataclass(slots=True)
class Scenario:
    """A conversation as it was recorded."""

    name: str
    title: str
    area: str
    steps: list[dict[str, Json]]
    auto_create_topics: bool
    exclusive: bool
    quirk: bool


def load_area(area: str) -> list[Scenario]:
    """Return all conversations of one area, in the order of their names."""
    with gzip.open(GOLDEN / f"{area}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [_scenario(json.loads(line)) for line in lines]


def areas() -> list[str]:
    return sorted(path.name.removesuffix(".jsonl.gz") for path in GOLDEN.glob("*.jsonl.gz"))


def _scenario(raw: dict[str, Json]) -> Scenario:
    return Scenario(
        name=raw["name"],
        title=raw["title"],
        area=raw["area"],
        steps=raw["steps"],
        auto_create_topics=raw.get("needs", {}).get("auto_create", True),
        exclusive=raw.get("exclusive", False),
        quirk=raw.get("quirk", False),
    )


@dataclass(slots=True)
class Variables:
    """The fresh names and captured values of one run of one conversation."""

    tag: str = field(default_factory=lambda: f"r{next(_run_numbers):06d}")
    values: dict[str, Json] = field(default_factory=dict)

    def get(self, name: str) -> Json:
        """Return the value of `$name`, making it up when it is one of the fresh ones, or None."""
        if name not in self.values and _FRESH.fullmatch(name):
            self.values[name] = f"{self.tag}-{name.lower()}"
        return self.values.get(name)

    def put_into(self, node: Json) -> Json:
        """Return `node` with every variable replaced by its value."""
        if isinstance(node, str):
            return self._put_into_text(node)
        if isinstance(node, list):
            return [self.put_into(element) for element in node]
        if isinstance(node, dict):
            if "parts" in node:
                return self._join_parts(node["parts"])
            return {key: self.put_into(value) for key, value in node.items()}
        return node

    def _put_into_text(self, text: str) -> Json:
        if "$" not in text or text in _WILDCARDS:
            return text
        if whole := _VARIABLE.fullmatch(text):
            value = self.get(whole[1])
            return text if value is None else value
        return _VARIABLE.sub(lambda found: _text_of(self.get(found[1]), found[0]), text)

    def _join_parts(self, parts: list[Json]) -> str:
        joined = bytearray()
        for part in parts:
            if isinstance(part, str):
                joined += bytes.fromhex(part)
            else:
                text = str(self.put_into(part["str16"])).encode()
                joined += len(text).to_bytes(2, "big") + text
        return base64.b64encode(joined).decode()

    def capture(self, step: dict[str, Json], answer: Json) -> None:
        """Remember what later steps of this conversation want from `answer`."""
        for variable, pointer in step.get("captures", {}).items():
            value = find_at(answer, pointer)
            if value is not _MISSING:
                self.values[variable.removeprefix("$")] = value

    def keep_only_ours(self, step: dict[str, Json], answer: Json) -> None:
        """Drop the rows of listings that other conversations on the same broker made."""
        for pointer, key in step.get("only", {}).items():
            rows = find_at(answer, pointer)
            if isinstance(rows, list):
                rows[:] = [row for row in rows if self.tag in str(row.get(key) if isinstance(row, dict) else row)]


def _text_of(value: Json, otherwise: str) -> str:
    return otherwise if value is None else str(value)


def expand_hex(text: str) -> bytes:
    """Return the bytes of a hex text in which `[78*300]` stands for 300 bytes of 0x78."""
    return bytes.fromhex(_REPEATED.sub(lambda run: run[1] * int(run[2]), text))


def record_bytes(records: dict[str, Json], variables: Variables) -> bytes:
    """Return the record bytes of a request, with the producer ids and epochs of this run patched in."""
    buffer = bytearray(expand_hex(records["hex"]))
    for patch in records.get("patch", []):
        at = patch["at"]
        if "producerId" in patch:
            buffer[at + 43 : at + 51] = int(variables.put_into(patch["producerId"])).to_bytes(8, "big", signed=True)
        if "producerEpoch" in patch:
            buffer[at + 51 : at + 53] = int(variables.put_into(patch["producerEpoch"])).to_bytes(2, "big", signed=True)
        end = at + 12 + int.from_bytes(buffer[at + 8 : at + 12], "big")
        buffer[at + 17 : at + 21] = crc32c(buffer[at + 21 : end]).to_bytes(4, "big")
    return bytes(buffer)


_MISSING = object()


def find_at(node: Json, pointer: str) -> Json:
    """Return what stands at a JSON pointer, or a value equal to nothing."""
    for part in pointer.split("/")[1:]:
        if isinstance(node, list) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        elif isinstance(node, dict) and part in node:
            node = node[part]
        else:
            return _MISSING
    return node


def should_retry(step: dict[str, Json], answer: Json, variables: Variables) -> bool:
    """Whether the recording sent this request again on such an answer."""
    if (rule := step.get("retry_while")) is not None:
        return find_at(answer, rule["at"]) in rule["in"]
    if (rule := step.get("retry_until")) is not None:
        return bool(find_at(answer, rule["at"]) != variables.put_into(rule["is"]))
    return False


@dataclass(slots=True)
class Comparison:
    """Compares answers; collects the served things that ours lacks under names such as `apiKeys 27`."""

    lacking: set[str] = field(default_factory=set)

    def difference(self, expected: Json, actual: Json, *, ordered: bool = False, path: str = "") -> str | None:
        """Return the first difference in words, or None when `actual` is what was recorded."""
        if isinstance(expected, str) and expected in _WILDCARDS:
            return _wildcard_difference(expected, actual, path)
        if isinstance(expected, dict) and isinstance(actual, dict):
            return self._object_difference(expected, actual, ordered, path)
        if isinstance(expected, list) and isinstance(actual, list):
            return self._list_difference(expected, actual, ordered, path)
        same = expected == actual and isinstance(expected, bool) == isinstance(actual, bool)
        return None if same else f"{path}: expected {_short(expected)}, got {_short(actual)}"

    def _object_difference(
        self, expected: dict[str, Json], actual: dict[str, Json], ordered: bool, path: str
    ) -> str | None:
        for key, value in expected.items():
            if key not in actual:
                if value == "$any":
                    continue
                return f"{path}/{key}: missing"
            found = actual[key]
            is_served_list = key in SERVED_LISTS and isinstance(value, list) and isinstance(found, list)
            difference = self.difference(
                self._without_lacking(key, value, found) if is_served_list else value,
                found,
                ordered=ordered or key in ("batches", "records"),
                path=f"{path}/{key}",
            )
            if difference:
                return difference
        unexpected = actual.keys() - expected.keys()
        return f"{path}: {sorted(unexpected)} not expected" if unexpected else None

    def _without_lacking(self, key: str, expected: list[Json], actual: list[Json]) -> list[Json]:
        identity = SERVED_LISTS[key]
        served = {row[identity] for row in actual}
        self.lacking.update(f"{key} {row[identity]}" for row in expected if row[identity] not in served)
        return [row for row in expected if row[identity] in served]

    def _list_difference(self, expected: list[Json], actual: list[Json], ordered: bool, path: str) -> str | None:
        if len(expected) != len(actual):
            return f"{path}: {len(expected)} elements expected, got {len(actual)} {_short(actual)}"
        pairs = enumerate(zip(expected, actual, strict=True))
        differences = (self.difference(e, a, ordered=ordered, path=f"{path}/{i}") for i, (e, a) in pairs)
        first = next(filter(None, differences), None)
        if first is None or ordered:
            return first
        return self._unordered_difference(expected, actual, path)

    def _unordered_difference(self, expected: list[Json], actual: list[Json], path: str) -> str | None:
        left = list(range(len(actual)))
        for i, row in enumerate(expected):
            nearest = None
            for j in left:
                difference = self.difference(row, actual[j], path=f"{path}/{i}")
                if difference is None:
                    left.remove(j)
                    break
                if nearest is None or _identity(row) == _identity(actual[j]):
                    nearest = difference
            else:
                return nearest
        return None


_IDENTITY = ("name", "topic", "topicId", "groupId", "key", "resourceName", "resourceType", "partitionIndex")


def _identity(row: Json) -> Json:
    return [row.get(key) for key in _IDENTITY] if isinstance(row, dict) else row


def _wildcard_difference(wildcard: str, actual: Json, path: str) -> str | None:
    if wildcard == "$any":
        return None
    if wildcard == "$text":
        return None if isinstance(actual, str) and actual else f"{path}: some text expected, got {_short(actual)}"
    is_positive = isinstance(actual, int | float) and actual > 0
    return None if is_positive else f"{path}: a number above 0 expected, got {_short(actual)}"


def _short(node: Json) -> str:
    text = json.dumps(node, default=str)
    return text if len(text) <= 300 else text[:300] + "…"
