"""The controller: every change is appended, replayed, announced, and there again after a restart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.broker.metadata.alter_client_quotas import QuotaAlteration, decide_alter_client_quotas
from ottla.broker.metadata.alter_configs import ConfigAlteration
from ottla.broker.metadata.alter_scram_users import (
    CredentialDeletion,
    CredentialUpsertion,
    decide_alter_scram_users,
)
from ottla.broker.metadata.controller import METADATA_SHARD, MetadataController
from ottla.broker.metadata.create_partitions import GrownTopic
from ottla.broker.metadata.create_topics import CreatedTopic, NewTopic
from ottla.broker.metadata.delete_topics import TopicReference
from ottla.broker.metadata.features import FORMAT_LEVELS
from ottla.broker.metadata.records import BeginTransactionRecord, TopicRecord, encode_record
from ottla.broker.metadata.refusal import MetadataRefused
from ottla.broker.metadata.registration import format_records
from ottla.broker.metadata.state import MetadataState
from ottla.broker.metadata.update_features import FeatureUpdate, decide_update_features
from ottla.config.resource_type import ResourceType
from ottla.engine import Shard, StateRecord, Ticket
from ottla.errors import InvalidTopicException, KafkaError, KafkaStorageError, PolicyViolation
from ottla.model import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTION_TOPIC, TopicId
from tests.broker.metadata.harness import (
    DIRECTORY_ID,
    IDENTITY,
    LEVEL,
    NODE_ID,
    Changes,
    MemoryStore,
    config,
    counting_uuids,
    start,
    topic_id,
)
from tests.turns import finish

PRODUCER_IDS_TYPE, FEATURE_TYPE, REGISTER_TYPE = 15, 12, 0


def snapshot_of(controller: MetadataController) -> list[bytes]:
    """The whole state, as bytes that can be compared."""
    view = controller.view
    assert isinstance(view, MetadataState)
    return list(view.snapshot_records())


def test_a_new_cluster_gets_its_levels_and_the_pinned_min_insync_replicas() -> None:
    controller = start()
    assert dict(controller.view.features) == FORMAT_LEVELS
    assert controller.view.configs(ResourceType.BROKER, "") == {"min.insync.replicas": "1"}


def test_the_broker_is_registered_unfenced_at_the_epoch_of_its_records_offset() -> None:
    store = MemoryStore(format_records())
    controller = start(store)
    broker = controller.view.broker(NODE_ID)
    assert broker is not None
    assert (broker.is_fenced, broker.incarnation_id, broker.log_dirs) == (
        False,
        IDENTITY.incarnation_id,
        [DIRECTORY_ID],
    )
    (offset,) = [batch.base_offset for batch in store.batches if (batch.records[0].value or b"")[1] == REGISTER_TYPE]
    assert broker.broker_epoch == offset == controller.broker_epoch


def test_a_change_is_seen_at_once_and_answered_when_durable() -> None:
    store = MemoryStore(format_records())
    controller = start(store)
    committed = controller.create_topics([NewTopic("t", 3, 1)])
    topic = controller.view.topic("t")
    assert topic is not None
    assert len(topic.partitions) == 3
    assert committed.ticket is store.tickets[-1]
    assert not committed.ticket.is_durable


def test_validate_only_answers_and_changes_nothing() -> None:
    controller = start()
    committed = controller.create_topics([NewTopic("t")], validate_only=True)
    assert isinstance(committed.answer["t"], CreatedTopic)
    assert committed.ticket is None
    assert controller.view.topic("t") is None


def test_after_a_restart_everything_is_as_it_was() -> None:
    store = MemoryStore(format_records())
    first = start(store)
    first.create_topics([NewTopic("t", 2, 1, configs=[("retention.ms", "5")]), NewTopic("gone")])
    first.delete_topics([TopicReference("gone")])
    again = start(store)
    topic, before = again.view.topic("t"), first.view.topic("t")
    assert topic is not None and before is not None
    assert (topic.topic_id, topic.configs) == (before.topic_id, {"retention.ms": "5"})
    assert again.view.topic("gone") is None
    assert [batch.base_offset for batch in store.batches] == sorted(batch.base_offset for batch in store.batches)


def test_a_restart_raises_leader_epochs_and_writes_them_at_the_first_append() -> None:
    store = MemoryStore(format_records())
    start(store).create_topics([NewTopic("t", 1, 1)])
    for expected in (2, 4):
        controller = start(store)
        topic = controller.view.topic("t")
        assert topic is not None
        assert topic.partitions[0].leader_epoch == expected
        assert controller.write_leader_epoch(topic.topic_id, 0) is not None
        assert controller.write_leader_epoch(topic.topic_id, 0) is None
        written = controller.view.topic("t")
        assert written is not None
        assert written.partitions[0].leader_epoch == expected


def test_an_epoch_in_which_nothing_was_appended_is_not_recorded() -> None:
    store = MemoryStore(format_records())
    start(store).create_topics([NewTopic("t", 1, 1)])
    for _ in range(3):
        topic = start(store).view.topic("t")
        assert topic is not None
        assert topic.partitions[0].leader_epoch == 2


def test_a_topic_of_this_run_has_its_epoch_recorded_already() -> None:
    controller = start()
    controller.create_topics([NewTopic("t", 1, 1)])
    topic = controller.view.topic("t")
    assert topic is not None
    assert controller.write_leader_epoch(topic.topic_id, 0) is None


def test_changes_are_announced_once_with_what_they_are() -> None:
    controller = start()
    changes = Changes()
    controller.listen(changes)
    controller.create_topics([NewTopic("a", configs=[("retention.ms", "5")]), NewTopic("b")])
    controller.create_partitions([GrownTopic("a", 5)])
    controller.alter_configs([ConfigAlteration(ResourceType.TOPIC, "b", [("retention.ms", 0, "9")])])
    controller.alter_configs([ConfigAlteration(ResourceType.BROKER, "", [("log.retention.ms", 0, "9")])])
    controller.alter_configs([ConfigAlteration(ResourceType.GROUP, "g", [("consumer.session.timeout.ms", 0, "50000")])])
    controller.delete_topics([TopicReference("a")])
    assert changes.seen == [
        (["a", "b"], [], []),
        (["a"], [], []),
        ([], [], ["b"]),
        ([], [], ["a", "b"]),
        ([], ["a"], []),
    ]


def test_producer_ids_come_from_recorded_blocks_and_never_come_again() -> None:
    store = MemoryStore(format_records())
    controller = start(store)
    first = controller.next_producer_id()
    assert (first.answer, first.ticket) == (0, store.tickets[-1])
    assert controller.next_producer_id().ticket is store.tickets[-1], "the block may still be lost"
    store.tickets[-1].settle()
    assert controller.next_producer_id().ticket is None
    ids = [controller.next_producer_id().answer for _ in range(1_000)]
    assert ids == list(range(3, 1_003))
    assert [value for value in store.values() if value[1] == PRODUCER_IDS_TYPE][1:], "a second block was recorded"
    assert start(store).next_producer_id().answer == 2_000


def test_internal_topics_are_made_with_the_settings_that_kafka_gives_them() -> None:
    controller = start(offsets_topic_num_partitions="5")
    controller.auto_create_topics([OFFSETS_TOPIC, TRANSACTION_TOPIC, "mine"])
    offsets, transactions, mine = (controller.view.topic(n) for n in (OFFSETS_TOPIC, TRANSACTION_TOPIC, "mine"))
    assert offsets is not None and transactions is not None and mine is not None
    assert len(offsets.partitions) == 5
    assert offsets.is_internal
    assert list(offsets.configs.items()) == [
        ("compression.type", "producer"),
        ("cleanup.policy", "compact"),
        ("segment.bytes", "104857600"),
    ]
    assert transactions.configs["compression.type"] == "uncompressed"
    assert mine.configs == {}


def test_creating_too_many_topics_unasked_fails_each_of_them() -> None:
    controller = start(num_partitions="6000")
    answer = controller.auto_create_topics(["a", "b"]).answer
    assert [row.name for row in answer.values() if isinstance(row, KafkaError)] == ["POLICY_VIOLATION"] * 2
    assert controller.view.topic("a") is None


def test_topic_ids_are_never_reserved_ones() -> None:
    """Reserved ids, and those whose text begins with a dash, which command lines would take for an option."""
    offered = iter([bytes(16), bytes(15) + b"\x01", b"\xfb" + bytes(15), topic_id(5)])
    store = MemoryStore(format_records())
    controller = MetadataController(store, IDENTITY, config(), random_uuid=lambda: next(offered))
    controller.load()
    controller.begin()
    controller.register(IDENTITY)
    created = controller.create_topics([NewTopic("t")]).answer["t"]
    assert isinstance(created, CreatedTopic)
    assert created.topic_id == topic_id(5)


def test_a_snapshot_is_taken_when_enough_was_appended() -> None:
    store = MemoryStore(format_records())
    controller = start(store, metadata_log_max_record_bytes_between_snapshots="2000")
    for number in range(30):
        controller.create_topics([NewTopic(f"t{number}", 1, 1)])
    assert store.snapshot_offset > 0
    assert store.record_bytes_since_snapshot < 2_000
    assert sorted(start(store).view.topic_names()) == sorted(f"t{number}" for number in range(30))


def test_a_snapshot_that_cannot_be_written_fails_no_change(caplog: pytest.LogCaptureFixture) -> None:
    class FullStore(MemoryStore):
        def snapshot(self, shard: Shard, records: Iterator[StateRecord]) -> None:
            raise OSError("no space left")

    controller = start(FullStore(format_records()), metadata_log_max_record_bytes_between_snapshots="1")
    assert isinstance(controller.create_topics([NewTopic("t")]).answer["t"], CreatedTopic)
    assert controller.view.topic("t") is not None
    assert "snapshot cannot be written" in caplog.text


def test_a_change_that_cannot_be_appended_changes_nothing() -> None:
    class BrokenStore(MemoryStore):
        is_broken = False

        def append(self, shard: Shard, records: Sequence[StateRecord], epoch: int) -> Ticket:
            if self.is_broken:
                raise KafkaStorageError("the disk is gone")
            return super().append(shard, records, epoch)

    store = BrokenStore(format_records())
    controller = start(store)
    store.is_broken = True
    with pytest.raises(KafkaStorageError):
        controller.create_topics([NewTopic("t")])
    assert [type(row) for row in controller.auto_create_topics(["u"]).answer.values()] == [KafkaStorageError]
    assert list(controller.view.topic_names()) == []


def test_on_a_full_disk_only_what_makes_room_is_recorded() -> None:
    store = MemoryStore(format_records())
    controller = start(store)
    controller.create_topics([NewTopic("t", 1, 1)])
    store.is_full = True
    with pytest.raises(KafkaStorageError, match="disk is full"):
        controller.create_topics([NewTopic("u", 1, 1)])
    with pytest.raises(KafkaStorageError, match="disk is full"):
        controller.next_producer_id()
    assert [type(row) for row in controller.create_internal_topic("v").answer.values()] == [KafkaStorageError]
    (deleted,) = controller.delete_topics([TopicReference(name="t")]).answer
    assert deleted.error is None
    assert list(controller.view.topic_names()) == []


def test_a_transaction_that_was_never_ended_is_called_off_at_the_next_start() -> None:
    store = MemoryStore(format_records())
    controller = start(store)
    half = [BeginTransactionRecord(name="x"), TopicRecord(name="t", topic_id=topic_id(1))]
    store.append(
        METADATA_SHARD, [StateRecord(None, encode_record(record, LEVEL)) for record in half], store.leader_epoch
    )
    again = start(store)
    assert again.view.topic("t") is None
    again.create_topics([NewTopic("u")])
    assert start(store).view.topic("u") is not None
    assert controller.view.topic("u") is None


@pytest.mark.parametrize("value", [None, b"", b"\x02\x02\x00", bytes([1, 99, 0])])
def test_a_record_that_makes_no_sense_is_refused_and_nothing_is_written(value: bytes | None) -> None:
    store = MemoryStore(format_records())
    start(store)
    store.append(METADATA_SHARD, [StateRecord(None, value)], store.leader_epoch)
    before = len(store.batches)
    controller = MetadataController(store, IDENTITY, config(), random_uuid=counting_uuids())
    with pytest.raises(MetadataRefused):
        controller.load()
    assert len(store.batches) == before


NAMES = st.sampled_from(["a", "b.c", "d_e", OFFSETS_TOPIC])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), NAMES, st.integers(1, 4)),
        st.tuples(st.just("delete"), NAMES, st.just(0)),
        st.tuples(st.just("grow"), NAMES, st.integers(1, 6)),
        st.tuples(st.just("set"), NAMES, st.integers(1, 9)),
        st.tuples(st.just("unset"), NAMES, st.just(0)),
        st.tuples(st.just("broker"), st.just(""), st.integers(1, 9)),
        st.tuples(st.just("id"), st.just(""), st.just(0)),
        st.tuples(st.just("append"), NAMES, st.just(0)),
        st.tuples(st.just("quota"), NAMES, st.integers(0, 2)),
        st.tuples(st.just("user"), NAMES, st.integers(0, 1)),
        st.tuples(st.just("feature"), st.just("transaction.version"), st.integers(0, 2)),
        st.tuples(st.just("snapshot"), st.just(""), st.just(0)),
        st.tuples(st.just("restart"), st.just(""), st.just(0)),
    ),
    max_size=30,
)


def take_step(controller: MetadataController, step: str, name: str, number: int) -> None:
    match step:
        case "create":
            controller.create_topics([NewTopic(name, number, 1, configs=[("retention.ms", str(number))])])
        case "delete":
            controller.delete_topics([TopicReference(name)])
        case "grow":
            controller.create_partitions([GrownTopic(name, number)])
        case "set":
            controller.alter_configs([ConfigAlteration(ResourceType.TOPIC, name, [("segment.ms", 0, str(number))])])
        case "unset":
            controller.alter_configs([ConfigAlteration(ResourceType.TOPIC, name, [("retention.ms", 1, None)])])
        case "broker":
            change = ("log.retention.ms", 0, str(number))
            controller.alter_configs([ConfigAlteration(ResourceType.BROKER, "", [change])])
        case "id":
            controller.next_producer_id()
        case "append":
            topic = controller.view.topic(name)
            if topic is not None:
                controller.write_leader_epoch(topic.topic_id, 0)
        case "quota":
            asked = QuotaAlteration({"user": name}, [("producer_byte_rate", float(number) or None)])
            controller.commit(decide_alter_client_quotas(controller.view, [asked]))
        case "user":
            upsertion = CredentialUpsertion(name, 1, 4096, b"salt", b"salted")
            user = upsertion if number else CredentialDeletion(name, 1)
            controller.commit(decide_alter_scram_users(controller.view, [user]))
        case "feature":
            update = [FeatureUpdate(name, number, 2)]
            controller.commit(decide_update_features(controller.view, update, kraft_version=1, min_insync_replicas=1))
        case "snapshot":
            controller.snapshot()


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_a_snapshot_and_its_tail_replay_to_what_the_whole_log_replays_to(steps: list[tuple[str, str, int]]) -> None:
    store = MemoryStore(format_records())
    controller = start(store)
    for step, name, number in steps:
        if step == "restart":
            controller = start(store)
        else:
            take_step(controller, step, name, number)

    from_all = MetadataState(IDENTITY.cluster_id, NODE_ID)
    for value in store.values():
        from_all.replay(value)
    from_snapshot = MetadataController(store, IDENTITY, config(), random_uuid=counting_uuids())
    from_snapshot.load()

    assert sorted(snapshot_of(from_snapshot)) == sorted(from_all.snapshot_records()) == sorted(snapshot_of(controller))


def test_the_metadata_topic_is_never_a_topic() -> None:
    controller = start()
    controller.auto_create_topics([METADATA_TOPIC])
    assert controller.view.topic(METADATA_TOPIC) is None
    assert controller.view.topic_by_id(TopicId(bytes(15) + b"\x01")) is None


def fails_after(store: MemoryStore, batches: int) -> None:
    """Have the disk be full once so many more batches were appended."""
    append, wanted = store.append, len(store.batches) + batches

    def counting(shard: Shard, records: Sequence[StateRecord], epoch: int) -> Ticket:
        if len(store.batches) >= wanted:
            raise KafkaStorageError("full")
        return append(shard, records, epoch)

    store.append = counting  # type: ignore[method-assign]


@pytest.mark.parametrize("validate_only", [False, True])
def test_very_many_topics_are_created_in_steps_as_they_are_at_once(validate_only: bool) -> None:
    topics = [NewTopic(f"t{number}", number % 7, 1) for number in range(300)]
    topics += [NewTopic("twice", 1, 1), NewTopic("bad name", 1, 1), NewTopic("twice", 1, 1)]
    topics += [NewTopic("a.b", 1, 1), NewTopic("a_b", 1, 1), NewTopic("there", 1, 1)]
    answers = []
    controllers = [start(), start()]
    for controller, in_steps in zip(controllers, [False, True], strict=True):
        controller.create_topics([NewTopic("there", 1, 1)])
        if in_steps:
            committed, yields = finish(controller.create_topics_in_steps(topics, validate_only=validate_only))
            assert yields > 300 * 4 / 32
        else:
            committed = controller.create_topics(topics, validate_only=validate_only)
        answers.append([(name, str(outcome)) for name, outcome in committed.answer.items()])
        assert (committed.ticket is None) == validate_only
    assert answers[0] == answers[1]
    assert snapshot_of(controllers[0]) == snapshot_of(controllers[1])


def test_a_topic_that_came_between_two_steps_keeps_a_colliding_one_away() -> None:
    controller = start()
    steps = controller.create_topics_in_steps([NewTopic(f"t.{number}", 1, 1) for number in range(300)])
    while controller.view.topic("t.0") is None:
        next(steps)
    controller.create_topics([NewTopic("t_299", 1, 1)])
    committed, _ = finish(steps)
    assert isinstance(committed.answer["t.299"], InvalidTopicException)
    assert all(isinstance(committed.answer[f"t.{number}"], CreatedTopic) for number in range(299))


def test_a_few_topics_are_created_by_one_batch() -> None:
    store = MemoryStore(format_records())
    controller = start(store)
    before = len(store.batches)
    _, yields = finish(controller.create_topics_in_steps([NewTopic(f"t{number}", 10, 1) for number in range(10)]))
    assert yields == 0 and len(store.batches) == before + 1


def test_a_request_for_too_many_partitions_creates_none() -> None:
    controller = start()
    with pytest.raises(PolicyViolation):
        finish(controller.create_topics_in_steps([NewTopic(f"t{number}", 101, 1) for number in range(100)]))
    assert not list(controller.view.topics())


def test_what_keeps_later_topics_from_being_created_is_told_of_them() -> None:
    store = MemoryStore(format_records())
    controller = start(store)
    fails_after(store, 2)
    topics = [NewTopic(f"t{number}", 63, 1) for number in range(4)]
    committed, _ = finish(controller.create_topics_in_steps(topics))
    outcomes = list(committed.answer.values())
    assert [isinstance(outcome, CreatedTopic) for outcome in outcomes] == [True, True, False, False]
    assert isinstance(outcomes[3], KafkaStorageError) and committed.ticket is store.tickets[-1]
    with pytest.raises(KafkaStorageError):
        finish(controller.create_topics_in_steps(topics[2:]))


def test_very_many_topics_are_deleted_in_steps_as_they_are_at_once() -> None:
    answers = []
    controllers = [start(), start()]
    for controller, in_steps in zip(controllers, [False, True], strict=True):
        controller.create_topics([NewTopic(f"t{number}", 1, 1) for number in range(100)])
        (last,) = [topic for topic in controller.view.topics() if topic.name == "t99"]
        asked = [TopicReference(f"t{number}") for number in range(10, 120)]
        asked += [TopicReference(), TopicReference("t10"), TopicReference(None, last.topic_id)]
        if in_steps:
            committed, yields = finish(controller.delete_topics_in_steps(asked))
            assert yields > 100 / 8
        else:
            committed = controller.delete_topics(asked)
        answers.append([(row.name, str(row.error)) for row in committed.answer])
    assert answers[0] == answers[1]
    assert snapshot_of(controllers[0]) == snapshot_of(controllers[1])
    assert {topic.name for topic in controllers[0].view.topics()} == {f"t{n}" for n in [*range(11), 99]}


def test_what_keeps_later_topics_from_being_deleted_is_told_of_them() -> None:
    store = MemoryStore(format_records())
    controller = start(store)
    controller.create_topics([NewTopic(f"t{number}", 1, 1) for number in range(20)])
    fails_after(store, 1)
    asked = [TopicReference(f"t{number}") for number in range(20)]
    committed, _ = finish(controller.delete_topics_in_steps(asked))
    assert [row.error is None for row in committed.answer] == [True] * 8 + [False] * 12
    with pytest.raises(KafkaStorageError):
        finish(controller.delete_topics_in_steps(asked))
