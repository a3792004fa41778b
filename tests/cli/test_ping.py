"""`ottla ping` finds out what clients would run into."""

from __future__ import annotations

import json

import pytest

from ottla.cli.main import main
from ottla.testing.cluster import broker_in_thread


def ping(address: str, *words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["ping", "-b", address, *words])
    return int(ended.value.code or 0)


def test_an_address_that_is_advertised_and_leads_nowhere_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The commonest trouble with containers: the first connection works, and nothing after it."""
    with broker_in_thread({"advertised.listeners": "PLAINTEXT://127.0.0.1:1"}) as running:
        assert ping(running.address) == 1
        out, err = capsys.readouterr()
        assert out.startswith(f"{running.address} answers")
        assert err == (
            "ottla: a broker there advertises 127.0.0.1:1, which cannot be reached from here (connection refused): "
            "clients will fail; see advertised.listeners\n"
        )


def test_what_is_advertised_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with broker_in_thread() as running:
        assert ping(running.address, "--json") == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert row["advertised"] == [running.address]
        assert ping(running.address) == 0
        assert capsys.readouterr().err == ""
