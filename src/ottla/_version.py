"""The version string, alone, so that nothing imports the package root to learn it."""

__version__ = "0.1.0"
