"""`ottla groups` and `ottla consume --group` against a broker in this process."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator

import pytest

from ottla.client import Admin, Consumer, GroupSettings, OffsetAndMetadata, TopicPartition
from ottla.client.groups import GroupDescription
from ottla.testing.cluster import broker_in_thread
from tests.cli.test_commands import Ottla

T0 = TopicPartition("shared", 0)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    settings = {"auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": "0"}
    with broker_in_thread(settings) as running:
        yield running.address


@pytest.fixture
def ottla(address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ottla:
    monkeypatch.setenv("OTTLA_BOOTSTRAP", address)
    return Ottla(capsys, monkeypatch)


@pytest.fixture(autouse=True)
def topic(ottla: Ottla) -> None:
    """A topic with three records in each of its two partitions; made once."""
    if ottla("topics", "create", "shared", "-p", "2").code == 0:
        for partition in ("0", "1"):
            ottla("produce", "shared", "--partition", partition, stdin=b"a\nb\nc\n")


def commit(address: str, group_id: str, **offsets: int) -> None:
    async def work() -> None:
        async with Admin(address) as admin:
            wanted = {TopicPartition("shared", int(name[1:])): OffsetAndMetadata(at) for name, at in offsets.items()}
            await admin.groups.commit(group_id, wanted)

    asyncio.run(work())


def committed(address: str, group_id: str) -> dict[int, int]:
    async def work() -> dict[int, int]:
        async with Admin(address) as admin:
            found = await admin.groups.committed(group_id)
        return {partition.partition: one.offset for partition, one in found.items()}

    return asyncio.run(work())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_reads_in_pieces_and_commits_what_is_out(ottla: Ottla, address: str, protocol: str) -> None:
    words = ("consume", "shared", "--group", f"pieces-{protocol}", "--protocol", protocol, "-n", "3")

    first, second = ottla(*words), ottla(*words, "-q")

    assert sorted(first.out.split() + second.out.split()) == ["a", "a", "b", "b", "c", "c"]
    assert "3 records read and committed" in first.err
    assert second.err == ""
    assert committed(address, f"pieces-{protocol}") == {0: 3, 1: 3}


def test_groups_read_whole_topics(ottla: Ottla) -> None:
    for words in (["--partition", "0"], ["--until", "end"], ["--from", "5"]):
        assert ottla("consume", "shared", "--group", "g", *words).code == 2


def test_groups_are_listed_with_their_state(ottla: Ottla, address: str) -> None:
    commit(address, "listed", p0=1)

    assert ["listed", "classic", "-", "Empty"] in [row.split("\t") for row in ottla("groups", "list").out.splitlines()]
    rows = json.loads(ottla("groups", "list", "--state", "empty", "--json").out)
    assert {"group": "listed", "type": "classic", "protocol_type": "", "state": "Empty"} in rows
    assert ottla("groups", "list", "--state", "stable", "--json").out == "[]\n"


def test_lag_is_counted_to_the_high_watermark_and_only_from_a_commit(ottla: Ottla, address: str) -> None:
    """B126: never negative, and no commit is no lag."""
    commit(address, "behind", p0=1, p1=99)

    described = json.loads(ottla("groups", "describe", "behind", "--json").out)[0]

    assert (described["state"], described["members"], described["lag"]) == ("Empty", 0, 2)
    facts = [(row["partition"], row["committed_offset"], row["lag"]) for row in described["partitions"]]
    assert facts == [(0, 1, 2), (1, 99, 0)]
    table = ottla("groups", "describe", "behind").out.splitlines()
    assert table[0] == "behind  classic  Empty  0 members  lag 2"


def test_lag_counts_from_the_beginning_of_a_log_that_retention_cut(ottla: Ottla, address: str) -> None:
    ottla("topics", "create", "cut", "-p", "1")
    ottla("produce", "cut", stdin=b"a\nb\nc\n")

    async def work() -> None:
        async with Admin(address) as admin:
            await admin.groups.commit("old", {TopicPartition("cut", 0): OffsetAndMetadata(0)})
            await admin.delete_records({TopicPartition("cut", 0): 2})

    asyncio.run(work())

    assert json.loads(ottla("groups", "describe", "old", "--json").out)[0]["lag"] == 1


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_are_shown_with_what_they_read(ottla: Ottla, address: str, protocol: str) -> None:
    name = f"members-{protocol}"

    async def shown() -> tuple[dict[str, object], dict[str, object]]:
        settings = GroupSettings(group_id=name, group_protocol=protocol)
        async with Consumer(address, group=settings, auto_offset_reset="earliest") as consumer:
            await consumer.subscribe("shared")
            assert await consumer.next_record(10_000) is not None
            await consumer.commit({T0: 1})
            commands = (("describe", name, "--json"), ("members", name, "--json"), ("reset", name, "--to", "end"))
            described, members, reset = await asyncio.to_thread(lambda: [ottla("groups", *words) for words in commands])
            assert (reset.code, "stop them first" in reset.err) == (1, True)
            return json.loads(described.out)[0], json.loads(members.out)

    described, members = asyncio.run(shown())

    assert (described["state"], described["type"], described["members"]) == ("Stable", protocol, 1)
    rows = described["partitions"]
    assert isinstance(rows, list)
    facts = [(row["partition"], row["lag"], row["member_id"] is not None) for row in rows]
    assert facts == [(0, 2, True), (1, None, True)]
    found = members["members"]
    assert isinstance(found, list)
    assert found[0]["assignment"] == [{"topic": "shared", "partition": 0}, {"topic": "shared", "partition": 1}]
    assert (found[0]["protocol"], found[0]["member_epoch"] is None) == (protocol, protocol == "classic")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_are_removed_by_their_static_name_or_all_together(ottla: Ottla, address: str, protocol: str) -> None:
    """Static members stay when their client ends, until their session does."""
    name = f"removed-{protocol}"

    async def join() -> None:
        settings = [GroupSettings(group_id=name, group_protocol=protocol, group_instance_id=one) for one in "abc"]
        async with contextlib.AsyncExitStack() as clients, Admin(address) as admin:
            for one in settings:
                await (await clients.enter_async_context(Consumer(address, group=one))).subscribe("shared")
            while len((await described(admin)).members) < len(settings):
                await asyncio.sleep(0.01)

    async def described(admin: Admin) -> GroupDescription:
        found = (await admin.groups.describe([name]))[name]
        assert isinstance(found, GroupDescription)
        return found

    def members(*words: str) -> tuple[int, list[str]]:
        shown = ottla("groups", "members", name, *words, "--json")
        found = json.loads(shown.out)["members"] if shown.out else []
        return shown.code, sorted(member["instance_id"] for member in found)

    asyncio.run(join())
    assert members() == (0, ["a", "b", "c"])
    assert members("--remove", "a", "--reason", "gone") == (0, ["b", "c"])
    assert members("--remove", "a") == (1, [])
    assert members("--remove-all") == (0, [])


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("start", {0: 0, 1: 0}),
        ("end", {0: 3, 1: 3}),
        ("1", {0: 1, 1: 1}),
        ("+1", {0: 3, 1: 2}),
        ("-1", {0: 1, 1: 0}),
        ("-99", {0: 0, 1: 0}),
        ("99", {0: 3, 1: 3}),
        ("@-1h", {0: 0, 1: 0}),
        ("@2099-01-01", {0: 3, 1: 3}),
    ],
)
def test_offsets_are_set_within_what_the_log_has(
    ottla: Ottla, address: str, where: str, expected: dict[int, int]
) -> None:
    commit(address, "reset", p0=2, p1=1)
    dry = ottla("groups", "reset", "reset", "--to", where, "--dry-run", "--json")
    assert {row["partition"]: row["new_offset"] for row in json.loads(dry.out)} == expected
    assert committed(address, "reset") == {0: 2, 1: 1}

    assert ottla("groups", "reset", "reset", "--to", where).code == 0

    assert committed(address, "reset") == expected


def test_an_offset_that_the_log_has_not_is_the_nearest_one_and_said_to_be(ottla: Ottla, address: str) -> None:
    """Kafka's tool warns as well; a number that was mistyped shall not look like done."""
    commit(address, "far", p0=1)
    assert (
        ottla("groups", "reset", "far", "--to", "99").err == "shared-0 ends at 3, and 99 is behind that: taken is 3\n"
    )
    assert (
        ottla("groups", "reset", "far", "--to", "-99").err
        == "shared-0 begins at 0, and -96 is before that: taken is 0\n"
    )
    assert (
        ottla("groups", "reset", "far", "--to", "@2099-01-01").err == "shared-0 has no record that late: taken is 3\n"
    )
    assert ottla("groups", "reset", "far", "--to", "2").err == ""


def test_there_is_no_way_back_from_nowhere(ottla: Ottla, address: str) -> None:
    commit(address, "partly", p0=1)
    code, out, err = ottla("groups", "reset", "partly", "--to", "+1", "--topic", "shared")
    assert (code, out) == (1, "")
    assert "no offset in shared-1" in err
    assert committed(address, "partly") == {0: 1}


def test_a_partition_that_is_not_there_is_not_passed_over(ottla: Ottla, address: str) -> None:
    commit(address, "named", p0=1)
    code, out, err = ottla("groups", "reset", "named", "--to", "end", "-t", "shared", "-p", "0", "-p", "9")
    assert (code, out, err) == (1, "", "ottla: there is no partition 9 in shared\n")
    assert committed(address, "named") == {0: 1}


def test_a_group_may_begin_at_a_time(ottla: Ottla) -> None:
    assert len(ottla("consume", "shared", "-g", "timed", "--from", "@-1h", "-n", "6", "-q").out.split()) == 6
    assert ottla("consume", "shared", "-g", "timed", "--from", "@sometime", "-n", "1").code == 2


def test_offsets_are_forgotten(ottla: Ottla, address: str) -> None:
    commit(address, "forgets", p0=1, p1=2)
    dry = ottla("groups", "forget", "forgets", "--partition", "1", "--dry-run")
    assert (dry.code, dry.out) == (0, "shared-1 would be forgotten\n")
    assert ottla("groups", "forget", "forgets", "--partition", "1") == (0, "shared-1 forgotten\n", "")
    assert committed(address, "forgets") == {0: 1}
    assert ottla("groups", "forget", "forgets", "--topic", "other").code == 1
    assert ottla("groups", "forget", "nobody").code == 1


def test_a_group_that_has_committed_nothing_has_no_lag(ottla: Ottla, address: str) -> None:
    """B126: nothing committed is not a lag of 0."""
    commit(address, "blank", p0=1)
    ottla("groups", "forget", "blank", "--partition", "0")
    settings = GroupSettings(group_id="blank")

    async def shown() -> dict[str, object]:
        async with Consumer(address, group=settings, auto_offset_reset="latest") as consumer:
            await consumer.subscribe("shared")
            await consumer.next_record(100)
            while not consumer.assignment:
                await consumer.next_record(100)
            told = await asyncio.to_thread(lambda: ottla("groups", "describe", "blank", "--json"))
            found: dict[str, object] = json.loads(told.out)[0]
            return found

    assert asyncio.run(shown())["lag"] is None


def test_a_group_does_not_wait_for_a_topic_that_is_not_there(ottla: Ottla) -> None:
    code, out, err = ottla("consume", "nope", "--group", "patient")
    assert (code, out, err) == (1, "", "ottla: topic 'nope' does not exist; `ottla topics list` shows what does\n")


def test_a_reset_may_be_for_some_partitions_or_a_new_topic(ottla: Ottla, address: str) -> None:
    commit(address, "some", p0=2, p1=2)
    assert ottla("groups", "reset", "some", "--to", "start", "--partition", "1").code == 0
    assert committed(address, "some") == {0: 2, 1: 0}
    assert ottla("groups", "reset", "new", "--to", "end", "--topic", "shared").code == 0
    assert committed(address, "new") == {0: 3, 1: 3}
    assert ottla("groups", "reset", "nothing", "--to", "end").code == 1
    assert ottla("groups", "reset", "some", "--to", "sometime").code == 2


def test_deleted_groups_are_gone(ottla: Ottla, address: str) -> None:
    commit(address, "gone", p0=1)

    assert ottla("groups", "delete", "gone") == (0, "gone deleted\n", "")

    assert committed(address, "gone") == {}
    for words in (("delete", "gone"), ("describe", "gone"), ("members", "gone")):
        result = ottla("groups", *words)
        assert (result.code, result.out.strip() in ("", "[]")) == (1, True), words
