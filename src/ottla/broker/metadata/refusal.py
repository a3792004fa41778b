"""When a directory's metadata must not be opened by this version."""

from __future__ import annotations


class MetadataRefused(Exception):
    """The metadata holds what we cannot keep: a newer feature level, an unknown record, or a contradiction.

    Raised while loading, before anything was written. The message is for the person who started the broker.
    """
