"""Builds the wheel: compiled with mypyc where a C compiler works, pure Python where none does.

The same typed source runs both ways. `OTTLA_PURE=1` asks for the pure build. Which build runs is told by
`ottla --version` (`src/ottla/_build.py`). Everything else about the package stands in `pyproject.toml`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

COMPILED: Final = (
    # Globs below src/ottla. A room that is hot is one line here; files named in PURE stay interpreted.
    "clock.py",
    "engine.py",
    "records/*.py",
    "protocol/apis.py",
    "protocol/filling.py",
    "protocol/primitives.py",
    "protocol/plans.py",
    "protocol/codec.py",
    "protocol/headers.py",
    "protocol/one_batch.py",
    "protocol/connection.py",
    "protocol/flat/*.py",
    "protocol/internal/stored_offset.py",
    "storage/cleaned_records.py",
    "storage/compaction.py",
    "storage/files.py",
    "storage/flush_work.py",
    "storage/flusher.py",
    "storage/host.py",
    "storage/index.py",
    "storage/leader_epochs.py",
    "storage/log.py",
    "storage/manager.py",
    "storage/offset_map.py",
    "storage/open_files.py",
    "storage/places.py",
    "storage/produced.py",
    "storage/producer_state.py",
    "storage/segment.py",
    "storage/segment_list.py",
    "storage/span.py",
    "storage/txn_index.py",
    "storage/unsynced.py",
    "broker/broker.py",
    "broker/fetch_sessions.py",
    "broker/fetching.py",
    "broker/kernel_syncs.py",
    "broker/loop.py",
    "broker/partition.py",
    "broker/purgatory.py",
    "broker/turns.py",
    "dialects/stream.py",
    "dialects/kafka/answers.py",
    "dialects/kafka/errors.py",
    "dialects/kafka/session.py",
    "dialects/kafka/handlers/fetch.py",
    "dialects/kafka/handlers/produce.py",
)
PURE: Final = ("**/__init__.py",)

BUILDING_COMMANDS: Final = {"build", "build_ext", "bdist_wheel", "editable_wheel", "install", "develop"}
PACKAGE: Final = Path("src/ottla")

TYPE_CACHE: Final = Path("build/types")
"""What mypyc would go on from. It forgets there which native attributes need a bit of their own (seen in 2.4.1), and a
room that was compiled earlier then ends the next build; so each build begins without, and only C is kept."""
C_FLAGS: Final = ("-fno-semantic-interposition",)
"""Nobody replaces our functions at load time, so that calls between the files of a room can be direct."""


def compiled_sources() -> list[str]:
    """Return the source files to compile, in a stable order."""
    left_out = {path for pattern in PURE for path in PACKAGE.glob(pattern)}
    found = {path for pattern in COMPILED for path in PACKAGE.glob(pattern)}
    return sorted(str(path) for path in found - left_out)


def libraries(sources: Sequence[str]) -> list[tuple[list[str], str | None]]:
    """Return the sources of each room with the name of the one library that they become.

    A library for each room: calls within it are direct, mypyc's runtime is compiled once for each, and rooms compile
    in parallel and anew only when they changed.
    """
    rooms: dict[str, list[str]] = {}
    for source in sources:
        room = Path(source).relative_to(PACKAGE).parts[0].removesuffix(".py")
        rooms.setdefault(f"ottla.{room}", []).append(source)
    return [(files, name) for name, files in rooms.items()]


def announce(sentence: str) -> None:
    """Print a line that is seen above the noise of a build."""
    print(f"ottla: {sentence}", file=sys.stderr, flush=True)


def has_c_compiler() -> bool:
    """Compile one line against Python's headers: the only sure way to know that a compiler is there and works."""
    command = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    if shutil.which(command[0]) is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.c"
        source.write_text("#include <Python.h>\nint ottla_probe(void) { return PY_MAJOR_VERSION; }\n")
        include = sysconfig.get_path("include")
        tried = subprocess.run(
            [*command, f"-I{include}", "-c", str(source), "-o", str(source.with_suffix(".o"))],
            capture_output=True,
            check=False,
        )
    return tried.returncode == 0


def extensions() -> list[Extension]:
    """Return what is to be compiled: nothing where pure was asked for, or where there is no compiler."""
    if not BUILDING_COMMANDS.intersection(sys.argv):
        return []
    if os.environ.get("OTTLA_PURE") == "1":
        announce("OTTLA_PURE=1: building the pure Python build")
        return []
    sources = compiled_sources()
    if not sources:
        return []
    if not has_c_compiler():
        announce("no working C compiler with Python's headers was found: building the pure Python build (slower)")
        return []
    from mypyc.build import mypycify

    announce(f"compiling {len(sources)} modules with mypyc")
    shutil.rmtree(TYPE_CACHE, ignore_errors=True)
    arguments = [f"--cache-dir={TYPE_CACHE}", *sources]
    made: Sequence[Any] = mypycify(arguments, opt_level="2", debug_level="0", separate=libraries(sources))
    for extension in made:
        extension.extra_compile_args += C_FLAGS
    return list(made)


class BuildExtensionsOrNone(build_ext):
    """Compiles all extensions or none: a half compiled set would not import."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or min(4, os.cpu_count() or 1)

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:  # whatever a compiler or linker can do wrong, the pure build still works
            announce(f"compiling failed ({error}): building the pure Python build (slower)")
            for built in self.get_outputs():
                Path(built).unlink(missing_ok=True)
            self.extensions = []


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtensionsOrNone})
