"""Measurements of the whole broker, side by side in one run with the C floor, Apache Kafka and a peer."""
