"""Changing the overrides of a topic or broker in ZooKeeper: any broker that is asked does it, and nobody's change is lost.

Read, decide, write at the version that was read; when another writer was faster, all over again on top of its write. The
same multi adds the notification that makes every broker read, and looks that the topic is still there, so that no
configuration outlives its topic.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from dataplane.cluster.paths import (
    CONFIG_CHANGE_PREFIX,
    config_json,
    entity_change_json,
    entity_config_path,
    parse_config,
)
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

Decide = Callable[[Mapping[str, str]], Awaitable[Mapping[str, str]]]
"""From the overrides as they are to what they shall be; raises whatever says that they shall not. May be called again."""

_ATTEMPTS = 100
_ANY_VERSION = -1


async def write_config(
    zookeeper: ZooKeeper, entity: str, decide: Decide, *, beside: str | None = None, validate_only: bool = False
) -> Mapping[str, str]:
    """The overrides as they are in force afterwards. `beside`: a node without which the entity does not exist.

    Raises NoNodeError without that node, what `decide` raises, and ZooKeeperError where the outcome is not known.
    """
    for _ in range(_ATTEMPTS):
        present, version = await _read(zookeeper, entity)
        wanted = await decide(present or {})
        if validate_only or (present is not None and dict(wanted) == dict(present)):
            return wanted
        try:
            await zookeeper.multi(_operations(entity, wanted, version, beside))
        except (BadVersionError, NodeExistsError):
            continue
        except NoNodeError:
            if beside is not None and await zookeeper.exists(beside) is None:
                raise
            continue
        return wanted
    raise ZooKeeperError(f"{_ATTEMPTS} others were faster")


async def _read(zookeeper: ZooKeeper, entity: str) -> tuple[Mapping[str, str] | None, int]:
    try:
        data, stat = await zookeeper.get(entity_config_path(entity))
    except NoNodeError:
        return None, _ANY_VERSION
    try:
        return parse_config(data), stat.version
    except ValueError:  # somebody's hand: what is written now puts it right
        return {}, stat.version


def _operations(entity: str, wanted: Mapping[str, str], version: int, beside: str | None) -> list[Operation]:
    path, data = entity_config_path(entity), config_json(wanted)
    operations: list[Operation] = [] if beside is None else [Check(beside, _ANY_VERSION)]
    operations.append(Create(path, data) if version == _ANY_VERSION else SetData(path, data, version))
    operations.append(Create(CONFIG_CHANGE_PREFIX, entity_change_json(entity), sequential=True))
    return operations
