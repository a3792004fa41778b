"""Counters, gauges and histograms, and their text form for Prometheus.

Knows no metric by name: whoever counts asks a `Registry` for its counter once and keeps it, so that counting on the hot
path is one addition. Nothing here locks: a metric belongs to the thread that owns what it counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from math import isfinite, isnan
from typing import Final, Generic, Protocol, TypeVar

LATENCY_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds that suit requests of a broker."""

Sample = tuple[str, str, float]
"""Suffix of the name, extra label (already in text form) and value."""


class Metric(Protocol):
    """What a registry needs of a metric: its samples."""

    def samples(self) -> Iterator[Sample]: ...


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def add(self, amount: int = 1) -> None:
        self.value += amount

    def samples(self) -> Iterator[Sample]:
        yield "", "", self.value


class Gauge:
    """A number that goes up and down: set by its owner, or asked for by `read` when it is shown."""

    __slots__ = ("read", "value")

    def __init__(self, read: Callable[[], float] | None = None) -> None:
        self.value = 0.0
        self.read = read

    def set(self, value: float) -> None:
        self.value = value

    def samples(self) -> Iterator[Sample]:
        yield "", "", self.value if self.read is None else self.read()


class Histogram:
    """How often values fell at or below each of some bounds, their number and their sum."""

    __slots__ = ("_bounds", "_counts", "count", "sum")

    def __init__(self, bounds: Sequence[float] = LATENCY_SECONDS) -> None:
        if list(bounds) != sorted(set(bounds)):
            raise ValueError("the bounds of a histogram rise")
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self.count = 0
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self.count += 1
        self.sum += value

    def samples(self) -> Iterator[Sample]:
        below = 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            below += count
            yield "_bucket", f'le="{_number(bound)}"', below
        yield "_sum", "", self.sum
        yield "_count", "", self.count


M = TypeVar("M", bound=Metric)


class Family(Generic[M]):
    """Metrics of one name that differ in the values of their labels."""

    __slots__ = ("_make", "_members", "documentation", "kind", "label_names", "name")

    def __init__(
        self, name: str, kind: str, documentation: str, label_names: Sequence[str], make: Callable[[], M]
    ) -> None:
        self.name = name
        self.kind = kind
        self.documentation = documentation
        self.label_names = tuple(label_names)
        self._make = make
        self._members: dict[tuple[str, ...], M] = {}

    def labels(self, *values: str) -> M:
        """Return the member with these label values, made on first use. Raises `ValueError` for a wrong number."""
        member = self._members.get(values)
        if member is None:
            if len(values) != len(self.label_names):
                raise ValueError(f"{self.name} has the labels {self.label_names}, not {values}")
            member = self._members[values] = self._make()
        return member

    def remove(self, *values: str) -> None:
        """Forget a member, for instance of a deleted topic."""
        self._members.pop(values, None)

    def lines(self) -> Iterator[str]:
        """Yield the family's lines of the text form, members in order of their labels."""
        yield f"# HELP {self.name} {_escape(self.documentation, quotes=False)}"
        yield f"# TYPE {self.name} {self.kind}"
        for values in sorted(self._members):
            own = [f'{name}="{_escape(value)}"' for name, value in zip(self.label_names, values, strict=True)]
            for suffix, extra, value in self._members[values].samples():
                labels = ",".join([*own, extra] if extra else own)
                yield (
                    f"{self.name}{suffix}{{{labels}}} {_number(value)}"
                    if labels
                    else (f"{self.name}{suffix} {_number(value)}")
                )


F = TypeVar("F", Family[Counter], Family[Gauge], Family[Histogram])


class Registry:
    """All metrics of a process, by name. Each `*_family` has labels, the others have none."""

    __slots__ = ("_families",)

    def __init__(self) -> None:
        self._families: dict[str, Family[Counter] | Family[Gauge] | Family[Histogram]] = {}

    def counter(self, name: str, documentation: str) -> Counter:
        """Make a counter; by custom its name ends in `_total`. Raises `ValueError` when the name is taken."""
        return self.counter_family(name, documentation).labels()

    def counter_family(self, name: str, documentation: str, *label_names: str) -> Family[Counter]:
        return self._add(Family(name, "counter", documentation, label_names, Counter))

    def gauge(self, name: str, documentation: str, read: Callable[[], float] | None = None) -> Gauge:
        """Make a gauge, with `read` one that is asked when it is shown."""
        gauge = self.gauge_family(name, documentation).labels()
        gauge.read = read
        return gauge

    def gauge_family(self, name: str, documentation: str, *label_names: str) -> Family[Gauge]:
        return self._add(Family(name, "gauge", documentation, label_names, Gauge))

    def histogram(self, name: str, documentation: str, bounds: Sequence[float] = LATENCY_SECONDS) -> Histogram:
        """Make a histogram; by custom its name ends in the unit (`_seconds`, `_bytes`)."""
        return self.histogram_family(name, documentation, bounds=bounds).labels()

    def histogram_family(
        self, name: str, documentation: str, *label_names: str, bounds: Sequence[float] = LATENCY_SECONDS
    ) -> Family[Histogram]:
        return self._add(Family(name, "histogram", documentation, label_names, lambda: Histogram(bounds)))

    def exposition(self) -> str:
        """Return the text form (version 0.0.4 of Prometheus' format), names in order."""
        lines = [line for name in sorted(self._families) for line in self._families[name].lines()]
        return "".join(f"{line}\n" for line in lines)

    def _add(self, family: F) -> F:
        if family.name in self._families:
            raise ValueError(f"there is a metric {family.name} already")
        self._families[family.name] = family
        return family


def _number(value: float) -> str:
    if isfinite(value):
        return str(int(value)) if value == int(value) else repr(value)
    return "NaN" if isnan(value) else ("+Inf" if value > 0 else "-Inf")


def _escape(text: str, quotes: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
