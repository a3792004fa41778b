"""The local file system: what storage relies on."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ottla.storage.files import LocalFileSystem, raise_descriptor_limit

FILES = LocalFileSystem()


def test_appends_go_to_the_end_and_reads_are_by_position(tmp_path: Path) -> None:
    file = FILES.open(str(tmp_path / "f"), create=True)
    file.append(b"hello ")
    file.append(memoryview(b"world"))
    assert file.pread(5, 6) == b"world"
    assert file.pread(50, 6) == b"world"
    assert file.pread(5, 50) == b""
    assert file.size() == 11
    file.truncate(5)
    file.append(b"!")
    assert file.pread(10, 0) == b"hello!"
    file.sync()
    file.close()


@pytest.mark.parametrize("written_at_first", range(12))
def test_pieces_are_written_whole_where_the_system_writes_less_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written_at_first: int
) -> None:
    def write_some(descriptor: int, parts: Sequence[memoryview]) -> int:
        return os.write(descriptor, b"".join(parts)[:written_at_first])

    file = FILES.open(str(tmp_path / "f"), create=True)
    file.append(b"before")
    monkeypatch.setattr(os, "writev", write_some)
    file.append_all([bytearray(b"one "), memoryview(b"two "), bytearray(b"six")])
    assert file.pread(50, 0) == b"beforeone two six"
    file.close()


def test_written_bytes_are_resident(tmp_path: Path) -> None:
    file = FILES.open(str(tmp_path / "f"), create=True)
    file.append(bytes(10_000))
    assert file.is_resident(0, 10_000)
    file.close()


def test_opening_what_is_missing_needs_create(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FILES.open(str(tmp_path / "f"))


@pytest.mark.parametrize("durable", [True, False])
def test_replace_leaves_only_the_new_contents(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "f"
    FILES.write(str(path), b"old and long")
    FILES.replace(str(path), b"new", durable=durable)
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_removing_what_is_gone_is_silent(tmp_path: Path) -> None:
    FILES.remove(str(tmp_path / "f"))
    FILES.remove_tree(str(tmp_path / "d"))


def test_lock_is_exclusive_until_released(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    lock = FILES.lock(path)
    assert lock is not None
    assert FILES.lock(path) is None
    lock.release()
    again = FILES.lock(path)
    assert again is not None
    again.release()


def test_lock_ends_with_its_process(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    program = (
        "import sys; from ottla.storage.files import LocalFileSystem; "
        "sys.exit(LocalFileSystem().lock(sys.argv[1]) is None)"
    )
    assert subprocess.run([sys.executable, "-c", program, path], check=False).returncode == 0
    lock = FILES.lock(path)
    assert lock is not None
    assert subprocess.run([sys.executable, "-c", program, path], check=False).returncode == 1
    lock.release()


@pytest.mark.parametrize(
    ("limits", "raised"),
    [((256, 4096), (4096, 4096)), ((4096, 4096), None), ((1024, resource.RLIM_INFINITY), (1 << 20, -1))],
)
def test_the_limit_of_open_files_is_raised_as_far_as_it_may(
    limits: tuple[int, int], raised: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: asked.append(wanted))
    limit = raise_descriptor_limit()
    assert limit == (raised or limits)[0]
    assert asked == ([] if raised is None else [raised])


def test_a_limit_of_open_files_that_cannot_be_raised_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int, wanted: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_descriptor_limit() == 256
