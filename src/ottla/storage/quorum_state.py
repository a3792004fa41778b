"""`quorum-state`: the small file in which a KRaft node remembers its leader epoch, so that epochs never repeat.

One line of JSON without a newline at its end. Version 1 is written since KIP-853 (a cluster whose voters stand in its
log); version 0 is what older clusters have, and is kept where it is found.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from ottla.model import format_uuid
from ottla.storage.files import FileSystem

FILE_NAME: Final = "quorum-state"
NO_NODE: Final = -1


class CorruptQuorumState(ValueError):
    """The file is there and makes no sense. Kafka exits on it, and so do we: guessing an epoch could repeat one."""


class QuorumState(NamedTuple):
    """Who leads, in which epoch, and whom we voted for. Epoch 0 and no leader before the first election."""

    leader_id: int = NO_NODE
    leader_epoch: int = 0
    voted_id: int = NO_NODE
    voted_directory_id: str = format_uuid(bytes(16))
    data_version: int = 1
    cluster_id: str = ""
    applied_offset: int = 0
    current_voters: tuple[int, ...] | None = ()

    def elected(self, leader_id: int, leader_epoch: int) -> QuorumState:
        """Return the state after `leader_id` won the election of `leader_epoch`."""
        return self._replace(leader_id=leader_id, leader_epoch=leader_epoch, voted_id=NO_NODE)


def parse_quorum_state(text: str) -> QuorumState:
    """Read the file's content. Raises `CorruptQuorumState`."""
    try:
        values = json.loads(text)
        version = int(values["data_version"])
        if version not in (0, 1):
            raise CorruptQuorumState(f"data_version {version} is not known")
        voters = values.get("currentVoters", [])
        return QuorumState(
            leader_id=int(values["leaderId"]),
            leader_epoch=int(values["leaderEpoch"]),
            voted_id=int(values["votedId"]),
            voted_directory_id=str(values.get("votedDirectoryId", format_uuid(bytes(16)))),
            data_version=version,
            cluster_id=str(values.get("clusterId", "")),
            applied_offset=int(values.get("appliedOffset", 0)),
            current_voters=None if voters is None else tuple(int(voter["voterId"]) for voter in voters),
        )
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise CorruptQuorumState(f"{FILE_NAME} cannot be read: {error}") from error


def format_quorum_state(state: QuorumState) -> str:
    """Return the file's content, keys in Kafka's order."""
    values: dict[str, object]
    if state.data_version == 0:
        voters = state.current_voters
        values = {
            "clusterId": state.cluster_id,
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": state.voted_id,
            "appliedOffset": state.applied_offset,
            "currentVoters": None if voters is None else [{"voterId": voter} for voter in voters],
        }
    else:
        values = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": state.voted_id,
            "votedDirectoryId": state.voted_directory_id,
        }
    values["data_version"] = state.data_version
    return json.dumps(values, separators=(",", ":"))


def read_quorum_state(filesystem: FileSystem, path: str) -> QuorumState | None:
    """Return what the file holds, None when there is none. Raises `CorruptQuorumState`, `OSError`."""
    if not filesystem.exists(path):
        return None
    try:
        text = filesystem.read(path).decode()
    except UnicodeDecodeError as error:
        raise CorruptQuorumState(f"{FILE_NAME} is not text") from error
    return parse_quorum_state(text)


def write_quorum_state(filesystem: FileSystem, path: str, state: QuorumState) -> None:
    """Store the state; durable on return. Raises `OSError`."""
    filesystem.replace(path, format_quorum_state(state).encode())
