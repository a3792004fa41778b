"""The table of served APIs holds together."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from ottla.dialects.kafka.dialect import IMPORT_AFTER_SECONDS, KafkaDialect
from ottla.dialects.kafka.router import HANDLERS, Router
from ottla.protocol.apis import API, ApiKey
from tests.dialects.handlers.harness import Bench


def test_every_handler_in_the_table_is_there_and_speaks_its_api() -> None:
    """Handlers are named and imported late, so nothing but this would notice a name that is wrong."""
    served = Router().served()

    assert served.keys() == HANDLERS.keys() | {ApiKey.API_VERSIONS}
    assert all(route.request is API[key].request and callable(route.handle) for key, route in served.items())


def test_a_broker_that_has_run_for_a_while_has_every_handler_at_hand(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    dialect = KafkaDialect(bench.broker)
    timers, now = bench.broker.timers, bench.broker.clock.monotonic()

    timers.run_due(now + IMPORT_AFTER_SECONDS / 2)
    known_before = set(dialect.router.known)
    while not HANDLERS.keys() <= dialect.router.known.keys():
        deadline = timers.next_deadline()
        assert deadline is not None
        timers.run_due(deadline)

    assert known_before == {ApiKey.API_VERSIONS}
    assert dialect.router.known.keys() == HANDLERS.keys() | {ApiKey.API_VERSIONS}


@pytest.mark.parametrize("error", [OSError("no descriptor is left"), ImportError("no shared object can be opened")])
def test_a_handler_that_cannot_be_imported_now_is_imported_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    bench = Bench(tmp_path)
    dialect = KafkaDialect(bench.broker)
    timers = bench.broker.timers

    def fail(name: str) -> ModuleType:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("ottla.dialects.kafka.router.import_module", fail)
        timers.run_due(bench.broker.clock.monotonic() + IMPORT_AFTER_SECONDS)
    assert dialect.router.known.keys() == {ApiKey.API_VERSIONS}

    deadline = timers.next_deadline()
    assert deadline is not None
    timers.run_due(deadline)
    assert len(dialect.router.known) == 2
