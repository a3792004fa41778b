"""What DescribeConfigs answers: the settings of a resource, where each value comes from, and what stands behind it.

Pure: the handler hands in what is configured and translates `ConfigEntry` into rows. Who may see what, and whether the
resource exists, is left to the handler. Facts that surprise:

* Of a topic or group every setting is answered; of a broker too; of the broker default (the empty name) only what is
  set for the whole cluster at run time.
* An empty list of keys asks for all, as does none; unknown keys are left out of the answer.
* Synonyms come by source first and by nearness of name second; the first one is where the value comes from. Of weaker
  names alone nothing is said (see `_from_name`), and of defaults of its own only a group speaks.
* Internal settings show only where they are set; our own only when asked for by name; passwords never.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.config.broker_layers import BrokerLayers
from ottla.config.broker_settings import BROKER_SETTINGS, DYNAMIC_ONLY_SETTINGS, OTTLA_SETTINGS, broker_setting
from ottla.config.client_metrics_settings import CLIENT_METRICS_SETTINGS
from ottla.config.group_settings import GROUP_SETTINGS
from ottla.config.setting import LIST, READ_ONLY, REQUIRED, STRING, Scope, Setting, Synonym
from ottla.config.topic_settings import TOPIC_SETTINGS
from ottla.config.values import ConfigType

UNKNOWN_TYPE = 0
"""The type of a key that no table knows."""


class ConfigSource(IntEnum):
    """Where a value comes from; the number is the one on the wire."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigSynonym(NamedTuple):
    """A value that stands behind another one."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One described setting. `value` is None where none is set or it is secret."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool
    read_only: bool
    config_type: ConfigType | int
    synonyms: Sequence[ConfigSynonym]
    documentation: str | None = None


def describe_topic(
    layers: BrokerLayers, overrides: Mapping[str, str], keys: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Describe a topic that sets `overrides` for itself."""
    return _describe_scope(TOPIC_SETTINGS, ConfigSource.TOPIC, layers, overrides, keys)


def describe_new_topic(layers: BrokerLayers, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Describe a topic as CreateTopics answers: a value that comes from a weaker name has that one's source."""
    entries: list[ConfigEntry] = []
    for entry in describe_topic(layers, overrides):
        behind = next(_broker_synonyms(TOPIC_SETTINGS[entry.name].synonyms, layers), None)
        source = entry.source if behind is None or entry.source is not ConfigSource.DEFAULT else behind.source
        entries.append(entry._replace(source=source))
    return entries


def describe_group(
    layers: BrokerLayers, overrides: Mapping[str, str], keys: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Describe a group, which need not exist."""
    return _describe_scope(GROUP_SETTINGS, ConfigSource.GROUP, layers, overrides, keys)


def describe_client_metrics(
    layers: BrokerLayers, overrides: Mapping[str, str], keys: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Describe a client metrics subscription, which need not exist."""
    return _describe_scope(CLIENT_METRICS_SETTINGS, ConfigSource.CLIENT_METRICS, layers, overrides, keys)


def describe_broker(layers: BrokerLayers, keys: Collection[str] | None = None) -> list[ConfigEntry]:
    """Describe this broker: every setting, and keys without a meaning that were set (without showing their values)."""
    entries: list[ConfigEntry] = []
    for name, setting in BROKER_SETTINGS.items():
        if keys and name not in keys:
            continue
        is_set = any(name in layer for layer in (layers.for_this_broker, layers.for_all_brokers, layers.broker.raw))
        if (setting.internal and not is_set) or (name in OTTLA_SETTINGS and not keys):
            continue
        entries.append(_broker_entry(setting, layers))
    for name in _set_names(layers):
        if name not in BROKER_SETTINGS and (not keys or name in keys):
            general = broker_setting(name)
            entries.append(
                _dynamic_only_entry(name, layers) if general is None else _listener_entry(name, general, layers)
            )
    return entries


def describe_broker_default(layers: BrokerLayers, keys: Collection[str] | None = None) -> list[ConfigEntry]:
    """Describe what is set for all brokers at run time, nothing else."""
    entries: list[ConfigEntry] = []
    for name, text in layers.for_all_brokers.items():
        if keys and name not in keys:
            continue
        setting = BROKER_SETTINGS.get(name) or DYNAMIC_ONLY_SETTINGS.get(name)
        value = None if setting is None else _shown(setting, text)
        synonym = ConfigSynonym(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER)
        entries.append(_entry(name, setting, value, ConfigSource.DYNAMIC_DEFAULT_BROKER, [synonym]))
    return entries


def documented(entries: Iterable[ConfigEntry], scope: Scope) -> list[ConfigEntry]:
    """Add to each entry the sentence that says what the setting does."""
    from ottla.config.documentation import sentence  # hundreds of texts that hardly any process needs

    return [entry._replace(documentation=sentence(scope, entry.name)) for entry in entries]


def _describe_scope(
    table: Mapping[str, Setting],
    source: ConfigSource,
    layers: BrokerLayers,
    overrides: Mapping[str, str],
    keys: Collection[str] | None,
) -> list[ConfigEntry]:
    entries: list[ConfigEntry] = []
    for name, setting in table.items():
        if (keys and name not in keys) or (setting.internal and name not in overrides):
            continue
        synonyms: list[ConfigSynonym] = []
        if name in overrides:
            synonyms.append(ConfigSynonym(name, _shown(setting, overrides[name]), source))
        behind = list(_broker_synonyms(setting.synonyms, layers))
        synonyms += _from_name(setting.synonyms[0].name, behind) if behind else []
        if not behind and source is ConfigSource.GROUP:
            synonyms += _own_default(setting)
        value = synonyms[0].value if name in overrides else _in_unit(setting, behind)
        entries.append(
            ConfigEntry(
                name,
                value,
                synonyms[0].source if synonyms else ConfigSource.DEFAULT,
                is_sensitive=False,
                read_only=False,
                config_type=setting.type,
                synonyms=synonyms,
            )
        )
    return entries


def _from_name(name: str, synonyms: Sequence[ConfigSynonym]) -> Sequence[ConfigSynonym]:
    """Drop what stands before the first mention of a name, everything where there is none.

    That belongs to a stronger synonym, which is described by itself; so a topic whose retention comes from
    `log.retention.hours` shows no synonyms while `log.retention.ms` is not set, and the default as its source.
    """
    start = next((index for index, synonym in enumerate(synonyms) if synonym.name == name), len(synonyms))
    return synonyms[start:]


def _own_default(setting: Setting) -> list[ConfigSynonym]:
    value = setting.format(setting.effective_default)
    return [] if value is None else [ConfigSynonym(setting.name, value, ConfigSource.DEFAULT)]


def _broker_synonyms(synonyms: Sequence[Synonym], layers: BrokerLayers) -> Iterator[ConfigSynonym]:
    """Yield what is set under these names: by source first, by nearness of name second, defaults last.

    A default of ours where Kafka has none shows only where nothing is set.
    """
    sources = (
        (layers.for_this_broker, ConfigSource.DYNAMIC_BROKER),
        (layers.for_all_brokers, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (layers.broker.raw, ConfigSource.STATIC_BROKER),
    )
    is_set = False
    for texts, source in sources:
        for name, _ in synonyms:
            setting = broker_setting(name)
            if name in texts and setting is not None:
                is_set = True
                yield ConfigSynonym(name, _shown(setting, texts[name]), source)
    for name, _ in synonyms:
        setting = BROKER_SETTINGS.get(name)
        if setting is None or (is_set and setting.default is REQUIRED):  # one listener's own setting has no default
            continue
        value = setting.format(setting.effective_default)
        if value is not None:
            yield ConfigSynonym(name, None if setting.sensitive else value, ConfigSource.DEFAULT)


def _shown(setting: Setting, text: str) -> str | None:
    if setting.sensitive:
        return None
    value = setting.parse_stored(text)
    return text if value is None else setting.format(value)


def _in_unit(setting: Setting, behind: Sequence[ConfigSynonym]) -> str | None:
    """The value that a resource inherits: the nearest synonym's, in the resource's own unit and type."""
    if not behind:
        return setting.format(setting.effective_default)
    nearest = behind[0]
    if nearest.value is None:
        return None
    synonym = next(synonym for synonym in setting.synonyms if synonym.name == nearest.name)
    if synonym.factor != 1:
        return str(synonym.in_our_unit(int(nearest.value)))
    if setting.type is STRING and BROKER_SETTINGS[nearest.name].type is LIST:
        # The broker lists what groups may choose from; a group that chooses nothing gets the first.
        return nearest.value.split(",", 1)[0]
    return nearest.value


def _broker_entry(setting: Setting, layers: BrokerLayers) -> ConfigEntry:
    name = setting.name
    synonyms = _from_name(name, list(_broker_synonyms(setting.synonyms or (Synonym(name),), layers)))
    if synonyms:
        return _entry(name, setting, synonyms[0].value, synonyms[0].source, synonyms)
    return _entry(name, setting, None, ConfigSource.DEFAULT, synonyms)


def _listener_entry(name: str, general: Setting, layers: BrokerLayers) -> ConfigEntry:
    """An entry for one listener's own setting, behind which the general one stands. Shown as read-only, as in Kafka."""
    synonyms = list(_broker_synonyms((Synonym(name), *(general.synonyms or (Synonym(general.name),))), layers))
    first = synonyms[0]
    return _entry(name, general, first.value, first.source, synonyms)._replace(read_only=True)


def _set_names(layers: BrokerLayers) -> dict[str, None]:
    return dict.fromkeys((*layers.for_this_broker, *layers.for_all_brokers, *layers.broker.raw))


def _dynamic_only_entry(name: str, layers: BrokerLayers) -> ConfigEntry:
    """An entry for a key that the file cannot set, or that nothing knows (whose value might be a secret)."""
    setting = DYNAMIC_ONLY_SETTINGS.get(name)
    sources = (
        (layers.for_this_broker, ConfigSource.DYNAMIC_BROKER),
        (layers.for_all_brokers, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (layers.broker.raw, ConfigSource.STATIC_BROKER),
    )
    synonyms = [
        ConfigSynonym(name, None if setting is None else _shown(setting, texts[name]), source)
        for texts, source in sources
        if name in texts
    ]
    return _entry(name, setting, synonyms[0].value, synonyms[0].source, synonyms)


def _entry(
    name: str,
    setting: Setting | None,
    value: str | None,
    source: ConfigSource,
    synonyms: Sequence[ConfigSynonym],
) -> ConfigEntry:
    return ConfigEntry(
        name,
        value,
        source,
        is_sensitive=setting is None or setting.sensitive,
        read_only=setting is None or setting.update_mode is READ_ONLY,
        config_type=UNKNOWN_TYPE if setting is None else setting.type,
        synonyms=synonyms,
    )
