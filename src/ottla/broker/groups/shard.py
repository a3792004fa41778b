"""`GroupShard`: the groups and offsets of one partition of `__consumer_offsets`.

Decide, append, replay: whoever decides hands records to `commit`, which appends them as one batch and replays them at
once, so that the next decision sees them; answers wait in `when_durable`. Loading is the same replay, of the newest
record of each key, as a compacted log would give them. What a record does is registered by the kind of group that it
belongs to. Records that nobody here knows stay in the log and are left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ottla.broker.groups.group import Group
from ottla.broker.groups.offsets import CommittedOffsets
from ottla.engine import Shard, StateRecord, StateStore, Ticket
from ottla.errors import KafkaError, KafkaStorageError, NotCoordinator
from ottla.protocol.internal.framing import (
    CoordinatorRecord,
    decode_group_record,
    encode_coordinator_key,
    encode_versioned,
)
from ottla.protocol.internal.group_records import OffsetCommitKey
from ottla.protocol.primitives import DecodeError
from ottla.protocol.schema import Message

_log = logging.getLogger(__name__)

Replay = Callable[[CoordinatorRecord], None]
Done = Callable[[KafkaError | None], None]


class GroupShard:
    """State that lives in one partition. `groups` and `offsets` change by replay alone, but for what is not kept."""

    __slots__ = ("_lead", "_loaded", "_replays", "_store", "_ticket", "groups", "offsets", "shard")

    def __init__(self, shard: Shard, store: StateStore, lead: Callable[[Shard], int]) -> None:
        """`lead` returns the partition's leader epoch, recorded before the first append."""
        self.shard = shard
        self.groups: dict[str, Group] = {}
        self.offsets = CommittedOffsets()
        self._store = store
        self._lead = lead
        self._ticket: Ticket | None = None
        self._replays: dict[type[Message], Replay] = {}
        self._loaded: list[Callable[[], None]] = []

    # -- kinds of groups plug in here -----------------------------------------------------------------------------

    def on_replay(self, key: type[Message], replay: Replay) -> None:
        """Have `replay` called with every record of this key's type, stored or new. Its value is None to remove."""
        self._replays[key] = replay

    def on_loaded(self, callback: Callable[[], None]) -> None:
        """Have `callback` called once all records are replayed: time to start timers."""
        self._loaded.append(callback)

    # -- decide, append, replay -----------------------------------------------------------------------------------

    def commit(self, records: Sequence[CoordinatorRecord]) -> None:
        """Append records as one batch and replay them. Raises `KafkaStorageError`, and then nothing has changed."""
        if records:
            stored = [encode_group_record(record) for record in records]
            self._ticket = self._store.append(self.shard, stored, self._lead(self.shard))
            for record in records:
                self._replay(record)

    def when_durable(self, done: Done) -> None:
        """Call `done` once all that was committed so far is durable, now when it is so, or with what went wrong."""
        ticket = self._ticket
        if ticket is not None and ticket.is_durable:
            ticket = self._ticket = None
        if ticket is None:
            done(None)
        else:
            ticket.on_done(lambda: done(coordinator_error(ticket.error)))

    # -- load -----------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Replay what is stored: records of groups first, then offsets. Raises `KafkaStorageError`."""
        newest: dict[bytes, bytes | None] = {}
        for batch in self._store.load(self.shard):
            for record in batch.records:
                if record.key is not None:
                    newest.pop(record.key, None)  # the order is that of the newest records
                    newest[record.key] = record.value
        offsets = []
        for key, value in newest.items():
            stored = self._decode(key, value) if value is not None else None
            if stored is None:
                continue
            if isinstance(stored.key, OffsetCommitKey):
                offsets.append(stored)
            else:
                self._replay(stored)
        for stored in offsets:
            self._replay(stored)
        for callback in self._loaded:
            callback()

    def close(self) -> None:
        """Send away who waits, and cancel all timers."""
        for group in list(self.groups.values()):
            group.close()
        self.groups.clear()

    def _decode(self, key: bytes, value: bytes) -> CoordinatorRecord | None:
        try:
            record = decode_group_record(key, value)
        except DecodeError as error:
            _log.warning("a record cannot be read and is left alone", extra={"shard": self.shard, "error": error})
            return None
        return record if isinstance(record, CoordinatorRecord) else None

    def _replay(self, record: CoordinatorRecord) -> None:
        replay = self._replays.get(type(record.key))
        if replay is not None:
            replay(record)


def encode_group_record(record: CoordinatorRecord) -> StateRecord:
    """Return a record of `__consumer_offsets` as it is stored."""
    value = None if record.value is None else encode_versioned(record.value, record.version)
    return StateRecord(encode_coordinator_key(record.key), value)


def tombstone(key: Message) -> CoordinatorRecord:
    """Return the record that removes a key."""
    return CoordinatorRecord(key, None, -1)


def coordinator_error(error: KafkaError | None) -> KafkaError | None:
    """Return what clients are told of an append that failed: with a damaged log this is no coordinator any more."""
    return NotCoordinator() if isinstance(error, KafkaStorageError) else error
