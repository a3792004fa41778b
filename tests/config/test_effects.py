"""Every documented setting does something, or says that it does nothing: the sentences held against the code.

A setting does something where the code reads it: as a constant handed to what reads settings, as a field of a topic's
`LogConfig`, as a bound of what groups set, as a setting that ends the start, or by handing a default to a setting of
topics or groups that does something. What only checks a value that is never used does not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.broker.groups.group_settings import GroupSettings
from ottla.config.broker_config import PLAINLY_EFFECTIVE, REFUSED, BrokerConfig
from ottla.config.broker_settings import BROKER_SETTINGS, DYNAMIC_ONLY_SETTINGS, LISTENER_SETTINGS
from ottla.config.documentation import has_effect
from ottla.config.group_settings import BOUNDS, GROUP_SETTINGS
from ottla.config.reference import SECTIONS
from ottla.config.setting import Scope, Setting
from ottla.config.topic_settings import TOPIC_SETTINGS

SOURCE = Path(__file__).parents[2] / "src" / "ottla"
ONLY_CHECKS = SOURCE / "config" / "broker_changes.py"
"""Reads settings to hold what is to be changed against them."""
MAPPING_READERS = frozenset({BrokerConfig.get.__name__})
BROKER_READERS = MAPPING_READERS | {
    BrokerConfig.boolean.__name__,
    BrokerConfig.explicit.__name__,
    BrokerConfig.integer.__name__,
    BrokerConfig.items.__name__,
    BrokerConfig.text.__name__,
}
LISTENER_READERS = frozenset({BrokerConfig.listener_get.__name__, BrokerConfig.listener_integer.__name__})
GROUP_READERS = frozenset({GroupSettings.integer.__name__})


@pytest.mark.parametrize("scope", list(Scope))
def test_a_setting_has_an_effect_or_says_that_it_has_none(scope: Scope) -> None:
    names = [name for _, _, its_scope, table in SECTIONS if its_scope is scope for name in table]
    silent = [name for name in names if has_effect(scope, name) and not is_effective(scope, name)]
    assert not silent, "nothing reads these: give them their effect, or say `No effect: <reason>` in documentation.py"
    too_modest = [name for name in names if not has_effect(scope, name) and is_effective(scope, name)]
    assert not too_modest, "these are documented as without effect, and read"


def test_what_one_listener_may_have_of_its_own_is_read_for_it() -> None:
    assert names_read(LISTENER_READERS, 2) == LISTENER_SETTINGS


def test_what_a_client_can_be_told_is_read() -> None:
    """Its settings are fields: of `ProducerSettings`, `FetchSettings`, `GroupSettings` and so on."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (SOURCE / "client").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    fields = {
        f"{node.name}.{field.target.id}"
        for node in nodes
        if isinstance(node, ast.ClassDef) and node.name.endswith("Settings")
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }
    assert "ProducerSettings.linger_ms" in fields
    assert not [field for field in fields if field.partition(".")[2] not in read]


def test_the_search_finds_what_is_read_and_nothing_else() -> None:
    example = ast.parse(EXAMPLE)
    assert set(settings_read(example, {"LIMIT": "max.connections"})) == {
        Read("integer", 1, "num.partitions"),
        Read("integer", 1, "max.connections"),
        Read("integer", 2, "consumer.session.timeout.ms"),
        Read("listener_integer", 2, "socket.request.max.bytes"),
        Read("get", 1, "broker.id"),
    }
    fields = set(topic_fields_read(example))
    assert fields >= {"retention_ms", "flush_ms"}
    assert "preallocate" not in fields


class Read(NamedTuple):
    """One place where the code may read a setting."""

    reader: str
    argument_count: int
    name: str


EXAMPLE = '''
"""log.dirs is only spoken of here."""
NAMES = {"log.dir"}
count = config.integer("num.partitions") + self._values.integer(LIMIT)
limit = settings.integer(group_id, "consumer.session.timeout.ms")
size = config.listener_integer(name, "socket.request.max.bytes")
kept = place.config.retention_ms + config.flush_ms + file.preallocate
old[NODE_ID] = old["broker.id"]
old["node.id"] = size
'''


def is_effective(scope: Scope, name: str) -> bool:
    if scope is Scope.TOPIC:
        return name.replace(".", "_") in fields_of_topics() or name in topic_settings_refused()
    if scope is Scope.GROUP:
        return name in names_read(GROUP_READERS, 2)
    if scope is Scope.BROKER:
        return is_broker_setting_effective(name)
    return name in names_read(MAPPING_READERS, 1)


def is_broker_setting_effective(name: str) -> bool:
    setting = BROKER_SETTINGS.get(name) or DYNAMIC_ONLY_SETTINGS[name]
    if setting.topic_configs:  # whatever else is done with them, that is what their sentence is about
        return any(is_effective(Scope.TOPIC, topic_config) for topic_config in setting.topic_configs)
    groups = [group for group in GROUP_SETTINGS if name in synonyms(GROUP_SETTINGS, group)]
    return (
        name in names_read(BROKER_READERS, 1)
        or name in names_read(LISTENER_READERS, 2)
        or name in REFUSED
        or any(name in bounds for bounds in BOUNDS.values())
        or any(is_effective(Scope.GROUP, group) for group in groups)
    )


def synonyms(table: Mapping[str, Setting], name: str) -> set[str]:
    return {synonym.name for synonym in table[name].synonyms}


def test_what_hands_a_default_down_is_told_by_whom_it_is_handed_to() -> None:
    """Otherwise a broker setting could count as effective by a topic setting that does not ask for it."""
    for name, setting in BROKER_SETTINGS.items():
        for topic_config in setting.topic_configs:
            assert name in synonyms(TOPIC_SETTINGS, topic_config), name


@cache
def modules() -> Mapping[Path, ast.Module]:
    """The code that serves: clients and commands have settings of their own, and tests read what they like."""
    paths = [path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in ("client", "cli")]
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


@cache
def reads() -> frozenset[Read]:
    constants = named_constants()
    trees = [module for path, module in modules().items() if path != ONLY_CHECKS]
    return frozenset(read for module in trees for read in settings_read(module, constants))


@cache
def names_read(readers: frozenset[str], argument_count: int) -> frozenset[str]:
    """Names that are read by one argument, a broker's, or by two: a group's, or a listener's."""
    return frozenset(read.name for read in reads() if read.reader in readers and read.argument_count == argument_count)


@cache
def topic_settings_refused() -> frozenset[str]:
    """What is looked at when a topic would set it, and comes no further."""
    table = modules()[SOURCE / "config" / "topic_settings.py"]
    return frozenset(read.name for read in settings_read(table, {}) if read.reader in MAPPING_READERS)


@cache
def fields_of_topics() -> frozenset[str]:
    return frozenset(field for module in modules().values() for field in topic_fields_read(module))


def named_constants() -> dict[str, str]:
    """Texts that modules have given names, as `FORMAT: Final = "ottla.format"`."""
    found: dict[str, str] = {}
    for module in modules().values():
        for node in module.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                value = node.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found[node.target.id] = value.value
    return found


def settings_read(module: ast.Module, constants: Mapping[str, str]) -> Iterator[Read]:
    """Yield what may be the reading of a setting; one that is taken out of a mapping counts as got."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            reader, count, argument = node.func.attr, len(node.args), node.args[-1]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            reader, count, argument = BrokerConfig.get.__name__, 1, node.slice
        else:
            continue
        if reader not in BROKER_READERS | LISTENER_READERS | GROUP_READERS:
            continue
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield Read(reader, count, argument.value)
        elif isinstance(argument, ast.Name) and argument.id in constants:
            yield Read(reader, count, constants[argument.id])


def topic_fields_read(module: ast.Module) -> Iterator[str]:
    """Yield what is read of something called a config, a topic's that is, or of itself by `LogConfig`."""
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            if _last_name(node.value).lower().endswith("config"):
                yield node.attr
        elif isinstance(node, ast.ClassDef) and node.name == "LogConfig":
            for inner in ast.walk(node):
                if isinstance(inner, ast.Attribute) and _last_name(inner.value) == "self":
                    yield inner.attr


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def test_what_is_taken_to_have_an_effect_without_a_look_has_one() -> None:
    assert all(has_effect(Scope.BROKER, name) for name in PLAINLY_EFFECTIVE)
