"""Leader epochs: assignment, truncation, end offsets, as Kafka's cache does them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.storage.files import LocalFileSystem
from ottla.storage.leader_epochs import LeaderEpochs
from tests.storage.harness import golden_lines

FILES = LocalFileSystem()
CASES = list(golden_lines("indexes"))
LOG_END_OFFSET = 400


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [case for case in CASES if case["kind"] == kind]


def epochs_at(path: Path, *entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs(FILES, str(path / "leader-epoch-checkpoint"))
    for epoch, start_offset in entries:
        epochs.assign(epoch, start_offset)
    return epochs


def listed(epochs: LeaderEpochs) -> list[list[int]]:
    return [list(entry) for entry in epochs.entries]


@pytest.mark.parametrize("case", of_kind("leaderEpochCheckpoint"), ids=lambda case: case["note"])
def test_file_and_answers_agree_with_kafka(tmp_path: Path, case: dict[str, Any]) -> None:
    epochs = epochs_at(tmp_path, *[(epoch, offset) for epoch, offset in case["entries"]])
    epochs.store()

    assert FILES.read(epochs.path).decode() == case["text"]
    for asked, epoch, end_offset in case["endOffsetFor"]:
        assert epochs.end_offset_for(asked, LOG_END_OFFSET) == (epoch, end_offset), asked
    for offset, epoch in case["epochForOffset"]:
        assert epochs.find_epoch_for_offset(offset) == epoch, offset


@pytest.mark.parametrize("case", of_kind("leaderEpochAssign"), ids=lambda case: case["id"])
def test_assignment_agrees_with_kafka(tmp_path: Path, case: dict[str, Any]) -> None:
    epochs = epochs_at(tmp_path)
    for step in case["steps"]:
        if step["verdict"] == "ok":
            epochs.assign(step["epoch"], step["startOffset"])
        else:
            with pytest.raises(ValueError, match="negative"):
                epochs.assign(step["epoch"], step["startOffset"])
        assert listed(epochs) == step["entries"], step
    assert FILES.read(epochs.path).decode() == case["text"]


@pytest.mark.parametrize("case", of_kind("leaderEpochTruncate"), ids=lambda case: case["note"])
def test_truncation_agrees_with_kafka(tmp_path: Path, case: dict[str, Any]) -> None:
    epochs = epochs_at(tmp_path, (0, 0), (3, 100), (7, 250))
    if case["side"] == "end":
        epochs.truncate_from_end(case["offset"])
    else:
        epochs.cut_start(case["offset"])
    assert listed(epochs) == case["entries"]


def test_loaded_epochs_are_those_stored(tmp_path: Path) -> None:
    epochs_at(tmp_path, (0, 0), (3, 100))
    loaded = LeaderEpochs(FILES, str(tmp_path / "leader-epoch-checkpoint"))
    loaded.load()
    assert listed(loaded) == [[0, 0], [3, 100]]
    assert loaded.latest_epoch == 3


def test_cut_start_tells_whether_anything_changed(tmp_path: Path) -> None:
    epochs = epochs_at(tmp_path, (0, 0), (3, 100))
    assert not epochs.cut_start(0)
    assert epochs.cut_start(50)
    assert not epochs.cut_start(50)
