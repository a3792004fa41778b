"""What commands print with `--json` is what the reference promises, field by field."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from ottla.cli.json_shapes import LINES, OFTEN_ABSENT, SHAPES, TOLD_BY_NAME, Shape, written
from ottla.cli.main import main
from ottla.cli.reference import leaf_commands
from ottla.client import GroupSettings, sync
from ottla.testing.cluster import broker_in_thread

KINDS: Final[dict[str, tuple[type, ...]]] = {"text": (str,), "number": (int, float), "yes/no": (bool,)}

WORDS: Final = {
    "topics create": ("made",),
    "topics describe": ("orders",),
    "topics alter": ("orders", "-c", "retention.ms=100000000"),
    "topics grow": ("orders", "3"),
    "topics delete": ("nope",),
    "topics offsets": ("orders", "--at", "-1h"),
    "produce": ("orders", "{file}"),
    "consume": ("orders", "-u", "end", "-q"),
    "groups describe": ("classic", "consumer"),
    "groups members": ("consumer",),
    "groups reset": ("left", "--to", "start", "--topic", "orders"),
    "groups forget": ("left", "--topic", "orders"),
    "groups delete": ("left", "nope"),
    "configs get": ("broker", "1", "--all"),
    "configs set": ("topic", "orders", "retention.ms=100000001"),
    "configs unset": ("topic", "orders", "retention.ms"),
    "configs explain": ("log.cleaner.*",),
    "decode": ("{log}",),
    "commitlog append": ("values.log", "a"),
    "commitlog read": ("values.log",),
    "commitlog verify": ("values.log",),
    "commitlog import": ("values.log", "orders"),
    "commitlog export": ("orders", "copy.log"),
    "perf produce": ("load", "-n", "10"),
    "perf consume": ("load",),
    "perf latency": ("load", "-n", "10"),
    "storage info": ("{data}",),
    "storage verify": ("{stopped}",),
    "storage repair": ("{stopped}",),
    "dump-log": ("{log}", "--records"),
}


def misfit(shape: Shape, value: object, where: str = "", absent: tuple[str, ...] = ()) -> str | None:
    """Return where and how a value is not what a shape says, None where it is."""
    if isinstance(shape, str):
        if value is None:
            return None if shape.endswith("?") or shape == "any" else f"{where} is null"
        kinds = KINDS.get(shape.removesuffix("?"), (object,))
        is_other = isinstance(value, bool) and bool not in kinds and shape != "any"
        return f"{where} is {value!r}, not {shape}" if is_other or not isinstance(value, kinds) else None
    if value is None:
        return None  # a list or an object that is not known
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{where} is no list"
        found = (misfit(shape[0], one, f"{where}[{index}]") for index, one in enumerate(value))
        return next((text for text in found if text is not None), None)
    if not isinstance(value, dict):
        return f"{where} is no object"
    names = {name.removesuffix(TOLD_BY_NAME) for name in value}
    if "*" not in shape and (names - shape.keys() or shape.keys() - names - set(absent)):
        return f"{where} has {sorted(names)}, not {sorted(shape)}"
    found = (misfit(shape.get(name, shape.get("*", "text")), one, f"{where}.{name}") for name, one in value.items())
    return next((text for text in found if text is not None), None)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A cluster that has something of everything, and a directory with damage that nobody uses."""
    stopped = tmp_path_factory.mktemp("stopped")
    with broker_in_thread({"log.dirs": str(stopped)}) as running, sync.Producer(running.address) as producer:
        producer.send("damaged", b"x")
    (stopped / "damaged-0" / f"{0:020}.log").write_bytes(b"torn")
    data = tmp_path_factory.mktemp("data")
    settings = {"log.dirs": str(data), "group.initial.rebalance.delay.ms": "0", "ottla.flush.policy": "os"}
    with broker_in_thread(settings) as running:
        address = running.address
        with sync.Admin(address) as admin:
            admin.create_topic("orders", partitions=2)
            admin.create_topic("load")
        with sync.Producer(address) as producer:
            producer.send("orders", b"tea", key=b"ann", headers=[("h", b"\xff"), ("n", None)])
            producer.send("orders", None, key=b"\xff")
        with sync.Consumer(address, group="left", auto_offset_reset="earliest") as reader:
            reader.subscribe("orders")
            reader.next_batch(10_000)
            reader.commit()
        with (
            sync.Consumer(address, group="classic", auto_offset_reset="earliest") as classic,
            sync.Consumer(
                address,
                group=GroupSettings(group_id="consumer", group_protocol="consumer"),
                auto_offset_reset="earliest",
            ) as consumer,
        ):
            for member in (classic, consumer):
                member.subscribe("orders")
                member.next_batch(10_000)
                member.commit()
            log = next(file for file in data.glob("orders-*/*.log") if file.stat().st_size)
            lines = tmp_path_factory.mktemp("lines") / "orders.txt"
            lines.write_text("tea\ncake\n")
            yield {"address": address, "data": str(data), "log": str(log), "stopped": str(stopped), "file": str(lines)}


@pytest.mark.parametrize("path", SHAPES)
def test_json_is_as_promised(
    path: str,
    places: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("OTTLA_BOOTSTRAP", places["address"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    monkeypatch.chdir(tmp_path)
    if path.startswith("commitlog"):
        with pytest.raises(SystemExit):
            main(["commitlog", "append", "values.log", "first", "second"])
        capsys.readouterr()
    words = [word.format(**places) for word in WORDS.get(path, ())]

    with pytest.raises(SystemExit):
        main([*path.split(), *words, "--json"])

    out = capsys.readouterr().out
    documents = [json.loads(line) for line in out.splitlines()] if path in LINES else [json.loads(out)]
    assert documents, "nothing was shown that could be held to the promise"
    assert documents != [[]], "nothing was shown that could be held to the promise"
    for document in documents:
        assert misfit(SHAPES[path], document, absent=OFTEN_ABSENT.get(path, ())) is None, written(SHAPES[path])


def test_every_command_that_prints_json_has_made_a_promise() -> None:
    answering = {path for path, _ in leaf_commands()} - {"completion"}
    assert answering == SHAPES.keys()


def test_a_shape_is_written_as_the_json_that_it_stands_for() -> None:
    assert written([{"a": "text?", "b": {"*": ["number"]}}]) == '[{"a": text?, "b": {"*": [number]}}]'
    assert misfit([{"a": "number"}], [{"a": True}]) == "[0].a is True, not number"
    assert misfit({"a": "text"}, {"a": None}) == ".a is null"
    assert misfit({"a": "text"}, {"b": "x"}) == " has ['b'], not ['a']"
