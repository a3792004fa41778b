"""The language in which messages are declared: one typed class per struct, version ranges on its fields.

    class PartitionProduceData(Struct):
        index: int = int32()
        records: Records | None = records(nullable="0+")

    class ProduceRequest(Message, key=0, versions="3-13", flexible="9+"):
        transactional_id: str | None = string(nullable="3+", default=None)
        acks: int = int16()
        topic_data: list[TopicProduceData] = array(TopicProduceData)

A field stands in wire order. Its specifier (`int32`, `string`, `array`, ...) names the wire type; what is left out has
Kafka's default: present in every version of the struct, not nullable, not tagged, zero or empty. Ranges are written as
in Kafka's own definitions: `"3+"`, `"0-2"`, `"4"`, `"6-8,10+"`. A struct never has versions that its parent lacks.

Instances are slotted, take fields by keyword only, compare by value, and keep unknown tagged fields in `unknown_tags`.
A type checker sees dataclasses. This file decides how declarations look; `codec` decides what becomes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar, cast, dataclass_transform, overload

from ottla.protocol.filling import set_fields

T = TypeVar("T")
S = TypeVar("S", bound="Struct")

ZERO_UUID: Final = bytes(16)
NO_TAG: Final = -1
UNBOUNDED: Final = 1 << 16
OWN: Final = object()
"""Default of a field that is an empty list or a struct of defaults, made anew for every instance."""


class Span(Protocol):
    """Bytes that are somewhere else, for instance in a file; the codec only needs to know how many."""

    @property
    def size_bytes(self) -> int: ...


Records: TypeAlias = bytes | memoryview | Sequence[bytes | memoryview | Span]
"""Record batches in one piece or several. Decoding always gives a memoryview of the buffer that was decoded."""


class UnknownTag(NamedTuple):
    """A tagged field that the schema does not know, kept so that it can be passed on."""

    tag: int
    data: bytes


class Versions:
    """A set of versions, as ranges that both ends belong to."""

    __slots__ = ("ranges",)

    def __init__(self, text: str) -> None:
        self.ranges = [_parse_range(part) for part in text.split(",")]

    def __contains__(self, version: int) -> bool:
        for low, high in self.ranges:  # noqa: SIM110 - asked for every stored record; a generator costs ten times as much
            if low <= version <= high:
                return True
        return False

    @property
    def lowest(self) -> int:
        return self.ranges[0][0]

    @property
    def highest(self) -> int:
        return self.ranges[-1][1]


def _parse_range(text: str) -> tuple[int, int]:
    if text.endswith("+"):
        return int(text[:-1]), UNBOUNDED
    low, _, high = text.partition("-")
    return int(low), int(high or low)


ALL_VERSIONS: Final = Versions("0+")
NO_VERSIONS: Final = Versions("1-0")


class Field:
    """How one field stands on the wire. `type` is the wire type, or "struct" or "array" of what `of` names."""

    __slots__ = (
        "_not_compact",
        "_nullable",
        "_tagged",
        "_versions",
        "default",
        "ignorable",
        "name",
        "of",
        "tag",
        "type",
    )

    def __init__(
        self,
        type: str,
        versions: str,
        default: object,
        *,
        of: Field | StructType | None = None,
        nullable: str | None = None,
        tag: int = NO_TAG,
        tagged: str | None = None,
        ignorable: bool = False,
        not_compact: str | None = None,
    ) -> None:
        self.name = ""
        self.type = type
        self.of = of
        self.default = default
        self.tag = tag
        self.ignorable = ignorable
        self._versions = versions
        self._nullable = nullable
        self._tagged = tagged if tagged is not None or tag == NO_TAG else versions
        self._not_compact = not_compact

    @property
    def versions(self) -> Versions:
        return Versions(self._versions)

    @property
    def nullable(self) -> Versions:
        return NO_VERSIONS if self._nullable is None else Versions(self._nullable)

    @property
    def tagged(self) -> Versions:
        return NO_VERSIONS if self._tagged is None else Versions(self._tagged)

    @property
    def not_compact(self) -> Versions:
        """Versions that keep the plain form although the message is flexible (the header's client id)."""
        return NO_VERSIONS if self._not_compact is None else Versions(self._not_compact)

    @property
    def makes_default(self) -> bool:
        """Whether every instance needs a default of its own, which can then be changed in place."""
        return self.default is OWN

    def new_default(self) -> object:
        """The value of a new instance; lists and structs are made anew."""
        if self.default is not OWN:
            return self.default
        return [] if self.type == "array" else cast("StructType", self.of)()


# -- field specifiers ---------------------------------------------------------------------------------------------
# They return a Field; their declared result is the type of the attribute, which is what a type checker needs to know.


def boolean(versions: str = "0+", *, default: bool = False, ignorable: bool = False, tag: int = NO_TAG) -> bool:
    return cast(bool, Field("bool", versions, default, ignorable=ignorable, tag=tag))


def int8(versions: str = "0+", *, default: int = 0, ignorable: bool = False, tag: int = NO_TAG) -> int:
    return cast(int, Field("int8", versions, default, ignorable=ignorable, tag=tag))


def int16(versions: str = "0+", *, default: int = 0, ignorable: bool = False, tag: int = NO_TAG) -> int:
    return cast(int, Field("int16", versions, default, ignorable=ignorable, tag=tag))


def uint16(versions: str = "0+", *, default: int = 0, ignorable: bool = False, tag: int = NO_TAG) -> int:
    return cast(int, Field("uint16", versions, default, ignorable=ignorable, tag=tag))


def int32(versions: str = "0+", *, default: int = 0, ignorable: bool = False, tag: int = NO_TAG) -> int:
    return cast(int, Field("int32", versions, default, ignorable=ignorable, tag=tag))


def uint32(versions: str = "0+", *, default: int = 0, ignorable: bool = False, tag: int = NO_TAG) -> int:
    return cast(int, Field("uint32", versions, default, ignorable=ignorable, tag=tag))


def int64(versions: str = "0+", *, default: int = 0, ignorable: bool = False, tag: int = NO_TAG) -> int:
    return cast(int, Field("int64", versions, default, ignorable=ignorable, tag=tag))


def float64(versions: str = "0+", *, default: float = 0.0, ignorable: bool = False, tag: int = NO_TAG) -> float:
    return cast(float, Field("float64", versions, default, ignorable=ignorable, tag=tag))


def uuid(versions: str = "0+", *, default: bytes = ZERO_UUID, ignorable: bool = False, tag: int = NO_TAG) -> bytes:
    """16 raw bytes."""
    return cast(bytes, Field("uuid", versions, default, ignorable=ignorable, tag=tag))


@overload
def string(
    versions: str = ..., *, default: str = ..., ignorable: bool = ..., tag: int = ..., not_compact: str | None = ...
) -> str: ...
@overload
def string(
    versions: str = ...,
    *,
    nullable: str,
    default: str | None = ...,
    ignorable: bool = ...,
    tag: int = ...,
    tagged: str | None = ...,
    not_compact: str | None = ...,
) -> str | None: ...
def string(versions: str = "0+", *, default: str | None = "", **rest: Any) -> str | None:
    return cast("str | None", Field("string", versions, default, **rest))


@overload
def octets(versions: str = ..., *, default: bytes = ..., ignorable: bool = ..., tag: int = ...) -> bytes: ...
@overload
def octets(
    versions: str = ..., *, nullable: str, default: bytes | None = ..., ignorable: bool = ..., tag: int = ...
) -> bytes | None: ...
def octets(versions: str = "0+", *, default: bytes | None = b"", **rest: Any) -> bytes | None:
    """A byte string (Kafka's type `bytes`), copied when decoded."""
    return cast("bytes | None", Field("bytes", versions, default, **rest))


def record_set(versions: str = "0+", *, nullable: str | None = None, ignorable: bool = False) -> Records | None:
    """Record batches (Kafka's type `records`), never copied; null by default, even where null cannot be written."""
    return cast("Records | None", Field("records", versions, None, nullable=nullable, ignorable=ignorable))


@overload
def array(of: Callable[..., T], versions: str = ..., *, ignorable: bool = ..., tag: int = ...) -> list[T]: ...
@overload
def array(
    of: Callable[..., T],
    versions: str = ...,
    *,
    nullable: str,
    default: Sequence[T] | None = ...,
    ignorable: bool = ...,
    tag: int = ...,
) -> list[T] | None: ...
def array(of: Callable[..., T], versions: str = "0+", *, default: object = OWN, **rest: Any) -> list[T] | None:
    """A list of structs, `array(TopicProduceData)`, or of a plain type, `array(int32)`. The default is empty."""
    element = of if isinstance(of, StructType) else cast(Field, of())
    kept = None if default is None else OWN
    return cast("list[T] | None", Field("array", versions, kept, of=element, **rest))


@overload
def struct(of: type[S], versions: str = ..., *, ignorable: bool = ..., tag: int = ...) -> S: ...
@overload
def struct(
    of: type[S], versions: str = ..., *, nullable: str, default: S | None = ..., ignorable: bool = ..., tag: int = ...
) -> S | None: ...
def struct(of: type[S], versions: str = "0+", *, default: object = OWN, **rest: Any) -> S | None:
    """A struct in place. The default is a struct of defaults, or null when `default=None` is given."""
    kept = None if default is None else OWN
    return cast("S | None", Field("struct", versions, kept, of=cast("StructType", of), **rest))


def _unknown_tags() -> Sequence[UnknownTag]:
    return cast("Sequence[UnknownTag]", Field("tags", "0+", ()))


# -- structs and messages -----------------------------------------------------------------------------------------


class Schema:
    """What a class declares: its fields in wire order and, for a message, `key`, `versions` and `flexible`.

    `key` is the API key or the record type. Flexible versions have compact lengths and tagged fields (KIP-482).
    """

    __slots__ = ("constants", "factories", "fields", "flexible", "key", "versions")

    def __init__(self, fields: Sequence[Field], key: int | None, versions: str | None, flexible: str | None) -> None:
        self.fields = tuple(fields)
        self.key = key
        self.versions = ALL_VERSIONS if versions is None else Versions(versions)
        self.flexible = NO_VERSIONS if flexible is None else Versions(flexible)
        self.constants: dict[str, object] = {"unknown_tags": ()}
        self.factories: list[tuple[str, Callable[[], object]]] = []
        for field in fields:
            if field.makes_default:
                self.factories.append((field.name, field.new_default))
            else:
                self.constants[field.name] = field.default


@dataclass_transform(kw_only_default=True)
class StructType(type):
    """Turns the fields of a declaration into slots, and keeps their specifiers in `SCHEMA`."""

    SCHEMA: Schema

    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        key: int | None = None,
        versions: str | None = None,
        flexible: str | None = None,
    ) -> StructType:
        fields = []
        for field_name, value in list(namespace.items()):
            if isinstance(value, Field):
                value.name = field_name
                fields.append(value)
                del namespace[field_name]
        namespace["__slots__"] = tuple(field.name for field in fields)
        cls = super().__new__(mcs, name, bases, namespace)
        cls.SCHEMA = Schema(fields, key, versions, flexible)
        return cls

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_: object) -> None:
        super().__init__(name, bases, namespace)


class Struct(metaclass=StructType):
    """A group of fields inside a message."""

    unknown_tags: Sequence[UnknownTag] = _unknown_tags()

    def __init__(self, **values: Any) -> None:
        schema = type(self).SCHEMA
        set_fields(self, values, schema.constants, schema.factories)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return list(self.unknown_tags) == list(other.unknown_tags) and all(
            getattr(self, field.name) == getattr(other, field.name) for field in type(self).SCHEMA.fields
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [f"{field.name}={getattr(self, field.name)!r}" for field in type(self).SCHEMA.fields]
        if self.unknown_tags:
            shown.append(f"unknown_tags={self.unknown_tags!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


class Message(Struct):
    """A whole request, response, header or stored record: `class ProduceRequest(Message, key=0, versions="3-13")`."""
