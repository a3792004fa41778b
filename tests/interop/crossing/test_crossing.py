"""One directory, two brokers by turns: what Apache Kafka left Ottla serves exactly, and the other way round."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.interop.brokers import BrokerProcess
from tests.interop.crossing.brokers import (
    CLEANS,
    DOES_NOT_CLEAN,
    CrossedKafka,
    CrossedOttla,
    copy,
    find_quiet_port,
    is_cleaned,
    kill,
)
from tests.interop.crossing.seen import Seen, count_records, differences, look
from tests.interop.crossing.work import (
    KEYS,
    ROLLS,
    START_MS,
    STEP_MS,
    TOPICS,
    Writer,
    admin_of,
    administer,
    commit_alone,
    create_topics,
    delete_before,
    describe_rules,
    open_transaction,
    read_in_group,
    set_config,
    set_rule,
    wait_until,
    write_codecs,
    write_plain,
    write_transactions,
)
from tests.interop.test_kafka_reads_our_files import complaints, dump

B = TypeVar("B", bound=BrokerProcess)
Start = Callable[[B], B]

GROUPS = ("classic", "new", "alone")
TIMES_MS = tuple(START_MS + STEP_MS * at_s for at_s in (-1, 0, 3, 8, 12, 10_000))
NOT_WRITTEN_YET = "Could not find offset index file"
"""An active segment's indexes are in memory until it is rolled or closed."""
COMPACTED = ("compacted-0", "both-0")


@pytest.fixture
def start() -> Iterator[Start[BrokerProcess]]:
    """Start brokers; those that still run are stopped in the end."""
    started: list[BrokerProcess] = []

    def begin(broker: B) -> B:
        started.append(broker)
        broker.start()
        return broker

    yield begin
    for broker in started:
        broker.stop()


def test_from_kafka_to_ottla_and_back(tmp_path: Path, start: Start[BrokerProcess]) -> None:
    """A stopped Kafka, a killed one with an open transaction, and what Ottla makes of that. One test, as starts of
    Kafka are dear."""
    folder, port = tmp_path / "kafka", find_quiet_port()
    kafka = CrossedKafka(folder, port, CLEANS)
    start(kafka)
    use(kafka, write_transactions)
    set_rule(kafka.address)
    wait_until(lambda: is_cleaned(folder, *COMPACTED, "txn-compacted-0"), "the cleaner has nothing to do")
    assert count_records(kafka.address, "compacted") < 6 * (KEYS + 1)
    rules, stopped_kafka = describe_rules(kafka.address), look_at(kafka)
    kafka.stop()
    stopped = copy(folder, tmp_path / "stopped")
    kafka.settings = (DOES_NOT_CLEAN,)
    start(kafka)
    use_again(kafka)
    killed_kafka = look_at(kafka)
    kill(kafka)
    killed = copy(folder, tmp_path / "killed")

    ottla = CrossedOttla(stopped, None)
    start(ottla)
    assert list(differences(stopped_kafka, look_at(ottla))) == []
    ottla.stop()

    ottla = CrossedOttla(killed, None)
    start(ottla)
    assert list(differences(killed_kafka, look_at(ottla))) == []
    ottla.stop()
    ottla = CrossedOttla(killed, None, CLEANS)
    start(ottla)
    work_on(ottla, killed)
    left = look_at(ottla)
    ottla.stop()

    again = CrossedKafka(killed, port, DOES_NOT_CLEAN)
    copy(killed, tmp_path / "left")
    assert snapshots_in(killed) - snapshots_in(folder), "Ottla was to write some, too"
    start(again)
    assert list(differences(left, look_at(again))) == []
    assert describe_rules(again.address) == rules
    assert again.warnings == []
    again.stop()
    assert len(left.topics["compacted"].partitions[0].batches) < 14
    assert left.topics["trimmed"].partitions[0].log_start_offset > 40
    assert left.offsets["alone"]["codecs", 0][0] == 19
    check_by_dump_log(tmp_path / "left")


def test_kafka_goes_on_where_ottla_was_killed(tmp_path: Path, start: Start[BrokerProcess]) -> None:
    """A directory that only Ottla wrote, compacted and trimmed, and did not close."""
    port = find_quiet_port()
    ottla = CrossedOttla(tmp_path, port, CLEANS)
    start(ottla)
    use(ottla)
    work_on(ottla, tmp_path)
    left = look_at(ottla)
    kill(ottla)

    kafka = CrossedKafka(tmp_path, port, DOES_NOT_CLEAN)
    start(kafka)
    with pytest.raises(AssertionError, match="in use by another broker"):
        CrossedOttla(tmp_path, None).start()
    assert list(differences(left, look_at(kafka))) == []
    assert [line for line in kafka.warnings if NOT_WRITTEN_YET not in line] == []


def snapshots_in(folder: Path) -> set[str]:
    found = {path.name for path in folder.glob("*/__cluster_metadata-0/*.checkpoint")}
    assert len(found) > 1, "no more than the first one"
    return found


def look_at(broker: BrokerProcess) -> Seen:
    return look(broker.address, GROUPS, TIMES_MS)


def use(broker: BrokerProcess, *more: Callable[[str, int, int], None]) -> None:
    """Fill a new broker."""
    address = broker.address
    create_topics(address, TOPICS)
    write_codecs(address, 0)
    write_plain(address, 0, 6)
    for write in more:
        write(address, 0, 6)
    read_in_group(address, "classic", "classic")
    read_in_group(address, "new", "consumer")
    commit_alone(address, "alone", 17)
    administer(address, asyncio.run)


def use_again(broker: BrokerProcess) -> None:
    """Append, with another epoch, and leave a transaction open."""
    address = broker.address
    write_codecs(address, 6)
    write_plain(address, 6, 3)
    write_transactions(address, 6, 3)
    commit_alone(address, "alone", 18)
    open_transaction(address, 9)


def work_on(broker: BrokerProcess, folder: Path) -> None:
    """Append, compact, let records go by age, size and request, commit, create, delete, configure."""
    address, now_s = broker.address, (int(time.time() * 1000) - START_MS) // STEP_MS
    write_codecs(address, 10)
    write_plain(address, 10, 4)
    read_in_group(address, "classic", "classic")
    read_in_group(address, "new", "consumer")
    commit_alone(address, "alone", 19)
    set_config(address, "aged", "retention.ms", "60000")
    set_config(address, "trimmed", "retention.bytes", "1")
    set_config(address, "codecs", "compression.type", "zstd")
    delete_before(address, "several", 12)
    create_topics(address, {"ours": (2, {"min.insync.replicas": "1", **ROLLS})})
    admin = admin_of(address)
    admin.delete_topics(["empty"])["empty"].result(30)
    Writer(address, **{"enable.idempotence": True}).send("ours", 20, [("a", "b"), ("c", None)], 1)
    wait_until(lambda: count_records(address, "aged") == 0, "what is old is gone")
    Writer(address).send("aged", now_s, [("young", "1")])
    wait_until(lambda: is_cleaned(folder, *COMPACTED), "the cleaner has nothing to do")


def check_by_dump_log(folder: Path) -> None:
    """Have Kafka's dump tool look at every file that it knows."""
    partitions = [path for path in folder.glob("*/*-[0-9]") if not path.name.startswith("__")]
    logs = [path for one in partitions for path in sorted(one.glob("*.log"))]
    indexes = [path for one in partitions for kind in ("index", "timeindex") for path in sorted(one.glob(f"*.{kind}"))]
    offsets = folder.glob("*/__consumer_offsets-*/*.log")
    metadata = [path for kind in ("log", "checkpoint") for path in folder.glob(f"*/__cluster_metadata-0/*.{kind}")]
    for decoder, files in (
        (["--deep-iteration"], [*logs, *indexes]),
        (["--index-sanity-check", "--offsets-decoder"], [*indexes, *offsets]),
        (["--cluster-metadata-decoder"], metadata),
    ):
        printed = dump(*decoder, "--files", ",".join(map(str, files)))
        assert complaints(printed) == [], decoder
        assert all(path.name in printed for path in files)
