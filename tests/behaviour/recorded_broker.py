"""The settings of the Kafka 4.4 whose conversations were recorded."""

from __future__ import annotations

RECORDED_WITH = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "advertised.listeners": "PLAINTEXT://localhost:9092",
    "log.dirs": "/data",
    "auto.create.topics.enable": "true",
    "delete.topic.enable": "true",
    "num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.share.record.lock.duration.ms": "1000",
    "group.share.min.record.lock.duration.ms": "1000",
    "log.retention.ms": "-1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
"""Where it listened and kept its data is a replay's own; whether it made topics by itself, a scenario's."""
