"""Which values a setting may have: small objects that check a typed value and print as Kafka prints its own.

They are plain classes: making dataclasses would cost more than all tables together, at every start.

The printed form (`[0,...]`, `[compact, delete]`, `non-empty string`) is what reference pages and error messages show.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Protocol

from ottla.config.values import ConfigError, Value


class Validator(Protocol):
    """A rule for one setting's values."""

    def check(self, name: str, value: Value) -> Value:
        """Return the value to use, mostly the same one. Raises `ConfigError` naming the setting and the rule."""

    def __str__(self) -> str:
        """The rule as Kafka prints it."""


def _number(name: str, value: Value) -> float:
    if isinstance(value, int | float):
        return value
    raise ConfigError(f"{name}: a number is needed")


def _text(name: str, value: Value) -> str:
    if isinstance(value, str):
        return value
    raise ConfigError(f"{name}: a text is needed")


def _items(name: str, value: Value) -> tuple[str, ...]:
    if isinstance(value, tuple):
        return value
    raise ConfigError(f"{name}: a list is needed")


class Range:
    """A number from `lowest` to `highest`, both included; None is no limit."""

    __slots__ = ("highest", "lowest")

    def __init__(self, lowest: float, highest: float | None = None) -> None:
        self.lowest = lowest
        self.highest = highest

    def check(self, name: str, value: Value) -> Value:
        number = _number(name, value)
        # NaN is below and above nothing, so ask for the good case.
        if number >= self.lowest and (self.highest is None or number <= self.highest):
            return value
        raise ConfigError(f"{name}: {value} lies outside {self}")

    def __str__(self) -> str:
        return f"[{self.lowest},...]" if self.highest is None else f"[{self.lowest},...,{self.highest}]"


class RangeOr:
    """A number from `lowest` to `highest`, or the one special value outside."""

    __slots__ = ("highest", "lowest", "special")

    def __init__(self, lowest: int, highest: int, special: int) -> None:
        self.lowest = lowest
        self.highest = highest
        self.special = special

    def check(self, name: str, value: Value) -> Value:
        if value == self.special or self.lowest <= _number(name, value) <= self.highest:
            return value
        raise ConfigError(f"{name}: {value} lies outside {self}")

    def __str__(self) -> str:
        return f"[{self.lowest},...,{self.highest}] or {self.special}"


class OneOf:
    """One of the listed texts, as written."""

    __slots__ = ("choices",)

    def __init__(self, choices: tuple[str, ...]) -> None:
        self.choices = choices

    def check(self, name: str, value: Value) -> Value:
        if value in self.choices:
            return value
        raise ConfigError(f"{name}: {value!r} is none of {self}")

    def __str__(self) -> str:
        return f"[{', '.join(self.choices)}]"


class OneOfIgnoringCase:
    """One of the listed texts in any case."""

    __slots__ = ("choices",)

    def __init__(self, choices: tuple[str, ...]) -> None:
        self.choices = choices

    def check(self, name: str, value: Value) -> Value:
        wanted = _text(name, value).lower()
        if any(choice.lower() == wanted for choice in self.choices):
            return value
        raise ConfigError(f"{name}: {value!r} is none of {self}")

    def __str__(self) -> str:
        return f"(case insensitive) [{', '.join(self.choices)}]"


class ListOf:
    """A list; repeated items count once. `choices` None takes any item that is not empty."""

    __slots__ = ("choices", "may_be_empty")

    def __init__(self, choices: tuple[str, ...] | None = None, may_be_empty: bool = False) -> None:
        self.choices = choices
        self.may_be_empty = may_be_empty

    def check(self, name: str, value: Value) -> Value:
        items = _items(name, value)
        if not items and not self.may_be_empty:
            raise ConfigError(f"{name}: the list must not be empty")
        for item in items:
            if not item:
                raise ConfigError(f"{name}: the list has an empty item")
            if self.choices is not None and item not in self.choices:
                raise ConfigError(f"{name}: {item!r} is none of {self}")
        return tuple(dict.fromkeys(items))

    def __str__(self) -> str:
        return "" if self.choices is None else f"[{', '.join(self.choices)}]"


class Text:
    """A text that is not null; with `non_empty` at least one character long."""

    __slots__ = ("non_empty",)

    def __init__(self, non_empty: bool = False) -> None:
        self.non_empty = non_empty

    def check(self, name: str, value: Value) -> Value:
        if self.non_empty and not _text(name, value):
            raise ConfigError(f"{name}: must not be empty")
        return value

    def __str__(self) -> str:
        return "non-empty string" if self.non_empty else "non-null string"


@cache
def _pattern(expression: str) -> re.Pattern[str]:
    """Compile on first use: most processes never need one of these."""
    return re.compile(expression)


class Items:
    """A list whose every item matches `expression`; Kafka prints `form`; `whole` is an item that may stand alone."""

    __slots__ = ("expression", "form", "whole")

    def __init__(self, expression: str, form: str, whole: str | None = None) -> None:
        self.expression = expression
        self.form = form
        self.whole = whole

    def check(self, name: str, value: Value) -> Value:
        items = _items(name, value)
        if items == (self.whole,) or all(_pattern(self.expression).fullmatch(item) for item in items):
            return value
        raise ConfigError(f"{name}: {','.join(items)!r} is not of the form {self.form}")

    def __str__(self) -> str:
        return self.form


class OneOfOr:
    """One of the listed texts, or one that matches `expression`, shown as `form`."""

    __slots__ = ("choices", "expression", "form")

    def __init__(self, choices: tuple[str, ...], expression: str, form: str) -> None:
        self.choices = choices
        self.expression = expression
        self.form = form

    def check(self, name: str, value: Value) -> Value:
        text = _text(name, value)
        if text in self.choices or _pattern(self.expression).fullmatch(text):
            return value
        raise ConfigError(f"{name}: {value!r} is none of {self}")

    def __str__(self) -> str:
        return f"[{', '.join((*self.choices, self.form))}]"


def at_least(lowest: float) -> Range:
    return Range(lowest)


def between(lowest: float, highest: float) -> Range:
    return Range(lowest, highest)


def one_of(*choices: str) -> OneOf:
    return OneOf(choices)


def list_of(*choices: str, may_be_empty: bool = False) -> ListOf:
    return ListOf(choices, may_be_empty)
