"""Reading and changing an instance's throttle rules in ZooKeeper, where they stand in its spec.

Whoever is asked does it, this broker or another or the control plane, and nobody's change is lost: read, decide, write at
the version that was read; when somebody was faster, all over again on top of what he wrote.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from dataplane.doors import BadVersionError, Create, SetData, ZooKeeper, ZooKeeperError
from quota.contracts.instance import CHANGES_PATH, INSTANCES_PATH, InstanceSpec
from quota.contracts.rules import ThrottleRule

Decide = Callable[[Sequence[ThrottleRule]], Awaitable[Sequence[ThrottleRule]]]
"""From the rules as they are to what they shall be; may be called again, and may take its time."""

_ATTEMPTS = 20


async def read_rules(zookeeper: ZooKeeper, instance: str) -> tuple[ThrottleRule, ...]:
    """As they are at this moment. Raises ZooKeeperError."""
    spec, _ = await _read(zookeeper, instance)
    return spec.rules.items


async def write_rules(zookeeper: ZooKeeper, instance: str, decide: Decide) -> None:
    """Put in force what `decide` makes of them. Raises ZooKeeperError: then the outcome is not known."""
    for _ in range(_ATTEMPTS):
        spec, version = await _read(zookeeper, instance)
        wanted = tuple(await decide(spec.rules.items))
        if wanted == spec.rules.items:
            return
        data = replace(spec, rules=spec.rules.changed(wanted)).to_json()
        change = json.dumps({"instance": instance}).encode()
        try:
            await zookeeper.multi(
                [
                    SetData(_path(instance), data, version),
                    Create(f"{CHANGES_PATH}/change-", change, sequential=True),
                ]
            )
        except BadVersionError:
            continue
        return
    raise ZooKeeperError(f"{_ATTEMPTS} others were faster")


async def _read(zookeeper: ZooKeeper, instance: str) -> tuple[InstanceSpec, int]:
    data, stat = await zookeeper.get(_path(instance))
    return InstanceSpec.from_json(data), stat.version


def _path(instance: str) -> str:
    return f"{INSTANCES_PATH}/{instance}"
