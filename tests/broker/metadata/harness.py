"""What the tests of this room stand on: a metadata store in memory, a controller on it, and Kafka's own directories."""

from __future__ import annotations

import gzip
import itertools
import json
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ottla.broker.metadata.controller import MetadataController
from ottla.broker.metadata.image import ListenerImage, TopicImage
from ottla.broker.metadata.records import MetadataRecord, encode_record
from ottla.broker.metadata.registration import BrokerIdentity, format_records
from ottla.broker.metadata.state import MetadataState
from ottla.config.broker_config import BrokerConfig
from ottla.engine import Shard, StateBatch, StateRecord, Ticket
from ottla.model import TopicId
from tests.storage.harness import ManualOffload

GOLDEN = Path(__file__).parents[2] / "golden" / "directories"
METADATA_DIRECTORY = "__cluster_metadata-0"
CASES = (
    "metadata",
    "older",
    "multi-dir",
    "two-nodes",
    "upgrade-levels-3.9-iv0",
    "upgrade-levels-4.0-iv3",
    "plain",
    "unclean",
    "compacted",
    "groups",
    "timestamps",
    "torn",
    "transactions",
)

NODE_ID = 1
DIRECTORY_ID = b"directory of one"
LISTENER = ListenerImage("PLAINTEXT", "localhost", 9092, 0)
IDENTITY = BrokerIdentity("a-cluster", NODE_ID, DIRECTORY_ID, b"incarnation of 1", [LISTENER])
LEVEL = 33


def new_ticket(base_offset: int, count: int) -> Ticket:
    """A ticket that is settled when the test says so."""
    return Ticket(ManualOffload(), base_offset, base_offset + count - 1, -1, 0, is_durable=False)


class MemoryStore:
    """A `MetadataStore` in memory. It counts one control record per epoch, as a KRaft log has it."""

    def __init__(self, records: Sequence[MetadataRecord] = ()) -> None:
        self.snapshot_values: list[bytes] = [encode_record(record, LEVEL) for record in records]
        self.batches: list[StateBatch] = []
        self.tickets: list[Ticket] = []
        self.snapshot_offset = 0
        self.next_offset = 0
        self.is_full = False
        self.leader_epoch = 0
        self.record_bytes_since_snapshot = 0
        self.kraft_version: bytes | None = None
        self.voters: bytes | None = None

    @property
    def high_watermark(self) -> int:
        return self.next_offset

    def has_room(self) -> bool:
        return not self.is_full

    def become_leader(self) -> int:
        self.leader_epoch += 1
        self.next_offset += 1
        return self.leader_epoch

    def load(self, shard: Shard) -> Iterator[StateBatch]:
        yield StateBatch(0, 0, [StateRecord(None, value) for value in self.snapshot_values])
        yield from (batch for batch in self.batches if batch.base_offset >= self.snapshot_offset)

    def append(self, shard: Shard, records: Sequence[StateRecord], epoch: int) -> Ticket:
        assert epoch == self.leader_epoch, "only the leader of this epoch appends"
        self.batches.append(StateBatch(self.next_offset, 0, list(records)))
        self.tickets.append(new_ticket(self.next_offset, len(records)))
        self.next_offset += len(records)
        self.record_bytes_since_snapshot += sum(len(record.value or b"") for record in records)
        return self.tickets[-1]

    def snapshot(self, shard: Shard, records: Iterator[StateRecord]) -> None:
        self.snapshot_values = [record.value for record in records if record.value is not None]
        self.snapshot_offset = self.next_offset
        self.record_bytes_since_snapshot = 0

    def values(self) -> list[bytes]:
        """Everything that was ever appended."""
        return [record.value for batch in self.batches for record in batch.records if record.value is not None]


class Changes:
    """A `TopicsListener` that remembers names."""

    def __init__(self) -> None:
        self.seen: list[tuple[list[str], list[str], list[str]]] = []

    def on_topics_changed(
        self, created: Sequence[TopicImage], deleted: Sequence[TopicImage], reconfigured: Sequence[TopicImage]
    ) -> None:
        self.seen.append(([t.name for t in created], [t.name for t in deleted], [t.name for t in reconfigured]))


def config(**settings: str) -> BrokerConfig:
    """A broker's configuration; dots of Kafka's keys are written as underscores."""
    return BrokerConfig.from_properties({name.replace("_", "."): value for name, value in settings.items()})


def counting_uuids() -> Callable[[], bytes]:
    numbers = itertools.count(1_000)
    return lambda: next(numbers).to_bytes(16, "big")


def start(store: MemoryStore | None = None, **settings: str) -> MetadataController:
    """Start a controller, on a newly formatted store where none is given."""
    store = MemoryStore(format_records()) if store is None else store
    controller = MetadataController(store, IDENTITY, config(**settings), random_uuid=counting_uuids())
    controller.load()
    controller.begin()
    controller.register(IDENTITY)
    return controller


def state_of(*records: MetadataRecord) -> MetadataState:
    """A state machine that has replayed these records."""
    state = MetadataState("a-cluster", NODE_ID)
    for record in records:
        state.replay(encode_record(record, LEVEL))
    return state


def topic_id(number: int) -> TopicId:
    return TopicId(number.to_bytes(16, "big"))


def expectation(case: str) -> Mapping[str, Any]:
    with gzip.open(GOLDEN / f"{case}.json.gz", "rt") as file:
        found: Mapping[str, Any] = json.load(file)
    return found


def unpack_metadata(case: str, target: Path) -> list[Path]:
    """Unpack the metadata logs of a case; returns their directories (one per node)."""
    with tarfile.open(GOLDEN / f"{case}.tar.gz") as archive:
        members = [member for member in archive.getmembers() if METADATA_DIRECTORY in member.name]
        archive.extractall(target, members, filter="fully_trusted")
    return sorted(target.glob(f"*/{METADATA_DIRECTORY}"))
