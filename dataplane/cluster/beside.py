"""Changing what stands beside an instance's specification in ZooKeeper, for tenants who do it by Kafka's protocol.

Whoever is asked does it, this broker or another or the control plane, and nobody's change is lost: read, decide, write at
the version that was read; when another writer was faster, all over again on top of its write.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dataplane.doors import (
    BadVersionError,
    Check,
    Create,
    NodeExistsError,
    NoNodeError,
    Operation,
    SetData,
    ZooKeeper,
    ZooKeeperError,
)
from quota.contracts.apart import spec_path
from quota.contracts.change import NEW_CHANGE_PATH, Change

Decide = Callable[[bytes | None], Awaitable[bytes | None]]
"""From what stands there (None: nothing) to what shall (None: leave it); may be called again, and may take its time."""

_ATTEMPTS = 20


async def read_beside(zookeeper: ZooKeeper, path: str) -> bytes | None:
    """What stands there at this moment; None: there is no such node. Raises ZooKeeperError."""
    data, _ = await _read(zookeeper, path)
    return data


async def write_beside(zookeeper: ZooKeeper, instance: str, path: str, decide: Decide) -> None:
    """Put in force what `decide` makes of it.

    Raises ZooKeeperError (the outcome is not known), NoNodeError where the instance is gone, and what `decide` raises.
    """
    for _ in range(_ATTEMPTS):
        _, spec = await zookeeper.get(spec_path(instance))
        before, version = await _read(zookeeper, path)
        data = await decide(before)
        if data is None:
            return
        write: Operation = Create(path, data) if before is None else SetData(path, data, version)
        try:
            await zookeeper.multi(
                [
                    Check(spec_path(instance), spec.version),  # of an instance that is gone, nothing may be left
                    write,
                    Create(NEW_CHANGE_PATH, Change(instance).to_json(), sequential=True),
                ]
            )
        except (BadVersionError, NodeExistsError):
            continue
        return
    raise ZooKeeperError(f"{_ATTEMPTS} others were faster")


async def _read(zookeeper: ZooKeeper, path: str) -> tuple[bytes | None, int]:
    """With its version; None: there is no such node."""
    try:
        data, stat = await zookeeper.get(path)
    except NoNodeError:
        return None, -1
    return data, stat.version
