"""Loading a compiled module of another package without running the package's own `__init__`.

Some packages do there what costs a tenth of a broker's start and is not needed here, such as reading their own version
through `importlib.metadata`, which brings in the parser of e-mails. Decides nothing else.
"""

from __future__ import annotations

import importlib.util
from importlib.machinery import PathFinder
from types import ModuleType


def load_extension(package: str, name: str) -> ModuleType:
    """Return the module `name` of `package`. Raises `ImportError` when there is none, or it will not be loaded."""
    outer = PathFinder.find_spec(package)
    folders = outer.submodule_search_locations if outer is not None else None
    found = PathFinder.find_spec(f"{package}.{name}", folders) if folders else None
    if found is None or found.loader is None:
        raise ImportError(f"there is no {package}.{name}")
    extension = importlib.util.module_from_spec(found)
    found.loader.exec_module(extension)
    return extension
