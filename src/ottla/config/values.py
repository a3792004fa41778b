"""The types that settings have, and the way from text to value and back.

The rules are Kafka's (its `ConfigDef`): surrounding blanks do not count, numbers are decimal and fit their width, lists
are split at commas, an empty text is the empty list. Which values are allowed is left to `validators`.
"""

from __future__ import annotations

from enum import IntEnum
from math import isinf, isnan
from typing import Final

Value = bool | int | float | str | tuple[str, ...] | None
"""A typed value: lists are tuples; classes and passwords are strings."""

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
FLOAT64_MAX: Final = 1.7976931348623157e308

JAVA_BLANKS: Final = "".join(map(chr, range(0x21)))
"""What Java's `String.trim` takes away: everything up to the space."""


class ConfigError(ValueError):
    """A setting that cannot be used. The message is one line for the person who wrote it, and names the setting."""


class ConfigType(IntEnum):
    """A setting's type; the number is the one that DescribeConfigs answers."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


INTEGER_BITS: Final = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def parse_value(name: str, config_type: ConfigType, text: str) -> Value:
    """Return the value that `text` means for a setting of this type. Raises `ConfigError`."""
    text = text.strip(JAVA_BLANKS)
    if config_type is ConfigType.BOOLEAN:
        return _parse_boolean(name, text)
    if config_type in INTEGER_BITS:
        return _parse_integer(name, text, INTEGER_BITS[config_type])
    if config_type is ConfigType.DOUBLE:
        return _parse_double(name, text)
    if config_type is ConfigType.LIST:
        return tuple(part.strip(JAVA_BLANKS) for part in text.split(",")) if text else ()
    return text


def format_value(config_type: ConfigType, value: Value) -> str | None:
    """Return Kafka's text form: `true`, `a,b`, `1.7976931348623157E308`."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return format_double(float(value)) if config_type is ConfigType.DOUBLE else str(value)


def format_double(value: float) -> str:
    """Return a double as Java prints it: plain between 0.001 and 10,000,000, else `1.5E9`."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits = repr(value).partition("e")[0].lstrip("-").replace(".", "").strip("0")
    mantissa, _, exponent = f"{value:.{max(len(digits) - 1, 1)}e}".partition("e")
    return f"{mantissa}E{int(exponent)}"


def _parse_boolean(name: str, text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ConfigError(f"{name}: {text!r} is neither true nor false")
    return lowered == "true"


def _parse_integer(name: str, text: str, bits: int) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    # int() alone would take underscores, blanks after the sign and other scripts' signs.
    if not digits.isdecimal():
        raise ConfigError(f"{name}: {text!r} is not a whole number")
    value = int(text)
    limit = 1 << (bits - 1)
    if not -limit <= value < limit:
        raise ConfigError(f"{name}: {text} does not fit into {bits} bits")
    return value


def _parse_double(name: str, text: str) -> float:
    if "_" not in text:
        try:
            return float(text)
        except ValueError:
            pass
    raise ConfigError(f"{name}: {text!r} is not a number")
