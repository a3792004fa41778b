"""`ottla configs explain` says what the settings tables say."""

from __future__ import annotations

from ottla.cli.explained import Explained, explained


def test_a_setting_is_explained_in_each_scope_that_has_it() -> None:
    rows = list(explained("consumer.session.timeout.ms"))

    assert [row.scope for row in rows] == ["group"]
    assert rows[0].documentation
    assert "default 45000" in rows[0].facts


def test_a_pattern_finds_all_that_match_and_nothing_else() -> None:
    names = {row.name for row in explained("log.retention.*")}

    assert {"log.retention.ms", "log.retention.hours", "log.retention.bytes"} <= names
    assert all(name.startswith("log.retention.") for name in names)


def test_every_setting_has_a_sentence() -> None:
    def is_bare(row: Explained) -> bool:
        return not row.documentation

    assert not list(filter(is_bare, explained("*")))
