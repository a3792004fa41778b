"""Topics as consumer groups see them: ids, partition counts, and a hash by which a change is noticed.

`version` rises with every change of topics; whoever remembers the version that it has seen needs to look again only
when that differs.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.broker.groups.metadata_hash import hash_group, hash_topic
from ottla.broker.metadata.image import MetadataView, TopicImage
from ottla.model import TopicId


class GroupTopics:
    """A live view of the metadata. `on_topics_changed` keeps it so."""

    __slots__ = ("_hashes", "_view", "new_topics_version", "version")

    def __init__(self, view: MetadataView) -> None:
        self._view = view
        self._hashes: dict[TopicId, int] = {}
        self.version = 0
        self.new_topics_version = 0
        """The version that last brought topics that were not there before, which patterns may match."""

    def on_topics_changed(self, *, are_new: bool) -> None:
        """Topics were created (`are_new`), deleted, or have more partitions."""
        self.version += 1
        self._hashes.clear()
        if are_new:
            self.new_topics_version = self.version

    def find(self, names: Iterable[str]) -> list[TopicImage]:
        """Return those of the topics that there are, in the order of their names."""
        return [topic for name in sorted(names) if (topic := self._view.topic(name)) is not None]

    def by_name(self, name: str) -> TopicImage | None:
        return self._view.topic(name)

    def name_of(self, topic_id: bytes) -> str | None:
        topic = self._view.topic_by_id(TopicId(topic_id))
        return None if topic is None else topic.name

    def names(self) -> Iterable[str]:
        """The names of all topics."""
        return self._view.topic_names()

    def hash(self, names: Iterable[str]) -> int:
        """Return what a group that wants these topics stores, to notice when they change."""
        return hash_group((topic.name, self._hash(topic)) for topic in self.find(names))

    def _hash(self, topic: TopicImage) -> int:
        known = self._hashes.get(topic.topic_id)
        if known is None:
            known = hash_topic(topic.topic_id, topic.name, self._racks(topic))
            self._hashes[topic.topic_id] = known
        return known

    def _racks(self, topic: TopicImage) -> list[list[str]]:
        racks = {broker.node_id: broker.rack for broker in self._view.brokers() if broker.rack is not None}
        return [
            [racks[node_id] for node_id in partition.replicas if node_id in racks] for partition in topic.partitions
        ]
