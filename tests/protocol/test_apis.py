"""The table of APIs is Kafka's."""

from __future__ import annotations

import csv
import subprocess
import sys

import pytest

from ottla.protocol.apis import API, Api, ApiKey
from tests.protocol.kafka_data import DATA

with (DATA / "apis.tsv").open(newline="", encoding="utf-8") as file:
    ROWS = {int(row["key"]): row for row in csv.DictReader(file, delimiter="\t")}


def header_versions(text: str) -> dict[int, int]:
    """`3-8:1,9-13:2` as a version of the header for each of the API."""
    found = {}
    for part in text.split(","):
        versions, header_version = part.split(":")
        low, _, high = versions.partition("-")
        found.update(dict.fromkeys(range(int(low), int(high or low) + 1), int(header_version)))
    return found


def test_every_api_of_the_broker_listener_is_there() -> None:
    assert {key: api.name for key, api in API.items()} == {key: row["name"] for key, row in ROWS.items()}
    assert set(API) == set(ApiKey)


@pytest.mark.parametrize("api", API.values(), ids=lambda api: api.name)
def test_row_says_what_kafka_says(api: Api) -> None:
    row = ROWS[api.key]
    announced = dict(part.split(":") for part in row["announced"].split(","))["broker"]
    versions = range(api.min_version, api.max_version + 1)

    assert (api.min_version, api.max_version) == (int(row["min"]), int(row["max"]))
    assert "{}-{}".format(*api.announced) == announced
    assert {v: api.request_header_version(v) for v in versions} == header_versions(row["request_header_versions"])
    assert {v: api.response_header_version(v) for v in versions} == header_versions(row["response_header_versions"])


@pytest.mark.parametrize("api", API.values(), ids=lambda api: api.name)
def test_messages_of_an_api_have_its_key_and_versions(api: Api) -> None:
    for message in (api.request, api.response):
        schema = message.SCHEMA
        assert schema.key == api.key
        assert (schema.versions.lowest, schema.versions.highest) == (api.min_version, api.max_version)


def test_table_imports_no_messages() -> None:
    """A broker pays at start only for the APIs that are used."""
    program = (
        "import sys, ottla.protocol.apis; print([m for m in sys.modules if m.startswith('ottla.protocol.messages')])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
