"""Client metrics that nobody takes. The answers were seen on a running 4.4.0."""

from __future__ import annotations

import itertools

import pytest

from ottla.broker.telemetry import PUSH_INTERVAL_MS, REMEMBERED_CLIENTS, SUBSCRIPTION_ID, Telemetry
from ottla.errors import KafkaError
from ottla.testing.clock import ManualClock

NOBODY = bytes(16)
INTERVAL_S = PUSH_INTERVAL_MS / 1000


class Bench:
    """Telemetry on a clock that stands still, with ids that count."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        numbers = itertools.count(100)
        self.telemetry = Telemetry(self.clock, lambda: next(numbers).to_bytes(16, "big"))

    def subscribe(self, client_id: bytes = NOBODY) -> bytes:
        return self.telemetry.subscribe(client_id)

    def push(
        self, client_id: bytes, *, subscription: int = SUBSCRIPTION_ID, ends: bool = False, compression: int = 0
    ) -> str:
        return outcome(
            lambda: self.telemetry.push(
                client_id,
                subscription,
                is_terminating=ends,
                compression=compression,
                size_bytes=10,
                max_bytes=10,
            )
        )


def outcome(call: object) -> str:
    assert callable(call)
    try:
        call()
    except KafkaError as error:
        return error.name
    return ""


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_client_without_an_id_gets_one_each_time(bench: Bench) -> None:
    assert bench.subscribe() != bench.subscribe()


def test_a_client_comes_once_in_an_interval(bench: Bench) -> None:
    client = bench.subscribe()
    assert outcome(lambda: bench.subscribe(client)) == "THROTTLING_QUOTA_EXCEEDED"
    bench.clock.advance(INTERVAL_S)
    assert bench.subscribe(client) == client


def test_metrics_are_taken_once_in_an_interval_and_dropped(bench: Bench) -> None:
    client = bench.subscribe()
    assert bench.push(client) == ""
    assert bench.push(client) == "THROTTLING_QUOTA_EXCEEDED"
    bench.clock.advance(INTERVAL_S)
    assert bench.push(client) == ""


def test_a_client_goes_once_and_may_come_early_for_it(bench: Bench) -> None:
    client = bench.subscribe()
    assert bench.push(client) == ""
    assert bench.push(client, ends=True) == ""
    assert bench.push(client, ends=True) == "INVALID_REQUEST"
    assert bench.push(client) == "INVALID_REQUEST"


def test_pushes_that_make_no_sense_are_refused(bench: Bench) -> None:
    assert bench.push(NOBODY) == "INVALID_REQUEST"
    assert bench.push(b"a stranger's id.", subscription=5) == "UNKNOWN_SUBSCRIPTION_ID"
    assert bench.push(bench.subscribe(), compression=9) == "UNSUPPORTED_COMPRESSION_TYPE"
    client = bench.subscribe()
    with pytest.raises(KafkaError) as caught:
        bench.telemetry.push(client, SUBSCRIPTION_ID, is_terminating=False, compression=0, size_bytes=11, max_bytes=10)
    assert caught.value.name == "TELEMETRY_TOO_LARGE"


def test_a_client_that_has_the_wrong_subscription_may_ask_at_once(bench: Bench) -> None:
    client = bench.subscribe()
    assert bench.push(client, subscription=5) == "UNKNOWN_SUBSCRIPTION_ID"
    assert bench.subscribe(client) == client
    assert outcome(lambda: bench.subscribe(client)) == "THROTTLING_QUOTA_EXCEEDED"


def test_after_that_a_push_that_comes_too_early_closes_the_way(bench: Bench) -> None:
    client = bench.subscribe()
    bench.push(client, subscription=5)
    assert bench.push(client) == "THROTTLING_QUOTA_EXCEEDED"
    assert outcome(lambda: bench.subscribe(client)) == "THROTTLING_QUOTA_EXCEEDED"


def test_only_so_many_clients_are_remembered(bench: Bench) -> None:
    first = bench.subscribe()
    second = bench.subscribe()
    for _ in range(REMEMBERED_CLIENTS - 1):
        bench.subscribe()
    assert bench.subscribe(first) == first
    assert outcome(lambda: bench.subscribe(second)) == ""
