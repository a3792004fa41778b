"""What one record costs: to walk (a produced batch), to decode (a consumer), to build (a producer).

    python -m benchmarks.record_walk

Prints one line each, in nanoseconds of CPU time a record, beside aiokafka's C code on the same batch; and what
`validate_produced` costs on whole batches, in microseconds. Each figure is the best of several runs, so that what else
the machine does counts little. It says which build it measured.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from benchmarks.timing import best_seconds
from ottla._build import build_kind
from ottla.records.batch import HEADER_BYTES, RecordBatch
from ottla.records.builder import BatchBuilder
from ottla.records.crc32c import crc32c
from ottla.records.record import walk_records
from ottla.records.validation import ProduceRules, validate_produced

RECORDS: Final = 140
VALUE: Final = bytes(100)
NOW_MS: Final = 1_750_000_000_000


def build(count: int, value: bytes = VALUE) -> bytes:
    builder = BatchBuilder()
    for number in range(count):
        builder.append(NOW_MS + number, b"key-%d" % number, value)
    return builder.build()


def build_with_aiokafka() -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for number in range(RECORDS):
        builder.append(number, NOW_MS + number, b"key-%d" % number, VALUE, [])
    return bytes(builder.build())


def line(name: str, seconds: float, unit: str, factor: float) -> None:
    print(f"{name:<44} {seconds * factor:>9.1f} {unit}")


def main() -> None:
    data = build(RECORDS)
    payload = data[HEADER_BYTES:]
    rules = ProduceRules()
    per_record = 1e9 / RECORDS
    print(f"records of {len(payload) // RECORDS} bytes, {RECORDS} in a batch, {build_kind()} build")
    line("walk", best_seconds(lambda: walk_records(payload, RECORDS, NOW_MS)), "ns/record", per_record)
    line("decode", best_seconds(lambda: RecordBatch(data).decode()), "ns/record", per_record)
    line("decode, aiokafka (C)", best_seconds(lambda: list(DefaultRecordBatch(data))), "ns/record", per_record)
    line("build", best_seconds(lambda: build(RECORDS)), "ns/record", per_record)
    line("build, aiokafka (C)", best_seconds(build_with_aiokafka), "ns/record", per_record)
    for name, batch in (
        ("one record of 100 bytes", build(1)),
        ("16 KB", data),
        ("64 KB, 9 records", build(9, bytes(7_000))),
    ):
        view = memoryview(bytearray(batch))
        line(f"validate, {name}", best_seconds(partial(validate_produced, view, rules, NOW_MS)), "µs/batch", 1e6)
        line("  of which checksum", best_seconds(partial(crc32c, view)), "µs/batch", 1e6)


if __name__ == "__main__":
    main()
