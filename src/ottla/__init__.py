"""Ottla: a message broker that speaks Apache Kafka's protocol and keeps its data in Kafka's own files."""
