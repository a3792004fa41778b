"""A lite Produce of many values is taken in over several turns, in which its topic may change."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.metadata.create_topics import NewTopic
from ottla.broker.metadata.delete_topics import TopicReference
from ottla.dialects.lite.codec import Produce
from ottla.dialects.lite.handlers import VALUES_A_STEP, _append
from ottla.errors import UnknownTopicOrPartition
from tests.dialects.handlers.harness import Bench
from tests.turns import finish

MANY = Produce("t", 0, [b"v"] * (VALUES_A_STEP + 1))


def test_values_are_appended_by_the_rules_of_the_topic_that_is_there_at_their_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.controller.create_topics([NewTopic("t", 1, 1)])
    steps = _append(MANY, bench.broker)
    next(steps)
    bench.controller.delete_topics([TopicReference("t")])
    bench.controller.create_topics([NewTopic("t", 1, 1, configs=(("message.timestamp.type", "LogAppendTime"),))])

    ticket, _ = finish(steps)

    assert ticket.log_append_time_ms >= 0
    assert bench.broker.partition("t", 0).offsets().log_end_offset == VALUES_A_STEP + 1


def test_values_for_a_topic_that_went_meanwhile_are_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.controller.create_topics([NewTopic("t", 1, 1)])
    steps = _append(MANY, bench.broker)
    next(steps)
    bench.controller.delete_topics([TopicReference("t")])

    with pytest.raises(UnknownTopicOrPartition):
        finish(steps)
