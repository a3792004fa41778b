"""What an error about one partition means for the reading of it: again at once, later, from elsewhere, or not at all.

Those that fetch and those that look for positions both come here. An error reaches the application when trying again
cannot help, or has not helped for long.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.client.cluster import Cluster
from ottla.client.fetch_buffer import FetchBuffer
from ottla.client.offset_reset import OffsetReset
from ottla.client.retry import Reaction, reaction_to
from ottla.client.subscription import PartitionState
from ottla.errors import KafkaError, OffsetOutOfRange

MAX_FAILURES: Final = 10
"""After so many failures of one partition in a row, the application hears of it."""


class FetchErrors:
    """Takes the errors of one consumer's partitions."""

    def __init__(self, cluster: Cluster, reset: OffsetReset, buffer: FetchBuffer) -> None:
        self._cluster = cluster
        self._reset = reset
        self._buffer = buffer

    def take(self, state: PartitionState, error: KafkaError, *, has_moved: bool = False) -> None:
        """Try again: at once where the leader is known, else later; or go where the settings say."""
        was_at_follower = state.forget_replica()
        reset = self._reset.timestamp_ms()
        if has_moved:
            return
        if isinstance(error, OffsetOutOfRange) and (was_at_follower or not state.is_drained):
            # the leader knows better; and what was fetched comes before what is missing
            state.retry_at = self._retry_at(1)
        elif isinstance(error, OffsetOutOfRange) and reset is not None:
            state.seek_to_time(reset)
        else:
            if reaction_to(error) is Reaction.REFRESH:
                self._cluster.refresh_soon()
            self.fail(state, error)

    def fail(self, state: PartitionState, error: KafkaError) -> None:
        """Try a partition again later; tell the application when that cannot help or did not for long.

        Long is as many failures as `MAX_FAILURES`, or as long as a call may take: a broker that answers nothing fails
        once in `request_timeout_ms`.
        """
        now = asyncio.get_running_loop().time()
        if state.failures == 0:
            state.failing_since = now
        state.failures += 1
        state.retry_at = self._retry_at(state.failures)
        is_long = now - state.failing_since >= self._cluster.settings.api_timeout_ms / 1000
        if reaction_to(error) is Reaction.GIVE_UP or is_long or state.failures % MAX_FAILURES == 0:
            state.failing_since = now
            self._buffer.add_failure(state, error)

    def _retry_at(self, failures: int) -> float:
        return asyncio.get_running_loop().time() + self._cluster.retry_delay_seconds(failures)
