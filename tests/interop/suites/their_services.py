"""A pytest plugin for kafka-python's suite, in its own process: what its fixtures import and its package has not.

Their `test.service` starts brokers; here it only stands for the one that runs already (`KAFKA_URI`). Their `test` has
no `__init__.py`, so that Python's own package of that name would be found instead.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType


class ExternalService:
    """A broker that somebody else starts and stops."""

    def __init__(self, host: str, port: int) -> None:
        self.address = f"{host}:{port}"


class SpawnedService:
    """A broker that the suite would start itself; here it never comes to that."""


def add_module(name: str) -> ModuleType:
    module = sys.modules[name] = ModuleType(name)
    return module


add_module("test").__path__ = [str(Path.cwd() / "test")]
vars(add_module("test.service")).update(ExternalService=ExternalService, SpawnedService=SpawnedService)
