"""What the compiler that half of the builds go through must not be given."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HARMLESS = {"len", "max", "min", "set"}
"""Functions that may be called twice."""


def compiled_files(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return what `setup.py` has compiled, without building anything."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("OTTLA_PURE", "1")
    monkeypatch.setattr("setuptools.setup", lambda **_: None)
    return [ROOT / source for source in runpy.run_path("setup.py")["compiled_sources"]()]


def calls_in_slices(tree: ast.AST) -> list[str]:
    """Return the bounds of slices that call something."""
    bounds = [
        bound
        for node in ast.walk(tree)
        if isinstance(node, ast.Slice)
        for bound in (node.lower, node.upper, node.step)
        if bound is not None
    ]
    return [
        ast.unparse(bound)
        for bound in bounds
        for call in ast.walk(bound)
        if isinstance(call, ast.NamedExpr | ast.Await)
        or (isinstance(call, ast.Call) and not (isinstance(call.func, ast.Name) and call.func.id in HARMLESS))
    ]


def test_no_bound_of_a_slice_does_anything_in_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """mypyc (seen in 2.4.1) runs them twice: a short write was followed by its rest, twice."""
    files = compiled_files(monkeypatch)
    assert len(files) > 60
    found = {str(file.relative_to(ROOT)): calls_in_slices(ast.parse(file.read_text())) for file in files}
    assert {file: calls for file, calls in found.items() if calls} == {}


def test_a_call_in_a_bound_is_found() -> None:
    assert calls_in_slices(ast.parse("a = b[os.write(c, b) :]")) == ["os.write(c, b)"]
    assert calls_in_slices(ast.parse("a = b[: len(c) - f(x)] + d[(e := 1) :]")) == ["len(c) - f(x)", "(e := 1)"]
    assert calls_in_slices(ast.parse("a = b[max(c, 0) : len(b)]")) == []
