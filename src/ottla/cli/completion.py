"""`ottla completion`: the script that teaches a shell our commands and options."""

from __future__ import annotations

import sys

import click
from click.shell_completion import FishComplete, add_completion_class, get_completion_class


class WholeSentences(FishComplete):
    """Click's own script for fish cuts what it says about a word at the first comma."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')


add_completion_class(WholeSentences)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bash: ottla completion bash > ~/.local/share/bash-completion/completions/ottla
    zsh:  ottla completion zsh > "${fpath[1]}/_ottla"
    fish: ottla completion fish > ~/.config/fish/completions/ottla.fish
    """
    from ottla.cli.commands import COMPLETE_VARIABLE, PROGRAM, cli

    kind = get_completion_class(shell)
    assert kind is not None
    sys.stdout.write(kind(cli, {}, PROGRAM, COMPLETE_VARIABLE).source() + "\n")
