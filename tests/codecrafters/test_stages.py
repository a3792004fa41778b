"""The 25 stages of the challenge "Build your own Kafka": each starts `your_program.sh` as the challenge does.

Answers are compared whole, byte by byte, with those of a real Kafka 4.0 to the same requests on the same files, of
which there are recordings (marked). Left out is what is any broker's own: the number of a fetch session and the list
of all requests that it knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from benchmarks.processes import find_free_port
from tests.codecrafters.files import PROPERTIES, TopicFiles, message_batch, metadata_log, topic_id
from tests.codecrafters.messages import (
    Produced,
    api_versions,
    batch_of,
    describe_topics,
    described,
    described_unknown,
    fetch,
    fetched,
    fetched_nothing,
    fetched_unknown,
    plain,
    produce,
    produced,
    versions_in,
    without_session,
)
from tests.codecrafters.tester import Stage, stage

Start = Callable[..., AbstractContextManager[Stage]]
MANGO = TopicFiles("mango", bytes.fromhex("71a59a5189684f8b937e2d59b2dc350e"), [[]])
GRAPE = TopicFiles("grape", topic_id(1), [["Hello Kafka!", "Hello World!", "Hello CodeCrafters!"]])
PEAR = TopicFiles("pear", topic_id(7), [[], []])


@pytest.fixture(scope="module")
def port() -> int:
    """One for all stages: each follows at once on the port that the one before it had."""
    return find_free_port()


@pytest.fixture
def start(tmp_path: Path, port: int) -> Start:
    return partial(stage, tmp_path, port)


def topic(name: str, partitions: int = 1) -> TopicFiles:
    return TopicFiles(name, topic_id(len(name)), [[]] * partitions)


def check_versions(start: Start, *expected: tuple[int, int, int]) -> None:
    """Ask for versions, and look for those of an API: the lowest, at most, and the highest, at least."""
    with start() as program:
        served = versions_in(program.connect().ask(api_versions()))
        for api_key, lowest, highest in ((18, 0, 4), *expected):
            assert served[api_key][0] <= lowest and served[api_key][1] >= highest, api_key


# ---- the base stages


def test_vi6_a_port_is_bound(start: Start) -> None:
    with start(seconds=15.0) as program:
        program.connect()


def test_nv3_the_correlation_id_is_sent(start: Start) -> None:
    with start() as program:
        assert program.connect().ask(api_versions(7))[:4] == plain("00000007")


def test_wa6_the_correlation_id_is_that_of_the_request(start: Start) -> None:
    with start() as program:
        assert program.connect().ask(api_versions(2**31 - 3))[:4] == plain("7ffffffd")


def test_nc5_a_version_that_there_is_not_is_told(start: Start) -> None:
    """Recorded with Kafka, which knew one version less of this request then. In the layout of version 0."""
    with start() as program:
        answer = program.connect().ask(
            plain("001206a2605a05cd000c6b61666b612d746573746572000a6b61666b612d636c6904302e3100")
        )
        assert answer == plain("605a05cd0023 00000001 001200000005")


def test_pv1_versions_are_told(start: Start) -> None:
    check_versions(start)


# ---- several requests at a time


def test_nh4_requests_are_answered_one_after_the_other(start: Start) -> None:
    """On one connection, all with the same correlation id."""
    with start() as program:
        client = program.connect()
        answers = [client.ask(api_versions()) for _ in range(4)]
        assert answers == answers[:1] * 4 and versions_in(answers[0])[18][1] >= 4


def test_sk0_requests_are_answered_side_by_side(start: Start) -> None:
    """All are asked before the first answer is read, and read from the last one on."""
    with start() as program:
        clients = [program.connect() for _ in range(3)]
        for number, client in enumerate(clients):
            client.send(api_versions(number))
        for number, client in reversed(list(enumerate(clients))):
            assert versions_in(client.receive(), number)[18][1] >= 4


# ---- listing partitions


def test_yk1_describe_topic_partitions_is_among_the_versions(start: Start) -> None:
    check_versions(start, (75, 0, 0))


def test_vt6_an_unknown_topic_is_told(start: Start) -> None:
    """Recorded with Kafka."""
    with start([MANGO]) as program:
        answer = program.connect().ask(
            plain("004b00007d7b4a94000c6b61666b612d746573746572000211554e4b4e4f574e5f544f5049435f39320000000001ff00")
        )
        assert answer == plain(
            "7d7b4a94000000000002000311554e4b4e4f574e5f544f5049435f3932000000000000000000000000000000000001"
            "00000df800ff00"
        )
        assert program.connect().ask(describe_topics(["mangO"], 1)) == described_unknown("mangO")


def test_ea7_one_partition_is_listed(start: Start) -> None:
    """Recorded with Kafka."""
    with start([MANGO]) as program:
        answer = program.connect().ask(
            plain("004b00007076db55000c6b61666b612d7465737465720002066d616e676f0000000001ff00")
        )
        assert answer == plain(
            "7076db550000000000020000066d616e676f71a59a5189684f8b937e2d59b2dc350e00020000000000000000000100"
            "000000020000000102000000010101010000000df800ff00"
        )
        assert program.connect().ask(describe_topics(["mango"], 1)) == described(MANGO)


def test_ku4_two_partitions_are_listed_in_their_order(start: Start) -> None:
    with start([PEAR]) as program:
        assert program.connect().ask(describe_topics(["pear"], 2)) == described(PEAR)


def test_wq2_topics_are_listed_by_name(start: Start) -> None:
    banana = topic("banana")
    with start([PEAR, banana]) as program:
        assert program.connect().ask(describe_topics(["pear", "banana"], 3)) == described(banana, PEAR)


# ---- consuming


def test_gs0_fetch_is_among_the_versions(start: Start) -> None:
    check_versions(start, (1, 16, 16))


def test_dh6_a_fetch_of_nothing_brings_nothing(start: Start) -> None:
    """Recorded with Kafka, but for the session."""
    with start() as program:
        answer = program.connect().ask(
            plain("00010010605a05cd000c6b61666b612d74657374657200000001f4000000017fffffff00000000000000000001010100")
        )
        assert len(answer) == 0x11 and without_session(answer) == fetched_nothing()
        assert without_session(program.connect().ask(fetch(None))) == fetched_nothing()


def test_hn6_a_fetch_of_an_unknown_topic_is_refused(start: Start) -> None:
    """Recorded with Kafka, but for the session."""
    with start([MANGO]) as program:
        answer = program.connect().ask(
            plain(
                "000100107602b058000c6b61666b612d74657374657200000001f4000000017fffffff0000000000000000000271a59a5189684f"
                "8b937e0000000004790200000000ffffffff0000000000000000ffffffffffffffffffffffff7fffffff0000010100"
            )
        )
        assert without_session(answer) == plain(
            "7602b0580000000000 00000271a59a5189684f8b937e00000000047902000000000064ffffffffffffffffffffffffffffffffff"
            "ffffffffffffff01ffffffff01000000"
        )
        unknown = topic_id(1145)
        assert without_session(program.connect().ask(fetch(unknown))) == fetched_unknown(unknown)


def test_cm4_a_fetch_of_an_empty_topic_brings_nothing(start: Start) -> None:
    with start([MANGO]) as program:
        assert without_session(program.connect().ask(fetch(MANGO.topic_id))) == fetched(MANGO.topic_id, b"", 0)


def test_eg2_a_message_is_fetched_as_it_lies_on_the_disk(start: Start) -> None:
    check_fetched(start, TopicFiles("apple", topic_id(3), [["Hello Kafka!"]]))


def test_fd8_messages_are_fetched_as_they_lie_on_the_disk(start: Start) -> None:
    check_fetched(start, GRAPE)


def check_fetched(start: Start, full: TopicFiles) -> None:
    """The batches have a header count of -1: nobody could decode and encode them again."""
    messages = full.partitions[0]
    on_disk = b"".join(message_batch(*pair) for pair in enumerate(messages))
    with start([MANGO, full]) as program:
        answer = program.connect().ask(fetch(full.topic_id))
        assert without_session(answer) == fetched(full.topic_id, on_disk, len(messages))
        assert program.log(full.name, 0) == on_disk


# ---- producing


def test_xz1_produce_is_among_the_versions(start: Start) -> None:
    check_versions(start, (0, 11, 11))


def test_zf2_what_cannot_be_produced_is_refused(start: Start) -> None:
    """Recorded with Kafka. A partition that there is not, then, on the same connection, a topic that there is not."""
    with start([topic("orange")]) as program:
        client = program.connect()
        answer = client.ask(
            plain(
                "0000000b47b36978000c6b61666b612d7465737465720000ffff0000753002076f72616e676502000002d04a0000000000000000"
                "0000003d000000000272bc4ab000000000000000000191e05b6d8b00000191e05b6d8b000000000000000000000000000000000001"
                "16000000010a6d616e676f00000000"
            )
        )
        assert answer == plain(
            "47b369780002076f72616e676502000002d00003ffffffffffffffffffffffffffffffffffffffffffffffff010000000000000000"
        )
        for refused in ([("orange", [(720, batch_of("mango"))])], [("UNKNOWN_TOPIC_9", [(0, batch_of("mango"))])]):
            assert client.ask(produce(refused)) == produced(refused, error_code=3)
        assert program.log("orange", 0) == b""


def test_gg1_a_record_is_produced(start: Start) -> None:
    """Recorded with Kafka."""
    with start([topic("apple")]) as program:
        answer = program.connect().ask(
            plain(
                "0000000b517f2d86000c6b61666b612d7465737465720000ffff0000753002066170706c6502000000004a0000000000000000"
                "0000003d0000000002a437a6ee00000000000000000191e05b6d8b00000191e05b6d8b000000000000000000000000000000000001"
                "16000000010a6170706c6500000000"
            )
        )
        assert answer == plain(
            "517f2d860002066170706c65020000000000000000000000000000ffffffffffffffff0000000000000000010000000000000000"
        )


def test_ls8_a_produced_record_is_on_the_disk(start: Start) -> None:
    check_produced(start, [topic("apple")], [("apple", [(0, batch_of("apple"))])])


def test_yd8_several_records_are_produced_as_one_batch(start: Start) -> None:
    check_produced(start, [topic("apple")], [("apple", [(0, batch_of("one", "two", "three"))])])


def test_ct4_several_partitions_are_produced_to(start: Start) -> None:
    sent = [("pineapple", [(index, batch_of(str(index), "more", "most")) for index in (2, 0, 1)])]
    check_produced(start, [topic("pineapple", 3)], sent)


def test_ov0_several_topics_are_produced_to(start: Start) -> None:
    sent = [
        ("raspberry", [(index, batch_of("r", str(index))) for index in range(2)]),
        ("banana", [(0, batch_of("a", "b", "c"))]),
    ]
    check_produced(start, [topic("banana"), topic("raspberry", 2)], sent)


def check_produced(start: Start, topics: Sequence[TopicFiles], sent: Produced) -> None:
    """Produce, and find each batch first in its file: as it was sent, but for its leader epoch."""
    with start(topics) as program:
        assert program.connect().ask(produce(sent)) == produced(sent)
        for name, partitions in sent:
            for index, batch in partitions:
                stored = program.log(name, index)
                assert stored[:12] + stored[16:] == batch[:12] + batch[16:], (name, index)


# ---- the files


def test_the_settings_are_the_challenges_own() -> None:
    settings = PROPERTIES.format(directory="/tmp/kraft-combined-logs", listen=":9092")

    assert len(settings) == 329 and not settings.endswith("\n")


def test_the_metadata_log_is_the_challenges_own() -> None:
    pear = TopicFiles("pear", plain("71a59a51 8968 4f8b 937e 6d1d292864ea"), [[]])

    assert metadata_log([pear]) == plain(
        "00000000000000010000004f0000000102b069457c00000000000000000191e05af81800000191e05af818ffffffffffffffffffff"
        "ffffffff000000013a000000012e010c00116d657461646174612e76657273696f6e0014000000"
        "000000000000020000009b0000000102948a6f6200000000000100000191e05b2d1500000191e05b2d15ffffffffffffffffffff"
        "ffffffff000000023e0000000132010200057065617271a59a5189684f8b937e6d1d292864ea000090010000020182010103010000"
        "000071a59a5189684f8b937e6d1d292864ea02000000010200000001010100000001000000000000000002100000000000400080"
        "000000000000010000"
    )
