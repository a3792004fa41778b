"""How a declared message stands on the wire in one version: a tree of codecs, built once on first use.

`StructCodec` is the plan of a struct: which fields are there, in which form, and what the others default to. The codecs
below it each know one wire type. They are data for one small interpreter, not code made at run time, and run compiled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, cast

from ottla.errors import UnsupportedVersion
from ottla.protocol.primitives import (
    DecodeError,
    EncodeError,
    Reader,
    Writer,
)
from ottla.protocol.schema import NO_TAG, Field, Struct, StructType, UnknownTag

ELEMENTS_A_STEP: Final = 64

Steps = Generator[None, None, object]
"""Reading or writing that may be put off at each yield, by whoever has others to look after."""


class Codec(ABC):
    """Reads and writes one value. `holds_records` says that most of its bytes may be records.

    What `is_divisible`, since it has arrays, can also be read and written in steps of some elements each.
    """

    holds_records = False
    is_divisible = False

    @abstractmethod
    def read(self, reader: Reader) -> object: ...

    @abstractmethod
    def write(self, writer: Writer, value: Any) -> None: ...

    def read_in_steps(self, reader: Reader) -> Steps:
        yield
        return self.read(reader)

    def write_in_steps(self, writer: Writer, value: Any) -> Steps:
        yield
        self.write(writer, value)
        return None


class Boolean(Codec):
    def read(self, reader: Reader) -> object:
        return reader.boolean()

    def write(self, writer: Writer, value: Any) -> None:
        writer.boolean(value)


class Int8(Codec):
    def read(self, reader: Reader) -> object:
        return reader.int8()

    def write(self, writer: Writer, value: Any) -> None:
        writer.int8(value)


class Int16(Codec):
    def read(self, reader: Reader) -> object:
        return reader.int16()

    def write(self, writer: Writer, value: Any) -> None:
        writer.int16(value)


class UnsignedInt16(Codec):
    def read(self, reader: Reader) -> object:
        return reader.uint16()

    def write(self, writer: Writer, value: Any) -> None:
        writer.uint16(value)


class Int32(Codec):
    def read(self, reader: Reader) -> object:
        return reader.int32()

    def write(self, writer: Writer, value: Any) -> None:
        writer.int32(value)


class UnsignedInt32(Codec):
    def read(self, reader: Reader) -> object:
        return reader.uint32()

    def write(self, writer: Writer, value: Any) -> None:
        writer.uint32(value)


class Int64(Codec):
    def read(self, reader: Reader) -> object:
        return reader.int64()

    def write(self, writer: Writer, value: Any) -> None:
        writer.int64(value)


class Float64(Codec):
    def read(self, reader: Reader) -> object:
        return reader.float64()

    def write(self, writer: Writer, value: Any) -> None:
        writer.float64(value)


class Uuid(Codec):
    def read(self, reader: Reader) -> object:
        return reader.uuid()

    def write(self, writer: Writer, value: Any) -> None:
        writer.uuid(value)


class Sized(Codec):
    """What has a length or a count in front."""

    def __init__(self, *, compact: bool, nullable: bool) -> None:
        self.compact = compact
        self.nullable = nullable


class String(Sized):
    def read(self, reader: Reader) -> object:
        return reader.nullable_string(self.compact) if self.nullable else reader.string(self.compact)

    def write(self, writer: Writer, value: Any) -> None:
        if self.nullable:
            writer.nullable_string(value, self.compact)
        else:
            writer.string(value, self.compact)


class Octets(Sized):
    def read(self, reader: Reader) -> object:
        return reader.nullable_octets(self.compact) if self.nullable else reader.octets(self.compact)

    def write(self, writer: Writer, value: Any) -> None:
        if self.nullable:
            writer.nullable_octets(value, self.compact)
        else:
            writer.octets(value, self.compact)


class RecordSet(Sized):
    holds_records = True

    def read(self, reader: Reader) -> object:
        return reader.nullable_records(self.compact) if self.nullable else reader.records(self.compact)

    def write(self, writer: Writer, value: Any) -> None:
        if self.nullable:
            writer.nullable_records(value, self.compact)
        else:
            writer.records(value, self.compact)


class Array(Sized):
    is_divisible = True

    def __init__(self, element: Codec, *, compact: bool, nullable: bool) -> None:
        super().__init__(compact=compact, nullable=nullable)
        self.element = element
        self.holds_records = element.holds_records

    def read(self, reader: Reader) -> object:
        count = reader.nullable_count(self.compact) if self.nullable else reader.count(self.compact)
        if count < 0:
            return None
        element = self.element
        return [element.read(reader) for _ in range(count)]

    def write(self, writer: Writer, value: Any) -> None:
        if self.nullable:
            writer.nullable_count(value, self.compact)
            if value is None:
                return
        else:
            writer.count(value, self.compact)
        element = self.element
        for item in value:
            element.write(writer, item)

    def read_in_steps(self, reader: Reader) -> Steps:
        count = reader.nullable_count(self.compact) if self.nullable else reader.count(self.compact)
        if count < 0:
            return None
        element = self.element
        values: list[object] = []
        for number in range(count):
            reader.keep_ahead()
            if element.is_divisible:
                values.append((yield from element.read_in_steps(reader)))
            else:
                values.append(element.read(reader))
            if number % ELEMENTS_A_STEP == 0:
                yield
        return values

    def write_in_steps(self, writer: Writer, value: Any) -> Steps:
        if value is None or (len(value) <= 1 and not self.element.is_divisible):
            self.write(writer, value)
            return None
        writer.count(value, self.compact)
        element = self.element
        for number, item in enumerate(value):
            if element.is_divisible:
                yield from element.write_in_steps(writer, item)
            else:
                element.write(writer, item)
            if number % ELEMENTS_A_STEP == 0:
                yield
        return None


class Step:
    """One field of a struct in one version."""

    def __init__(self, name: str, codec: Codec) -> None:
        self.name = name
        self.codec = codec


class TaggedStep(Step):
    """A field that is written, with its tag in front, only when it is not at its default."""

    def __init__(self, field: Field, codec: Codec) -> None:
        super().__init__(field.name, codec)
        self.tag = field.tag
        self.default = field.new_default()


class Absence:
    """A field that this version lacks."""

    def __init__(self, field: Field) -> None:
        self.name = field.name
        self.default = field.new_default()
        self.ignorable = field.ignorable


class StructCodec(Codec):
    """A struct in one version of its message."""

    def __init__(self, cls: StructType, version: int, *, flexible: bool) -> None:
        self.cls = cls
        self.version = version
        self.flexible = flexible
        self.steps: list[Step] = []
        self.tagged: dict[int, TaggedStep] = {}
        self.misplaced_tags: set[int] = set()
        self.absent: list[Absence] = []
        self.constants: list[tuple[str, object]] = []
        self.factories: list[tuple[str, Callable[[], object]]] = []
        for field in cls.SCHEMA.fields:
            self.add(field)
        self.tagged = dict(sorted(self.tagged.items()))
        self.holds_records = any(step.codec.holds_records for step in self.steps)
        self.is_divisible = any(step.codec.is_divisible for step in self.steps)

    def add(self, field: Field) -> None:
        if field.tag != NO_TAG and self.version not in field.tagged:
            self.misplaced_tags.add(field.tag)
        if self.version not in field.versions:
            self.absent.append(Absence(field))
            self.add_default(field)
            return
        codec = codec_for(field, self.version, flexible=self.flexible)
        if self.version in field.tagged:
            self.tagged[field.tag] = TaggedStep(field, codec)
            self.add_default(field)
        else:
            self.steps.append(Step(field.name, codec))

    def add_default(self, field: Field) -> None:
        if field.makes_default:
            self.factories.append((field.name, field.new_default))
        else:
            self.constants.append((field.name, field.default))

    def read(self, reader: Reader) -> object:
        value = _new(self.cls)
        for step in self.steps:
            setattr(value, step.name, step.codec.read(reader))
        self.finish_reading(reader, value)
        return value

    def read_in_steps(self, reader: Reader) -> Steps:
        value = _new(self.cls)
        for step in self.steps:
            codec = step.codec
            content = (yield from codec.read_in_steps(reader)) if codec.is_divisible else codec.read(reader)
            setattr(value, step.name, content)
        self.finish_reading(reader, value)
        return value

    def finish_reading(self, reader: Reader, value: Struct) -> None:
        """Set what the version lacks to its default, and read the tagged fields."""
        for name, constant in self.constants:
            setattr(value, name, constant)
        for name, make in self.factories:
            setattr(value, name, make())
        value.unknown_tags = self.read_tags(reader, value) if self.flexible else ()

    def read_tags(self, reader: Reader, value: Struct) -> Sequence[UnknownTag]:
        """Set the known tagged fields; return the others. The claimed size of a known one is not looked at."""
        if not self.tagged and not self.misplaced_tags:
            return read_unknown_tags(reader)
        unknown: list[UnknownTag] = []
        for _ in range(reader.tag_count()):
            tag = int(reader.varint_int32())
            size_bytes = reader.varint_int32()
            step = self.tagged.get(tag)
            if step is not None:
                setattr(value, step.name, step.codec.read(reader))
            elif tag in self.misplaced_tags:
                raise misplaced(tag, self.version)
            else:
                unknown.append(UnknownTag(tag, reader.take(size_bytes)))
        return unknown or ()

    def write(self, writer: Writer, value: Any) -> None:
        if value is None:
            raise EncodeError(f"null instead of {self.cls.__name__}")
        for step in self.steps:
            step.codec.write(writer, getattr(value, step.name))
        self.finish_writing(writer, value)

    def write_in_steps(self, writer: Writer, value: Any) -> Steps:
        if value is None:
            raise EncodeError(f"null instead of {self.cls.__name__}")
        for step in self.steps:
            if step.codec.is_divisible:
                yield from step.codec.write_in_steps(writer, getattr(value, step.name))
            else:
                step.codec.write(writer, getattr(value, step.name))
        self.finish_writing(writer, value)
        return None

    def finish_writing(self, writer: Writer, value: Any) -> None:
        """Check that nothing is lost that the version lacks, and write the tagged fields."""
        for absence in self.absent:
            if not absence.ignorable and getattr(value, absence.name) != absence.default:
                raise lacking(absence.name, self.version)
        tagged: list[tuple[int, bytes]] = []
        for tag, step in self.tagged.items():
            content = getattr(value, step.name)
            if content != step.default:
                nested = Writer()
                step.codec.write(nested, content)
                tagged.append((tag, nested.merged.getvalue()))
        write_tags(writer, tagged, value.unknown_tags, flexible=self.flexible)


class NullableStruct(Codec):
    """A struct that may be null: a byte in front, or in a tagged field a varint, 0 for null."""

    def __init__(self, content: StructCodec, *, tagged: bool) -> None:
        self.content = content
        self.tagged = tagged

    def read(self, reader: Reader) -> object:
        is_null = reader.varint_int32() <= 0 if self.tagged else reader.int8() < 0
        return None if is_null else self.content.read(reader)

    def write(self, writer: Writer, value: Any) -> None:
        if self.tagged:
            writer.unsigned_varint(0 if value is None else 1)
        else:
            writer.int8(-1 if value is None else 1)
        if value is not None:
            self.content.write(writer, value)


_new: Final = cast("Callable[[StructType], Struct]", object.__new__)
_PLAIN: Final[dict[str, Codec]] = {
    "bool": Boolean(),
    "int8": Int8(),
    "int16": Int16(),
    "uint16": UnsignedInt16(),
    "int32": Int32(),
    "uint32": UnsignedInt32(),
    "int64": Int64(),
    "float64": Float64(),
    "uuid": Uuid(),
}


def read_unknown_tags(reader: Reader) -> Sequence[UnknownTag]:
    """Return the tagged fields of a struct that has none of its own."""
    count = reader.tag_count()
    if count == 0:
        return ()
    unknown: list[UnknownTag] = []
    for _ in range(count):
        tag = int(reader.varint_int32())
        unknown.append(UnknownTag(tag, reader.take(reader.varint_int32())))
    return unknown


def write_unknown_tags(writer: Writer, unknown: Sequence[UnknownTag], *, flexible: bool) -> None:
    """Write the tagged fields of a struct that has none of its own."""
    if unknown or not flexible:
        write_tags(writer, [], unknown, flexible=flexible)
    else:
        writer.unsigned_varint(0)


def write_tags(
    writer: Writer, tagged: list[tuple[int, bytes]], unknown: Sequence[UnknownTag], *, flexible: bool
) -> None:
    """Write a struct's tagged fields, its own (in order) and those that it only carries, by rising tag."""
    if not flexible:
        if unknown:
            raise UnsupportedVersion("this version has no tagged fields")
        return
    if unknown:
        tagged = sorted([*tagged, *unknown], key=_tag)
    writer.unsigned_varint(len(tagged))
    previous = -1
    for tag, data in tagged:
        if tag <= previous:
            raise EncodeError(f"tag {tag} twice in one struct")
        previous = tag
        writer.tag(tag, data)


def lacking(name: str, version: int) -> UnsupportedVersion:
    """Return the error for a field that is set, must not be dropped, and is not in the version."""
    return UnsupportedVersion(f"version {version} has no {name}")


def misplaced(tag: int, version: int) -> DecodeError:
    """Return the error for a tag that the message knows, but not in this version; unknown ones are carried along."""
    return DecodeError(f"version {version} has no tag {tag}")


def _tag(pair: tuple[int, bytes]) -> int:
    return pair[0]


def codec_for(field: Field, version: int, *, flexible: bool) -> Codec:
    """Return how a field that is there in `version` is read and written."""
    plain = _PLAIN.get(field.type)
    if plain is not None:
        return plain
    nullable = version in field.nullable
    compact = flexible and version not in field.not_compact
    if field.type == "struct":
        content = StructCodec(cast(StructType, field.of), version, flexible=flexible)
        return NullableStruct(content, tagged=version in field.tagged) if nullable else content
    if field.type == "array":
        return Array(_element_codec(field.of, version, flexible=flexible), compact=compact, nullable=nullable)
    if field.type == "string":
        return String(compact=compact, nullable=nullable)
    if field.type == "bytes":
        return Octets(compact=compact, nullable=nullable)
    return RecordSet(compact=compact, nullable=nullable)


def _element_codec(of: Field | StructType | None, version: int, *, flexible: bool) -> Codec:
    if isinstance(of, StructType):
        return StructCodec(of, version, flexible=flexible)
    return codec_for(cast(Field, of), version, flexible=flexible)
