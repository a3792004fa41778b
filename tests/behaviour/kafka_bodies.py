"""Request and response bodies between our message classes and Kafka's JSON form, as the recordings have them.

Driven by the declarations: field names in camel case, uuids as 22 characters, `bytes` as base64, and `records` as the
recordings' own objects (hex, and decoded batches in answers).
"""

from __future__ import annotations

import base64
from typing import Any

from ottla.errors import KafkaError
from ottla.model import format_uuid, parse_uuid
from ottla.protocol.codec import decode_with_end, encode
from ottla.protocol.schema import Field, Message, Struct, StructType
from ottla.records.batch import RecordBatch, split_batches
from ottla.records.compression import Codec
from tests.behaviour.scenario import Json, Variables, record_bytes

LONGEST_TEXT = 200


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def body_from_json(cls: StructType, body: dict[str, Json], variables: Variables) -> Any:
    """Return the message that `body` describes; what it leaves out has Kafka's default."""
    fields = {camel_case(field.name): field for field in cls.SCHEMA.fields}
    unknown = body.keys() - fields.keys()
    if unknown:
        raise ValueError(f"{cls.__name__} has no field {sorted(unknown)}")
    values = {fields[key].name: _value_from_json(fields[key], value, variables) for key, value in body.items()}
    return cls(**values)


def _value_from_json(field: Field, value: Json, variables: Variables) -> object:
    if value is None:
        return None
    match field.type:
        case "records":
            return record_bytes(value, variables)
        case "array":
            return [_element_from_json(field.of, element, variables) for element in value]
        case "struct":
            assert isinstance(field.of, StructType)
            return body_from_json(field.of, value, variables)
    value = variables.put_into(value)
    match field.type:
        case "uuid":
            return bytes(parse_uuid(value))
        case "bytes":
            return base64.b64decode(value)
        case "string":
            return str(value)
        case "bool":
            return bool(value)
        case "float64":
            return float(value)
        case _:
            return int(value)


def _element_from_json(of: Field | StructType | None, element: Json, variables: Variables) -> object:
    if isinstance(of, StructType):
        return body_from_json(of, element, variables)
    assert of is not None
    return _value_from_json(of, element, variables)


def encode_body(message: Message, version: int) -> bytes:
    return encode(message, version)


def body_to_json(cls: type[Message], version: int, buffer: memoryview) -> dict[str, Json]:
    """Decode one answer; bytes that are left over are shown as `trailingBytes`, as the recorder did."""
    message, end = decode_with_end(cls, version, buffer)
    body = _struct_to_json(message, version)
    if end < len(buffer):
        body["trailingBytes"] = len(buffer) - end
    return body


def _struct_to_json(struct: Struct, version: int) -> dict[str, Json]:
    shown = {}
    for field in type(struct).SCHEMA.fields:
        value = getattr(struct, field.name)
        if version not in field.versions:
            continue
        if version in field.tagged and value == field.new_default():
            continue
        shown[camel_case(field.name)] = _value_to_json(field, value, version)
    return shown


def _value_to_json(field: Field, value: Any, version: int) -> Json:
    if value is None:
        return None
    match field.type:
        case "records":
            return _records_to_json(value)
        case "array":
            of = field.of
            if isinstance(of, StructType):
                return [_struct_to_json(element, version) for element in value]
            assert of is not None
            return [_value_to_json(of, element, version) for element in value]
        case "struct":
            return _struct_to_json(value, version)
        case "uuid":
            return format_uuid(value)
        case "bytes":
            return base64.b64encode(value).decode()
        case _:
            return value


def _records_to_json(records: memoryview) -> dict[str, Json]:
    shown: dict[str, Json] = {"hex": records.hex(), "batches": []}
    whole_bytes = 0
    try:
        for batch in split_batches(records):
            whole_bytes += batch.size_in_bytes
            shown["batches"].append(_batch_to_json(batch))
    except KafkaError as error:
        shown["decodeError"] = error.name
    if whole_bytes < len(records):
        shown["partialTailBytes"] = len(records) - whole_bytes
    return shown


def _batch_to_json(batch: RecordBatch) -> dict[str, Json]:
    return {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "magic": batch.magic,
        "codec": Codec(batch.codec).name.lower(),
        "timestampType": "LogAppendTime" if batch.timestamp_type else "CreateTime",
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        "maxTimestamp": batch.max_timestamp,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "records": [_record_to_json(record) for record in batch.records()],
    }


def _record_to_json(record: Any) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _text_or_hex(record.key),
        "value": _text_or_hex(record.value),
    }
    if record.headers:
        shown["headers"] = [[key, _text_or_hex(value)] for key, value in record.headers]
    return shown


def _text_or_hex(data: bytes | memoryview | None) -> str | None:
    if data is None:
        return None
    data = bytes(data)
    if any(not 32 <= byte <= 126 for byte in data):
        return f"hex:{data.hex()}"
    return data.decode() if len(data) <= LONGEST_TEXT else f"len:{len(data)}"
