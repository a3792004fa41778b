"""The reference pages: `docs/reference/settings.md` and `docs/reference/errors.md`, made from the tables.

`python -m ottla.config.reference docs/reference` writes both; a test holds the pages in the tree to what this makes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ottla.config.broker_settings import DYNAMIC_ONLY_SETTINGS, KAFKA_BROKER_SETTINGS, OTTLA_SETTINGS
from ottla.config.client_metrics_settings import CLIENT_METRICS_SETTINGS
from ottla.config.documentation import sentence
from ottla.config.group_settings import GROUP_SETTINGS
from ottla.config.quota_settings import IP_QUOTAS, USER_AND_CLIENT_QUOTAS
from ottla.config.setting import Default, Scope, Setting
from ottla.config.topic_settings import KAFKA_TOPIC_SETTINGS, OTTLA_TOPIC_SETTINGS
from ottla.config.values import Value
from ottla.errors import ERRORS

SETTINGS_HEAD: Final = """\
# Settings

This page is made from the tables in `src/ottla/config/` by `python -m ottla.config.reference docs/reference`.

Names, types, defaults and allowed values are Apache Kafka 4.4's. A setting that does nothing here says so: *No effect*,
and why. Times and sizes are in the unit that the name ends in.
"""

ERRORS_HEAD: Final = """\
# Errors

This page is made from the classes in `src/ottla/errors.py` by `python -m ottla.config.reference docs/reference`.

The errors of Kafka's protocol. *Again* means that the same request may succeed later.

| code | name | again | what it means |
|--:|---|---|---|
"""

SECTIONS: Final[tuple[tuple[str, str, Scope, Mapping[str, Setting]], ...]] = (
    ("Settings of our own", "In the configuration file, beside Kafka's.", Scope.BROKER, OTTLA_SETTINGS),
    (
        "Broker",
        "In the configuration file, by `-o name=value`, and, where *changed* says so, while the broker runs.",
        Scope.BROKER,
        KAFKA_BROKER_SETTINGS,
    ),
    ("Broker, only while it runs", "By IncrementalAlterConfigs.", Scope.BROKER, DYNAMIC_ONLY_SETTINGS),
    (
        "Topic",
        "At creation and afterwards; *else* is where the value comes from otherwise.",
        Scope.TOPIC,
        KAFKA_TOPIC_SETTINGS,
    ),
    ("Topic, of our own", "At creation, and fixed from then on.", Scope.TOPIC, OTTLA_TOPIC_SETTINGS),
    ("Group", "By IncrementalAlterConfigs of a group.", Scope.GROUP, GROUP_SETTINGS),
    ("Client metrics", "Of a subscription (KIP-714).", Scope.CLIENT_METRICS, CLIENT_METRICS_SETTINGS),
    ("Quotas of users and client ids", "By AlterClientQuotas.", Scope.QUOTA, USER_AND_CLIENT_QUOTAS),
    ("Quotas of addresses", "By AlterClientQuotas.", Scope.QUOTA, IP_QUOTAS),
)


def settings_page() -> str:
    """Return `settings.md`."""
    return SETTINGS_HEAD + "".join(
        f"\n## {title}\n\n{introduction}\n\n" + "".join(_setting_lines(scope, table))
        for title, introduction, scope, table in SECTIONS
    )


def errors_page() -> str:
    """Return `errors.md`."""
    return ERRORS_HEAD + "".join(
        f"| {code} | `{error.name}` | {'yes' if error.retriable else ''} | {error.sentence} |\n"
        for code, error in ERRORS.items()
    )


def _setting_lines(scope: Scope, table: Mapping[str, Setting]) -> Iterator[str]:
    for name, setting in table.items():
        yield f"* **`{name}`** ({'; '.join(facts(setting))}). {sentence(scope, name)}\n"


def facts(setting: Setting) -> Iterator[str]:
    """Yield what the table says of a setting, each fact in a few words of Markdown, the type first."""
    yield setting.type.name.lower()
    if setting.validator is not None and str(setting.validator):
        yield f"`{setting.validator}`"
    yield f"default {_shown(setting, setting.effective_default)}"
    if setting.ottla_default is not Default.KAFKA:
        yield f"Kafka's {'none' if isinstance(setting.default, Default) else _shown(setting, setting.default)}"
    if setting.update_mode is not None and setting.update_mode.value != "read-only":
        yield f"changed {setting.update_mode.value}"
    others = [synonym.name for synonym in setting.synonyms if synonym.name != setting.name or not setting.update_mode]
    if others:
        yield "else " + ", ".join(f"`{name}`" for name in others)
    if setting.internal:
        yield "internal"


def _shown(setting: Setting, value: Value) -> str:
    text = setting.format(value)
    return "none" if text is None else f"`{text}`" if text else "empty"


def write_pages(directory: Path) -> None:
    """Write both pages, where they are not up to date."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "settings.md").write_text(settings_page(), encoding="utf-8")
    (directory / "errors.md").write_text(errors_page(), encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
