"""Producer state in the words of the reference data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.storage.producer_state import ProducedBatch, ProducerState


def describe_producers(states: Iterable[ProducerState]) -> list[dict[str, Any]]:
    """Return the states as the reference data lists them, by producer id."""
    return [
        {
            "producerId": state.producer_id,
            "producerEpoch": state.producer_epoch,
            "coordinatorEpoch": state.coordinator_epoch,
            "lastTimestamp": state.last_timestamp_ms,
            "currentTxnFirstOffset": state.current_txn_first_offset,
            "batches": [_describe_batch(batch) for batch in state.batches],
        }
        for state in sorted(states, key=lambda state: state.producer_id)
    ]


def make_producer(row: dict[str, Any]) -> ProducerState:
    """Return the state that a row of the reference data describes."""
    state = ProducerState(row["producerId"])
    state.producer_epoch = row["producerEpoch"]
    state.coordinator_epoch = row["coordinatorEpoch"]
    state.last_timestamp_ms = row["lastTimestamp"]
    state.current_txn_first_offset = row["currentTxnFirstOffset"]
    for batch in row["batches"]:
        state.batches.append(
            ProducedBatch(batch["lastSeq"], batch["lastOffset"], batch["offsetDelta"], batch["timestamp"])
        )
    return state


def _describe_batch(batch: ProducedBatch) -> dict[str, int]:
    return {
        "firstSeq": batch.first_sequence,
        "lastSeq": batch.last_sequence,
        "firstOffset": batch.first_offset,
        "lastOffset": batch.last_offset,
        "offsetDelta": batch.offset_delta,
        "timestamp": batch.timestamp_ms,
    }
