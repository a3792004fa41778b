"""Texts and values, by Kafka's rules."""

from __future__ import annotations

import pytest

from ottla.config.values import ConfigError, ConfigType, Value, format_double, format_value, parse_value


@pytest.mark.parametrize(
    ("config_type", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "false", False),
        (ConfigType.INT, "+7", 7),
        (ConfigType.INT, "-2147483648", -(2**31)),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
        (ConfigType.DOUBLE, "1e3", 1000.0),
        (ConfigType.LIST, " a , b,c ", ("a", "b", "c")),
        (ConfigType.LIST, "", ()),
        (ConfigType.STRING, "  a b ", "a b"),
        (ConfigType.CLASS, "org.example.Policy", "org.example.Policy"),
        (ConfigType.PASSWORD, "secret", "secret"),
    ],
)
def test_a_text_has_a_value(config_type: ConfigType, text: str, value: Value) -> None:
    assert parse_value("x", config_type, text) == value


@pytest.mark.parametrize(
    ("config_type", "text"),
    [
        (ConfigType.BOOLEAN, "yes"),
        (ConfigType.INT, ""),
        (ConfigType.INT, "1_000"),
        (ConfigType.INT, "1.0"),
        (ConfigType.INT, "- 1"),
        (ConfigType.INT, "2147483648"),
        (ConfigType.SHORT, "-32769"),
        (ConfigType.LONG, "9223372036854775808"),
        (ConfigType.DOUBLE, "1_0.0"),
        (ConfigType.DOUBLE, "fast"),
    ],
)
def test_a_text_of_the_wrong_form_is_refused_by_name(config_type: ConfigType, text: str) -> None:
    with pytest.raises(ConfigError, match=r"^some\.setting: "):
        parse_value("some.setting", config_type, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (0.5, "0.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (12345678.0, "1.2345678E7"),
        (1e16, "1.0E16"),
        (-2.5e-7, "-2.5E-7"),
        (2147483647.0, "2.147483647E9"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles_print_as_in_java(value: float, text: str) -> None:
    assert format_double(value) == text


def test_values_print_as_kafka_prints_them() -> None:
    assert format_value(ConfigType.BOOLEAN, True) == "true"
    assert format_value(ConfigType.LIST, ("a", "b")) == "a,b"
    assert format_value(ConfigType.LONG, -1) == "-1"
    assert format_value(ConfigType.STRING, None) is None
