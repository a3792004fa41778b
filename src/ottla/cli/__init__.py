"""The command line: one file per noun, an ordinary client of any Kafka-compatible cluster.

`serve` alone starts a broker.
"""
