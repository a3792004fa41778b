"""A compiled module is had without its package, and its absence is said."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ottla.extensions import load_extension


def test_the_package_around_an_extension_is_not_run() -> None:
    program = (
        "import sys; from ottla.extensions import load_extension;"
        "print(load_extension('crc32c', '_crc32c').crc32c(b'123456789'), 'crc32c' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(0xE3069283), "False"]


@pytest.mark.parametrize(("package", "name"), [("crc32c", "_missing"), ("missing_package", "module")])
def test_what_is_not_there_is_an_import_error(package: str, name: str) -> None:
    with pytest.raises(ImportError, match=f"there is no {package}.{name}"):
        load_extension(package, name)
