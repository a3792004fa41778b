"""Files seen through the overlay are as if they had been changed, and below nothing was."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from ottla.storage.files import FileSystem, LocalFileSystem
from ottla.storage.overlay import OverlayFileSystem
from ottla.storage.read_only_files import ReadOnlyFiles
from ottla.testing.clock import ManualClock
from ottla.testing.memory import MemoryFileSystem

DIRECTORIES = ("/data", "/data/t-0", "/data/t-1", "/data/t-2")
NAMES = ("a.log", "b.log", "c.index", "d.snapshot")


def filled() -> MemoryFileSystem:
    files = MemoryFileSystem(ManualClock())
    for directory in DIRECTORIES[:3]:
        files.make_directory(directory)
        for name in NAMES[:3]:
            files.write(f"{directory}/{name}", f"{directory}/{name}".encode() * 3)
    return files


def contents(files: FileSystem) -> dict[str, bytes | None]:
    """Every file with its bytes, and every directory."""
    found: dict[str, bytes | None] = {}
    for directory in DIRECTORIES:
        if files.exists(directory):
            assert files.is_directory(directory)
            found[directory] = None
            for name in files.list(directory):
                path = f"{directory}/{name}"
                found[path] = None if files.is_directory(path) else files.read(path)
                if found[path] is not None:
                    assert files.size(path) == len(files.read(path))
    return found


def change(files: FileSystem, dice: Random) -> None:
    """Do one thing that storage does, chosen by the dice; what is not there cannot be changed."""
    directory = dice.choice(DIRECTORIES[1:])
    path, other = f"{directory}/{dice.choice(NAMES)}", f"{directory}/{dice.choice(NAMES)}"
    number = dice.randrange(8)
    if number == 0:
        files.make_directory(directory)
    elif number == 1:
        files.remove_tree(directory)
    elif number == 2 and files.exists(directory):
        target = dice.choice(DIRECTORIES[1:])
        if not files.exists(target):
            files.rename(directory, target)
    elif not files.exists(directory):
        return
    elif number == 3:
        dice.choice([files.write, files.replace])(path, dice.randbytes(5))  # type: ignore[operator]  # both take these
    elif number == 4:
        files.remove(path)
    elif number == 5 and files.exists(path) and path != other:
        files.rename(path, other)
    else:
        file = files.open(path, create=True)
        if number == 6:
            file.truncate(dice.randrange(file.size() + 1))
        file.append(dice.randbytes(3) if dice.random() < 0.7 else b"")
        assert file.pread(100, 2) == files.read(path)[2:102]
        file.close()


@pytest.mark.parametrize("seed", range(60))
def test_changes_are_seen_above_and_not_made_below(seed: int) -> None:
    below, plain = filled(), filled()
    before = contents(below)
    above = OverlayFileSystem(below, ManualClock())
    for step in range(40):
        change(above, Random(seed * 1_000 + step))
        change(plain, Random(seed * 1_000 + step))
        assert contents(above) == contents(plain), step
    assert contents(below) == before


def test_a_file_that_was_cut_is_still_read_from_below() -> None:
    """Its descriptor goes to `sendfile`; what was cut is beyond its size."""
    below = filled()
    above = OverlayFileSystem(below, ManualClock())
    file = above.open("/data/t-0/a.log")
    whole = file.size()
    file.truncate(4)
    assert (file.size(), file.pread(100, 0), file.pread(100, 3), file.pread(100, 50)) == (4, b"/dat", b"t", b"")
    assert file.descriptor >= 100_000  # one of the files below
    file.truncate(whole)
    assert file.pread(100, 0) == b"/dat" + bytes(whole - 4), "what was cut does not come back"


def test_what_is_in_memory_has_a_descriptor_too() -> None:
    above = OverlayFileSystem(filled(), ManualClock())
    file = above.open("/data/t-0/a.log")
    file.truncate(4)
    file.append(b"!")
    assert os.pread(file.descriptor, 100, 0) == b"/dat!"
    file.close()


def test_what_is_not_there_is_missing(tmp_path: Path) -> None:
    above = OverlayFileSystem(ReadOnlyFiles(), ManualClock())
    gone = str(tmp_path / "gone")
    calls: tuple[Callable[[], object], ...] = (
        lambda: above.read(gone),
        lambda: above.size(gone),
        lambda: above.open(gone),
        lambda: above.rename(gone, gone + "2"),
        lambda: above.list(gone),
        lambda: above.write(gone + "/file", b""),
    )
    for call in calls:
        with pytest.raises(FileNotFoundError):
            call()
    assert os.listdir(tmp_path) == []


def test_readers_share_a_lock_and_keep_a_writer_out(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    assert ReadOnlyFiles().lock(path) is not None, "a directory that no broker ever used"
    assert not os.path.exists(path)
    writer = LocalFileSystem().lock(path)
    assert writer is not None
    assert ReadOnlyFiles().lock(path) is None
    writer.release()
    readers = [ReadOnlyFiles().lock(path) for _ in range(2)]
    assert None not in readers
    assert LocalFileSystem().lock(path) is None
    for reader in readers:
        assert reader is not None
        reader.release()
    again = LocalFileSystem().lock(path)
    assert again is not None
    again.release()


JAVAS = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_lock_is_the_one_that_kafka_takes(tmp_path: Path) -> None:
    """Java's `FileChannel.tryLock` is an `fcntl` lock: of two brokers of different make, one starts."""
    path = tmp_path / ".lock"
    path.touch()
    command = [sys.executable, "-c", JAVAS, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as kafka:
        assert kafka.stdout is not None
        assert kafka.stdout.readline() == "held\n"
        assert LocalFileSystem().lock(str(path)) is None
        assert ReadOnlyFiles().lock(str(path)) is None
        kafka.communicate("")
    held = LocalFileSystem().lock(str(path))
    assert held is not None
    refused = subprocess.run(command, input="", capture_output=True, text=True, check=False)
    assert "BlockingIOError" in refused.stderr
    held.release()
