"""Which build runs: compiled with mypyc, or pure Python from the same source.

Decided by looking, not by remembering: a compiled module's file is a shared library.
"""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from typing import Final, Literal

from ottla._version import __version__

BuildKind = Literal["compiled", "pure"]

WITNESS: Final = "ottla.records.batch"
"""The module that is looked at. All hot modules are compiled together or not at all (`setup.py`)."""


def build_kind(witness: str = WITNESS) -> BuildKind:
    """Return which build of the hot modules Python would import now."""
    spec = find_spec(witness)
    origin = spec.origin if spec is not None else None
    if origin is not None and origin.endswith(tuple(EXTENSION_SUFFIXES)):
        return "compiled"
    return "pure"


def version_line() -> str:
    """Version, build and Python, as `ottla --version` says them."""
    python = ".".join(map(str, sys.version_info[:3]))
    return f"ottla {__version__} ({build_kind()} build, Python {python})"
