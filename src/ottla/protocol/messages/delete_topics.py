"""DeleteTopics: remove topics (API key 20)."""

from __future__ import annotations

from ottla.protocol.schema import Message, Struct, array, int16, int32, string, uuid


class DeleteTopicState(Struct):
    name: str | None = string(nullable="0+", default=None)
    topic_id: bytes = uuid()


class DeleteTopicsRequest(Message, key=20, versions="1-6", flexible="4+"):
    """Topics to remove. Version 6 takes ids as well as names (KIP-516)."""

    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(string, "1-5", ignorable=True)
    timeout_ms: int = int32()


class DeletableTopicResult(Struct):
    name: str | None = string(nullable="6+")
    topic_id: bytes = uuid("6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class DeleteTopicsResponse(Message, key=20, versions="1-6", flexible="4+"):
    """What became of each topic. Version 5 adds a text; 6 the id."""

    throttle_time_ms: int = int32()
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
