"""`ottla completion`: the script that teaches a shell our commands and options."""

from __future__ import annotations

import sys

import click
from click.shell_completion import get_completion_class


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
