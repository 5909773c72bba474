"""Reading and changing an instance's throttle rules in ZooKeeper: a node of their own, or a member of a spec of version 1.

Whoever is asked does it, this broker or another or the control plane, and nobody's change is lost: read, decide, write at
the version that was read; when another writer was faster, all over again on top of its write.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

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
from quota.contracts.apart import rules_node, rules_path, spec_path, with_rules
from quota.contracts.change import NEW_CHANGE_PATH, Change
from quota.contracts.instance import InstanceSpec
from quota.contracts.rules import RuleSet, ThrottleRule

Decide = Callable[[Sequence[ThrottleRule]], Awaitable[Sequence[ThrottleRule]]]
"""From the rules as they are to what they shall be; may be called again, and may take its time."""

_ATTEMPTS = 20


async def read_rules(zookeeper: ZooKeeper, instance: str) -> tuple[ThrottleRule, ...]:
    """As they are at this moment. Raises ZooKeeperError."""
    return (await _read(zookeeper, instance)).rules.items


async def write_rules(zookeeper: ZooKeeper, instance: str, decide: Decide) -> None:
    """Put in force what `decide` makes of them. Raises ZooKeeperError: then the outcome is not known."""
    for _ in range(_ATTEMPTS):
        found = await _read(zookeeper, instance)
        wanted = tuple(await decide(found.rules.items))
        if wanted == found.rules.items:
            return
        try:
            await zookeeper.multi(
                [
                    *found.written(found.rules.changed(wanted)),
                    Create(NEW_CHANGE_PATH, Change(instance).to_json(), sequential=True),
                ]
            )
        except (BadVersionError, NodeExistsError):
            continue
        return
    raise ZooKeeperError(f"{_ATTEMPTS} others were faster")


class _Found(NamedTuple):
    """What was read, at which versions."""

    spec: InstanceSpec
    spec_version: int
    rules: RuleSet
    rules_version: int | None  # None: there is no such node

    def written(self, rules: RuleSet) -> list[Operation]:
        """What writes these, if nobody was faster."""
        spec_at = spec_path(self.spec.id)
        path, data = rules_node(replace(self.spec, rules=rules))
        if path == spec_at:
            return [SetData(path, data, self.spec_version)]
        write = Create(path, data) if self.rules_version is None else SetData(path, data, self.rules_version)
        return [Check(spec_at, self.spec_version), write]  # of an instance that is gone, nothing may be left


async def _read(zookeeper: ZooKeeper, instance: str) -> _Found:
    data, stat = await zookeeper.get(spec_path(instance))
    spec = InstanceSpec.from_json(data)
    if spec.whitelists_of is None:
        return _Found(spec, stat.version, spec.rules, None)
    try:
        rules, rules_stat = await zookeeper.get(rules_path(instance))
    except NoNodeError:
        return _Found(spec, stat.version, RuleSet(), None)
    return _Found(spec, stat.version, with_rules(spec, rules).rules, rules_stat.version)
