"""One sentence for each setting: what it does and in which unit, and that it does nothing where it does nothing.

A module of its own, so that only those pay for the sentences who show them (DescribeConfigs when asked, the reference
pages). A broker setting that only hands a default to topics or groups takes its sentence from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.config.broker_settings import BROKER_SETTINGS, DYNAMIC_ONLY_SETTINGS
from ottla.config.group_settings import GROUP_SETTINGS
from ottla.config.setting import Scope

NO_EFFECT: Final = "No effect: "
ONE_LOOP: Final = "No effect: Ottla has one event loop and sizes its own threads."
ONE_REPLICA: Final = "No effect: Ottla keeps one replica."
OWN_CONTROLLER: Final = "No effect: Ottla is its own controller."
NO_SECURITY: Final = "No effect: TLS and SASL are not served yet."
NO_TIERS: Final = "No effect: there is no tiered storage."
NO_JAVA: Final = "No effect: Java classes cannot run here."
NO_PURGE: Final = "No effect: a waiting request that is done leaves at once."
OWN_BUFFERS: Final = "No effect: writes and buffers follow from how Ottla works."
NO_DEAD_LETTERS: Final = "No effect: dead letters are not served."
NO_EARLY_START: Final = "No effect: there is nothing to start earlier for."
OWN_CLEANER_BUFFERS: Final = "No effect: the cleaner's memory follows from `log.cleaner.dedupe.buffer.size`."
NO_AVERAGES: Final = "No effect: averages are left to whoever reads the metrics."
OWN_READS: Final = "No effect: logs are read in pieces that fit."
NO_QUOTAS: Final = "No effect: quotas are kept and described, and not enforced yet."
NO_TRANSACTIONS: Final = "No effect: transactions are not served yet."
NO_SHARE_GROUPS: Final = "No effect: share groups are not served."
NO_STREAMS_GROUPS: Final = "No effect: streams groups are not served."
NO_CLIENT_METRICS: Final = "No effect: clients are asked for no metrics."
NO_DELAY: Final = "No effect: they are removed at once."
NO_TURN_OF_THEIR_OWN: Final = "No effect: they are written with the recovery points."
NOTHING_UNSTABLE: Final = "No effect: there are none here."


def sentence(scope: Scope, name: str) -> str | None:
    """Return what a setting does, None for a name that is no setting of this scope."""
    text = SENTENCES[scope].get(name)
    if text is None and scope is Scope.BROKER:
        return _inherited_sentence(name)
    return text


def has_effect(scope: Scope, name: str) -> bool:
    """False for a setting that is taken and does nothing here."""
    return NO_EFFECT not in (sentence(scope, name) or "")


def _inherited_sentence(name: str) -> str | None:
    setting = BROKER_SETTINGS.get(name) or DYNAMIC_ONLY_SETTINGS.get(name)
    if setting is not None:
        for topic_config in setting.topic_configs:
            return f"Default of the topic setting `{topic_config}`: {_lowered(TOPIC[topic_config])}"
    for group_name, group in GROUP_SETTINGS.items():
        if any(synonym.name == name for synonym in group.synonyms):
            return f"Default of the group setting `{group_name}`: {_lowered(GROUP[group_name])}"
    return None


def _lowered(text: str) -> str:
    return text[0].lower() + text[1:]


BROKER: Final[Mapping[str, str]] = {
    "add.partitions.to.txn.retry.backoff.max.ms": (
        "Milliseconds, at most, between the broker's own attempts to add a partition to a transaction. " + OWN_BUFFERS
    ),
    "add.partitions.to.txn.retry.backoff.ms": (
        "Milliseconds between the broker's own attempts to add a partition to a transaction. " + OWN_BUFFERS
    ),
    "advertised.listeners": (
        "Addresses that clients are told to connect to, one for each listener; where a listener names an "
        "address of its own, that is the default."
    ),
    "alter.config.policy.class.name": (
        "Java class that may forbid changes of settings. Ottla cannot run it, so naming one ends the start."
    ),
    "alter.log.dirs.replication.quota.window.num": (
        "Samples kept for the throttle on moves between data directories. " + ONE_REPLICA
    ),
    "alter.log.dirs.replication.quota.window.size.seconds": (
        "Seconds that one sample of that throttle spans. " + ONE_REPLICA
    ),
    "authorizer.class.name": "Authorizer that decides who may do what. Not served yet, so naming one ends the start.",
    "auto.create.topics.enable": (
        "Whether asking for a topic that does not exist creates it, where the client allows it."
    ),
    "auto.leader.rebalance.enable": (
        "Whether partitions go back to their preferred leaders by themselves. " + ONE_REPLICA
    ),
    "background.threads": "Threads for housekeeping. " + ONE_LOOP,
    "broker.heartbeat.interval.ms": (
        "Milliseconds between two heartbeats of a broker to its controller. " + OWN_CONTROLLER
    ),
    "broker.id": "Older name of `node.id`; where both stand they must be equal.",
    "broker.rack": "Name of the rack or zone of this broker, told to clients, which may prefer brokers near them.",
    "broker.session.timeout.ms": (
        "Milliseconds without a heartbeat after which the controller fences a broker. " + OWN_CONTROLLER
    ),
    "client.quota.callback.class": "Java class that computes quotas. " + NO_JAVA,
    "config.providers": (
        "Names of providers that replace placeholders in values. Placeholders are not replaced, so naming "
        "one ends the start."
    ),
    "connection.failed.authentication.delay.ms": (
        "Milliseconds between a failed authentication and the close of the connection. " + NO_SECURITY
    ),
    "connections.max.idle.ms": "Milliseconds without a request after which a connection is closed; -1 never closes.",
    "connections.max.reauth.ms": (
        "Milliseconds after which a SASL connection must authenticate again; 0 asks for it never. " + NO_SECURITY
    ),
    "controlled.shutdown.enable": "Whether a stopping broker first hands its partitions to others. " + ONE_REPLICA,
    "controller.listener.names": (
        "Names of the listeners that belong to the controller. They are parsed and not opened, since Ottla "
        "is its own controller."
    ),
    "controller.performance.always.log.threshold.ms": (
        "Milliseconds from which each slow event of the controller is logged. " + OWN_CONTROLLER
    ),
    "controller.performance.sample.period.ms": (
        "Milliseconds between two reports about the controller's events. " + OWN_CONTROLLER
    ),
    "controller.quorum.append.linger.ms": (
        "Milliseconds that the controller gathers records before it writes them. " + OWN_CONTROLLER
    ),
    "controller.quorum.auto.join.enable": "Whether a controller joins the quorum by itself. " + OWN_CONTROLLER,
    "controller.quorum.bootstrap.servers": "Addresses where the controller quorum is found. " + OWN_CONTROLLER,
    "controller.quorum.election.backoff.max.ms": (
        "Milliseconds, at most, between two elections in the quorum. " + OWN_CONTROLLER
    ),
    "controller.quorum.election.timeout.ms": (
        "Milliseconds without an elected leader after which a new election begins. " + OWN_CONTROLLER
    ),
    "controller.quorum.fetch.max.bytes": "Bytes, at most, of one fetch in the quorum. " + OWN_CONTROLLER,
    "controller.quorum.fetch.snapshot.max.bytes": (
        "Bytes, at most, of one piece of a snapshot fetched in the quorum. " + OWN_CONTROLLER
    ),
    "controller.quorum.fetch.timeout.ms": (
        "Milliseconds without a fetch from the leader after which an election begins. " + OWN_CONTROLLER
    ),
    "controller.quorum.request.timeout.ms": "Milliseconds that a request in the quorum may take. " + OWN_CONTROLLER,
    "controller.quorum.retry.backoff.ms": (
        "Milliseconds before a request in the quorum is tried again. " + OWN_CONTROLLER
    ),
    "controller.quorum.voters": "The quorum's voters as id@host:port. " + OWN_CONTROLLER,
    "controller.quota.window.num": "Samples kept for the quota on creating and deleting partitions. " + NO_QUOTAS,
    "controller.quota.window.size.seconds": "Seconds that one sample of that quota spans. " + NO_QUOTAS,
    "controller.socket.timeout.ms": "Milliseconds that a request to the controller may take. " + OWN_CONTROLLER,
    "cordoned.log.dirs": "Data directories that get no new partitions.",
    "create.topic.policy.class.name": (
        "Java class that may forbid new topics. Ottla cannot run it, so naming one ends the start."
    ),
    "default.replication.factor": "Replicas of topics that are created by themselves or without a number.",
    "delegation.token.expiry.check.interval.ms": (
        "Milliseconds between two searches for expired delegation tokens. " + NO_SECURITY
    ),
    "delegation.token.expiry.time.ms": (
        "Milliseconds that a delegation token lives unless it is renewed. " + NO_SECURITY
    ),
    "delegation.token.max.lifetime.ms": "Milliseconds after which a delegation token cannot be renewed. " + NO_SECURITY,
    "delegation.token.secret.key": "Secret that delegation tokens are signed with. " + NO_SECURITY,
    "delete.records.purgatory.purge.interval.requests": (
        "Waiting DeleteRecords requests after which finished ones are cleared away. " + NO_PURGE
    ),
    "delete.topic.enable": "Whether topics may be deleted; with `false` the request is refused.",
    "early.start.listeners": (
        "Listeners that open before the broker is ready. Ottla opens all of them when it is ready. " + NO_EARLY_START
    ),
    "errors.deadletterqueue.auto.create.topics.enable": (
        "Whether dead letter topics of share groups are created by themselves. " + NO_DEAD_LETTERS
    ),
    "errors.deadletterqueue.topic.name.prefix": (
        "What the names of dead letter topics that are created by themselves begin with. " + NO_DEAD_LETTERS
    ),
    "fetch.max.bytes": "Bytes, at most, of one answer to a fetch; a first batch that is larger is still sent.",
    "fetch.purgatory.purge.interval.requests": (
        "Waiting fetches after which finished ones are cleared away. " + NO_PURGE
    ),
    "follower.fetch.last.tiered.offset.enable": (
        "Whether a new follower begins at the end of tiered storage. " + NO_TIERS
    ),
    "follower.replication.throttled.rate": (
        "Bytes per second at which throttled replicas copy from their leaders. " + ONE_REPLICA
    ),
    "group.consumer.assignors": "Assignors that consumer groups may choose from; the first is the default.",
    "group.consumer.max.assignment.interval.ms": (
        "Longest assignment interval, in milliseconds, that a consumer group may set."
    ),
    "group.consumer.max.heartbeat.interval.ms": (
        "Longest heartbeat interval, in milliseconds, that a consumer group may set."
    ),
    "group.consumer.max.session.timeout.ms": "Longest session timeout, in milliseconds, that a consumer group may set.",
    "group.consumer.max.size": "Members, at most, of one consumer group.",
    "group.consumer.migration.policy": (
        "Whether groups may change between the classic and the consumer protocol, and in which direction."
    ),
    "group.consumer.min.assignment.interval.ms": (
        "Shortest assignment interval, in milliseconds, that a consumer group may set."
    ),
    "group.consumer.min.heartbeat.interval.ms": (
        "Shortest heartbeat interval, in milliseconds, that a consumer group may set."
    ),
    "group.consumer.min.session.timeout.ms": (
        "Shortest session timeout, in milliseconds, that a consumer group may set."
    ),
    "group.consumer.regex.refresh.interval.ms": (
        "Milliseconds between two comparisons of subscribed patterns with the topics there are."
    ),
    "group.coordinator.append.linger.ms": (
        "Milliseconds that the group coordinator gathers records before it writes them; -1 adapts. " + OWN_BUFFERS
    ),
    "group.coordinator.background.threads": "Threads for long work of the group coordinator. " + ONE_LOOP,
    "group.coordinator.cached.buffer.max.bytes": (
        "Bytes, at most, of a buffer that the group coordinator keeps between writes. " + OWN_BUFFERS
    ),
    "group.coordinator.rebalance.protocols": (
        "Group protocols that are served: `classic` always, `consumer` where it stands here, and no others."
    ),
    "group.coordinator.threads": "Threads of the group coordinator. " + ONE_LOOP,
    "group.initial.rebalance.delay.ms": (
        "Milliseconds that a new classic group waits for more members before its first rebalance."
    ),
    "group.max.session.timeout.ms": "Longest session timeout, in milliseconds, that a classic member may ask for.",
    "group.max.size": "Members, at most, of one classic group.",
    "group.min.session.timeout.ms": "Shortest session timeout, in milliseconds, that a classic member may ask for.",
    "group.share.assignors": "Assignors of share groups; the first is used. " + NO_SHARE_GROUPS,
    "group.share.dlq.manager.class.name": "Java class that writes dead letters of share groups. " + NO_JAVA,
    "group.share.initialize.retry.interval.ms": (
        "Milliseconds before the state of a share group's partition is initialised again after a failure. "
        + NO_SHARE_GROUPS
    ),
    "group.share.max.assignment.interval.ms": (
        "Longest assignment interval, in milliseconds, that a share group may set."
    ),
    "group.share.max.delivery.count.limit": "Largest delivery count that a share group may set.",
    "group.share.max.heartbeat.interval.ms": "Longest heartbeat interval, in milliseconds, that a share group may set.",
    "group.share.max.partition.max.record.locks": "Largest number of locked records that a share group may set.",
    "group.share.max.record.lock.duration.ms": "Longest lock, in milliseconds, that a share group may set.",
    "group.share.max.session.timeout.ms": "Longest session timeout, in milliseconds, that a share group may set.",
    "group.share.max.share.sessions": "Share sessions, at most, that the broker keeps. " + NO_SHARE_GROUPS,
    "group.share.max.size": "Members, at most, of one share group. " + NO_SHARE_GROUPS,
    "group.share.min.assignment.interval.ms": (
        "Shortest assignment interval, in milliseconds, that a share group may set."
    ),
    "group.share.min.delivery.count.limit": "Smallest delivery count that a share group may set.",
    "group.share.min.heartbeat.interval.ms": (
        "Shortest heartbeat interval, in milliseconds, that a share group may set."
    ),
    "group.share.min.partition.max.record.locks": "Smallest number of locked records that a share group may set.",
    "group.share.min.record.lock.duration.ms": "Shortest lock, in milliseconds, that a share group may set.",
    "group.share.min.session.timeout.ms": "Shortest session timeout, in milliseconds, that a share group may set.",
    "group.share.persister.class.name": "Java class that keeps the state of share groups. " + NO_JAVA,
    "group.streams.assignors": "Assignors that a streams group may name.",
    "group.streams.max.assignment.interval.ms": (
        "Longest assignment interval, in milliseconds, that a streams group may set."
    ),
    "group.streams.max.heartbeat.interval.ms": (
        "Longest heartbeat interval, in milliseconds, that a streams group may set."
    ),
    "group.streams.max.session.timeout.ms": "Longest session timeout, in milliseconds, that a streams group may set.",
    "group.streams.max.size": "Members, at most, of one streams group. " + NO_STREAMS_GROUPS,
    "group.streams.max.standby.replicas": "Standby copies of each task, at most, that a streams group may set.",
    "group.streams.max.warmup.replicas": "Warming tasks, at most, that a streams group may set.",
    "group.streams.min.assignment.interval.ms": (
        "Shortest assignment interval, in milliseconds, that a streams group may set."
    ),
    "group.streams.min.heartbeat.interval.ms": (
        "Shortest heartbeat interval, in milliseconds, that a streams group may set."
    ),
    "group.streams.min.session.timeout.ms": "Shortest session timeout, in milliseconds, that a streams group may set.",
    "group.streams.min.task.offset.interval.ms": (
        "Shortest interval of task reports, in milliseconds, that a streams group may set."
    ),
    "group.streams.topology.description.plugin.class": "Java class that takes descriptions of topologies. " + NO_JAVA,
    "initial.broker.registration.timeout.ms": (
        "Milliseconds that the first registration with the controller may take. " + OWN_CONTROLLER
    ),
    "inter.broker.listener.name": (
        "Listener that brokers use among themselves, one of those for clients. Where `max.connections` is reached, it "
        "is the one that room is made for: the connection elsewhere that was silent for longest goes."
    ),
    "internal.metadata.delete.delay.millis": (
        "Milliseconds between the end of a file of the metadata log and its removal from the disk. " + NO_DELAY
    ),
    "internal.metadata.log.segment.bytes": (
        "Segment size of the metadata log, in bytes, that tests may set below the least of "
        "`metadata.log.segment.bytes`."
    ),
    "internal.metadata.max.batch.size.in.bytes": "Bytes, at most, of one batch of the metadata log. " + OWN_BUFFERS,
    "kafka.metrics.polling.interval.secs": "Seconds between two readings of old-style metrics reporters. " + NO_JAVA,
    "kafka.metrics.reporters": "Java classes of old-style metrics reporters. " + NO_JAVA,
    "leader.imbalance.check.interval.seconds": (
        "Seconds between two looks for partitions away from their preferred leaders. " + ONE_REPLICA
    ),
    "leader.replication.throttled.rate": "Bytes per second at which leaders send to throttled replicas. " + ONE_REPLICA,
    "listener.security.protocol.map": "Which security protocol each listener name means, as NAME:PROTOCOL pairs.",
    "listeners": (
        "Addresses to listen at, as NAME://host:port; port 0 takes a free one, no host takes all addresses. "
        "Ottla's default is loopback, since nothing guards a plain text listener that others can reach."
    ),
    "log.cleaner.backoff.ms": "Milliseconds that the cleaner rests when there is nothing to compact.",
    "log.cleaner.dedupe.buffer.size": "Bytes of memory, in all, for the keys of the log that is being compacted.",
    "log.cleaner.enable": "Whether the cleaner runs; without it compacted topics grow for ever.",
    "log.cleaner.io.buffer.load.factor": (
        "How full, from 0 to 1, the cleaner's key table may get. " + OWN_CLEANER_BUFFERS
    ),
    "log.cleaner.io.buffer.size": "Bytes of the cleaner's read and write buffers. " + OWN_CLEANER_BUFFERS,
    "log.cleaner.io.max.bytes.per.second": "Bytes per second that the cleaner may read and write.",
    "log.cleaner.threads": "Threads that compact logs. " + ONE_LOOP,
    "log.dir": (
        "Data directory, where `log.dirs` names none. Ottla's default is in the directory that it was "
        "started from, since Kafka's in `/tmp` does not outlive a restart of the machine."
    ),
    "log.dir.failure.timeout.ms": (
        "Milliseconds after which a broker stops that cannot report a failed data directory. " + OWN_CONTROLLER
    ),
    "log.dirs": "Data directories, separated by commas; where not set, `log.dir`.",
    "log.flush.interval.ms": (
        "Default of the topic setting `flush.ms`, in milliseconds; where not set, `log.flush.scheduler.interval.ms`."
    ),
    "log.flush.offset.checkpoint.interval.ms": (
        "Milliseconds between two writes of the recovery points, which bound what an unclean stop makes the "
        "start read again."
    ),
    "log.flush.scheduler.interval.ms": "Default of `log.flush.interval.ms`, in milliseconds.",
    "log.flush.start.offset.checkpoint.interval.ms": (
        "Milliseconds between two writes of the log start offsets. " + NO_TURN_OF_THEIR_OWN
    ),
    "log.initial.task.delay.ms": "Milliseconds after the start before housekeeping begins.",
    "log.retention.check.interval.ms": "Milliseconds between two looks for segments to delete.",
    "log.retention.hours": (
        "Default of the topic setting `retention.ms` in hours, where neither `log.retention.ms` nor "
        "`log.retention.minutes` is set; -1 is no limit."
    ),
    "log.retention.minutes": (
        "Default of the topic setting `retention.ms` in minutes, where `log.retention.ms` is not set; -1 is no limit."
    ),
    "log.retention.ms": (
        "Default of the topic setting `retention.ms`; before `log.retention.minutes` and "
        "`log.retention.hours`; -1 is no limit."
    ),
    "log.roll.hours": "Default of the topic setting `segment.ms` in hours, where `log.roll.ms` is not set.",
    "log.roll.jitter.hours": (
        "Default of the topic setting `segment.jitter.ms` in hours, where `log.roll.jitter.ms` is not set."
    ),
    "log.roll.jitter.ms": "Default of the topic setting `segment.jitter.ms`; before `log.roll.jitter.hours`.",
    "log.roll.ms": "Default of the topic setting `segment.ms`; before `log.roll.hours`.",
    "max.connection.creation.rate": (
        "Connections per second that the broker, or with a listener's prefix one listener, accepts."
    ),
    "max.connections": "Connections, at most, that are open at one time.",
    "max.connections.per.ip": (
        "Connections, at most, from one address; 0 only lets in those of `max.connections.per.ip.overrides`."
    ),
    "max.connections.per.ip.overrides": "Exceptions from `max.connections.per.ip`, as address:number pairs.",
    "max.incremental.fetch.session.cache.slots": "Fetch sessions, at most, that the broker keeps.",
    "max.request.partition.size.limit": "Partitions, at most, in one answer of DescribeTopicPartitions.",
    "metadata.log.dir": "Data directory of the metadata log; where not set, the first of `log.dirs`.",
    "metadata.log.max.record.bytes.between.snapshots": "Bytes of the metadata log after which a snapshot is written.",
    "metadata.log.max.snapshot.interval.ms": (
        "Milliseconds after which a snapshot of the metadata is written though little has changed; 0 writes "
        "none by time."
    ),
    "metadata.log.segment.bytes": "Bytes after which the metadata log begins a new segment.",
    "metadata.log.segment.ms": "Milliseconds after which the metadata log begins a new segment.",
    "metadata.max.idle.interval.ms": (
        "Milliseconds after which an idle controller writes a record that says it is alive. " + OWN_CONTROLLER
    ),
    "metadata.max.retention.bytes": (
        "Bytes that the metadata log and its snapshots may have before older ones are deleted."
    ),
    "metadata.max.retention.ms": (
        "Milliseconds after which older parts of the metadata log and its snapshots are deleted."
    ),
    "metric.reporters": "Java classes that take the metrics. " + NO_JAVA,
    "metrics.num.samples": "Samples that an average in the metrics is made of. " + NO_AVERAGES,
    "metrics.recording.level": "Least important metrics that are recorded. " + NO_AVERAGES,
    "metrics.sample.window.ms": "Milliseconds that one sample of a metric spans. " + NO_AVERAGES,
    "node.id": (
        "Number of this broker in the cluster, 0 or more. Kafka has no default; "
        "ours is 1, since one broker needs no other."
    ),
    "num.io.threads": "Threads that handle requests. " + ONE_LOOP,
    "num.network.threads": "Threads that read and write sockets. " + ONE_LOOP,
    "num.partitions": "Partitions of topics that are created by themselves or without a number.",
    "num.recovery.threads.per.data.dir": (
        "Threads per data directory that check logs at the start, where they were not left cleanly."
    ),
    "num.replica.alter.log.dirs.threads": "Threads that move replicas between data directories. " + ONE_REPLICA,
    "num.replica.fetchers": "Threads that copy from each other broker. " + ONE_REPLICA,
    "offset.metadata.max.bytes": "Bytes, at most, of the text that a client stores with a committed offset.",
    "offsets.commit.timeout.ms": "Milliseconds that storing committed offsets may take. " + ONE_REPLICA,
    "offsets.load.buffer.size": "Bytes read at a time when the group coordinator loads. " + OWN_READS,
    "offsets.retention.check.interval.ms": "Milliseconds between two looks for committed offsets that have expired.",
    "offsets.retention.minutes": "Minutes that committed offsets are kept once their group is empty.",
    "offsets.topic.compression.codec": (
        "Codec number in which `__consumer_offsets` is written: 0 is none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    ),
    "offsets.topic.num.partitions": (
        "Partitions of `__consumer_offsets` when it is created; must not change afterwards."
    ),
    "offsets.topic.replication.factor": (
        "Replicas of `__consumer_offsets` when it is created. Ottla's default is 1, since it has one broker."
    ),
    "offsets.topic.segment.bytes": (
        "Segment size of `__consumer_offsets` in bytes; smaller ones are compacted and loaded sooner."
    ),
    "principal.builder.class": "Java class that makes a principal from a connection. " + NO_JAVA,
    "process.roles": (
        "Roles of this node. Kafka has no default; ours is both, since Ottla is its own controller. "
        "To be a controller only is refused."
    ),
    "producer.id.expiration.check.interval.ms": "Milliseconds between two looks for producer ids that have expired.",
    "producer.id.expiration.ms": "Milliseconds after its last write that a partition remembers an idempotent producer.",
    "producer.purgatory.purge.interval.requests": (
        "Waiting produce requests after which finished ones are cleared away. " + NO_PURGE
    ),
    "queued.max.request.bytes": "Bytes of requests that may wait for a handler; -1 is no limit. " + OWN_BUFFERS,
    "queued.max.requests": "Requests that may wait for a handler before sockets are no longer read. " + OWN_BUFFERS,
    "quota.window.num": "Samples over which the rate of new connections is taken (`max.connection.creation.rate`).",
    "quota.window.size.seconds": "Seconds that one sample of that rate spans.",
    "remote.fetch.max.wait.ms": "Milliseconds that a fetch from tiered storage may take. " + NO_TIERS,
    "remote.list.offsets.request.timeout.ms": (
        "Milliseconds that a search for offsets in tiered storage may take. " + NO_TIERS
    ),
    "remote.log.index.file.cache.total.size.bytes": "Bytes of the cache for indexes from tiered storage. " + NO_TIERS,
    "remote.log.index.file.cache.ttl.ms": (
        "Milliseconds that an unused index from tiered storage stays cached. " + NO_TIERS
    ),
    "remote.log.manager.copier.thread.pool.size": "Threads that copy to tiered storage. " + NO_TIERS,
    "remote.log.manager.copy.max.bytes.per.second": (
        "Bytes per second that may be copied to tiered storage. " + NO_TIERS
    ),
    "remote.log.manager.copy.quota.window.num": "Samples kept for the limit on copying to tiered storage. " + NO_TIERS,
    "remote.log.manager.copy.quota.window.size.seconds": "Seconds that one sample of that limit spans. " + NO_TIERS,
    "remote.log.manager.expiration.thread.pool.size": "Threads that delete from tiered storage. " + NO_TIERS,
    "remote.log.manager.fetch.max.bytes.per.second": (
        "Bytes per second that may be fetched from tiered storage. " + NO_TIERS
    ),
    "remote.log.manager.fetch.quota.window.num": (
        "Samples kept for the limit on fetching from tiered storage. " + NO_TIERS
    ),
    "remote.log.manager.fetch.quota.window.size.seconds": "Seconds that one sample of that limit spans. " + NO_TIERS,
    "remote.log.manager.follower.thread.pool.size": (
        "Threads that follow tiered storage for replicas that do not lead. " + NO_TIERS
    ),
    "remote.log.manager.task.interval.ms": "Milliseconds between two rounds of tiered storage. " + NO_TIERS,
    "remote.log.manager.task.retry.backoff.max.ms": (
        "Milliseconds, at most, before a failed round is tried again. " + NO_TIERS
    ),
    "remote.log.manager.task.retry.backoff.ms": "Milliseconds before a failed round is tried again. " + NO_TIERS,
    "remote.log.manager.task.retry.jitter": "Share, from 0 to 0.5, by which that wait is varied at random. " + NO_TIERS,
    "remote.log.manager.thread.pool.size": "Threads of tiered storage. " + NO_TIERS,
    "remote.log.metadata.custom.metadata.max.bytes": (
        "Bytes, at most, that a tiered storage plugin may note about a segment. " + NO_TIERS
    ),
    "remote.log.metadata.manager.class.name": "Java class that keeps what is known about tiered segments. " + NO_TIERS,
    "remote.log.metadata.manager.class.path": "Where that class is found. " + NO_TIERS,
    "remote.log.metadata.manager.impl.prefix": "Prefix of the settings handed to that class. " + NO_TIERS,
    "remote.log.metadata.manager.listener.name": "Listener that it connects to. " + NO_TIERS,
    "remote.log.reader.max.pending.tasks": "Fetches from tiered storage that may wait. " + NO_TIERS,
    "remote.log.reader.threads": "Threads that read from tiered storage. " + NO_TIERS,
    "remote.log.storage.manager.class.name": "Java class that stores segments elsewhere. " + NO_TIERS,
    "remote.log.storage.manager.class.path": "Where that class is found. " + NO_TIERS,
    "remote.log.storage.manager.impl.prefix": "Prefix of the settings handed to that class. " + NO_TIERS,
    "remote.log.storage.system.enable": "Whether the broker has tiered storage. " + NO_TIERS,
    "replica.alter.log.dirs.io.max.bytes.per.second": (
        "Bytes per second at which each replica moves between data directories (AlterReplicaLogDirs)."
    ),
    "replica.fetch.backoff.ms": "Milliseconds that a follower rests after a failed fetch. " + ONE_REPLICA,
    "replica.fetch.max.bytes": "Bytes per partition that a follower asks for. " + ONE_REPLICA,
    "replica.fetch.min.bytes": "Bytes that a follower's fetch waits for. " + ONE_REPLICA,
    "replica.fetch.response.max.bytes": "Bytes, at most, of an answer to a follower. " + ONE_REPLICA,
    "replica.fetch.wait.max.ms": "Milliseconds, at most, that a follower's fetch waits. " + ONE_REPLICA,
    "replica.high.watermark.checkpoint.interval.ms": (
        "Milliseconds between two writes of the high watermarks to `replication-offset-checkpoint`. "
        + NO_TURN_OF_THEIR_OWN
    ),
    "replica.lag.time.max.ms": (
        "Milliseconds behind the leader after which a follower is no longer in sync. " + ONE_REPLICA
    ),
    "replica.selector.class": "Java class that chooses the replica a consumer reads from. " + NO_JAVA,
    "replica.socket.receive.buffer.bytes": "Receive buffer of a follower's socket in bytes. " + ONE_REPLICA,
    "replica.socket.timeout.ms": "Milliseconds that a follower's request may take. " + ONE_REPLICA,
    "replication.quota.window.num": "Samples kept for the throttle on replication. " + ONE_REPLICA,
    "replication.quota.window.size.seconds": "Seconds that one sample of that throttle spans. " + ONE_REPLICA,
    "request.timeout.ms": "Milliseconds that the broker's own requests to others may take. " + ONE_REPLICA,
    "sasl.client.callback.handler.class": "Java class that answers SASL questions on the client's side. " + NO_SECURITY,
    "sasl.enabled.mechanisms": "SASL mechanisms that clients may use. " + NO_SECURITY,
    "sasl.jaas.config": (
        "Login of the broker, as a line of JAAS; with a listener's prefix for that listener. " + NO_SECURITY
    ),
    "sasl.kerberos.kinit.cmd": "Path of Kerberos' `kinit`. " + NO_SECURITY,
    "sasl.kerberos.min.time.before.relogin": "Milliseconds, at least, between two Kerberos logins. " + NO_SECURITY,
    "sasl.kerberos.principal.to.local.rules": "Rules that shorten Kerberos names. " + NO_SECURITY,
    "sasl.kerberos.service.name": "Name of the Kerberos service. " + NO_SECURITY,
    "sasl.kerberos.ticket.renew.jitter": "Share by which the renewal of a ticket is varied at random. " + NO_SECURITY,
    "sasl.kerberos.ticket.renew.window.factor": "Share of a ticket's life after which it is renewed. " + NO_SECURITY,
    "sasl.login.callback.handler.class": "Java class that answers questions of the login. " + NO_SECURITY,
    "sasl.login.class": "Java class that logs in. " + NO_SECURITY,
    "sasl.login.connect.timeout.ms": "Milliseconds that connecting to an OAuth provider may take. " + NO_SECURITY,
    "sasl.login.read.timeout.ms": "Milliseconds that an OAuth provider's answer may take. " + NO_SECURITY,
    "sasl.login.refresh.buffer.seconds": (
        "Seconds before a credential ends by which it should be renewed. " + NO_SECURITY
    ),
    "sasl.login.refresh.min.period.seconds": "Seconds, at least, between two renewals of a credential. " + NO_SECURITY,
    "sasl.login.refresh.window.factor": "Share of a credential's life after which it is renewed. " + NO_SECURITY,
    "sasl.login.refresh.window.jitter": "Share by which that moment is varied at random. " + NO_SECURITY,
    "sasl.login.retry.backoff.max.ms": "Milliseconds, at most, before a failed login is tried again. " + NO_SECURITY,
    "sasl.login.retry.backoff.ms": "Milliseconds before a failed login is tried again. " + NO_SECURITY,
    "sasl.mechanism.controller.protocol": "SASL mechanism towards the controller. " + NO_SECURITY,
    "sasl.mechanism.inter.broker.protocol": "SASL mechanism among brokers. " + NO_SECURITY,
    "sasl.oauthbearer.allow.unverified.audience": (
        "Whether tokens are taken without a look at whom they are for. " + NO_SECURITY
    ),
    "sasl.oauthbearer.allow.unverified.issuer": (
        "Whether tokens are taken without a look at who issued them. " + NO_SECURITY
    ),
    "sasl.oauthbearer.assertion.algorithm": "Algorithm that signs an assertion. " + NO_SECURITY,
    "sasl.oauthbearer.assertion.claim.aud": "Audience claim of an assertion. " + NO_SECURITY,
    "sasl.oauthbearer.assertion.claim.exp.seconds": "Seconds that an assertion is valid. " + NO_SECURITY,
    "sasl.oauthbearer.assertion.claim.iss": "Issuer claim of an assertion. " + NO_SECURITY,
    "sasl.oauthbearer.assertion.claim.jti.include": "Whether an assertion has an id of its own. " + NO_SECURITY,
    "sasl.oauthbearer.assertion.claim.nbf.seconds": (
        "Seconds before now from which an assertion is valid. " + NO_SECURITY
    ),
    "sasl.oauthbearer.assertion.claim.sub": "Subject claim of an assertion. " + NO_SECURITY,
    "sasl.oauthbearer.assertion.file": "File with a ready assertion. " + NO_SECURITY,
    "sasl.oauthbearer.assertion.private.key.file": "File with the key that signs assertions. " + NO_SECURITY,
    "sasl.oauthbearer.assertion.private.key.passphrase": "Passphrase of that key. " + NO_SECURITY,
    "sasl.oauthbearer.assertion.template.file": "File with further claims and headers of an assertion. " + NO_SECURITY,
    "sasl.oauthbearer.client.credentials.client.id": "Client id for an OAuth provider. " + NO_SECURITY,
    "sasl.oauthbearer.client.credentials.client.secret": "Client secret for an OAuth provider. " + NO_SECURITY,
    "sasl.oauthbearer.clock.skew.seconds": "Seconds by which the provider's clock may differ. " + NO_SECURITY,
    "sasl.oauthbearer.expected.audience": "Audiences that a token must be for one of. " + NO_SECURITY,
    "sasl.oauthbearer.expected.issuer": "Issuer that a token must come from. " + NO_SECURITY,
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": (
        "Milliseconds between two readings of the provider's keys. " + NO_SECURITY
    ),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": (
        "Milliseconds, at most, before a failed reading of the keys is tried again. " + NO_SECURITY
    ),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": (
        "Milliseconds before a failed reading of the keys is tried again. " + NO_SECURITY
    ),
    "sasl.oauthbearer.jwks.endpoint.url": "Address of the provider's keys. " + NO_SECURITY,
    "sasl.oauthbearer.jwt.retriever.class": "Java class that fetches tokens. " + NO_SECURITY,
    "sasl.oauthbearer.jwt.validator.class": "Java class that checks tokens. " + NO_SECURITY,
    "sasl.oauthbearer.scope": "Scope that a token is asked for. " + NO_SECURITY,
    "sasl.oauthbearer.scope.claim.name": "Name of the scope claim. " + NO_SECURITY,
    "sasl.oauthbearer.sub.claim.name": "Name of the subject claim. " + NO_SECURITY,
    "sasl.oauthbearer.token.endpoint.url": "Address where tokens are fetched. " + NO_SECURITY,
    "sasl.server.callback.handler.class": "Java class that answers SASL questions on the broker's side. " + NO_SECURITY,
    "sasl.server.max.receive.size": "Bytes, at most, of one SASL message. " + NO_SECURITY,
    "security.inter.broker.protocol": (
        "Security protocol among brokers. Names their listener where `inter.broker.listener.name` does not; both may "
        "not be set."
    ),
    "security.providers": "Java classes of security providers. " + NO_SECURITY,
    "server.max.startup.time.ms": "Milliseconds that the start may take. " + OWN_BUFFERS,
    "share.coordinator.append.linger.ms": (
        "Milliseconds that the share coordinator gathers records before it writes them; -1 adapts. " + OWN_BUFFERS
    ),
    "share.coordinator.cached.buffer.max.bytes": (
        "Bytes, at most, of a buffer that the share coordinator keeps between writes. " + OWN_BUFFERS
    ),
    "share.coordinator.cold.partition.snapshot.interval.ms": (
        "Milliseconds between two snapshots of share partitions that do not change. " + NO_SHARE_GROUPS
    ),
    "share.coordinator.load.buffer.size": "Bytes read at a time when the share coordinator loads. " + OWN_READS,
    "share.coordinator.snapshot.update.records.per.snapshot": (
        "Changes of a share partition's state between two of its snapshots. " + NO_SHARE_GROUPS
    ),
    "share.coordinator.state.topic.compression.codec": (
        "Codec number in which `__share_group_state` is written: 0 is none, 1 gzip, 2 snappy, 3 lz4, 4 zstd. "
        + NO_SHARE_GROUPS
    ),
    "share.coordinator.state.topic.min.isr": (
        "Least in-sync replicas of `__share_group_state`. Ottla's default is 1, since it has one broker."
    ),
    "share.coordinator.state.topic.num.partitions": (
        "Partitions of `__share_group_state` when it is created; must not change afterwards."
    ),
    "share.coordinator.state.topic.prune.interval.ms": (
        "Milliseconds between two deletions of records of `__share_group_state` that nobody needs. " + NO_SHARE_GROUPS
    ),
    "share.coordinator.state.topic.replication.factor": (
        "Replicas of `__share_group_state` when it is created. Ottla's default is 1, since it has one broker."
    ),
    "share.coordinator.state.topic.segment.bytes": "Segment size of `__share_group_state` in bytes.",
    "share.coordinator.threads": "Threads of the share coordinator. " + ONE_LOOP,
    "share.coordinator.write.timeout.ms": (
        "Milliseconds that a write of the share coordinator may take. " + NO_SHARE_GROUPS
    ),
    "share.fetch.purgatory.purge.interval.requests": (
        "Waiting share fetches after which finished ones are cleared away. " + NO_PURGE
    ),
    "socket.connection.setup.timeout.max.ms": (
        "Milliseconds, at most, that connecting to another broker may take. " + ONE_REPLICA
    ),
    "socket.connection.setup.timeout.ms": (
        "Milliseconds that a first attempt to connect to another broker may take. " + ONE_REPLICA
    ),
    "socket.listen.backlog.size": (
        "Connections to each listener that may wait to be accepted, 1024 where this is not set, and then for room by "
        "`max.connections` or `max.connection.creation.rate`; more are refused."
    ),
    "socket.receive.buffer.bytes": (
        "Receive buffer of a client's socket in bytes; where it is -1 or not set, the system sizes it."
    ),
    "socket.request.max.bytes": "Bytes, at most, of one request; a larger one closes the connection.",
    "socket.send.buffer.bytes": (
        "Send buffer of a client's socket in bytes; where it is -1 or not set, the system sizes it."
    ),
    "ssl.allow.dn.changes": "Whether a new certificate may have another distinguished name. " + NO_SECURITY,
    "ssl.allow.san.changes": "Whether a new certificate may lack alternative names of the old one. " + NO_SECURITY,
    "ssl.cipher.suites": "Cipher suites that are allowed; an empty list leaves it to the library. " + NO_SECURITY,
    "ssl.client.auth": (
        "Whether clients must (`required`), may (`requested`) or need not show a certificate. " + NO_SECURITY
    ),
    "ssl.enabled.protocols": "TLS versions that are allowed. " + NO_SECURITY,
    "ssl.endpoint.identification.algorithm": (
        "How a host name is compared with a certificate; empty turns it off. " + NO_SECURITY
    ),
    "ssl.engine.factory.class": "Java class that makes TLS engines. " + NO_SECURITY,
    "ssl.key.password": "Password of the private key. " + NO_SECURITY,
    "ssl.keymanager.algorithm": "Algorithm of Java's key manager. " + NO_SECURITY,
    "ssl.keystore.certificate.chain": "Certificate chain in PEM form. " + NO_SECURITY,
    "ssl.keystore.key": "Private key in PEM form. " + NO_SECURITY,
    "ssl.keystore.location": "File of the key store. " + NO_SECURITY,
    "ssl.keystore.password": "Password of the key store. " + NO_SECURITY,
    "ssl.keystore.type": "Form of the key store. " + NO_SECURITY,
    "ssl.principal.mapping.rules": "Rules that make a principal from a certificate's name. " + NO_SECURITY,
    "ssl.protocol": "TLS version that is tried first. " + NO_SECURITY,
    "ssl.provider": "Java's provider of TLS. " + NO_SECURITY,
    "ssl.secure.random.implementation": "Java's source of random numbers for TLS. " + NO_SECURITY,
    "ssl.trustmanager.algorithm": "Algorithm of Java's trust manager. " + NO_SECURITY,
    "ssl.truststore.certificates": "Trusted certificates in PEM form. " + NO_SECURITY,
    "ssl.truststore.location": "File of the trust store. " + NO_SECURITY,
    "ssl.truststore.password": "Password of the trust store. " + NO_SECURITY,
    "ssl.truststore.type": "Form of the trust store. " + NO_SECURITY,
    "telemetry.max.bytes": "Bytes, at most, of metrics that a client pushes at once.",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        "Milliseconds between two looks for transactions that have timed out and are to be aborted. " + NO_TRANSACTIONS
    ),
    "transaction.max.timeout.ms": "Longest transaction timeout, in milliseconds, that a producer may ask for.",
    "transaction.partition.verification.enable": (
        "Whether a partition asks the coordinator if a transaction really includes it. " + NO_TRANSACTIONS
    ),
    "transaction.remove.expired.transaction.cleanup.interval.ms": (
        "Milliseconds between two looks for transactional ids that have expired. " + NO_TRANSACTIONS
    ),
    "transaction.state.log.load.buffer.size": (
        "Bytes read at a time when the transaction coordinator loads. " + OWN_READS
    ),
    "transaction.state.log.min.isr": (
        "Least in-sync replicas of `__transaction_state`. Ottla's default is 1, since it has one broker."
    ),
    "transaction.state.log.num.partitions": (
        "Partitions of `__transaction_state` when it is created; must not change afterwards."
    ),
    "transaction.state.log.replication.factor": (
        "Replicas of `__transaction_state` when it is created. Ottla's default is 1, since it has one broker."
    ),
    "transaction.state.log.segment.bytes": "Segment size of `__transaction_state` in bytes.",
    "transaction.two.phase.commit.enable": (
        "Whether producers may prepare transactions that never time out. " + NO_TRANSACTIONS
    ),
    "transactional.id.expiration.ms": (
        "Milliseconds after its last use that a transactional id is kept. " + NO_TRANSACTIONS
    ),
    "unclean.leader.election.interval.ms": (
        "Milliseconds between two looks for partitions that need an unclean election. " + ONE_REPLICA
    ),
    "unstable.api.versions.enable": "Whether API versions are announced that Kafka still works on. " + NOTHING_UNSTABLE,
    "unstable.feature.versions.enable": (
        "Whether feature levels are allowed that Kafka still works on. " + NOTHING_UNSTABLE
    ),
    "ottla.flush.policy": (
        "What an acknowledgement means. `fsync`: the record is on the disk and outlives a power cut "
        "(acks=all waits for it, and no consumer reads what is not there yet). `os`: it is with the "
        "operating system and outlives a crash of the broker, as in Kafka itself."
    ),
    "ottla.jafka.file.size": "Bytes of a `.jafka` file after which the next one is begun (Jafka's `log.file.size`).",
    "ottla.jafka.flush.intervals": (
        "The same as `ottla.jafka.flush.ms` for single topics, as `topic:milliseconds` (Jafka's "
        "`topic.flush.intervals.ms`)."
    ),
    "ottla.jafka.flush.messages": (
        "Messages after which what Jafka clients produced becomes readable to them (Jafka's `log.flush.interval`)."
    ),
    "ottla.jafka.flush.ms": (
        "Milliseconds after which it becomes readable, however few messages there are (Jafka's "
        "`log.default.flush.interval.ms`)."
    ),
    "ottla.jafka.max.message.bytes": (
        "Largest payload that a message of a Jafka client may have as it is sent (Jafka's `max.message.size`)."
    ),
    "ottla.jafka.partition.counts": (
        "Partitions of topics that Jafka clients make, as `topic:number`; `num.partitions` for all others (Jafka's "
        "`topic.partition.count.map`)."
    ),
    "ottla.jafka.password": (
        "What a Jafka client must know to delete topics: `plain:` and a password, `md5:` and its hash in hexadecimal, "
        "or `crc32:` and its checksum as a number. Without it everybody may."
    ),
    "ottla.jafka.retention.hours": (
        "`retention.ms` of topics that Jafka clients make, in hours, as `topic:hours` (Jafka's "
        "`topic.log.retention.hours`)."
    ),
    "ottla.lite.errors": (
        "How a `LITE` listener meets a mistake. `frame`: with an error in place of the answer. `close`: in silence, "
        "by closing the connection."
    ),
    "ottla.lite.keep.alive": (
        "Whether a connection to a `LITE` listener may ask more than one question. Its clients may read an answer to "
        "the end of the stream, so by default there is one."
    ),
}
"""Broker settings; those that only hand a default to topics or groups take their sentence from there."""

TOPIC: Final[Mapping[str, str]] = {
    "cleanup.policy": (
        "What happens to old segments: `delete` drops them by age and size, `compact` keeps the last record "
        "of each key, both do both, and an empty list keeps everything."
    ),
    "compression.gzip.level": (
        "Level of gzip, from 1 (fast) to 9 (small), where the broker compresses; -1 is the codec's own choice."
    ),
    "compression.lz4.level": "Level of LZ4, from 1 (fast) to 17 (small), where the broker compresses.",
    "compression.type": (
        "Codec in which batches are stored; `producer` keeps what came, `uncompressed` inflates it, any "
        "other name recompresses what differs."
    ),
    "compression.zstd.level": "Level of Zstandard, up to 22 (small), where the broker compresses.",
    "delete.retention.ms": (
        "How many milliseconds a compacted log keeps a deletion marker, so that slow readers still see it."
    ),
    "errors.deadletterqueue.group.enable": (
        "Whether share groups may write undeliverable records to this topic. " + NO_DEAD_LETTERS
    ),
    "file.delete.delay.ms": (
        "Milliseconds between the moment a file is no longer part of the log and its removal from the disk."
    ),
    "flush.messages": "Ask for an fsync after this many records; only adds flushes to those of `ottla.flush.policy`.",
    "flush.ms": (
        "Ask for an fsync when the oldest unflushed record is this many milliseconds old; only adds flushes "
        "to those of `ottla.flush.policy`."
    ),
    "follower.replication.throttled.replicas": (
        "Replicas, as partition:broker pairs or `*`, whose copying from a leader is throttled. " + ONE_REPLICA
    ),
    "index.interval.bytes": (
        "Bytes of log between two entries of the offset index: fewer make reads start closer and the index larger."
    ),
    "internal.segment.bytes": "Segment size in bytes that tests may set below the least that `segment.bytes` takes.",
    "leader.replication.throttled.replicas": (
        "Replicas, as partition:broker pairs or `*`, whose copying to followers is throttled. " + ONE_REPLICA
    ),
    "local.retention.bytes": (
        "Bytes kept on the local disk once older segments are in tiered storage; -2 means `retention.bytes`. "
        + NO_TIERS
    ),
    "local.retention.ms": (
        "Milliseconds kept on the local disk once older segments are in tiered storage; -2 means "
        "`retention.ms`. " + NO_TIERS
    ),
    "max.compaction.lag.ms": "Milliseconds after which a record is open to compaction at the latest.",
    "max.decompressed.message.bytes": "Bytes that one batch may have once it is inflated; larger ones are refused.",
    "max.message.bytes": "Bytes that one batch may have as it is stored, compressed where it is.",
    "message.timestamp.after.max.ms": (
        "How many milliseconds a record's timestamp may lie ahead of the broker's clock before it is refused."
    ),
    "message.timestamp.before.max.ms": (
        "How many milliseconds a record's timestamp may lie behind the broker's clock before it is refused."
    ),
    "message.timestamp.type": (
        "Whose time records carry: `CreateTime` is the producer's, `LogAppendTime` the broker's at the "
        "moment of writing."
    ),
    "min.cleanable.dirty.ratio": (
        "Share of a compacted log, from 0 to 1, that must be uncompacted before it is worth compacting."
    ),
    "min.compaction.lag.ms": "Milliseconds during which a record is safe from compaction.",
    "min.insync.replicas": "Replicas that must have a record before acks=all is answered. " + ONE_REPLICA,
    "preallocate": "Whether a new segment's file takes its full size on the disk at once.",
    "remote.copy.lag.bytes": (
        "Bytes that a segment waits before it is copied to tiered storage; -1 does not wait. " + NO_TIERS
    ),
    "remote.copy.lag.ms": (
        "Milliseconds that a segment waits before it is copied to tiered storage; -1 does not wait. " + NO_TIERS
    ),
    "remote.log.copy.disable": (
        "Whether a tiered topic stops copying to tiered storage and only reads from it. " + NO_TIERS
    ),
    "remote.log.delete.on.disable": "Whether what is in tiered storage goes when a topic leaves it. " + NO_TIERS,
    "remote.storage.enable": "Whether old segments go to tiered storage. Ottla has none, so `true` is refused.",
    "retention.bytes": "Bytes that a partition may have before its oldest segments are deleted; -1 is no limit.",
    "retention.ms": "Milliseconds after which a segment is deleted, counted from its newest record; -1 is no limit.",
    "segment.bytes": "Bytes after which a new segment is begun.",
    "segment.index.bytes": "Bytes that an index file may have; a full index begins a new segment.",
    "segment.jitter.ms": "Milliseconds, at most, by which the beginning of new segments is spread at random.",
    "segment.ms": "Milliseconds after which a new segment is begun though the old one is not full.",
    "ottla.format": (
        "What the topic's files are: `kafka`, Kafka's own, or `jafka`, messages as Jafka's clients send them, which is "
        "what topics get that such clients make. Others read both, see the page on Jafka."
    ),
    "unclean.leader.election.enable": (
        "Whether a replica that is not in sync may lead when no other is left, losing records. " + ONE_REPLICA
    ),
}
"""Topic settings."""

GROUP: Final[Mapping[str, str]] = {
    "consumer.assignment.interval.ms": (
        "Milliseconds, at least, between two assignments of a consumer group, so that many joins are answered by one."
    ),
    "consumer.assignor.offload.enable": (
        "Whether assignments of a consumer group are computed off the coordinator's thread. " + ONE_LOOP
    ),
    "consumer.heartbeat.interval.ms": "Milliseconds between two heartbeats of a consumer group's member.",
    "consumer.session.timeout.ms": (
        "Milliseconds without a heartbeat after which a member of a consumer group is expelled."
    ),
    "errors.deadletterqueue.copy.record.enable": (
        "Whether an undeliverable record goes to the dead letter topic with its key and value. " + NO_DEAD_LETTERS
    ),
    "errors.deadletterqueue.topic.name": (
        "Topic that takes records which a share group could not process; empty for none. " + NO_DEAD_LETTERS
    ),
    "share.assignment.interval.ms": (
        "Milliseconds, at least, between two assignments of a share group. " + NO_SHARE_GROUPS
    ),
    "share.assignor.offload.enable": (
        "Whether assignments of a share group are computed off the coordinator's thread. " + ONE_LOOP
    ),
    "share.auto.offset.reset": (
        "Where a share group begins that has no offsets: `latest`, `earliest`, or `by_duration:` and an ISO "
        "8601 duration back from now. " + NO_SHARE_GROUPS
    ),
    "share.delivery.count.limit": "How often a share group gets a record before it is given up. " + NO_SHARE_GROUPS,
    "share.heartbeat.interval.ms": "Milliseconds between two heartbeats of a share group's member. " + NO_SHARE_GROUPS,
    "share.isolation.level": (
        "Whether a share group sees records of open and aborted transactions (`read_uncommitted`) or not "
        "(`read_committed`). " + NO_SHARE_GROUPS
    ),
    "share.partition.max.record.locks": (
        "Records of one partition, at most, that are handed out and not acknowledged. " + NO_SHARE_GROUPS
    ),
    "share.record.lock.duration.ms": (
        "Milliseconds that a consumer has for a record before others may get it. " + NO_SHARE_GROUPS
    ),
    "share.renew.acknowledge.enable": "Whether a consumer may ask for more time for a record. " + NO_SHARE_GROUPS,
    "share.session.timeout.ms": (
        "Milliseconds without a heartbeat after which a member of a share group is expelled. " + NO_SHARE_GROUPS
    ),
    "streams.acceptable.recovery.lag": (
        "Records, at most, that a task's copy may lag behind to count as caught up. " + NO_STREAMS_GROUPS
    ),
    "streams.assignment.interval.ms": (
        "Milliseconds, at least, between two assignments of a streams group. " + NO_STREAMS_GROUPS
    ),
    "streams.assignor.name": "Assignor that gives a streams group's tasks to its members. " + NO_STREAMS_GROUPS,
    "streams.assignor.offload.enable": (
        "Whether assignments of a streams group are computed off the coordinator's thread. " + ONE_LOOP
    ),
    "streams.heartbeat.interval.ms": (
        "Milliseconds between two heartbeats of a streams group's member. " + NO_STREAMS_GROUPS
    ),
    "streams.initial.rebalance.delay.ms": (
        "Milliseconds that a new streams group waits for more members before its first assignment. " + NO_STREAMS_GROUPS
    ),
    "streams.num.standby.replicas": "Standby copies of each task of a streams group. " + NO_STREAMS_GROUPS,
    "streams.num.warmup.replicas": (
        "Tasks, at most, of a streams group that warm up on another member at one time. " + NO_STREAMS_GROUPS
    ),
    "streams.rack.aware.assignment.tags": (
        "Client tags by which standby tasks of a streams group are spread. " + NO_STREAMS_GROUPS
    ),
    "streams.session.timeout.ms": (
        "Milliseconds without a heartbeat after which a member of a streams group is expelled. " + NO_STREAMS_GROUPS
    ),
    "streams.task.offset.interval.ms": (
        "Milliseconds between two reports of a streams group's member about how far its tasks are. " + NO_STREAMS_GROUPS
    ),
}
"""Group settings."""

CLIENT_METRICS: Final[Mapping[str, str]] = {
    "interval.ms": "Milliseconds between two pushes of a client's metrics, from 100 to 3,600,000. " + NO_CLIENT_METRICS,
    "match": (
        "Which clients a subscription means, as `client_id=expression` and the like; an empty list means "
        "all. " + NO_CLIENT_METRICS
    ),
    "metrics": (
        "Prefixes of the metrics that clients push; an empty list asks for none, `*` for all. " + NO_CLIENT_METRICS
    ),
}
"""Settings of client metrics subscriptions."""

QUOTA: Final[Mapping[str, str]] = {
    "consumer_byte_rate": (
        "Bytes per second that the consumers may fetch from this broker before they are slowed down. " + NO_QUOTAS
    ),
    "controller_mutation_rate": (
        "Partitions per second that may be created and deleted before the client is slowed down. " + NO_QUOTAS
    ),
    "producer_byte_rate": (
        "Bytes per second that the producers may send to this broker before they are slowed down. " + NO_QUOTAS
    ),
    "request_percentage": (
        "Share of a thread's time, in percent, that requests may take before the client is slowed down. " + NO_QUOTAS
    ),
    "connection_creation_rate": (
        "Connections per second that an address may open before it is slowed down. " + NO_QUOTAS
    ),
}
"""Quotas."""

SENTENCES: Final[Mapping[Scope, Mapping[str, str]]] = {
    Scope.BROKER: BROKER,
    Scope.TOPIC: TOPIC,
    Scope.GROUP: GROUP,
    Scope.CLIENT_METRICS: CLIENT_METRICS,
    Scope.QUOTA: QUOTA,
}
