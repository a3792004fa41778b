"""Groups and offsets cross over: Apache Kafka reads what we wrote to `__consumer_offsets`, and goes on from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.brokers import Broker, KafkaBroker, OttlaBroker
from tests.interop.groups.members import LIBRARIES, WAIT_SECONDS, MemberProcess, share, wait_until
from tests.interop.test_kafka_reads_our_files import complaints, dump

CONTROLLER = "localhost:9093"
PARTITIONS = 3
TOPIC = "t"
SETTINGS = (
    "group.initial.rebalance.delay.ms=0",
    "group.min.session.timeout.ms=500",
    "offsets.topic.num.partitions=4",
    f"num.partitions={PARTITIONS}",
)


@pytest.fixture
def start_member() -> Iterator[Callable[..., MemberProcess]]:
    """Start members; those that still run are killed in the end."""
    started: list[MemberProcess] = []

    def start(library: str, address: str, group: str, **said: str) -> MemberProcess:
        started.append(MemberProcess(library, address, group, TOPIC, **said))
        return started[-1]

    yield start
    for member in started:
        member.kill()


@pytest.fixture
def left(start_broker: Callable[..., Broker], start_member: Callable[..., MemberProcess]) -> Path:
    """The data folder of our broker: groups of three libraries that committed and left, one that died, offsets alone,
    a deleted group."""
    broker = start_broker(*SETTINGS)
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(30):
        producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(WAIT_SECONDS) == 0
    members = [start_member(library, broker.address, library) for library in LIBRARIES]
    members.append(start_member("confluent-kafka", broker.address, "static", instance_id="i"))
    for member in members:
        wait_until(lambda m=member: share([m], PARTITIONS), [member], "it has all partitions")  # type: ignore[misc]
        wait_until(lambda m=member: sum(m.committed.values()) == 30, [member], "it committed")  # type: ignore[misc]
    for member in members[:-1]:
        member.leave()
    admin = AdminClient({"bootstrap.servers": broker.address})
    for group, offset in (("simple", 7), ("deleted", 1)):
        consumer = Consumer({"bootstrap.servers": broker.address, "group.id": group})
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset, metadata="note")], asynchronous=False)
        consumer.close()
    admin.delete_consumer_groups(["deleted"])["deleted"].result()
    broker.stop()
    members[-1].kill()
    return broker.data


def test_dump_log_decodes_our_groups_and_offsets(left: Path) -> None:
    printed = ""
    for number in range(4):
        for path in sorted((left / f"__consumer_offsets-{number}").glob("*.log")):
            printed += dump("--offsets-decoder", "--deep-iteration", "--files", str(path))
    assert complaints(printed) == []
    for group in (*LIBRARIES, "static"):
        assert f'"type":"2","data":{{"group":"{group}"}}' in printed
        assert f'"type":"1","data":{{"group":"{group}","topic":"t","partition":0}}' in printed
    assert '"metadata":"note' in printed  # librdkafka sends the end of its string along
    assert '{"group":"deleted"}} payload: <DELETE>' in printed


class TakingOver(KafkaBroker):
    """Apache Kafka with its controller where our metadata log says that it is."""

    def command(self) -> list[str]:
        listeners = f"PLAINTEXT://{self.address},CONTROLLER://{CONTROLLER}"
        return [
            *super().command(),
            f"listeners={listeners}",
            f"advertised.listeners={listeners}",
            f"controller.quorum.bootstrap.servers={CONTROLLER}",
        ]


@pytest.fixture
def taken_over(left: Path) -> Iterator[KafkaBroker]:
    """Apache Kafka on the same folder."""
    broker = TakingOver(left.parent, *SETTINGS)
    assert broker.data == left
    broker.start()
    yield broker
    broker.stop()


def offsets_of(admin: AdminClient, group: str) -> dict[int, tuple[int, str]]:
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    found = future.result().topic_partitions
    return {row.partition: (row.offset, row.metadata or "") for row in found}


def test_kafka_lists_our_groups_with_their_offsets(
    left: Path, taken_over: KafkaBroker, start_member: Callable[..., MemberProcess]
) -> None:
    admin = AdminClient({"bootstrap.servers": taken_over.address})
    states: dict[str, str] = {}

    def is_loaded() -> bool:
        listed = admin.list_consumer_groups().result().valid
        states.update({group.group_id: group.state.name for group in listed})
        return len(states) >= len(LIBRARIES) + 2

    wait_until(is_loaded, [], f"Kafka has loaded the groups: {states}")
    assert states.pop("static") in ("STABLE", "EMPTY")  # its session of three seconds began with Kafka's start
    assert states == {**dict.fromkeys(LIBRARIES, "EMPTY"), "simple": "EMPTY"}
    for group in (*LIBRARIES, "static"):
        assert {partition: offset for partition, (offset, _) in offsets_of(admin, group).items()} == dict.fromkeys(
            range(PARTITIONS), 10
        )
    assert offsets_of(admin, "simple") == {0: (7, "note")}

    member = start_member("confluent-kafka", taken_over.address, "confluent-kafka")
    wait_until(lambda: share([member], PARTITIONS), [member], "it has all partitions")
    member.leave()
    assert member.records == []
    taken_over.stop()

    ours = OttlaBroker(left.parent, *SETTINGS)
    ours.start()
    try:
        back = AdminClient({"bootstrap.servers": ours.address})
        assert offsets_of(back, "simple") == {0: (7, "note")}
        groups = {group.group_id for group in back.list_consumer_groups().result().valid}
        assert groups == {*LIBRARIES, "static", "simple"}
    finally:
        ours.stop()
