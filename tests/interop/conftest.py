"""Fixtures: a shared broker for the suite, fresh brokers for tests that stop theirs, a topic name for each test."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator

import pytest

from tests.interop.brokers import Broker, BrokerProcess, make_broker
from tests.interop.clients import CLIENTS, Client

LOG_SHOWN = 8000


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for all tests; it may be restarted, its data stays."""
    started = make_broker(tmp_path_factory.mktemp("broker"))
    started.start()
    yield started
    started.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failed test what the brokers that it used had to say."""
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        for used in item.funcargs.values():
            if isinstance(used, BrokerProcess):
                report.sections.append((f"log of the broker at {used.address}", used.printed[-LOG_SHOWN:]))
    return report


@pytest.fixture
def start_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Broker]]:
    """Start brokers of one's own, with settings."""
    started: list[Broker] = []

    def start(*settings: str) -> Broker:
        broker = make_broker(tmp_path_factory.mktemp("broker"), *settings)
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        broker.stop()


@pytest.fixture(params=CLIENTS, ids=lambda kind: kind.name)
def client(request: pytest.FixtureRequest, broker: Broker) -> Client:
    """Each client in turn, on the shared broker."""
    kind: type[Client] = request.param
    return kind(broker.address)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test has, legal for Kafka."""
    return re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name).strip("-")[:200]
