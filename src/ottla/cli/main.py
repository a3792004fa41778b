"""The entry point `ottla`: answers what needs no parser itself and leaves the rest to `commands`.

A broker must start and a version must appear in a blink, so `serve` and `--version` are taken here before anything
heavy is imported.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from ottla.cli.interrupts import hold_off, take_again
from ottla.cli.pipes import drop_output, open_missing


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 done, 1 the answer is no, 2 wrong use, 3 the cluster cannot be reached."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    hold_off()
    open_missing()
    out = sys.stdout
    if isinstance(out, TextIOWrapper):
        out.reconfigure(errors="backslashreplace")  # a terminal that cannot show a name is no reason to fail
    try:
        code = _run(words)
        out.flush()
    except BrokenPipeError:
        drop_output(out)
        code = 0
    finally:
        take_again()
    sys.exit(code)


def _run(words: list[str]) -> int:
    if words[:1] == ["serve"]:
        gc.disable()  # until the broker is ready: a start makes much and leaves little behind
        from ottla.cli.serve import main as serve

        return serve(words[1:])
    if words in (["--version"], ["-V"]):
        from ottla._build import version_line

        sys.stdout.write(version_line() + "\n")
        return 0
    from ottla.cli.commands import run_command

    return run_command(words)


if __name__ == "__main__":
    main()
