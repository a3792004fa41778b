"""The records of `__cluster_metadata`: names for their messages, and the version to write each of them in.

One place for the rest of the room to import them from. Bytes have Kafka's frame in front (frame version 1, record type,
version, as varints). Which versions may be written depends on the finalized metadata.version, since a cluster that was
formatted at an older level must stay readable for that level.
"""

from __future__ import annotations

from copy import copy
from typing import Final

from ottla.broker.metadata import features
from ottla.protocol.internal.framing import RawRecord, decode_metadata_record, encode_metadata_record
from ottla.protocol.internal.metadata_records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from ottla.protocol.internal.metadata_records import EntityData as QuotaEntityData
from ottla.protocol.schema import Message as MetadataRecord

__all__ = [
    "AbortTransactionRecord",
    "AccessControlEntryRecord",
    "BeginTransactionRecord",
    "BrokerEndpoint",
    "BrokerFeature",
    "BrokerRegistrationChangeRecord",
    "ClearElrRecord",
    "ClientQuotaRecord",
    "ConfigRecord",
    "DelegationTokenRecord",
    "EndTransactionRecord",
    "FeatureLevelRecord",
    "FenceBrokerRecord",
    "MetadataRecord",
    "NoOpRecord",
    "PartitionChangeRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "QuotaEntityData",
    "RawRecord",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveTopicRecord",
    "RemoveUserScramCredentialRecord",
    "TopicRecord",
    "UnfenceBrokerRecord",
    "UnregisterBrokerRecord",
    "UnregisterControllerRecord",
    "UserScramCredentialRecord",
    "ZkMigrationStateRecord",
    "decode_metadata_record",
    "encode_record",
]


_PARTITION_DIRECTORIES: Final = 1
_BROKER_DIRECTORIES: Final = 3


def encode_record(record: MetadataRecord, metadata_version: int) -> bytes:
    """Return a record's bytes with its frame, in the newest version that `metadata_version` allows.

    Log directories are left out where that version does not know them yet, as Kafka does.
    """
    version = _record_version(record, metadata_version)
    if isinstance(record, PartitionRecord) and version < _PARTITION_DIRECTORIES:
        record = copy(record)
        record.directories = []
    elif isinstance(record, RegisterBrokerRecord) and version < _BROKER_DIRECTORIES:
        record = copy(record)
        record.log_dirs = []
    return encode_metadata_record(record, version)


def _record_version(record: MetadataRecord, metadata_version: int) -> int:
    if isinstance(record, PartitionRecord | PartitionChangeRecord):
        return features.partition_version(metadata_version)
    if isinstance(record, RegisterBrokerRecord):
        return features.register_broker_version(metadata_version)
    if isinstance(record, BrokerRegistrationChangeRecord):
        return features.registration_change_version(record.in_controlled_shutdown != 0)
    return 0
