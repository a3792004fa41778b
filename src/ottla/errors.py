"""Kafka's error table as exceptions: one class per code, raised by name.

Inside the broker and the client an error is a named exception; only at the wire does it become a number
(`error.code`) or come from one (`error_for_code`). The class name is Kafka's error name in CamelCase, so
`OFFSET_OUT_OF_RANGE` is `OffsetOutOfRange`. Which answer row an error belongs to is left to the dialects.

Sentences are written for the person who reads a log line; `message` says what happened this time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

NONE: Final = 0
"""The code that says all is well. It has no exception."""


class KafkaError(Exception):
    """Any error that Kafka's protocol has a code for.

    Attributes of the class: `code` as on the wire, `name` as Kafka spells it, `retriable` when the same request may
    succeed later, `sentence` what the error means. Of the instance: `message`, what happened this time, or None.
    """

    code: int
    name: str
    retriable: bool = False
    sentence: str

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message)
        self.message = message

    def __init_subclass__(cls, code: int | None = None, name: str | None = None) -> None:
        """Enter a subclass into the table; those without a code (groups of errors, carriers) stay out of it."""
        super().__init_subclass__()
        if code is not None and name is not None:
            cls.code = code
            cls.name = name

    def __str__(self) -> str:
        return self.message if self.message is not None else self.sentence


class RetriableError(KafkaError):
    """Errors after which the same request may succeed later."""

    retriable = True


class InvalidMetadataError(RetriableError):
    """Errors after which a client refreshes its metadata before it tries again."""


class RecordValidationFailed(KafkaError):
    """A batch refused for the sake of single records. It has the code of `error`, which caused it.

    `record_errors` are pairs of record index within the batch and text, as Produce answers them (KIP-467).
    """

    def __init__(self, error: KafkaError, record_errors: Sequence[tuple[int, str | None]]) -> None:
        super().__init__(error.message)
        self.code = error.code
        self.name = error.name
        self.retriable = error.retriable
        self.sentence = error.sentence
        self.record_errors = record_errors


class UnknownServerError(KafkaError, code=-1, name="UNKNOWN_SERVER_ERROR"):
    sentence = "The broker failed in a way that has no code of its own; its log says more."


class OffsetOutOfRange(KafkaError, code=1, name="OFFSET_OUT_OF_RANGE"):
    sentence = "The offset lies outside what the partition holds."


class CorruptMessage(RetriableError, code=2, name="CORRUPT_MESSAGE"):
    sentence = "The record batch fails its checksum, is cut short, or has impossible sizes."


class UnknownTopicOrPartition(InvalidMetadataError, code=3, name="UNKNOWN_TOPIC_OR_PARTITION"):
    sentence = "This broker does not know the topic or has no such partition of it."


class InvalidFetchSize(KafkaError, code=4, name="INVALID_FETCH_SIZE"):
    sentence = "The fetch asks for a size that makes no sense."


class LeaderNotAvailable(InvalidMetadataError, code=5, name="LEADER_NOT_AVAILABLE"):
    sentence = "The partition has no leader at the moment."


class NotLeaderOrFollower(InvalidMetadataError, code=6, name="NOT_LEADER_OR_FOLLOWER"):
    sentence = "This broker is not the partition's leader, or holds no replica of it where one would do."


class RequestTimedOut(RetriableError, code=7, name="REQUEST_TIMED_OUT"):
    sentence = "The request was not done within its time limit."


class BrokerNotAvailable(KafkaError, code=8, name="BROKER_NOT_AVAILABLE"):
    sentence = "The broker cannot be reached."


class ReplicaNotAvailable(InvalidMetadataError, code=9, name="REPLICA_NOT_AVAILABLE"):
    sentence = "No replica of the partition is available on this broker."


class MessageTooLarge(KafkaError, code=10, name="MESSAGE_TOO_LARGE"):
    sentence = "A record or batch is larger than the topic allows."


class StaleControllerEpoch(KafkaError, code=11, name="STALE_CONTROLLER_EPOCH"):
    sentence = "The request comes from a controller that has been replaced."


class OffsetMetadataTooLarge(KafkaError, code=12, name="OFFSET_METADATA_TOO_LARGE"):
    sentence = "The metadata text of a committed offset is longer than the broker allows."


class NetworkException(InvalidMetadataError, code=13, name="NETWORK_EXCEPTION"):
    sentence = "The connection broke before an answer came."


class CoordinatorLoadInProgress(RetriableError, code=14, name="COORDINATOR_LOAD_IN_PROGRESS"):
    sentence = "The coordinator is still reading its log and cannot answer yet."


class CoordinatorNotAvailable(RetriableError, code=15, name="COORDINATOR_NOT_AVAILABLE"):
    sentence = "There is no coordinator for this group or transactional id at the moment."


class NotCoordinator(RetriableError, code=16, name="NOT_COORDINATOR"):
    sentence = "Another broker coordinates this group or transactional id."


class InvalidTopicException(KafkaError, code=17, name="INVALID_TOPIC_EXCEPTION"):
    sentence = "The topic name is not allowed, or the topic may not be used in this way."


class RecordListTooLarge(KafkaError, code=18, name="RECORD_LIST_TOO_LARGE"):
    sentence = "The batch is larger than a segment of the topic's log may be."


class NotEnoughReplicas(RetriableError, code=19, name="NOT_ENOUGH_REPLICAS"):
    sentence = "Fewer replicas are in sync than `min.insync.replicas` asks for; nothing was written."


class NotEnoughReplicasAfterAppend(RetriableError, code=20, name="NOT_ENOUGH_REPLICAS_AFTER_APPEND"):
    sentence = "The records were written, but fewer replicas are in sync than `min.insync.replicas` asks for."


class InvalidRequiredAcks(KafkaError, code=21, name="INVALID_REQUIRED_ACKS"):
    sentence = "`acks` is neither 0, 1 nor -1."


class IllegalGeneration(KafkaError, code=22, name="ILLEGAL_GENERATION"):
    sentence = "The member speaks of a generation that is not the group's current one."


class InconsistentGroupProtocol(KafkaError, code=23, name="INCONSISTENT_GROUP_PROTOCOL"):
    sentence = "The member's protocol type or its protocols do not match those of the group."


class InvalidGroupId(KafkaError, code=24, name="INVALID_GROUP_ID"):
    sentence = "The group id is empty or otherwise not allowed."


class UnknownMemberId(KafkaError, code=25, name="UNKNOWN_MEMBER_ID"):
    sentence = "The group has no member with this id."


class InvalidSessionTimeout(KafkaError, code=26, name="INVALID_SESSION_TIMEOUT"):
    sentence = "The session timeout lies outside the range that the broker allows."


class RebalanceInProgress(KafkaError, code=27, name="REBALANCE_IN_PROGRESS"):
    sentence = "The group is rebalancing; the member should rejoin."


class InvalidCommitOffsetSize(KafkaError, code=28, name="INVALID_COMMIT_OFFSET_SIZE"):
    sentence = "The committed offsets are too large to be stored as one batch."


class TopicAuthorizationFailed(KafkaError, code=29, name="TOPIC_AUTHORIZATION_FAILED"):
    sentence = "The principal may not do this with the topic."


class GroupAuthorizationFailed(KafkaError, code=30, name="GROUP_AUTHORIZATION_FAILED"):
    sentence = "The principal may not do this with the group."


class ClusterAuthorizationFailed(KafkaError, code=31, name="CLUSTER_AUTHORIZATION_FAILED"):
    sentence = "The principal may not do this with the cluster."


class InvalidTimestamp(KafkaError, code=32, name="INVALID_TIMESTAMP"):
    sentence = "A record's timestamp lies outside the range that the topic allows."


class UnsupportedSaslMechanism(KafkaError, code=33, name="UNSUPPORTED_SASL_MECHANISM"):
    sentence = "The broker does not offer this SASL mechanism."


class IllegalSaslState(KafkaError, code=34, name="ILLEGAL_SASL_STATE"):
    sentence = "The request does not fit the present step of authentication."


class UnsupportedVersion(KafkaError, code=35, name="UNSUPPORTED_VERSION"):
    sentence = "The broker does not speak this version of the request."


class TopicAlreadyExists(KafkaError, code=36, name="TOPIC_ALREADY_EXISTS"):
    sentence = "A topic of this name exists already."


class InvalidPartitions(KafkaError, code=37, name="INVALID_PARTITIONS"):
    sentence = "The number of partitions is not allowed here."


class InvalidReplicationFactor(KafkaError, code=38, name="INVALID_REPLICATION_FACTOR"):
    sentence = "The replication factor is not positive or exceeds the number of brokers."


class InvalidReplicaAssignment(KafkaError, code=39, name="INVALID_REPLICA_ASSIGNMENT"):
    sentence = "The replica assignment is inconsistent or names unknown brokers."


class InvalidConfig(KafkaError, code=40, name="INVALID_CONFIG"):
    sentence = "A setting is unknown here or its value is not allowed."


class NotController(RetriableError, code=41, name="NOT_CONTROLLER"):
    sentence = "This broker is not the controller."


class InvalidRequest(KafkaError, code=42, name="INVALID_REQUEST"):
    sentence = "The request contradicts itself or lacks something."


class UnsupportedForMessageFormat(KafkaError, code=43, name="UNSUPPORTED_FOR_MESSAGE_FORMAT"):
    sentence = "The stored message format cannot do this."


class PolicyViolation(KafkaError, code=44, name="POLICY_VIOLATION"):
    sentence = "A policy of the cluster forbids the request."


class OutOfOrderSequenceNumber(KafkaError, code=45, name="OUT_OF_ORDER_SEQUENCE_NUMBER"):
    sentence = "The producer's sequence number does not follow the last one."


class DuplicateSequenceNumber(KafkaError, code=46, name="DUPLICATE_SEQUENCE_NUMBER"):
    sentence = "The batch was appended before and is too old to be answered again."


class InvalidProducerEpoch(KafkaError, code=47, name="INVALID_PRODUCER_EPOCH"):
    sentence = "The producer's epoch is older than the newest one known."


class InvalidTxnState(KafkaError, code=48, name="INVALID_TXN_STATE"):
    sentence = "The transaction is in a state that does not allow this step."


class InvalidProducerIdMapping(KafkaError, code=49, name="INVALID_PRODUCER_ID_MAPPING"):
    sentence = "The producer id does not belong to this transactional id."


class InvalidTransactionTimeout(KafkaError, code=50, name="INVALID_TRANSACTION_TIMEOUT"):
    sentence = "The transaction timeout is not positive or above the broker's maximum."


class ConcurrentTransactions(RetriableError, code=51, name="CONCURRENT_TRANSACTIONS"):
    sentence = "Another step of the same transaction is still being carried out."


class TransactionCoordinatorFenced(KafkaError, code=52, name="TRANSACTION_COORDINATOR_FENCED"):
    sentence = "The coordinator that sent the marker has been replaced."


class TransactionalIdAuthorizationFailed(KafkaError, code=53, name="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
    sentence = "The principal may not use this transactional id."


class SecurityDisabled(KafkaError, code=54, name="SECURITY_DISABLED"):
    sentence = "Security features are switched off on this broker."


class OperationNotAttempted(KafkaError, code=55, name="OPERATION_NOT_ATTEMPTED"):
    sentence = "The broker did not try this part of the request because another part failed."


class KafkaStorageError(InvalidMetadataError, code=56, name="KAFKA_STORAGE_ERROR"):
    sentence = "The disk or the log on it failed."


class LogDirNotFound(KafkaError, code=57, name="LOG_DIR_NOT_FOUND"):
    sentence = "No such log directory exists on this broker."


class SaslAuthenticationFailed(KafkaError, code=58, name="SASL_AUTHENTICATION_FAILED"):
    sentence = "The credentials were not accepted."


class UnknownProducerId(KafkaError, code=59, name="UNKNOWN_PRODUCER_ID"):
    sentence = "The broker remembers nothing of this producer id."


class ReassignmentInProgress(KafkaError, code=60, name="REASSIGNMENT_IN_PROGRESS"):
    sentence = "The partition's replicas are being reassigned."


class DelegationTokenAuthDisabled(KafkaError, code=61, name="DELEGATION_TOKEN_AUTH_DISABLED"):
    sentence = "Delegation tokens are switched off."


class DelegationTokenNotFound(KafkaError, code=62, name="DELEGATION_TOKEN_NOT_FOUND"):
    sentence = "The broker has no such delegation token."


class DelegationTokenOwnerMismatch(KafkaError, code=63, name="DELEGATION_TOKEN_OWNER_MISMATCH"):
    sentence = "The delegation token belongs to another principal."


class DelegationTokenRequestNotAllowed(KafkaError, code=64, name="DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"):
    sentence = "Delegation tokens cannot be asked for over a connection authenticated this way."


class DelegationTokenAuthorizationFailed(KafkaError, code=65, name="DELEGATION_TOKEN_AUTHORIZATION_FAILED"):
    sentence = "The principal may not do this with the delegation token."


class DelegationTokenExpired(KafkaError, code=66, name="DELEGATION_TOKEN_EXPIRED"):
    sentence = "The delegation token has expired."


class InvalidPrincipalType(KafkaError, code=67, name="INVALID_PRINCIPAL_TYPE"):
    sentence = "The broker does not support this kind of principal."


class NonEmptyGroup(KafkaError, code=68, name="NON_EMPTY_GROUP"):
    sentence = "The group still has members."


class GroupIdNotFound(KafkaError, code=69, name="GROUP_ID_NOT_FOUND"):
    sentence = "No group with this id exists."


class FetchSessionIdNotFound(RetriableError, code=70, name="FETCH_SESSION_ID_NOT_FOUND"):
    sentence = "The broker no longer has this fetch session; the client starts a new one."


class InvalidFetchSessionEpoch(RetriableError, code=71, name="INVALID_FETCH_SESSION_EPOCH"):
    sentence = "The fetch session's epoch is not the expected one."


class ListenerNotFound(InvalidMetadataError, code=72, name="LISTENER_NOT_FOUND"):
    sentence = "The partition's leader has no listener of the name that the client came through."


class TopicDeletionDisabled(KafkaError, code=73, name="TOPIC_DELETION_DISABLED"):
    sentence = "Deleting topics is switched off on this broker."


class FencedLeaderEpoch(InvalidMetadataError, code=74, name="FENCED_LEADER_EPOCH"):
    sentence = "The client's leader epoch is older than the broker's."


class UnknownLeaderEpoch(RetriableError, code=75, name="UNKNOWN_LEADER_EPOCH"):
    sentence = "The client's leader epoch is newer than the broker's."


class UnsupportedCompressionType(KafkaError, code=76, name="UNSUPPORTED_COMPRESSION_TYPE"):
    sentence = "The client's version cannot take the compression that the records use."


class StaleBrokerEpoch(KafkaError, code=77, name="STALE_BROKER_EPOCH"):
    sentence = "The broker's epoch is out of date."


class OffsetNotAvailable(RetriableError, code=78, name="OFFSET_NOT_AVAILABLE"):
    sentence = "The leader does not know its high watermark yet."


class MemberIdRequired(KafkaError, code=79, name="MEMBER_ID_REQUIRED"):
    sentence = "The member must join again with the id that the answer gives it."


class PreferredLeaderNotAvailable(InvalidMetadataError, code=80, name="PREFERRED_LEADER_NOT_AVAILABLE"):
    sentence = "The preferred leader is not available."


class GroupMaxSizeReached(KafkaError, code=81, name="GROUP_MAX_SIZE_REACHED"):
    sentence = "The group has as many members as it may have."


class FencedInstanceId(KafkaError, code=82, name="FENCED_INSTANCE_ID"):
    sentence = "Another member with the same group instance id has taken this one's place."


class EligibleLeadersNotAvailable(InvalidMetadataError, code=83, name="ELIGIBLE_LEADERS_NOT_AVAILABLE"):
    sentence = "None of the replicas that could lead is available."


class ElectionNotNeeded(InvalidMetadataError, code=84, name="ELECTION_NOT_NEEDED"):
    sentence = "The partition has the wanted leader already."


class NoReassignmentInProgress(KafkaError, code=85, name="NO_REASSIGNMENT_IN_PROGRESS"):
    sentence = "No reassignment of this partition is under way."


class GroupSubscribedToTopic(KafkaError, code=86, name="GROUP_SUBSCRIBED_TO_TOPIC"):
    sentence = "Offsets of a topic that the group subscribes to cannot be deleted."


class InvalidRecord(KafkaError, code=87, name="INVALID_RECORD"):
    sentence = "A record breaks a rule of the topic or of the protocol."


class UnstableOffsetCommit(RetriableError, code=88, name="UNSTABLE_OFFSET_COMMIT"):
    sentence = "Offsets of an unfinished transaction stand in the way; ask again soon."


class ThrottlingQuotaExceeded(RetriableError, code=89, name="THROTTLING_QUOTA_EXCEEDED"):
    sentence = "The quota is used up; try again later."


class ProducerFenced(KafkaError, code=90, name="PRODUCER_FENCED"):
    sentence = "A newer producer with the same transactional id has taken over."


class ResourceNotFound(KafkaError, code=91, name="RESOURCE_NOT_FOUND"):
    sentence = "No such resource exists."


class DuplicateResource(KafkaError, code=92, name="DUPLICATE_RESOURCE"):
    sentence = "The resource exists already, or stands twice in the request."


class UnacceptableCredential(KafkaError, code=93, name="UNACCEPTABLE_CREDENTIAL"):
    sentence = "The credential breaks the rules for credentials."


class InconsistentVoterSet(KafkaError, code=94, name="INCONSISTENT_VOTER_SET"):
    sentence = "The voters that the parties know are not the same."


class InvalidUpdateVersion(KafkaError, code=95, name="INVALID_UPDATE_VERSION"):
    sentence = "The new feature level is not allowed."


class FeatureUpdateFailed(KafkaError, code=96, name="FEATURE_UPDATE_FAILED"):
    sentence = "The feature levels could not be changed."


class PrincipalDeserializationFailure(KafkaError, code=97, name="PRINCIPAL_DESERIALIZATION_FAILURE"):
    sentence = "The forwarded principal could not be read."


class SnapshotNotFound(KafkaError, code=98, name="SNAPSHOT_NOT_FOUND"):
    sentence = "The asked snapshot does not exist."


class PositionOutOfRange(KafkaError, code=99, name="POSITION_OUT_OF_RANGE"):
    sentence = "The position lies outside the snapshot or is not valid."


class UnknownTopicId(InvalidMetadataError, code=100, name="UNKNOWN_TOPIC_ID"):
    sentence = "This broker knows no topic with this id."


class DuplicateBrokerRegistration(KafkaError, code=101, name="DUPLICATE_BROKER_REGISTRATION"):
    sentence = "A broker with this id is registered and alive."


class BrokerIdNotRegistered(KafkaError, code=102, name="BROKER_ID_NOT_REGISTERED"):
    sentence = "No broker with this id is registered."


class InconsistentTopicId(InvalidMetadataError, code=103, name="INCONSISTENT_TOPIC_ID"):
    sentence = "The topic's id here is not the one in the request."


class InconsistentClusterId(KafkaError, code=104, name="INCONSISTENT_CLUSTER_ID"):
    sentence = "The request's cluster id is not this cluster's."


class TransactionalIdNotFound(KafkaError, code=105, name="TRANSACTIONAL_ID_NOT_FOUND"):
    sentence = "No state is kept for this transactional id."


class FetchSessionTopicIdError(RetriableError, code=106, name="FETCH_SESSION_TOPIC_ID_ERROR"):
    sentence = "The fetch session began with topic names and went on with topic ids, or the other way round."


class IneligibleReplica(KafkaError, code=107, name="INELIGIBLE_REPLICA"):
    sentence = "The new in-sync set names a replica that may not be in it."


class NewLeaderElected(KafkaError, code=108, name="NEW_LEADER_ELECTED"):
    sentence = "The partition got another leader while the request was handled."


class OffsetMovedToTieredStorage(KafkaError, code=109, name="OFFSET_MOVED_TO_TIERED_STORAGE"):
    sentence = "The offset lives in tiered storage only."


class FencedMemberEpoch(KafkaError, code=110, name="FENCED_MEMBER_EPOCH"):
    sentence = "The member's epoch is not the one the coordinator has; it must join again."


class UnreleasedInstanceId(KafkaError, code=111, name="UNRELEASED_INSTANCE_ID"):
    sentence = "Another living member still uses this group instance id."


class UnsupportedAssignor(KafkaError, code=112, name="UNSUPPORTED_ASSIGNOR"):
    sentence = "The coordinator does not offer this assignor, or the members share none."


class StaleMemberEpoch(KafkaError, code=113, name="STALE_MEMBER_EPOCH"):
    sentence = "The member's epoch is old; it should catch up by a heartbeat and try again."


class MismatchedEndpointType(KafkaError, code=114, name="MISMATCHED_ENDPOINT_TYPE"):
    sentence = "The request went to an endpoint of the wrong kind, broker instead of controller or the reverse."


class UnsupportedEndpointType(KafkaError, code=115, name="UNSUPPORTED_ENDPOINT_TYPE"):
    sentence = "This kind of endpoint is not supported."


class UnknownControllerId(KafkaError, code=116, name="UNKNOWN_CONTROLLER_ID"):
    sentence = "There is no controller with this id."


class UnknownSubscriptionId(KafkaError, code=117, name="UNKNOWN_SUBSCRIPTION_ID"):
    sentence = "The telemetry subscription is not the current one; the client asks for a new one."


class TelemetryTooLarge(KafkaError, code=118, name="TELEMETRY_TOO_LARGE"):
    sentence = "The pushed telemetry is larger than the broker takes."


class InvalidRegistration(KafkaError, code=119, name="INVALID_REGISTRATION"):
    sentence = "The registration is not consistent with the cluster."


class TransactionAbortable(KafkaError, code=120, name="TRANSACTION_ABORTABLE"):
    sentence = "The transaction cannot go on and must be aborted by its producer."


class InvalidRecordState(KafkaError, code=121, name="INVALID_RECORD_STATE"):
    sentence = "The share group's record is in a state that does not allow this step."


class ShareSessionNotFound(RetriableError, code=122, name="SHARE_SESSION_NOT_FOUND"):
    sentence = "The broker has no such share session."


class InvalidShareSessionEpoch(RetriableError, code=123, name="INVALID_SHARE_SESSION_EPOCH"):
    sentence = "The share session's epoch is not the expected one."


class FencedStateEpoch(KafkaError, code=124, name="FENCED_STATE_EPOCH"):
    sentence = "The share group's state epoch is older than the stored one."


class InvalidVoterKey(KafkaError, code=125, name="INVALID_VOTER_KEY"):
    sentence = "The voter's directory id is not the one known for that voter."


class DuplicateVoter(KafkaError, code=126, name="DUPLICATE_VOTER"):
    sentence = "The voter is in the set already."


class VoterNotFound(KafkaError, code=127, name="VOTER_NOT_FOUND"):
    sentence = "The voter is not in the set."


class InvalidRegularExpression(KafkaError, code=128, name="INVALID_REGULAR_EXPRESSION"):
    sentence = "The regular expression is not valid."


class RebootstrapRequired(KafkaError, code=129, name="REBOOTSTRAP_REQUIRED"):
    sentence = "The client should forget what it knows and start again from its bootstrap servers."


class StreamsInvalidTopology(KafkaError, code=130, name="STREAMS_INVALID_TOPOLOGY"):
    sentence = "The streams topology is not valid."


class StreamsInvalidTopologyEpoch(KafkaError, code=131, name="STREAMS_INVALID_TOPOLOGY_EPOCH"):
    sentence = "The streams topology's epoch is not valid."


class StreamsTopologyFenced(KafkaError, code=132, name="STREAMS_TOPOLOGY_FENCED"):
    sentence = "The streams topology is older than the group's."


class ShareSessionLimitReached(RetriableError, code=133, name="SHARE_SESSION_LIMIT_REACHED"):
    sentence = "The broker has as many share sessions as it may have."


class GroupDeletionFailed(KafkaError, code=134, name="GROUP_DELETION_FAILED"):
    sentence = "The group could not be deleted."


class StreamsTopologyDescriptionUpdateFailed(KafkaError, code=135, name="STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED"):
    sentence = "The description of the streams topology could not be stored."


class ControllerIdNotRegistered(KafkaError, code=136, name="CONTROLLER_ID_NOT_REGISTERED"):
    sentence = "No controller with this id is registered."


def _table(root: type[KafkaError]) -> Iterator[tuple[int, type[KafkaError]]]:
    for cls in root.__subclasses__():
        if "code" in cls.__dict__:
            yield cls.code, cls
        yield from _table(cls)


ERRORS: Final[Mapping[int, type[KafkaError]]] = dict(sorted(_table(KafkaError)))
"""Every error class by its code, in order of codes. 0 is not in it."""


def error_for_code(code: int, message: str | None = None) -> KafkaError | None:
    """Return the exception for a code from the wire, None for 0.

    A code that this table does not know (from a newer broker) becomes an `UnknownServerError` that names it.
    """
    if code == NONE:
        return None
    cls = ERRORS.get(code)
    if cls is None:
        return UnknownServerError(f"error code {code}" + (f": {message}" if message else ""))
    return cls(message)
