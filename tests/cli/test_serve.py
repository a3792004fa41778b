"""`ottla serve`: where its settings come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.serve import main, read_config, serve_parser


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_properties_file_is_read_in_either_encoding(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes("broker.rack=Köln\n".encode(encoding))
    assert read_config(serve_parser().parse_args([str(file)])).rack == "Köln"


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nlog.dirs=/elsewhere\n")
    config = read_config(serve_parser().parse_args([str(file), "--data", str(tmp_path), "-o", "num.partitions=5"]))
    assert (config.num_partitions, config.log_dirs) == (5, (str(tmp_path),))


@pytest.mark.parametrize("words", [["--frob"], ["-o"], ["a.properties", "b.properties"]], ids=" ".join)
def test_wrong_use_is_one_line_that_names_the_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)

    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("ottla: ")
    assert error.endswith("; see: ottla serve --help\n")
    assert error.count("\n") == 1


def test_help_ends_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])

    assert ended.value.code == 0
    assert "Examples:\n  ottla serve\n" in capsys.readouterr().out
