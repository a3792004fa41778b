"""The completion scripts in the shells that they are for. Each is sourced, and asked as its shell asks it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BASH = """
source <(ottla completion bash)
[[ $(complete -p ottla) == *_ottla_completion* ]]
ask() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _ottla_completion ottla
  printf '%s\\n' "${COMPREPLY[@]}"
}
ask ottla top
ask ottla topics cr
ask ottla consume --gro
ask ottla completion f
"""

ZSH = """
autoload -Uz compinit && compinit -u -D
source <(ottla completion zsh)
[[ $_comps[ottla] == _ottla_completion ]] || exit 1
_describe() { local rows=${@[-2]}; [[ $1 == -V ]] && rows=$3; print -l -- "${(P@)rows%%:*}" }
compadd() { print -l -- ${(P@)@[-1]} }
ask() { local words=($@) CURRENT=$#; _ottla_completion }
ask ottla top
ask ottla topics cr
ask ottla consume --gro
ask ottla completion f
"""

FISH = """
ottla completion fish | source
complete -C 'ottla top'
complete -C 'ottla topics cr'
complete -C 'ottla consume --gro'
complete -C 'ottla completion f'
"""

COMPLETED = ["topics", "create", "--group", "fish"]


def ask(shell: list[str], script: str, directory: Path) -> list[str]:
    """Run a script in a shell that finds `ottla`; return what it prints."""
    program = directory / "ottla"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ottla.cli.main "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{directory}{os.pathsep}{os.environ['PATH']}", "HOME": str(directory)}
    done = subprocess.run(
        [*shell, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("shell", "script"),
    [(["bash", "--norc", "-eu"], BASH), (["zsh", "-f"], ZSH)],
    ids=["bash", "zsh"],
)
def test_words_are_completed(shell: list[str], script: str, tmp_path: Path) -> None:
    assert ask(shell, script, tmp_path) == COMPLETED


def test_fish_also_says_what_each_word_does_with_all_its_commas(tmp_path: Path) -> None:
    rows = [row.partition("\t") for row in ask(["fish", "--no-config"], FISH, tmp_path)]
    assert [word for word, _, _ in rows] == COMPLETED
    assert rows[0][2].startswith("Create, list, describe")
