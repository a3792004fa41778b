"""Closes what tests of crashes leave open.

A process that is killed has its files closed by the kernel. A test that abandons a log manager in place of killing one
does not, and a thousand such files are all that many machines allow a process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

DESCRIPTORS = Path("/proc/self/fd")


def open_files() -> set[int]:
    """Return the descriptors of files in temporary directories; none where the system does not list them."""
    if not DESCRIPTORS.is_dir():
        return set()
    return {int(entry.name) for entry in DESCRIPTORS.iterdir() if _target(entry).startswith(tempfile.gettempdir())}


def _target(entry: Path) -> str:
    try:
        return os.readlink(entry)
    except OSError:  # it was the listing's own
        return ""


@pytest.fixture(scope="module", autouse=True)
def close_abandoned_files() -> Iterator[None]:
    """After a module's tests and fixtures, close the files in temporary directories that they opened and left."""
    before = open_files()
    yield
    for descriptor in open_files() - before:
        os.close(descriptor)
