"""`run_recoveries`: many logs checked at once, on a bounded number of threads.

Each log is one thread's alone, with open files of its own, so nothing here needs a lock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ottla.errors import KafkaError
from ottla.model import TopicPartition
from ottla.storage.log import PartitionLog

_log = logging.getLogger(__name__)


class Recovered:
    """The logs that are fit for use again, and why others are not."""

    __slots__ = ("failures", "logs")

    def __init__(self) -> None:
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.failures: dict[TopicPartition, KafkaError] = {}

    def describe(self) -> str:
        """Return what was repaired, in words."""
        cut = [log.cut_bytes for log in self.logs.values() if log.cut_bytes]
        return f"{sum(cut)} bytes cut from {len(cut)} of them, {len(self.failures)} cannot be used"


def run_recoveries(jobs: Sequence[tuple[TopicPartition, Callable[[], PartitionLog]]], threads: int) -> Recovered:
    """Run the jobs. A log that cannot be opened is noted and logged."""
    recovered = Recovered()
    with ThreadPoolExecutor(threads, thread_name_prefix="ottla-recovery") as pool:
        futures = [(partition, pool.submit(job)) for partition, job in jobs]
    for partition, future in futures:
        try:
            recovered.logs[partition] = future.result()
        except KafkaError as error:
            recovered.failures[partition] = error
            _log.error("%s", error)
    return recovered
