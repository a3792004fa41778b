"""What a broker that serves its data read-only says to whoever wants it changed.

POLICY_VIOLATION is final for every client, where KAFKA_STORAGE_ERROR or NOT_LEADER_OR_FOLLOWER would have them try
again for ever, and unlike an authorization error it reaches people with these words wherever an answer has room for
some. What is only about the present is allowed all the same and kept in memory: members of groups, producer ids, levels
of loggers.
"""

from __future__ import annotations

from ottla.errors import PolicyViolation


def refuse_change() -> PolicyViolation:
    """Return the error that is said."""
    return PolicyViolation("this broker serves its data read-only: nothing is written")
