"""`ottla perf`: its command line. The loads themselves are in `measuring`, imported when they are needed."""

from __future__ import annotations

import click

from ottla.cli.options import MOST_PER_SECOND, Amount, bootstrap_option, examples, json_option, producer_options
from ottla.cli.output import DONE, Refused, print_json, print_line, run


@click.group()
def perf() -> None:
    """Measure throughput and latency with a bounded load.

    Records go to and come from a topic that you name; use one that nobody needs.
    """


@perf.command(
    "produce",
    epilog=examples("ottla perf produce load --records 10000", "ottla perf produce load -n 100 -r 1000 --json"),
)
@click.argument("topic")
@click.option(
    "-n",
    "--records",
    type=click.IntRange(1, 1_000_000_000),
    metavar="N",
    default=1_000_000,
    show_default=True,
    help="How many.",
)
@click.option(
    "-s",
    "--size",
    "size_bytes",
    type=click.IntRange(0, 100_000_000),
    metavar="BYTES",
    default=100,
    show_default=True,
    help="Bytes each.",
)
@click.option(
    "-r",
    "--rate",
    type=Amount(MOST_PER_SECOND, above_zero=True),
    metavar="N",
    help="Records per second; else all it takes.",
)
@producer_options
@json_option
@bootstrap_option
def perf_produce(
    topic: str,
    records: int,
    size_bytes: int,
    rate: float | None,
    compression: str,
    acks: str,
    linger_ms: float,
    batch_size: int,
    as_json: bool,
    bootstrap: str,
) -> None:
    """Send records as fast as they go, or at a rate."""
    from ottla.cli.measuring import produce_load
    from ottla.client.producer import ProducerSettings

    settings = ProducerSettings(
        acks=acks if acks == "all" else int(acks),
        compression_type=compression,
        linger_ms=linger_ms,
        batch_size=batch_size,
        max_request_size=max(1_048_576, size_bytes + 1024),
    )

    async def work() -> int:
        seconds = await produce_load(bootstrap, topic, records, size_bytes, rate, settings)
        _report({"records": records, "size_bytes": size_bytes}, records, records * size_bytes, seconds, as_json)
        return DONE

    run(work())


@perf.command("consume", epilog=examples("ottla perf consume load", "ottla perf consume load -n 100 --json"))
@click.argument("topic")
@click.option(
    "-n",
    "--records",
    type=click.IntRange(1, 1_000_000_000),
    metavar="N",
    help="Stop after the batch with so many; else at the end.",
)
@json_option
@bootstrap_option
def perf_consume(topic: str, records: int | None, as_json: bool, bootstrap: str) -> None:
    """Read a topic from its start."""

    from ottla.cli.measuring import consume_load

    async def work() -> int:
        count, size_bytes, seconds = await consume_load(bootstrap, topic, records)
        if not count:
            raise Refused(f"topic {topic!r} has no records")
        _report({"records": count}, count, size_bytes, seconds, as_json)
        return DONE

    run(work())


def _report(facts: dict[str, object], count: int, size_bytes: int, seconds: float, as_json: bool) -> None:
    rate, megabytes = count / seconds, size_bytes / seconds / 1e6
    if as_json:
        facts |= {"seconds": round(seconds, 6), "records_per_second": round(rate), "mb_per_second": round(megabytes, 3)}
        print_json(facts)
    else:
        print_line(f"{count:,} records in {seconds:.2f} s: {rate:,.0f} records/s, {megabytes:.1f} MB/s")


@perf.command(epilog=examples("ottla perf latency load --records 100 --rate 1000"))
@click.argument("topic")
@click.option(
    "-n",
    "--records",
    type=click.IntRange(10, 10_000_000),
    metavar="N",
    default=1000,
    show_default=True,
    help="How many.",
)
@click.option(
    "-s",
    "--size",
    "size_bytes",
    type=click.IntRange(0, 1_000_000),
    metavar="BYTES",
    default=100,
    show_default=True,
    help="Bytes each.",
)
@click.option(
    "-r",
    "--rate",
    type=Amount(MOST_PER_SECOND, above_zero=True),
    metavar="N",
    default=400.0,
    show_default=True,
    help="Records a second.",
)
@json_option
@bootstrap_option
def latency(topic: str, records: int, size_bytes: int, rate: float, as_json: bool, bootstrap: str) -> None:
    """Time records from send to acknowledgement and from send to being read."""

    from ottla.cli.measuring import measure_latency, percentiles

    async def work() -> int:
        acknowledged, received = await measure_latency(bootstrap, topic, records, size_bytes, rate)
        rows = {"acknowledged": percentiles(acknowledged), "received": percentiles(received)}
        if as_json:
            print_json({"records": records, "rate": rate, "unit": "ms", **rows})
        else:
            for name, row in rows.items():
                print_line(f"{name:12} " + "  ".join(f"{key} {value:.3f} ms" for key, value in row.items()))
        return DONE

    run(work())
