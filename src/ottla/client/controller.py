"""Requests for the controller, and the answers that are the same wherever several things are asked about at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeVar

from ottla.client.cluster import Cluster
from ottla.errors import KafkaError, LeaderNotAvailable, NotController, UnknownTopicOrPartition, error_for_code
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import Message

M = TypeVar("M", bound=Message)
K = TypeVar("K")
R = TypeVar("R")


async def ask_controller(cluster: Cluster, api_key: ApiKey, request: Message, response_type: type[M]) -> M:
    """Ask the broker that the metadata calls controller: with KRaft any broker, which passes the request on."""
    deadline = cluster.deadline()
    attempt = 0
    while True:
        controller = cluster.controller_id
        node_id = controller if controller in cluster.brokers else None
        response = await cluster.call(api_key, request, response_type, node_id)
        if not _is_from_wrong_controller(response):
            return response
        attempt += 1
        await cluster.pause(attempt, deadline, NotController())
        await cluster.refresh()


def _is_from_wrong_controller(response: Message) -> bool:
    rows = getattr(response, "topics", None) or getattr(response, "responses", None) or getattr(response, "results", [])
    codes = [getattr(response, "error_code", 0), *(getattr(row, "error_code", 0) for row in rows)]
    return NotController.code in codes


async def known_node(cluster: Cluster, node_id: int | None) -> int | None:
    """Make sure that the metadata knows a broker. Raises `LeaderNotAvailable` for an id that the cluster has not."""
    if node_id is not None and node_id not in cluster.brokers:
        await cluster.refresh()
        if node_id not in cluster.brokers:
            raise LeaderNotAvailable(f"the cluster has no broker {node_id}")
    return node_id


def named_error(code: int, message: str | None, subject: object) -> KafkaError | None:
    """Return the error of a row, naming what it is about where the broker gave no text."""
    error = error_for_code(code, message)
    return type(error)(f"{subject}: {error.sentence}") if error is not None and message is None else error


def only(results: Mapping[K, R | KafkaError]) -> R:
    """Return the one result, or raise it."""
    if not results:
        raise UnknownTopicOrPartition("the cluster's answer is empty")
    result = next(iter(results.values()))
    if isinstance(result, KafkaError):
        raise result
    return result


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partition numbers by topic."""
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for partition in partitions:
        topics[partition.topic].append(partition.partition)
    return dict(topics)
