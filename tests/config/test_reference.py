"""The sentences about settings, and the pages made from the tables."""

from __future__ import annotations

from pathlib import Path

from ottla.config.broker_settings import BROKER_SETTINGS
from ottla.config.documentation import SENTENCES, has_effect, sentence
from ottla.config.reference import SECTIONS, errors_page, settings_page, write_pages
from ottla.config.setting import Default, Scope

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_pages_in_the_tree_are_up_to_date(tmp_path: Path) -> None:
    write_pages(tmp_path)
    for page in ("settings.md", "errors.md"):
        made = (tmp_path / page).read_text(encoding="utf-8")
        assert (REFERENCE / page).read_text(encoding="utf-8") == made, (
            "run: python -m ottla.config.reference docs/reference"
        )


def test_every_setting_has_a_sentence_and_every_sentence_a_setting() -> None:
    named: dict[Scope, set[str]] = {scope: set() for scope in Scope}
    for _, _, scope, table in SECTIONS:
        for name in table:
            named[scope].add(name)
            text = sentence(scope, name)
            assert text is not None, name
            assert text.endswith("."), name
    for scope, sentences in SENTENCES.items():
        assert set(sentences) <= named[scope]
    assert sentence(Scope.TOPIC, "num.partitions") is None


def test_a_default_for_topics_takes_its_sentence_from_there() -> None:
    text = sentence(Scope.BROKER, "log.segment.bytes")
    assert text == "Default of the topic setting `segment.bytes`: bytes after which a new segment is begun."


def test_a_setting_that_does_nothing_says_so() -> None:
    assert not has_effect(Scope.BROKER, "num.io.threads")
    assert has_effect(Scope.BROKER, "num.partitions")


def test_where_our_default_differs_the_sentence_says_why() -> None:
    for name, setting in BROKER_SETTINGS.items():
        if setting.ottla_default is not Default.KAFKA:
            assert ", since " in (sentence(Scope.BROKER, name) or ""), name


def test_pages_name_every_table() -> None:
    page = settings_page()
    assert all(f"**`{name}`**" in page for _, _, _, table in SECTIONS for name in table)
    assert "| 1 | `OFFSET_OUT_OF_RANGE` |" in errors_page()
