"""How a declared message stands on the wire in one version: a tree of codecs, built once on first use.

`StructCodec` is the plan of a struct: which fields are there, in which form, and what the others default to. The codecs
below it each know one wire type. They are data for one small interpreter, not code made at run time, and run compiled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, cast

from mypy_extensions import i16, i32, i64

from ottla.errors import UnsupportedVersion
from ottla.protocol.primitives import (
    MAX_STRING_BYTES,
    DecodeError,
    EncodeError,
    Reader,
    Writer,
    records_size_bytes,
)
from ottla.protocol.schema import Field, Struct, StructType, UnknownTag


class Codec(ABC):
    """Reads and writes one value."""

    @abstractmethod
    def read(self, reader: Reader) -> object: ...

    @abstractmethod
    def write(self, writer: Writer, value: Any) -> None: ...


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
    """What has a length in front: two or four bytes, or in compact form a varint that is one more."""

    def __init__(self, *, compact: bool, nullable: bool, short: bool = False) -> None:
        self.compact = compact
        self.nullable = nullable
        self.short = short

    def read_length(self, reader: Reader) -> i64:
        """Return the claimed length, -1 for null. Raises `DecodeError` for null where the field cannot be null."""
        length: i64
        if self.compact:
            length = reader.compact_length()
        elif self.short:
            length = i64(reader.int16())
        else:
            length = i64(reader.int32())
        if length < 0:
            if not self.nullable:
                raise DecodeError("null, or a negative length, in a field that cannot be null")
            return -1
        return length

    def write_length(self, writer: Writer, length: i64) -> None:
        if self.compact:
            writer.unsigned_varint(length + 1)
        elif self.short:
            writer.int16(i16(length))
        else:
            writer.int32(i32(length))

    def write_null(self, writer: Writer) -> None:
        if not self.nullable:
            raise EncodeError("null in a field that cannot be null")
        self.write_length(writer, -1)


class String(Sized):
    def read(self, reader: Reader) -> object:
        length = self.read_length(reader)
        return None if length < 0 else reader.string(length)

    def write(self, writer: Writer, value: Any) -> None:
        if value is None:
            self.write_null(writer)
            return
        text: str = value
        encoded = text.encode("utf-8")
        if len(encoded) > MAX_STRING_BYTES:
            raise EncodeError(f"a string of {len(encoded)} bytes")
        self.write_length(writer, len(encoded))
        writer.raw(encoded)


class Octets(Sized):
    def read(self, reader: Reader) -> object:
        length = self.read_length(reader)
        return None if length < 0 else reader.take(length)

    def write(self, writer: Writer, value: Any) -> None:
        if value is None:
            self.write_null(writer)
            return
        octets = value if isinstance(value, bytes) else bytes(value)
        self.write_length(writer, len(octets))
        writer.raw(octets)


class RecordSet(Sized):
    def read(self, reader: Reader) -> object:
        length = self.read_length(reader)
        return None if length < 0 else reader.records(length)

    def write(self, writer: Writer, value: Any) -> None:
        if value is None:
            self.write_null(writer)
            return
        self.write_length(writer, records_size_bytes(value))
        writer.records(value)


class Array(Sized):
    def __init__(self, element: Codec, *, compact: bool, nullable: bool) -> None:
        super().__init__(compact=compact, nullable=nullable)
        self.element = element

    def read(self, reader: Reader) -> object:
        count = self.read_length(reader)
        if count < 0:
            return None
        reader.check_count(count)
        element = self.element
        values = []
        for _ in range(count):
            values.append(element.read(reader))
        return values

    def write(self, writer: Writer, value: Any) -> None:
        if value is None:
            self.write_null(writer)
            return
        self.write_length(writer, len(value))
        element = self.element
        for item in value:
            element.write(writer, item)


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
        self.absent: list[Absence] = []
        self.constants: list[tuple[str, object]] = []
        self.factories: list[tuple[str, Callable[[], object]]] = []
        for field in cls.SCHEMA.fields:
            self.add(field)
        self.tagged = dict(sorted(self.tagged.items()))

    def add(self, field: Field) -> None:
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
        for name, constant in self.constants:
            setattr(value, name, constant)
        for name, make in self.factories:
            setattr(value, name, make())
        value.unknown_tags = self.read_tags(reader, value) if self.flexible else ()
        return value

    def read_tags(self, reader: Reader, value: Struct) -> list[UnknownTag] | tuple[()]:
        """Set the known tagged fields; return the others. The claimed size of a known one is not looked at."""
        count = reader.tag_count()
        if count == 0:
            return ()
        unknown: list[UnknownTag] = []
        for _ in range(count):
            tag = reader.varint_int32()
            size_bytes = reader.varint_int32()
            step = self.tagged.get(int(tag))
            if step is not None:
                setattr(value, step.name, step.codec.read(reader))
            else:
                unknown.append(UnknownTag(int(tag), reader.take(size_bytes)))
        return unknown or ()

    def write(self, writer: Writer, value: Any) -> None:
        if value is None:
            raise EncodeError(f"null instead of {self.cls.__name__}")
        for step in self.steps:
            step.codec.write(writer, getattr(value, step.name))
        for absence in self.absent:
            if not absence.ignorable and getattr(value, absence.name) != absence.default:
                raise UnsupportedVersion(
                    f"{self.cls.__name__} has no {absence.name} in version {self.version} of its message"
                )
        if self.flexible:
            self.write_tags(writer, value)
        elif value.unknown_tags:
            raise UnsupportedVersion(f"version {self.version} of {self.cls.__name__}'s message has no tagged fields")

    def write_tags(self, writer: Writer, value: Struct) -> None:
        unknown = value.unknown_tags
        if not unknown and not self.tagged:
            writer.unsigned_varint(0)
            return
        written: list[tuple[int, bytes]] = []
        for step in self.tagged.values():
            content = getattr(value, step.name)
            if content != step.default:
                nested = Writer()
                step.codec.write(nested, content)
                written.append((step.tag, nested.merged.getvalue()))
        written.extend(unknown)
        writer.unsigned_varint(len(written))
        previous = -1
        for tag, data in sorted(written, key=_tag) if unknown else written:
            if tag <= previous:
                raise EncodeError(f"tag {tag} twice in {self.cls.__name__}")
            previous = tag
            writer.unsigned_varint(tag)
            writer.unsigned_varint(len(data))
            writer.raw(data)


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
        return String(compact=compact, nullable=nullable, short=True)
    if field.type == "bytes":
        return Octets(compact=compact, nullable=nullable)
    return RecordSet(compact=compact, nullable=nullable)


def _element_codec(of: Field | StructType | None, version: int, *, flexible: bool) -> Codec:
    if isinstance(of, StructType):
        return StructCodec(of, version, flexible=flexible)
    return codec_for(cast(Field, of), version, flexible=flexible)
