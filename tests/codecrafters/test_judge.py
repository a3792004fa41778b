"""`tools/codecrafters/judge` hands the challenge's own tester what it wants; the tester is not here, see the docs."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

from tests.codecrafters import test_stages
from tests.codecrafters.tester import PROGRAM


def test_the_tester_is_told_every_stage(tmp_path: Path) -> None:
    told = ("RANDOM_SEED", "REPOSITORY_DIR", "TEST_CASES_JSON")
    stand_in = tmp_path / "unshare"
    stand_in.write_text("#!/bin/sh\n" + "".join(f'echo "$CODECRAFTERS_{name}"\n' for name in told))
    stand_in.chmod(0o755)
    done = subprocess.run(
        [PROGRAM.with_name("judge"), stand_in, "1", "2"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert (lines[:2], lines[4:6]) == (["seed 1", "1"], ["seed 2", "2"])
    assert lines[2] == str(PROGRAM.parent)
    stages = json.loads(lines[3])
    assert all(set(stage) == {"slug", "tester_log_prefix", "title"} for stage in stages)
    tested = [name[5:8] for name in vars(test_stages) if re.match(r"test_[a-z]{2}\d_", name)]
    assert len(tested) == 25
    assert [stage["slug"] for stage in stages] == tested
