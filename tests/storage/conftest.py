"""Files that abandoned logs hold are closed after each module."""

from tests.abandoned import close_abandoned_files

__all__ = ["close_abandoned_files"]
