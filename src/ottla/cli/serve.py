"""`ottla serve`: run a broker until it is told to stop.

    ottla serve [server.properties] [--data DIR] [--listen HOST:PORT] [-o key=value]...
    ottla serve --read-only DIR [server.properties] [--listen HOST:PORT] [-o key=value]...

Settings are Kafka's own. Flags win over the file, the file over the environment (`KAFKA_LOG_DIRS` and the like).
Standard output gets one line, `ottla ready on HOST:PORT`, once a client would be served; everything else goes to
standard error. SIGTERM and SIGINT stop the broker in order; the second one stops it at once, without the
clean-shutdown file. With `--read-only` a directory is served as it is, ours, Kafka's or a copy of either, under the
node id that it has, and nothing in it is changed.

Start-up is measured in milliseconds: nothing is imported here that a broker does not need.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, NoReturn

from ottla.cli.log_lines import LogLines
from ottla.config.broker_config import BrokerConfig, ConfigError, environment_properties, parse_overrides
from ottla.config.properties import decode_properties

EXIT_USAGE: Final = 2
EXIT_FAILED: Final = 1
EXIT_SECOND_SIGNAL: Final = 130

NEW_NODE: Final = "1"
FEW_DESCRIPTORS: Final = 4096
"""Below it a start says so: each connection takes one, and each busy partition one or two."""

HELP_WIDTH: Final = 100
"""Columns of the help. Without it argparse asks how wide the terminal is at every option, with much imported for it."""

DESCRIPTION: Final = """\
Run a broker until it is told to stop: SIGTERM or Ctrl-C in order, the second one at once.

Settings also come from environment variables: KAFKA_LOG_RETENTION_MS is log.retention.ms. Options win
over the file, the file over the environment."""

EXAMPLES: Final = """\
Examples:
  ottla serve
  ottla serve server.properties --data /var/lib/ottla --listen 0.0.0.0:9092
  ottla serve --read-only /backup/kafka-logs
  ottla serve --listen 127.0.0.1:0 -o log.retention.hours=24 -o ottla.flush.policy=os
"""

_log = logging.getLogger("ottla")


def main(arguments: Sequence[str]) -> int:
    """Serve until a signal comes; returns the exit code."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    try:
        options = serve_parser().parse_args(arguments)
        config = read_config(options)
    except OSError as error:
        return _complain(f"cannot read {error.filename or options.properties}: {error.strerror}", EXIT_USAGE)
    except ConfigError as error:
        return _complain(str(error), EXIT_USAGE)
    for warning in config.warnings:
        _log.warning(warning)
    return _run_loop(lambda: _serve(config, is_read_only=options.read_only is not None))


def read_config(options: argparse.Namespace) -> BrokerConfig:
    """Return the configuration that command line, file and environment give. Raises `ConfigError`, `OSError`."""
    properties = environment_properties(os.environ)
    if options.properties is not None:
        with open(options.properties, "rb") as file:
            properties.update(decode_properties(file.read()))
    if options.data is not None:
        properties["log.dirs"] = options.data
    if options.read_only is not None:
        properties["log.dirs"] = options.read_only
        if not {"node.id", "broker.id"} & properties.keys():
            properties["node.id"] = _node_that_left(options.read_only)
    if options.listen is not None:
        properties["listeners"] = f"PLAINTEXT://{options.listen}"
    properties.update(parse_overrides(options.override))
    return BrokerConfig.from_properties(properties)


def _node_that_left(directories: str) -> str:
    """The node id that the first of these directories belongs to; that of a new broker where it says none."""
    from ottla.storage.directory import META_PROPERTIES

    path = os.path.join(directories.split(",", maxsplit=1)[0].strip(), META_PROPERTIES)
    try:
        with open(path, "rb") as file:
            return decode_properties(file.read()).get("node.id", NEW_NODE)
    except OSError:  # the start says what is wrong with it
        return NEW_NODE


class _Parser(argparse.ArgumentParser):
    """Complains in one line, as the other commands do."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        sys.exit(_complain(f"{message}; see: {self.prog} --help", EXIT_USAGE))


def serve_parser() -> argparse.ArgumentParser:
    """Return what reads the command line of `ottla serve`."""
    parser = _Parser(
        prog="ottla serve",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=HELP_WIDTH),
    )
    parser.add_argument("properties", nargs="?", metavar="server.properties", help="settings, with Kafka's own keys")
    parser.add_argument("--data", metavar="DIR", help="where to keep data (log.dirs); ./ottla-data by default")
    parser.add_argument(
        "--read-only", metavar="DIR", help="serve what this directory has, and change nothing in it (several: DIR,DIR)"
    )
    parser.add_argument("--listen", metavar="HOST:PORT", help="where to listen (listeners); port 0 takes any free one")
    parser.add_argument(
        "-o", dest="override", action="append", default=[], metavar="KEY=VALUE", help="one setting, as in the file"
    )
    return parser


def _run_loop(serve: Callable[[], Coroutine[Any, Any, int]]) -> int:
    try:
        import uvloop
    except ImportError:  # where uvloop does not exist, asyncio's own loop serves
        return asyncio.run(serve())
    return uvloop.run(serve())


async def _serve(config: BrokerConfig, *, is_read_only: bool) -> int:
    from ottla.server import Server, StartError
    from ottla.storage.files import raise_descriptor_limit

    limit = raise_descriptor_limit()
    if limit < FEW_DESCRIPTORS:
        _log.warning("few files may be open at once; raise the limit (LimitNOFILE, ulimit -Hn)", extra={"limit": limit})
    stopped = _stop_on_signals()
    server = Server(config, is_read_only=is_read_only)
    try:
        await server.start()
    except StartError as error:
        return _complain(str(error), EXIT_FAILED)
    gc.freeze()  # what a start made stays as long as the process: no collection need look at it again
    gc.enable()
    if is_read_only:
        _log.info(
            "serving read-only; what had to be repaired was, in memory", extra={"log.dirs": ",".join(config.log_dirs)}
        )
    print(f"ottla ready on {server.address}", flush=True)
    await stopped.wait()
    _log.info("stopping")
    await server.stop()
    return 0


def _stop_on_signals() -> asyncio.Event:
    """The first SIGTERM or SIGINT sets the event, the next one ends the process."""
    stopped = asyncio.Event()

    def on_signal() -> None:
        if stopped.is_set():
            os._exit(EXIT_SECOND_SIGNAL)
        stopped.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    return stopped


def _complain(message: str, code: int) -> int:
    print(f"ottla: {message}", file=sys.stderr)
    return code
