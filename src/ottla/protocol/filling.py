"""Sets the fields of a new struct. It stands apart from `schema` only to be compiled, which declarations cannot be."""

from __future__ import annotations

from collections.abc import Callable


def set_fields(
    target: object,
    values: dict[str, object],
    constants: dict[str, object],
    factories: list[tuple[str, Callable[[], object]]],
) -> None:
    """Set what is given, and everything else to its default. Raises `AttributeError` for a field that is not there."""
    for name, value in (constants | values).items():
        setattr(target, name, value)
    for name, make in factories:
        if name not in values:
            setattr(target, name, make())
