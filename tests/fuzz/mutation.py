"""How good bytes become bad ones, and how long and within what limits a target runs.

A strategy takes one seed and edits it a few times: bits, lengths, cuts, repeats, pieces of other seeds. Hypothesis
chooses and, where a target fails, finds the smallest edits that still do it.
"""

from __future__ import annotations

import os
import random
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning

T = TypeVar("T")

SECONDS: Final = float(os.environ.get("FUZZ_SECONDS", "0.4"))
"""How long each target runs."""
EXAMPLES_PER_ROUND: Final = 100
LONGEST_EXAMPLE_SECONDS: Final = 2.0
"""CPU time that no single input may take."""

TELLING_NUMBERS: Final = (
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFE,
    0xFFFFFFFF,
)


def mutated(seeds: Sequence[bytes], *, from_position: int = 0) -> st.SearchStrategy[bytes]:
    """Bytes that were one of `seeds`; what stands before `from_position` stays."""
    return st.builds(
        _apply,
        st.sampled_from(seeds),
        st.lists(_edit(seeds), min_size=0, max_size=5),
        st.just(from_position),
    )


Edit = Callable[[bytearray, int], None]
"""Changes bytes in place, never before a position."""


def _apply(start: bytes, edits: Sequence[Edit], from_position: int) -> bytes:
    data = bytearray(start)
    for edit in edits:
        if len(data) > from_position:
            edit(data, from_position)
    return bytes(data)


def _edit(seeds: Sequence[bytes]) -> st.SearchStrategy[Edit]:
    place = st.floats(0, 1, exclude_max=True, allow_nan=False)
    return st.one_of(
        st.builds(_flip_bit, place, st.integers(0, 7)),
        st.builds(_set_number, place, st.sampled_from(TELLING_NUMBERS), st.sampled_from((1, 2, 4, 8))),
        st.builds(_add_to_byte, place, st.integers(-3, 3)),
        st.builds(_overwrite, place, st.binary(min_size=1, max_size=12)),
        st.builds(_insert, place, st.binary(min_size=1, max_size=12)),
        st.builds(_remove, place, st.integers(1, 24)),
        st.builds(_repeat, place, st.integers(1, 64), st.integers(1, 40)),
        st.builds(_cut, place),
        st.builds(_splice, place, st.sampled_from(seeds), place),
    )


def _at(data: bytearray, place: float, from_position: int) -> int:
    return from_position + int(place * (len(data) - from_position))


def _flip_bit(place: float, bit: int) -> Edit:
    def edit(data: bytearray, from_position: int) -> None:
        data[_at(data, place, from_position)] ^= 1 << bit

    return edit


def _set_number(place: float, number: int, size: int) -> Edit:
    def edit(data: bytearray, from_position: int) -> None:
        at = _at(data, place, from_position)
        written = (number & ((1 << 8 * size) - 1)).to_bytes(size, "big")[: len(data) - at]
        data[at : at + len(written)] = written

    return edit


def _add_to_byte(place: float, difference: int) -> Edit:
    def edit(data: bytearray, from_position: int) -> None:
        at = _at(data, place, from_position)
        data[at] = (data[at] + difference) & 0xFF

    return edit


def _overwrite(place: float, with_bytes: bytes) -> Edit:
    def edit(data: bytearray, from_position: int) -> None:
        at = _at(data, place, from_position)
        data[at : at + len(with_bytes)] = with_bytes

    return edit


def _insert(place: float, new_bytes: bytes) -> Edit:
    def edit(data: bytearray, from_position: int) -> None:
        at = _at(data, place, from_position)
        data[at:at] = new_bytes

    return edit


def _remove(place: float, count: int) -> Edit:
    def edit(data: bytearray, from_position: int) -> None:
        at = _at(data, place, from_position)
        del data[at : at + count]

    return edit


def _repeat(place: float, count: int, times: int) -> Edit:
    def edit(data: bytearray, from_position: int) -> None:
        at = _at(data, place, from_position)
        data[at:at] = bytes(data[at : at + count]) * times

    return edit


def _cut(place: float) -> Edit:
    def edit(data: bytearray, from_position: int) -> None:
        del data[_at(data, place, from_position) :]

    return edit


def _splice(place: float, other: bytes, other_place: float) -> Edit:
    def edit(data: bytearray, from_position: int) -> None:
        data[_at(data, place, from_position) :] = other[int(other_place * len(other)) :]

    return edit


def fuzz(strategy: st.SearchStrategy[T], check: Callable[[T], None]) -> None:
    """Call `check` with inputs of `strategy` until the time is over. A failure names the seed of its round."""
    end = time.monotonic() + SECONDS
    number = random.SystemRandom().getrandbits(32)
    while True:
        run_round(strategy, check, number)
        number += 1
        if time.monotonic() > end:
            return


def run_round(strategy: st.SearchStrategy[T], check: Callable[[T], None], number: int) -> None:
    """Call `check` with the inputs that belong to a seed."""

    @seed(number)
    @settings(
        max_examples=EXAMPLES_PER_ROUND,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(strategy)
    def one_round(value: T) -> None:
        begin = time.thread_time()
        check(value)
        taken = time.thread_time() - begin
        assert taken < LONGEST_EXAMPLE_SECONDS, f"{taken:.1f} s for one input"

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HypothesisWarning)  # that what it is about to print is long
            one_round()
    except BaseException as error:
        error.add_note(f"seed of the round: {number}")
        raise


@contextmanager
def memory_within(limit_bytes: int) -> Iterator[None]:
    """Fail when more than `limit_bytes` are allocated at any moment inside. Tracing must have been started."""
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    yield
    _, peak = tracemalloc.get_traced_memory()
    assert peak - before <= limit_bytes, f"{peak - before} bytes were allocated; allowed are {limit_bytes}"
