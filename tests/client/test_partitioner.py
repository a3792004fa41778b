"""Keys go where Kafka puts them; keyless records stick and move on as since Kafka 3.3."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from random import Random

from ottla.client.partitioner import StickyChoice, choose_partition, partition_for_key

GOLDEN = Path(__file__).parent.parent / "golden" / "records" / "murmur2.tsv.gz"


def test_a_key_decides_the_partition_that_kafka_chooses() -> None:
    lines = gzip.decompress(GOLDEN.read_bytes()).decode().splitlines()
    counts = [int(name.removeprefix("p")) for name in lines[0].split("\t")[3:]]
    for line in lines[1:]:
        key, *numbers = line.split("\t")
        chosen = [partition_for_key(bytes.fromhex(key), count) for count in counts]
        assert chosen == [int(number) for number in numbers[2:]], key


def test_the_draw_favours_partitions_with_short_queues() -> None:
    """Weights are the longest queue plus one minus the own queue: 4, 3 and 1 here."""
    random = Random(7)
    drawn = Counter(choose_partition([10, 11, 12], [0, 1, 3], random.random) for _ in range(8000))

    assert [round(drawn[partition] / 1000) for partition in (10, 11, 12)] == [4, 3, 1]


def test_every_partition_can_be_drawn_when_none_waits() -> None:
    assert choose_partition([0, 1], [0, 0], lambda: 0.0) == 0
    assert choose_partition([0, 1], [0, 0], lambda: 0.999999) == 1


def test_a_partition_is_kept_until_it_had_its_share() -> None:
    sticky = StickyChoice(100, lambda: 0.0)
    assert sticky.draw([3, 4], [0, 0]) == 3

    assert not sticky.count(99, batch_is_full=True)
    assert sticky.count(1, batch_is_full=True)


def test_a_batch_that_is_not_full_is_kept_to_twice_the_share() -> None:
    sticky = StickyChoice(100, lambda: 0.0)
    sticky.draw([0], [0])

    assert not sticky.count(199, batch_is_full=False)
    assert sticky.count(1, batch_is_full=False)
