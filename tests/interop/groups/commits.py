"""What a group has committed: as its members were told, and as the broker keeps it."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from ottla.client import Admin
from tests.interop.groups.members import MemberProcess


def answered(*members: MemberProcess) -> dict[int, int]:
    """The highest offset of each partition whose commit some member saw answered."""
    newest: dict[int, int] = defaultdict(int)
    for member in members:
        for partition, offset in list(member.committed.items()):
            newest[partition] = max(newest[partition], offset)
    return newest


def stored(address: str, group: str) -> dict[int, int]:
    """The offset of each partition that the broker has, of a group that reads one topic."""

    async def ask() -> dict[int, int]:
        async with Admin(address) as admin:
            found = await admin.groups.committed(group)
        return {tp.partition: one.offset for tp, one in found.items()}

    return asyncio.run(ask())


def check_commits_are_kept(address: str, group: str, before: dict[int, int]) -> None:
    """Raises when the broker has a lower offset than one that it had, or whose commit was answered."""
    now = stored(address, group)
    lost = {partition: (offset, now.get(partition)) for partition, offset in before.items()}
    assert all(offset <= (kept or 0) for offset, kept in lost.values()), f"answered, and kept: {lost}"
