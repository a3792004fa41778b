"""Tests of the Kafka dialect."""
