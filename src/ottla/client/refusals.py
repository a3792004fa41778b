"""What producers hear when a batch is refused for the sake of some of its records (KIP-467)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.client.errors import RefusedWithBatch
from ottla.client.producer_batch import ProducerBatch
from ottla.errors import InvalidRecord, KafkaError
from ottla.protocol.messages.produce import BatchIndexAndErrorMessage


def errors_of_records(
    batch: ProducerBatch, error: KafkaError, rows: Sequence[BatchIndexAndErrorMessage]
) -> dict[int, KafkaError]:
    """Return the errors of single records by their place in the batch.

    The answer has one code for all of them: it is told as such when it can only be about one record; else each is
    INVALID_RECORD with its text (as Kafka's producer does).
    """
    kind = type(error) if len(rows) == 1 else InvalidRecord
    return {row.batch_index: kind(f"{batch.queue.partition}: {row.batch_index_error_message or error}") for row in rows}


def refused_with(batch: ProducerBatch, refused: Mapping[int, KafkaError]) -> KafkaError:
    """Return what the other records of the batch hear."""
    return RefusedWithBatch(
        f"the record is well, but {len(refused)} of the {batch.count} in its batch are not, so that none was written"
    )
