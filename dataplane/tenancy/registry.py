"""The instances of this broker, as their specs in ZooKeeper say: listeners opened and closed while the broker runs.

The broker watches one directory, ``/sluice/changes``. A child of it names an instance whose spec was written; the broker
reads that spec and applies it. After a new session it reads every spec again: watches may have been lost with the old one.
A spec of a generation and rules that were applied already is skipped. Whitelists and rules stand in nodes of their own, which
are read behind the spec (`quota.contracts.apart`). An instance whose whitelists cannot be read is shut: nobody gets in, and
connections that are open are closed, until they can. What was applied stands in ``/sluice/applied/<broker>``
(ephemeral), with a sentence where something could not be: a port that is taken is for the control plane to replace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dataplane.doors import Connection, Doors, FrameProtocol, Listener, NodeExistsError, NoNodeError, ZooKeeperError
from dataplane.tasks import Future, Task, gather
from dataplane.tenancy.instance import Instance
from quota.contracts.apart import joined, rules_path, spec_path, whitelists_path
from quota.contracts.applied import Applied, AppliedInstance
from quota.contracts.change import Change
from quota.contracts.instance import (
    APPLIED_PATH,
    CHANGES_PATH,
    INSTANCES_PATH,
    ContractError,
    InstanceSpec,
    InstanceState,
    UnreadWhitelistsError,
    address_text,
)
from quota.contracts.namespace import instance_id_of_key
from quota.contracts.rules import RuleSet

Accept = Callable[[Instance, str, Connection], FrameProtocol | None]
"""(instance, route id, connection) -> its protocol, or None to refuse it."""

_RETRY_S = 1.0


class Registry:
    """All instances of the cluster that this broker serves."""

    def __init__(
        self, doors: Doors, broker_id: int, boot: str, accept: Accept, on_change: Callable[[Instance, bool], None]
    ) -> None:
        self._doors, self._broker_id, self._boot = doors, broker_id, boot
        self._accept, self._on_change = accept, on_change
        self._instances: dict[str, Instance] = {}
        self._listeners: dict[tuple[str, str], tuple[tuple[str, int], Listener]] = {}  # by (instance, route)
        self._problems: dict[str, str] = {}
        self._seen: set[str] = set()  # children of /sluice/changes; membership only, never iterated
        self._working = False
        self._again = False
        self._read_all = False
        self._closed = False

    # --- looking up ---------------------------------------------------------------------------------------------------

    def all(self) -> list[Instance]:
        """In the order in which they became known."""
        return list(self._instances.values())

    def get(self, instance_id: str) -> Instance | None:
        return self._instances.get(instance_id)

    def by_key(self, key: str) -> Instance | None:
        """By the key in front of its physical names."""
        return self._instances.get(instance_id_of_key(key))

    # --- following ZooKeeper ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Read every spec and follow the changes; call it again after a new session."""
        self._read_all = True
        self._wake()

    def close(self) -> None:
        self._closed = True
        for _, listener in self._listeners.values():
            listener.close()
        self._listeners.clear()

    def _wake(self) -> None:
        """Something may have changed: look, once at a time."""
        self._again = True
        if not self._working and not self._closed:
            self._working = True
            Task(self._follow(), "instances")

    async def _follow(self) -> None:
        try:
            while self._again and not self._closed:
                self._again = False
                await self._look()
        except ZooKeeperError:
            self._read_all = True
            self._doors.loop.call_later(_RETRY_S, self._wake)
        finally:
            self._working = False
            if self._again and not self._closed:
                self._doors.loop.call_soon(self._wake)

    async def _look(self) -> None:
        zookeeper = self._doors.zookeeper
        try:
            changes = await zookeeper.children(CHANGES_PATH, self._wake)
        except NoNodeError:
            await self._make_directories()
            self._again = True
            return
        if self._read_all:
            self._read_all = False
            names = await zookeeper.children(INSTANCES_PATH)
            for gone in [name for name in self._instances if name not in names]:
                self._remove(gone)
        else:
            names = await self._named_by([change for change in changes if change not in self._seen])
        self._seen = set(changes)
        for name in names:
            await self._read(name)
        await self._report()

    async def _make_directories(self) -> None:
        for path in (INSTANCES_PATH, CHANGES_PATH, APPLIED_PATH):
            try:
                await self._doors.zookeeper.create(path, parents=True)
            except NodeExistsError:
                continue

    async def _named_by(self, changes: list[str]) -> list[str]:
        names: dict[str, None] = {}
        for change in changes:
            try:
                data, _ = await self._doors.zookeeper.get(f"{CHANGES_PATH}/{change}")
            except NoNodeError:  # pruned: so many changes at once that only reading everything is sure
                self._read_all = self._again = True
                continue
            try:
                names[Change.from_json(data).instance] = None
            except ContractError:  # whatever it was meant to say, reading everything covers it
                self._read_all = self._again = True
        return list(names)

    async def _read(self, name: str) -> None:
        try:
            spec = await self._spec(name)
            if spec is None:
                self._remove(name)
            else:
                self.apply(spec)
        except UnreadWhitelistsError as error:
            self._problems[name] = str(error)
            self._shut(name)
        except (ContractError, ValueError) as error:  # one that cannot be served must not keep the others from it
            self._problems[name] = str(error)

    async def _spec(self, name: str) -> InstanceSpec | None:
        """What stands in ZooKeeper; None: nothing. Raises ContractError."""
        data = await self._data(spec_path(name))
        if data is None:
            return None
        spec = InstanceSpec.from_json(data)
        if spec.whitelists_of is None:
            return spec
        # Behind the spec, never before it: what is read first may be of an earlier generation than what is read then.
        reads: list[Future[bytes | None]] = [
            Task(self._data(path), path) for path in (whitelists_path(name), rules_path(name))
        ]
        whitelists, rules = await gather(reads)
        try:
            return joined(spec, whitelists, rules)
        except UnreadWhitelistsError:
            raise
        except ContractError:  # no whitelist waits for rules that cannot be read: they stay what they were
            known = self._instances.get(name)
            return replace(joined(spec, whitelists, None), rules=known.spec.rules if known else RuleSet())

    async def _data(self, path: str) -> bytes | None:
        try:
            data, _ = await self._doors.zookeeper.get(path)
        except NoNodeError:
            return None
        return data

    async def _report(self) -> None:
        applied = {
            name: AppliedInstance(instance.spec.generation, self._problems.get(name))
            for name, instance in self._instances.items()
        }
        data = Applied(self._boot, applied).to_json()
        path = f"{APPLIED_PATH}/{self._broker_id}"
        stat = await self._doors.zookeeper.exists(path)
        if stat is not None and stat.ephemeral_owner != self._doors.zookeeper.session_id():
            await self._doors.zookeeper.delete(path)  # of an earlier life of this broker
            stat = None
        if stat is None:
            await self._doors.zookeeper.create(path, data, ephemeral=True, parents=True)
        else:
            await self._doors.zookeeper.set(path, data)

    # --- applying -----------------------------------------------------------------------------------------------------

    def apply(self, spec: InstanceSpec) -> None:
        """Make listeners, whitelists and limits what the spec says."""
        instance = self._instances.get(spec.id)
        if instance is not None and not _is_newer(spec, instance.spec) and spec.id not in self._problems:
            return
        if spec.state is InstanceState.DELETED:
            self._remove(spec.id)
            return
        if instance is None:
            instance = self._instances[spec.id] = Instance(spec)
        else:
            instance.apply(spec)
        self._on_change(instance, True)
        if spec.state is InstanceState.RUNNING:
            self._listen(instance)
        else:
            self._stop_listening(spec.id)
            instance.close_connections()

    def _shut(self, name: str) -> None:
        """Nobody may use it until its spec is applied again, which `_problems` sees to."""
        self._stop_listening(name)
        if name in self._instances:
            self._instances[name].close_connections()

    def _remove(self, name: str) -> None:
        self._stop_listening(name)
        self._problems.pop(name, None)
        instance = self._instances.pop(name, None)
        if instance is not None:
            instance.close_connections()
            self._on_change(instance, False)

    def _listen(self, instance: Instance) -> None:
        name = instance.spec.id
        wanted = {
            route.id: route.endpoints[self._broker_id].bind
            for route in instance.spec.routes
            if self._broker_id in route.endpoints
        }
        for key in [key for key in self._listeners if key[0] == name]:
            if wanted.get(key[1]) != self._listeners[key][0]:
                self._listeners.pop(key)[1].close()
        problems = [
            problem
            for route, address in wanted.items()
            if (problem := self._open(instance, route, address)) is not None
        ]
        if problems:
            self._problems[name] = "; ".join(problems)
        else:
            self._problems.pop(name, None)

    def _open(self, instance: Instance, route: str, address: tuple[str, int]) -> str | None:
        key = (instance.spec.id, route)
        if key in self._listeners:
            return None
        try:
            listener = self._doors.loop.listen(*address, lambda connection: self._accept(instance, route, connection))
        except OSError as error:
            return f"route {route}: cannot listen on {address_text(address)}: {error.strerror}"
        self._listeners[key] = (address, listener)
        return None

    def _stop_listening(self, name: str) -> None:
        for key in [key for key in self._listeners if key[0] == name]:
            self._listeners.pop(key)[1].close()


def _is_newer(spec: InstanceSpec, applied: InstanceSpec) -> bool:
    return spec.generation > applied.generation or spec.rules.version > applied.rules.version
