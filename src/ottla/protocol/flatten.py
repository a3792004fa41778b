"""Writes the codecs of the hot APIs out flat: `python -m ottla.protocol.flatten`.

From the declarations in `messages/` it makes the modules of `flat/`, which read and write what `plans.StructCodec`
would, without a step per field: attributes are set by name and versions compared in place, which mypyc turns into
straight C. For each struct there is a function `new_...` too: what the class's own call gives at a fraction of its
cost, for handlers that answer many times a second. The made modules are committed, so that they can be read, compiled
and packed like any other; a test makes them again and compares. Nothing here runs in a broker.

Only what the hot messages use is known here: no nullable structs, no nullability that changes between versions.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Final

from ottla.protocol.codec import FLAT
from ottla.protocol.schema import ALL_VERSIONS, NO_TAG, NO_VERSIONS, Field, Message, StructType

PLAIN: Final = {"bool": "boolean"}
SIZED: Final = {"string": "string", "bytes": "octets", "records": "records"}
ALWAYS: Final = ""
LINE_LENGTH: Final = 120
Lines = Iterator[str]


def main() -> None:
    """Write all flat modules beside this file."""
    folder = Path(__file__).parent / "flat"
    for module in FLAT:
        path = folder / f"{module.rpartition('.')[2]}.py"
        path.write_text(module_source(module), encoding="utf-8")
        sys.stdout.write(f"{path.name}\n")


def module_source(name: str) -> str:
    """Return the source of the flat twin of a module in `messages/`."""
    module = import_module(name)
    declared = [value for value in vars(module).values() if isinstance(value, StructType)]
    structs = [cls for cls in declared if cls.__module__ == name]
    messages = [cls for cls in structs if issubclass(cls, Message)]
    parts = [_new_struct(cls) for cls in structs] + [_message(cls) for cls in messages]
    body = "\n\n\n".join("\n".join(_folded(lines)) for lines in parts)
    called = ("lacking", "misplaced", "read_unknown_tags", "write_tags", "write_unknown_tags")
    used = ", ".join(["Codec", *(name for name in called if f" {name}(" in body)])
    own = "\n".join(f"    {cls.__name__}," for cls in sorted(structs, key=lambda cls: cls.__name__.lower()))
    return f'''"""Flat codecs of `{name}`.

Made by `ottla.protocol.flatten` from the declarations; change those and run it, not this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from mypy_extensions import i64

from {name} import (
{own}
)
from ottla.protocol.plans import {used}
from ottla.protocol.primitives import Reader, Writer
from ottla.protocol.schema import ZERO_UUID, Records, UnknownTag

Tags: TypeAlias = Sequence[UnknownTag]

_new: Final[Any] = object.__new__


{body}
'''


def _message(cls: StructType) -> Lines:
    schema = cls.SCHEMA
    versions = set(range(schema.versions.lowest, schema.versions.highest + 1))
    flexible = min(version for version in versions if version in schema.flexible)
    parts = _parts(cls, versions)
    holds_records = any(field.type == "records" for part, _ in parts for field in part.SCHEMA.fields)
    yield f"class {cls.__name__}Codec(Codec):"
    yield f'    """{cls.__name__} in one version."""'
    yield ""
    yield "    def __init__(self, version: int) -> None:"
    yield "        self.version: i64 = version"
    yield f"        self.compact = version >= {flexible}"
    yield f"        self.holds_records = {holds_records}"
    yield ""
    yield "    def read(self, reader: Reader) -> object:"
    yield f"        return self.read_{_snake(cls)}(reader)"
    yield ""
    yield "    def write(self, writer: Writer, value: Any) -> None:"
    yield f"        self.write_{_snake(cls)}(writer, value)"
    for part, of_versions in parts:
        compact = {version for version in of_versions if version >= flexible}
        yield from _method(_read_struct(part, of_versions))
        yield from _method(_read_tags(part, compact))
        yield from _method(_write_struct(part, of_versions))
    defaults = [field.of for part, _ in parts for field in part.SCHEMA.fields if field.type == "struct"]
    for default in defaults:
        assert isinstance(default, StructType)
        yield from _method(_is_struct_set(default))


def _method(lines: Lines) -> Lines:
    """Yield the lines, if any, inside a class and behind an empty one."""
    for number, line in enumerate(lines):
        if number == 0:
            yield ""
        yield f"    {line}"


def _parts(cls: StructType, versions: set[int]) -> list[tuple[StructType, set[int]]]:
    """Return the message's structs, outermost first, with the versions in which each is there."""
    found = [(cls, versions)]
    for field in cls.SCHEMA.fields:
        if isinstance(field.of, StructType):
            found.extend(_parts(field.of, _there(field, versions)))
    return found


def _there(field: Field, versions: set[int]) -> set[int]:
    return {version for version in versions if version in field.versions}


def _tagged(cls: StructType) -> list[Field]:
    return sorted((field for field in cls.SCHEMA.fields if field.tag != NO_TAG), key=lambda field: field.tag)


# -- reading ------------------------------------------------------------------------------------------------------


def _read_struct(cls: StructType, versions: set[int]) -> Lines:
    yield f"def read_{_snake(cls)}(self, reader: Reader) -> {cls.__name__}:"
    yield f"    value: {cls.__name__} = _new({cls.__name__})"
    for condition, fields in _by_condition(cls, versions):
        reads = [line for field in fields for line in _read_field(field)]
        if condition == ALWAYS:
            yield from _indented(reads)
            continue
        yield f"    if {condition}:"
        yield from _indented(_indented(reads))
        yield "    else:"
        yield from _indented(_indented(f"value.{field.name} = {_default(field)}" for field in fields))
    for field in _tagged(cls):
        yield f"    value.{field.name} = {_default(field)}"
    tags = f"self.read_{_snake(cls)}_tags(reader, value)" if _tagged(cls) else "read_unknown_tags(reader)"
    yield f"    value.unknown_tags = {tags} if self.compact else ()"
    yield "    return value"


def _read_tags(cls: StructType, versions: set[int]) -> Lines:
    if not _tagged(cls):
        return
    yield f"def read_{_snake(cls)}_tags(self, reader: Reader, value: {cls.__name__}) -> Tags:"
    yield "    unknown: list[UnknownTag] = []"
    yield "    for _ in range(reader.tag_count()):"
    yield "        tag = reader.varint_int32()"
    yield "        size_bytes = reader.varint_int32()"
    keyword = "if"
    for field in _tagged(cls):
        condition = _condition(_there(field, versions), versions)
        also = "" if condition == ALWAYS else f" and {condition}"
        yield f"        {keyword} tag == {field.tag}{also}:"
        yield from _indented(_indented(_indented(_read_field(field))))
        keyword = "elif"
        if also:
            yield f"        elif tag == {field.tag}:"
            yield f"            raise misplaced({field.tag}, int(self.version))"
    yield "        else:"
    yield "            unknown.append(UnknownTag(int(tag), reader.take(size_bytes)))"
    yield "    return unknown or ()"


def _read_field(field: Field) -> Lines:
    target = f"value.{field.name}"
    if field.type == "array":
        element = _read(field.of)
        if not _is_nullable(field):
            yield f"{target} = [{element} for _ in range(reader.count(self.compact))]"
            return
        yield f"{target} = None"
        yield "count = reader.nullable_count(self.compact)"
        yield "if count >= 0:"
        yield f"    {target} = [{element} for _ in range(count)]"
    else:
        yield f"{target} = {_read(field)}"


def _read(field: Field | StructType | None) -> str:
    """Return the expression that reads one value, which is no array."""
    if isinstance(field, StructType):
        return f"self.read_{_snake(field)}(reader)"
    assert field is not None
    if field.type == "struct":
        return _read(field.of)
    if field.type in SIZED:
        prefix = "nullable_" if _is_nullable(field) else ""
        return f"reader.{prefix}{SIZED[field.type]}(self.compact)"
    return f"reader.{PLAIN.get(field.type, field.type)}()"


def _default(field: Field) -> str:
    if not field.makes_default:
        return "ZERO_UUID" if field.type == "uuid" else _literal(field.default)
    if field.type == "array":
        return "[]"
    assert isinstance(field.of, StructType)
    return f"new_{_snake(field.of)}()"


def _literal(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _new_struct(cls: StructType) -> Lines:
    """A function with a keyword for each field, None standing for a list or struct that is made anew.

    A field that may be null and is not so by default has no keyword: None would mean both.
    """
    yield f"def new_{_snake(cls)}("
    yield "    *,"
    for field in cls.SCHEMA.fields:
        if not field.makes_default:
            yield f"    {field.name}: {_annotation(cls, field)} = {_default(field)},"
        elif not _is_nullable(field):
            yield f"    {field.name}: {_annotation(cls, field)} | None = None,"
    yield f") -> {cls.__name__}:"
    yield f"    value: {cls.__name__} = _new({cls.__name__})"
    for field in cls.SCHEMA.fields:
        if field.makes_default and _is_nullable(field):
            yield f"    value.{field.name} = {_default(field)}"
        elif field.makes_default:
            yield f"    value.{field.name} = {_default(field)} if {field.name} is None else {field.name}"
        else:
            yield f"    value.{field.name} = {field.name}"
    yield "    value.unknown_tags = ()"
    yield "    return value"


def _annotation(cls: StructType, field: Field) -> str:
    """Return the declared type of a field, as it stands in the class."""
    return str(cls.__annotations__[field.name])


# -- writing ------------------------------------------------------------------------------------------------------


def _write_struct(cls: StructType, versions: set[int]) -> Lines:
    yield f"def write_{_snake(cls)}(self, writer: Writer, value: {cls.__name__}) -> None:"
    for condition, fields in _by_condition(cls, versions):
        writes = [line for field in fields for line in _write(field, f"value.{field.name}", "writer")]
        if condition == ALWAYS:
            yield from _indented(writes)
            continue
        yield f"    if {condition}:"
        yield from _indented(_indented(writes))
        refused = [field for field in fields if not field.ignorable]
        for field in refused:
            keyword = "elif" if field is refused[0] else "    if"
            yield f"    {keyword} {_is_set(field)}:"
            yield f'        raise lacking("{field.name}", int(self.version))'
    yield from _indented(_write_tags(cls, versions))


def _write_tags(cls: StructType, versions: set[int]) -> Lines:
    if not _tagged(cls):
        yield "write_unknown_tags(writer, value.unknown_tags, flexible=self.compact)"
        return
    yield "tagged: list[tuple[int, bytes]] = []"
    for field in _tagged(cls):
        condition = _condition(_there(field, versions), versions)
        yield f"if {_is_set(field)}:"
        if condition != ALWAYS and not field.ignorable:
            yield f"    if not ({condition}):"
            yield f'        raise lacking("{field.name}", int(self.version))'
        yield "    nested = Writer()"
        yield from _indented(_write(field, f"value.{field.name}", "nested"))
        yield f"    tagged.append(({field.tag}, nested.merged.getvalue()))"
    yield "write_tags(writer, tagged, value.unknown_tags, flexible=self.compact)"


def _write(field: Field, value: str, writer: str) -> Lines:
    of = field.of
    if field.type == "struct":
        assert isinstance(of, StructType)
        yield f"self.write_{_snake(of)}({writer}, {value})"
    elif field.type == "array":
        item = _snake(of) if isinstance(of, StructType) else "item"
        prefix = "nullable_" if _is_nullable(field) else ""
        yield f"{writer}.{prefix}count({value}, self.compact)"
        yield f"for {item} in {value}{' or ()' if prefix else ''}:"
        if isinstance(of, Field):
            yield from _indented(_write(of, item, writer))
        else:
            yield f"    self.write_{item}({writer}, {item})"
    elif field.type in SIZED:
        prefix = "nullable_" if _is_nullable(field) else ""
        yield f"{writer}.{prefix}{SIZED[field.type]}({value}, self.compact)"
    else:
        yield f"{writer}.{PLAIN.get(field.type, field.type)}({value})"


def _is_set(field: Field) -> str:
    """Return the condition under which a field is not at its default."""
    value = f"value.{field.name}"
    if field.type == "struct":
        assert isinstance(field.of, StructType)
        return f"self.is_{_snake(field.of)}_set({value})"
    if field.default is None:
        return f"{value} is not None"
    if field.type == "array" or not field.default:
        return value
    return f"{value} != {_default(field)}"


def _is_struct_set(cls: StructType) -> Lines:
    conditions = [*(_is_set(field) for field in cls.SCHEMA.fields), "value.unknown_tags"]
    yield f"def is_{_snake(cls)}_set(self, value: {cls.__name__}) -> bool:"
    yield f"    return bool({' or '.join(conditions)})"


# -- conditions and spelling --------------------------------------------------------------------------------------


def _by_condition(cls: StructType, versions: set[int]) -> Iterator[tuple[str, list[Field]]]:
    """Yield the untagged fields in wire order, neighbours with the same versions together."""
    untagged = [field for field in cls.SCHEMA.fields if field.tag == NO_TAG]
    for condition, fields in groupby(untagged, key=lambda field: _condition(_there(field, versions), versions)):
        yield condition, list(fields)


def _condition(there: set[int], versions: set[int]) -> str:
    """Return how to tell, among `versions`, those in which something is there."""
    if there == versions:
        return ALWAYS
    low, high = min(there), max(there)
    assert there == {version for version in versions if low <= version <= high}, "only one range of versions"
    if high == max(versions):
        return f"self.version >= {low}"
    if low == min(versions):
        return f"self.version <= {high}"
    return f"{low} <= self.version <= {high}"


def _is_nullable(field: Field) -> bool:
    assert field.nullable.ranges in (NO_VERSIONS.ranges, field.versions.ranges, ALL_VERSIONS.ranges), field.name
    return field.nullable.ranges != NO_VERSIONS.ranges


def _snake(cls: StructType) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


def _indented(lines: Iterable[str]) -> Lines:
    for line in lines:
        yield f"    {line}" if line else line


def _folded(lines: Lines) -> Lines:
    """Break lists that are too long for a line, as the formatter would."""
    for line in lines:
        if len(line) <= LINE_LENGTH:
            yield line
            continue
        start, _, comprehension = line.partition(" = [")
        indent = " " * (len(start) - len(start.lstrip()))
        yield f"{start} = ["
        yield f"{indent}    {comprehension.removesuffix(']')}"
        yield f"{indent}]"


if __name__ == "__main__":
    main()
