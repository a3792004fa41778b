"""Kafka's own protocol, served."""
