"""The cluster's metadata: topics, ids, partitions, settings, brokers and features as one state machine.

`MetadataController` writes, `MetadataView` reads; the rest of the room are decisions, records and rules.
"""
