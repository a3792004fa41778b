"""Listeners as Kafka writes them: `NAME://host:port`, and what each name means for security.

Parses and checks; opens nothing. A host may be empty (all addresses; for an advertised listener: whatever the machine
is called, which only the server can know) and a port 0 (any free one).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.config.values import ConfigError

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Kafka's, by their numbers in the metadata."""

LITE: Final = "LITE"
JAFKA: Final = "JAFKA"
JAFKA_HTTP: Final = "JAFKA_HTTP"
OTHER_DIALECTS: Final = (LITE, JAFKA, JAFKA_HTTP)
"""What else may be spoken at a listener, in plain text. A listener of such a name needs no entry in the map."""

ANY_ADDRESS: Final = ("", "0.0.0.0", "::")
MAX_PORT: Final = 65535

_FORM: Final = re.compile(
    r"(?P<name>[^:/\s]+)://(?:\[(?P<v6>[0-9a-zA-Z%._:\-]*)\]|(?P<host>[0-9a-zA-Z%._:\-]*)):(?P<port>-?[0-9]+)"
)


class Listener(NamedTuple):
    """One place to listen at, or to be reached at. `host` without brackets, `name` in capitals."""

    name: str
    host: str
    port: int
    security_protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"

    @property
    def speaks_kafka(self) -> bool:
        return self.security_protocol in SECURITY_PROTOCOLS

    @property
    def binds_any_address(self) -> bool:
        """True when no single address is named, so that nobody can be told to come there."""
        return self.host in ANY_ADDRESS


def parse_protocol_map(text: str) -> dict[str, str]:
    """Parse `listener.security.protocol.map`: names in capitals to security protocols. Raises `ConfigError`."""
    setting = "listener.security.protocol.map"
    protocols: dict[str, str] = {}
    for part in text.split(","):
        if not part.strip():
            continue
        name, colon, protocol = (piece.strip() for piece in part.partition(":"))
        if not name or not colon:
            raise ConfigError(f"{setting}: {part.strip()!r} is not of the form NAME:PROTOCOL")
        if protocol.upper() not in (*SECURITY_PROTOCOLS, *OTHER_DIALECTS):
            raise ConfigError(f"{setting}: {protocol!r} is none of {', '.join(SECURITY_PROTOCOLS)}")
        if name.upper() in protocols:
            raise ConfigError(f"{setting}: {name.upper()} stands twice")
        protocols[name.upper()] = protocol.upper()
    return protocols


def parse_listeners(setting: str, texts: Sequence[str], protocols: Mapping[str, str]) -> tuple[Listener, ...]:
    """Parse the items of `listeners` or `advertised.listeners`.

    Raises `ConfigError` for a bad form, a name without a security protocol, a name that stands twice.
    """
    listeners: list[Listener] = []
    for text in texts:
        listener = _parse_listener(setting, text, protocols)
        if any(other.name == listener.name for other in listeners):
            raise ConfigError(f"{setting}: the name {listener.name} stands twice")
        listeners.append(listener)
    return tuple(listeners)


def check_ports(setting: str, listeners: Sequence[Listener]) -> None:
    """Raise `ConfigError` when two listeners want the same port, other than 0, on addresses that overlap."""
    for index, listener in enumerate(listeners):
        for other in listeners[:index]:
            overlap = listener.host == other.host or listener.binds_any_address or other.binds_any_address
            if listener.port != 0 and listener.port == other.port and overlap:
                raise ConfigError(f"{setting}: {other} and {listener} want the same port")


def _parse_listener(setting: str, text: str, protocols: Mapping[str, str]) -> Listener:
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"{setting}: {text!r} is not of the form NAME://host:port")
    name = match["name"].upper()
    port = int(match["port"])
    if not 0 <= port <= MAX_PORT:
        raise ConfigError(f"{setting}: {text!r} has no port between 0 and {MAX_PORT}")
    if name not in protocols:
        raise ConfigError(f"{setting}: listener.security.protocol.map says nothing about {name}")
    host = match["v6"] if match["v6"] is not None else match["host"]
    return Listener(name, host, port, protocols[name])
