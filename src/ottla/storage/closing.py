"""How a log ends: its indexes are written and it is flushed, on threads as long as there is time, then here.

What cannot be written fails the log, and is checked by the next start. When that is done, and what else is written
then, `manager` decides.
"""

from __future__ import annotations

from ottla.errors import KafkaStorageError
from ottla.storage.flush_work import Flushable
from ottla.storage.log import PartitionLog


def prepare_close(log: PartitionLog) -> None:
    """Have what is not flushed yet flushed on a thread."""
    try:
        log.prepare_close()
    except OSError as error:
        log.fail(KafkaStorageError(f"{log.partition} cannot be closed: {error}"))


def flush_now(log: Flushable, synced: set[str]) -> bool:
    """Flush a log on this thread; False when that failed or had failed before.

    `synced` are the directories that need no sync any more; those that got one are added.
    """
    if log.failure is None and log.has_unflushed:
        try:
            work = log.begin_flush()
        except OSError as error:
            log.fail_flush(error)
            return False
        try:
            work.run(synced)
        except OSError as error:
            log.end_flush(work, error)
        else:
            log.end_flush(work, None)
    return log.failure is None and not log.has_unflushed


def close_log(log: PartitionLog) -> bool:
    """Close a log that is flushed; False when not all of it could be written."""
    try:
        log.close()
    except OSError as error:
        log.fail(KafkaStorageError(f"{log.partition} cannot be closed: {error}"))
    return log.failure is None
