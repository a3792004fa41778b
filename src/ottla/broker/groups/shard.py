"""`GroupShard`: the groups and offsets of one partition of `__consumer_offsets`.

Decide, append, replay: whoever decides hands records to `commit`, which appends them as one batch and replays them at
once, so that the next decision sees them; answers wait in `when_durable`. Loading is the same replay, of the newest
record of each key, as a compacted log would give them. What a record does is registered by the kind of group that it
belongs to. Records of types that nobody here knows stay in the log and are left alone; a group that has only such
records is a `ForeignGroup`, with its offsets. A record of a known type that cannot be read ends the load, as in Kafka:
without it a group would go on from an older offset, or from none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ottla.broker.groups.foreign import (
    GROUP_AT,
    SERVED_TYPES,
    TYPE_BYTES,
    ForeignGroup,
    StoredRecord,
    group_id_in,
    record_type,
)
from ottla.broker.groups.group import Group
from ottla.broker.groups.offsets import CommittedOffsets
from ottla.engine import Shard, StateBatch, StateRecord, StateStore, Ticket
from ottla.errors import KafkaError, KafkaStorageError, NotCoordinator
from ottla.model import NO_PRODUCER_ID, TopicPartition
from ottla.protocol.internal.framing import (
    CoordinatorRecord,
    RawCoordinatorRecord,
    decode_group_record,
    encode_coordinator_key,
    encode_versioned,
)
from ottla.protocol.internal.group_records import OffsetCommitKey
from ottla.protocol.internal.stored_offset import read_stored_offset
from ottla.protocol.primitives import DecodeError
from ottla.protocol.schema import Message

_log = logging.getLogger(__name__)

OFFSET_TYPE: Final = b"\x01"
GROUP_TYPES: Final = (b"\x02", b"\x03", b"\x0b", b"\x11")
"""Keys of classic, consumer, share and streams groups as a whole."""

Replay = Callable[[CoordinatorRecord], None]
Done = Callable[[KafkaError | None], None]


class GroupShard:
    """State that lives in one partition. `groups` and `offsets` change by replay alone, but for what is not kept."""

    __slots__ = (
        "_lead",
        "_loaded",
        "_make_simple_group",
        "_replays",
        "_store",
        "_ticket",
        "groups",
        "offsets",
        "shard",
    )

    def __init__(
        self,
        shard: Shard,
        store: StateStore,
        *,
        lead: Callable[[Shard], int],
        make_simple_group: Callable[[str], Group],
    ) -> None:
        """`lead` returns the partition's leader epoch, recorded before the first append.

        `make_simple_group` makes the group of somebody who commits offsets and is in none.
        """
        self.shard = shard
        self.groups: dict[str, Group] = {}
        self.offsets = CommittedOffsets()
        self._store = store
        self._lead = lead
        self._make_simple_group = make_simple_group
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
            self._ticket = ticket = self._store.append(self.shard, stored, self._lead(self.shard))
            for record_offset, record in enumerate(records, ticket.base_offset):
                self._replay(record, record_offset)

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
        """Replay what is stored: records of groups first, then offsets.

        Raises `KafkaStorageError` for what cannot be read; the shard is not to be used then, and has no timers.
        """
        stored = NewestRecords()
        try:
            for batch in self._store.load(self.shard):
                stored.take(batch)
            self._replay_all(stored.committed, NO_PRODUCER_ID)
            for producer_id, pending in stored.pending.items():
                self._replay_all(pending, producer_id)
        except DecodeError as error:
            raise KafkaStorageError(f"{TopicPartition(*self.shard)} cannot be loaded: {error}") from error
        for group_id in stored.committing_groups:
            if group_id not in self.groups:
                self.groups[group_id] = self._make_simple_group(group_id)
        for callback in self._loaded:
            callback()

    def _replay_all(self, stored: RecordsByKey, producer_id: int) -> None:
        offsets = []
        foreign = ForeignRecords()
        for key, (record_offset, value) in stored.items():
            if value is None:
                continue
            if key[1:TYPE_BYTES] == OFFSET_TYPE:
                offsets.append((key, record_offset, value))
                continue
            record = self._decode(key, value, record_offset)
            if isinstance(record, CoordinatorRecord) and record_type(key) in SERVED_TYPES:
                self._replay(record, record_offset, producer_id)
            else:
                foreign.take(key, record)
        for group in foreign.groups():
            self.groups.setdefault(group.group_id, group)
        for key, record_offset, value in offsets:
            usual = read_stored_offset(key, value)
            if usual is not None:
                self.offsets.replay_stored(usual, record_offset=record_offset, producer_id=producer_id)
                if usual[0] not in self.groups:
                    self.groups[usual[0]] = self._make_simple_group(usual[0])
            elif isinstance(record := self._decode(key, value, record_offset), CoordinatorRecord):
                self._replay(record, record_offset, producer_id)

    def close(self) -> None:
        """Send away who waits, and cancel all timers."""
        for group in list(self.groups.values()):
            group.close()
        self.groups.clear()

    def _decode(self, key: bytes, value: bytes, record_offset: int) -> StoredRecord | None:
        """Return a stored record, None for one that cannot be read and that nothing here depends on.

        Raises `DecodeError` for one of a served type.
        """
        try:
            record = decode_group_record(key, value)
            if record_type(key) in SERVED_TYPES and isinstance(record, RawCoordinatorRecord):
                raise DecodeError(f"a version of type {record.record_type} that is not known here")
        except DecodeError as error:
            if record_type(key) not in SERVED_TYPES:
                _log.warning("a record cannot be read and is left alone", extra={"shard": self.shard, "error": error})
                return None
            raise DecodeError(
                f"the record of offset {record_offset} cannot be read: {error} (a newer broker's? `ottla dump-log` "
                "shows what stands there)"
            ) from error
        return record

    def _replay(self, record: CoordinatorRecord, record_offset: int, producer_id: int = NO_PRODUCER_ID) -> None:
        key = record.key
        if isinstance(key, OffsetCommitKey):
            self.offsets.replay(record, record_offset=record_offset, producer_id=producer_id)
            if record.value is not None and key.group not in self.groups:
                self.groups[key.group] = self._make_simple_group(key.group)
            return
        replay = self._replays.get(type(key))
        if replay is not None:
            replay(record)


class ForeignRecords:
    """Records of groups of kinds that are not served, by group."""

    __slots__ = ("_records", "_types")

    def __init__(self) -> None:
        self._types: dict[str, set[int]] = {}
        self._records: dict[str, list[StoredRecord]] = {}

    def take(self, key: bytes, record: StoredRecord | None) -> None:
        """Note a record, None where it cannot be decoded; one that does not even tell its group is left alone."""
        group_id = group_id_in(key)
        if group_id is not None:
            self._types.setdefault(group_id, set()).add(record_type(key))
            records = self._records.setdefault(group_id, [])
            if record is not None:
                records.append(record)

    def groups(self) -> Iterator[ForeignGroup]:
        """The groups that these records are of."""
        for group_id, types in self._types.items():
            yield ForeignGroup(group_id, types, self._records[group_id])


RecordsByKey = dict[bytes, tuple[int, bytes | None]]
"""Offset and value of the newest record of each key, in the order of the log."""


class NewestRecords:
    """What is left of a log when of each key only the newest record counts, and of transactions only those committed.

    Much of a log that was not compacted yet is out of date; only what is left is decoded.
    """

    __slots__ = ("_committing", "committed", "pending")

    def __init__(self) -> None:
        self._committing: dict[bytes, None] = {}
        self.committed: RecordsByKey = {}
        self.pending: dict[int, RecordsByKey] = {}
        """Records of transactions that have not ended, by producer id."""

    def take(self, batch: StateBatch) -> None:
        """Go on with the next batch of the log. Raises `DecodeError` for a record without a key."""
        if batch.is_commit is not None:
            ended = self.pending.pop(batch.producer_id, {})
            if batch.is_commit:
                for key, (record_offset, value) in ended.items():
                    self._take_ended(key, record_offset, value)
            return
        place = self.committed
        if batch.producer_id != NO_PRODUCER_ID:
            place = self.pending.setdefault(batch.producer_id, {})
        for record_offset, (stored_key, value) in enumerate(batch.records, batch.base_offset):
            if stored_key is None:
                raise DecodeError(f"the record of offset {record_offset} has no key")
            place.pop(stored_key, None)  # so that the order is that of the newest records
            place[stored_key] = (record_offset, value)
            self._note_group(stored_key, is_removal=value is None)

    @property
    def committing_groups(self) -> list[str]:
        """Groups that offsets were committed for and that were not deleted since, though the offsets may have been."""
        return [group.decode(errors="replace") for group in self._committing]

    def _note_group(self, key: bytes, *, is_removal: bool) -> None:
        """All keys begin with a type, in its second byte, and the group: the size in two bytes, then the id."""
        group = key[GROUP_AT : GROUP_AT + int.from_bytes(key[TYPE_BYTES:GROUP_AT], "big")]
        if key[1:TYPE_BYTES] == OFFSET_TYPE:
            if not is_removal:
                self._committing[group] = None
        elif is_removal and key[1:TYPE_BYTES] in GROUP_TYPES:
            self._committing.pop(group, None)

    def _take_ended(self, key: bytes, record_offset: int, value: bytes | None) -> None:
        """A plain commit that came after a transactional one, though before that transaction's end, counts."""
        if key not in self.committed or self.committed[key][0] < record_offset:
            self.committed.pop(key, None)
            self.committed[key] = (record_offset, value)


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
