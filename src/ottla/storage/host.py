"""`LogHost`: what all logs of a manager share."""

from __future__ import annotations

from collections.abc import Callable

from ottla.clock import Clock
from ottla.engine import Offload
from ottla.model import TopicPartition
from ottla.storage.files import FileSystem
from ottla.storage.flush_work import Flushable
from ottla.storage.open_files import OpenFiles


class LogHost:
    """Files, time, the way off the loop, and who wants to hear of progress."""

    __slots__ = ("clock", "filesystem", "offload", "on_advance", "open_files", "schedule_flush", "syncs_appends")

    def __init__(
        self,
        *,
        clock: Clock,
        filesystem: FileSystem,
        offload: Offload,
        open_files: OpenFiles,
        schedule_flush: Callable[[Flushable], None],
        syncs_appends: bool,
    ) -> None:
        self.clock = clock
        self.filesystem = filesystem
        self.offload = offload
        self.open_files = open_files
        self.schedule_flush = schedule_flush
        self.syncs_appends = syncs_appends
        self.on_advance: Callable[[TopicPartition], None] | None = None
