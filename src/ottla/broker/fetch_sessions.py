"""Incremental fetch sessions (KIP-227): what a consumer asked for last time, so that it need not say it again.

A session remembers a client's partitions, where it reads each, and what it was told about each. An incremental request
names only what changed; its answer names only the partitions that have news. Sessions live in a cache of limited slots;
a new session takes the slot of one that was not used for a while, or of a smaller one that had its time.

The rules, the epoch arithmetic and the order of checks are Kafka's. Which topic an id means is not decided here: an
entry carries both, the name None where the id was not known when the entry was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, final

from ottla.clock import Clock
from ottla.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from ottla.model import NO_OFFSET, TopicId

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
"""Session epoch of a request that lists everything and asks for a new session."""
FINAL_EPOCH: Final = -1
"""Session epoch of a request that lists everything and wants no session."""
LAST_EPOCH: Final = 2**31 - 1
MAX_SESSION_ID: Final = 2**31 - 1

PartitionKey = tuple[TopicId | str, int]
"""A partition as the client names it: topic id (from Fetch 13 on) or topic name, and partition."""


@final
class FetchEntry:
    """One partition of a fetch: what is asked, and in a session also what was answered last."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "max_bytes",
        "partition",
        "told_high_watermark",
        "told_log_start_offset",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str | None,
        topic_id: TopicId,
        partition: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.told_high_watermark = NO_OFFSET
        self.told_log_start_offset = NO_OFFSET

    def take_position_of(self, asked: FetchEntry) -> None:
        """Read on where `asked` says; what was told stays."""
        self.fetch_offset = asked.fetch_offset
        self.max_bytes = asked.max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch
        if asked.topic is not None:
            self.topic = asked.topic

    def has_news(self, *, high_watermark: int, log_start_offset: int, is_worth_telling: bool, is_error: bool) -> bool:
        """Whether an incremental answer must name this partition; takes note of what it then says.

        `is_worth_telling`: there are records, or the epochs diverge. An error is told every time, and so is the first
        answer after it.
        """
        has_news = is_worth_telling
        if self.told_high_watermark != high_watermark:
            self.told_high_watermark = high_watermark
            has_news = True
        if self.told_log_start_offset != log_start_offset:
            self.told_log_start_offset = log_start_offset
            has_news = True
        if is_error:
            self.told_high_watermark = NO_OFFSET
            has_news = True
        return has_news


class FetchSession:
    """One client's remembered partitions. The order is the order of reading; what had records goes to the end."""

    __slots__ = ("created", "entries", "epoch", "last_used", "session_id", "uses_topic_ids")

    def __init__(
        self, session_id: int, entries: dict[PartitionKey, FetchEntry], now: float, *, uses_topic_ids: bool
    ) -> None:
        self.session_id = session_id
        self.entries = entries
        self.uses_topic_ids = uses_topic_ids
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.created = now
        self.last_used = now

    def update(self, asked: Mapping[PartitionKey, FetchEntry], forgotten: Iterable[PartitionKey]) -> None:
        """Apply an incremental request: new and moved partitions, then those to forget."""
        for key, entry in asked.items():
            known = self.entries.get(key)
            if known is None:
                self.entries[key] = entry
            else:
                known.take_position_of(entry)
        for key in forgotten:
            self.entries.pop(key, None)

    def move_to_end(self, key: PartitionKey) -> None:
        """A partition that had records is read last next time, so that the others get their turn."""
        entry = self.entries.pop(key, None)
        if entry is not None:
            self.entries[key] = entry


def next_epoch(epoch: int) -> int:
    """The epoch after this one: it wraps to 1, since 0 asks for a new session."""
    return 1 if epoch == LAST_EPOCH else epoch + 1


class FetchContext:
    """One request seen through its session: what to read, and which answers to leave out."""

    __slots__ = ("_epoch", "_is_incremental", "entries", "session")

    def __init__(
        self, entries: Mapping[PartitionKey, FetchEntry], session: FetchSession | None, *, is_incremental: bool
    ) -> None:
        self.entries = entries
        self.session = session
        self._is_incremental = is_incremental
        self._epoch = FINAL_EPOCH if session is None else session.epoch

    @property
    def session_id(self) -> int:
        return NO_SESSION if self.session is None else self.session.session_id

    @property
    def is_overtaken(self) -> bool:
        """True when a later request of the session came while this one waited: what it is told now is its last word."""
        return self._is_incremental and self.session is not None and self.session.epoch != self._epoch

    def should_answer(
        self,
        key: PartitionKey,
        entry: FetchEntry,
        *,
        high_watermark: int,
        log_start_offset: int,
        size_bytes: int,
        is_error: bool,
        is_diverging: bool,
    ) -> bool:
        """Whether the answer names this partition. Call it once for each, in order of the answer."""
        session = self.session
        if session is None:
            return True
        has_news = entry.has_news(
            high_watermark=high_watermark,
            log_start_offset=log_start_offset,
            is_worth_telling=size_bytes > 0 or is_diverging,
            is_error=is_error,
        )
        if not self._is_incremental:
            return True
        if size_bytes > 0:
            session.move_to_end(key)
        return has_news


class FetchSessions:
    """The cache of sessions.

    `slots` is max.incremental.fetch.session.cache.slots, `eviction_seconds` comes from
    min.incremental.fetch.session.eviction.ms.
    """

    __slots__ = ("_clock", "_eviction_seconds", "_new_id", "_sessions", "_slots")

    def __init__(
        self, clock: Clock, new_id: Callable[[], int], *, slots: int = 1000, eviction_seconds: float = 120.0
    ) -> None:
        self._clock = clock
        self._new_id = new_id
        self._slots = slots
        self._eviction_seconds = eviction_seconds
        self._sessions: dict[int, FetchSession] = {}  # in order of last use

    def __len__(self) -> int:
        return len(self._sessions)

    def resume(
        self,
        session_id: int,
        session_epoch: int,
        asked: dict[PartitionKey, FetchEntry],
        forgotten: Sequence[PartitionKey] = (),
        *,
        uses_topic_ids: bool = False,
    ) -> FetchContext:
        """Return what this request means in its session.

        Raises `FetchSessionIdNotFound`, `InvalidFetchSessionEpoch` (the session does not advance) and
        `FetchSessionTopicIdError` when a session would change between names and ids.
        """
        if session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(session_id, None)
            if session_epoch == FINAL_EPOCH:
                return FetchContext(asked, None, is_incremental=False)
            return FetchContext(asked, self._maybe_create(asked, uses_topic_ids), is_incremental=False)
        session = self._sessions.get(session_id)
        if session is None:
            raise FetchSessionIdNotFound
        if session.epoch != session_epoch:
            raise InvalidFetchSessionEpoch
        if session.uses_topic_ids != uses_topic_ids:
            raise FetchSessionTopicIdError
        session.update(asked, forgotten)
        del self._sessions[session_id]
        if not session.entries:
            return FetchContext(asked, None, is_incremental=False)
        self._sessions[session_id] = session
        session.last_used = self._clock.monotonic()
        session.epoch = next_epoch(session.epoch)
        return FetchContext(session.entries, session, is_incremental=True)

    def _maybe_create(self, asked: dict[PartitionKey, FetchEntry], uses_topic_ids: bool) -> FetchSession | None:
        """A new session where there are partitions to remember and a slot to be had, else None."""
        now = self._clock.monotonic()
        if not asked or not self._make_room(len(asked), now):
            return None
        session_id = self._new_id()
        while session_id in self._sessions or not 0 < session_id <= MAX_SESSION_ID:
            session_id = self._new_id()
        session = FetchSession(session_id, asked, now, uses_topic_ids=uses_topic_ids)
        self._sessions[session_id] = session
        return session

    def _make_room(self, entry_count: int, now: float) -> bool:
        """Find a slot: a free one, that of a session unused for the eviction time, or that of a smaller, older one."""
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now - oldest.last_used > self._eviction_seconds:
            del self._sessions[oldest.session_id]
            return True
        smallest = min(self._sessions.values(), key=lambda session: len(session.entries))
        if now - smallest.created > self._eviction_seconds and len(smallest.entries) < entry_count:
            del self._sessions[smallest.session_id]
            return True
        return False
