"""What the master knows of instances and brokers from ZooKeeper, kept up to date by watches.

``/sluice/instances/<id>`` holds a spec each, ``/sluice/rules/<id>`` its throttle rules. ``/sluice/changes/<seq>`` is one node
per write (`quota.contracts.change`): the only directory that is watched for changes, and only what it names is read. Everything
is read at the start, after every loss of the connection, where a change does not say what it changed, and once a minute. A spec
that cannot be parsed keeps the last good one in force. ``/brokers/ids`` says which brokers are there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from quota.contracts.apart import rules_path, with_rules
from quota.contracts.change import Change
from quota.contracts.instance import CHANGES_PATH, INSTANCES_PATH, ContractError, InstanceSpec
from quota.master.zookeeper import ZooKeeper, ZooKeeperLost

BROKERS_PATH = "/brokers/ids"
READ_ALL_S = 60.0
LOOK_AGAIN_S = 1.0


class Store:
    """Reads for as long as `run` runs. `on_specs` and `on_brokers` get the whole state whenever it was read anew."""

    def __init__(
        self,
        zookeeper: ZooKeeper,
        *,
        on_specs: Callable[[Mapping[str, InstanceSpec]], None],
        on_brokers: Callable[[Sequence[int]], None],
        log: Callable[[str], None],
    ) -> None:
        self._zookeeper = zookeeper
        self._on_specs = on_specs
        self._on_brokers = on_brokers
        self._log = log
        self._wake = asyncio.Event()
        self._specs: dict[str, InstanceSpec] = {}
        self._seen: set[str] = set()  # changes that were read and are still there
        self._all_due = 0.0  # loop time
        zookeeper.on_state(self._on_state)

    async def run(self) -> None:
        """Read what changed, wait for the next change."""
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            pause = READ_ALL_S
            try:
                if not await self._step(loop.time()):
                    pause = LOOK_AGAIN_S
            except ZooKeeperLost:
                self._all_due, pause = 0.0, LOOK_AGAIN_S
            try:
                await asyncio.wait_for(self._wake.wait(), pause)
            except TimeoutError:
                continue

    async def learn(self, instance: str) -> None:
        """Read an instance that somebody asks for and no change has told of yet. Raises ZooKeeperLost."""
        await self._read(instance)
        if instance in self._specs:
            self._on_specs(dict(self._specs))

    async def _step(self, now: float) -> bool:
        """False: no broker has ever been here, so that there is nothing yet by which we would learn of one."""
        if now >= self._all_due:
            for path in (INSTANCES_PATH, CHANGES_PATH):
                await self._zookeeper.ensure(path)
        brokers = await self._zookeeper.children(BROKERS_PATH, self._wake.set)
        self._on_brokers([int(name) for name in brokers or [] if name.isdigit()])
        changes = await self._zookeeper.children(CHANGES_PATH, self._wake.set) or []
        named = await self._named([name for name in changes if name not in self._seen]) if now < self._all_due else None
        if named is None:
            named = sorted({*(await self._zookeeper.children(INSTANCES_PATH) or []), *self._specs})
            self._all_due = now + READ_ALL_S
        for instance in named:
            await self._read(instance)
        self._seen = set(changes)
        if named:
            self._on_specs(dict(self._specs))
        return brokers is not None

    async def _named(self, changes: Sequence[str]) -> list[str] | None:
        """The instances that changes name, in order; None where one does not say (it was pruned, or is of no use)."""
        instances: dict[str, None] = {}
        for name in changes:
            node = await self._zookeeper.get(f"{CHANGES_PATH}/{name}")
            try:
                instances[Change.from_json(node.data if node else b"").instance] = None
            except ContractError:
                return None
        return list(instances)

    async def _read(self, instance: str) -> None:
        node = await self._zookeeper.get(f"{INSTANCES_PATH}/{instance}")
        if node is None:
            self._specs.pop(instance, None)
            return
        try:
            spec = InstanceSpec.from_json(node.data)
            rules = await self._zookeeper.get(rules_path(instance)) if spec.whitelists_of is not None else None
            self._specs[instance] = with_rules(spec, rules.data if rules else None)
        except ContractError as error:
            self._log(f"{instance}: {error}; its last good spec stays in force")

    def _on_state(self, state: str) -> None:
        if state == "connected":
            self._all_due = 0.0
            self._wake.set()
