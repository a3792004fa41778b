"""`ottla perf`: its command line. The loads themselves are in `measuring`, imported when they are needed."""

from __future__ import annotations

from collections.abc import Callable

import click

from ottla.cli.options import MOST_PER_SECOND, Amount, bootstrap_option, examples, json_option, producer_options
from ottla.cli.output import DONE, Refused, count_text, print_json, print_line, run, say


@click.group()
def perf() -> None:
    """Measure throughput and latency with a bounded load.

    Records go to and come from a topic that you name and have made; use one that nobody needs.
    """


@perf.command(
    "produce",
    epilog=examples(
        "ottla topics create load --if-not-exists",
        "ottla perf produce load --records 10000",
        "ottla perf produce load -n 100 -r 1000 --json",
    ),
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
    """Send records of random capital letters, as fast as they go or at a rate.

    Latencies are those from send to acknowledgement, in ms, of all records or, from 2,000 on, of every second to
    sixteenth. Every 5 seconds a line on standard error says how far it is.
    """
    from ottla.cli.latencies import figures_line
    from ottla.cli.measuring import produce_load
    from ottla.client.producer import ProducerSettings

    settings = ProducerSettings(
        acks=acks,
        compression_type=compression,
        linger_ms=linger_ms,
        batch_size=batch_size,
        max_request_size=max(1_048_576, size_bytes + 1024),
    )

    async def work() -> int:
        seconds, latencies = await produce_load(
            bootstrap, topic, records, size_bytes, rate, settings, _interval_teller(as_json=as_json)
        )
        figures = latencies.figures()
        if as_json:
            facts = {"records": records, "size_bytes": size_bytes}
            print_json({**facts, **_rates(records, records * size_bytes, seconds), "latency_ms": figures})
        else:
            print_line(_rates_line(records, records * size_bytes, seconds))
            print_line(figures_line("latency", figures))
        return DONE

    run(work())


@perf.command(
    "consume",
    epilog=examples(
        "ottla topics create load --if-not-exists",
        "ottla perf produce load -n 1000",
        "ottla perf consume load",
        "ottla perf consume load -n 100 --json",
    ),
)
@click.argument("topic")
@click.option(
    "-n",
    "--records",
    type=click.IntRange(1, 1_000_000_000),
    metavar="N",
    help="Stop after exactly so many, or at the end.",
)
@json_option
@bootstrap_option
def perf_consume(topic: str, records: int | None, as_json: bool, bootstrap: str) -> None:
    """Read a topic from its start to what is its end now, and count keys and values.

    kafka-consumer-perf-test stops after the poll that brings the last one of --num-records, and so counts up to 499
    more; this counts as many as it is told. Every 5 seconds a line on standard error says how far it is.
    """
    from ottla.cli.measuring import consume_load

    async def work() -> int:
        count, size_bytes, seconds = await consume_load(bootstrap, topic, records, _interval_teller(as_json=as_json))
        if not count:
            raise Refused(f"topic {topic!r} has no records")
        if records is not None and count < records:
            say(f"topic {topic!r} has only {count_text(count, 'record')} to read")
        if as_json:
            print_json({"records": count, **_rates(count, size_bytes, seconds)})
        else:
            print_line(_rates_line(count, size_bytes, seconds))
        return DONE

    run(work())


def _interval_teller(*, as_json: bool) -> Callable[[str], None]:
    """Return what is done with lines for the person who waits; a program hears of trouble only."""
    return (lambda line: None) if as_json else say


def _rates(count: int, size_bytes: int, seconds: float) -> dict[str, object]:
    return {
        "seconds": round(seconds, 6),
        "records_per_second": round(count / seconds),
        "mb_per_second": round(size_bytes / seconds / 1e6, 3),
    }


def _rates_line(count: int, size_bytes: int, seconds: float) -> str:
    rate, megabytes = count / seconds, size_bytes / seconds / 1e6
    return f"{count_text(count, 'record')} in {seconds:.2f} s: {rate:,.0f} records/s, {megabytes:.1f} MB/s"


@perf.command(
    epilog=examples(
        "ottla topics create load --if-not-exists",
        "ottla perf latency load --records 100 --rate 1000",
        "ottla perf latency load -n 100 --json",
    )
)
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
@click.option(
    "--acks", type=click.Choice(["1", "all"]), default="all", show_default=True, help="What an acknowledgement means."
)
@json_option
@bootstrap_option
def latency(topic: str, records: int, size_bytes: int, rate: float, acks: str, as_json: bool, bootstrap: str) -> None:
    """Time records from send to acknowledgement and from send to being read.

    kafka-e2e-latency sends each record when the one before it was read; here they are sent at a rate, whether those
    before were read or not, so that a broker that stands still is seen in the times of all that wait for it.
    """
    from ottla.cli.latencies import figures_line
    from ottla.cli.measuring import measure_latency

    async def work() -> int:
        acknowledged, received = await measure_latency(bootstrap, topic, records, size_bytes, rate, acks)
        rows = {"acknowledged": acknowledged.figures(), "received": received.figures()}
        if as_json:
            print_json({"records": records, "rate": rate, "unit": "ms", **rows})
        else:
            for name, row in rows.items():
                print_line(figures_line(name, row))
        return DONE

    run(work())
