"""The instances of this broker, as their specs in ZooKeeper say: listeners opened and closed while the broker runs.

The broker watches one directory, ``/sluice/changes``. A child of it names an instance whose spec was written; the broker
reads that spec and applies it. After a new session it reads every spec again: watches may have been lost with the old one.
A spec of a generation, rules, ACLs, users and token issuers that were applied already is skipped. These and the whitelists
stand in nodes of their own, which are read behind the spec (`quota.contracts.apart`); token issuers only where a route has
use for them. An instance whose whitelists, ACLs, users or token issuers cannot be read is shut: nobody gets in, and
connections that are open are closed, until they can. A route of a security that this broker does not serve, or of TLS and
without a certificate that can be used, is not opened, and the instance's other routes are. What was applied stands in
``/sluice/applied/<broker>`` (ephemeral), with a sentence where something could not be: a port that is taken is for the
control plane to replace. Of an instance of which connections are still being closed (`closings`) that is what was told before.

A proposal (`quota.contracts.proposals`) is read behind all of it, and changes nothing of what is in force.

A route with an end ("closes_at_ms") is open until this broker's wall clock says so, and opens again where a newer spec moves
the end. That is no problem to be reported: it is what was wanted.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from dataplane.doors import (
    Connection,
    Doors,
    FrameProtocol,
    Listener,
    NodeExistsError,
    NoNodeError,
    Preface,
    Timer,
    ZooKeeperError,
)
from dataplane.records.steps import run_through
from dataplane.slices import INTERNAL
from dataplane.tasks import Future, Task, gather
from dataplane.tenancy.certificates import Certificates
from dataplane.tenancy.closings import Closings
from dataplane.tenancy.headcount import Total
from dataplane.tenancy.instance import Instance
from dataplane.tenancy.proxies import NO_PROXIES
from dataplane.tenancy.secured import NOTHING, Secured
from dataplane.tenancy.shadow import Shadow
from dataplane.tenancy.shadow_reports import ShadowReports
from quota.contracts.apart import (
    acls_in_steps,
    acls_path,
    certificates_path,
    joined,
    rules_path,
    spec_path,
    token_issuers_from_json,
    token_issuers_path,
    users_in_steps,
    users_path,
    whitelists_path,
)
from quota.contracts.applied import AppliedInstance, applied_in_steps
from quota.contracts.change import Change
from quota.contracts.instance import (
    APPLIED_PATH,
    CHANGES_PATH,
    INSTANCES_PATH,
    OAUTHBEARER,
    Authorizer,
    ContractError,
    InstanceSpec,
    InstanceState,
    Route,
    Security,
    UnreadAccessError,
    address_text,
)
from quota.contracts.namespace import instance_id_of_key
from quota.contracts.proposals import Proposal, proposal_path
from quota.contracts.rules import RuleSet
from quota.contracts.zookeeper import DIRECTORIES
from quota.core.acls import AclBook

if TYPE_CHECKING:
    from dataplane.slices import Slices

_log = logging.getLogger(__name__)
_DIRECTORIES = tuple(path for path in DIRECTORIES if path.startswith("/sluice/"))

T = TypeVar("T")
Accept = Callable[[Instance, str, Connection], FrameProtocol | None]
"""(instance, route id, connection) -> its protocol, or None to refuse it."""

IsSo = Callable[[InstanceSpec], bool]
"""What is waited for."""

SERVED = frozenset(security.value for security in Security)
"""Securities of routes that this broker can serve."""
_RETRY_S = 1.0
_LOOK_AT_THE_CLOCK_S = 60.0
"""The longest sleep before the next end of a route: a wall clock can be set, a timer does not hear of it."""

Opened = tuple[tuple[str, int], bool, bool]
"""What a listener was opened with: the address, and whether TLS and PROXY headers are read. Only these need another one."""


def _at_once(_instance: Instance) -> float:
    """Nobody waits."""
    return 0.0


class Registry:
    """All instances of the cluster that this broker serves."""

    def __init__(
        self,
        doors: Doors,
        broker_id: int,
        boot: str,
        accept: Accept,
        on_change: Callable[[Instance, bool], None],
        certificates: Certificates,
        proxies: Preface = NO_PROXIES,
        slices: Slices | None = None,
        wait_s: Callable[[Instance], float] = _at_once,
    ) -> None:
        """Without `slices` what is long is done at once. `wait_s`: for how long nobody connects to an instance, seconds."""
        self._doors, self._broker_id, self._boot = doors, broker_id, boot
        self._accept, self._on_change, self._slices = accept, on_change, slices
        self._certificates, self._proxies, self._wait_s = certificates, proxies, wait_s
        self._instances: dict[str, Instance] = {}
        self._listeners: dict[tuple[str, str], tuple[Opened, Listener]] = {}  # by (instance, route)
        self._ends: dict[tuple[str, str], int] = {}  # of the listeners that have one, milliseconds of the wall clock
        self._ends_timer: Timer | None = None
        self._shadows = ShadowReports(doors, broker_id, self._in_slices)
        self._problems: dict[str, str] = {}
        self._everywhere = Total()
        self._closings = Closings(slices, self._closed_of)
        self._unclosed: dict[str, str] = {}  # why connections are open that may not be, which is a bug
        self._leaving: dict[str, Instance] = {}  # that go when their connections are closed
        self._told: dict[str, int] = {}  # generations, by the last report
        self._reported_late: set[str] = (
            set()
        )  # of which the last report says no more than the one before; membership only
        self._awaited: dict[str, list[tuple[IsSo, Future[None]]]] = {}  # by instance
        self._seen: set[str] = set()  # children of /sluice/changes; membership only, never iterated
        self._working = False
        self._again = False
        self._read_all = False
        self._closed = False

    # --- looking up ---------------------------------------------------------------------------------------------------

    def all(self) -> list[Instance]:
        """In the order in which they became known."""
        return list(self._instances.values())

    def connections(self) -> int:
        """That are open, of all instances together."""
        return self._everywhere.connections

    def get(self, instance_id: str) -> Instance | None:
        return self._instances.get(instance_id)

    def by_key(self, key: str) -> Instance | None:
        """By the key in front of its physical names."""
        return self._instances.get(instance_id_of_key(key))

    def until(self, instance_id: str, is_so: IsSo) -> Future[None]:
        """Done when what is applied of an instance is so: for who has just changed it in ZooKeeper.

        Whoever waits no longer resolves it.
        """
        found: Future[None] = Future()
        self._awaited.setdefault(instance_id, []).append((is_so, found))
        self._tell(instance_id)
        return found

    def _tell(self, name: str) -> None:
        instance = self._instances.get(name)
        waiting = [one for one in self._awaited.pop(name, ()) if not one[1].done]
        ready = [found for is_so, found in waiting if instance is None or is_so(instance.spec)]
        if len(ready) < len(waiting):
            self._awaited[name] = [one for one in waiting if one[1] not in ready]
        for found in ready:
            found.resolve(None)

    # --- following ZooKeeper ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Read every spec and follow the changes; call it again after a new session."""
        self._read_all = True
        self._wake()

    def close(self) -> None:
        self._closed = True
        self._shadows.stop()
        for key in list(self._listeners):
            self._close(key)

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
            present = set(names)
            for gone in [name for name in self._instances if name not in present]:
                self._remove(gone)
        else:
            names = await self._named_by([change for change in changes if change not in self._seen])
        self._seen = set(changes)
        for name in names:
            await self._read(name)
        await self._report()

    def _closed_of(self, instance: Instance, error: Exception | None) -> None:
        """No connection is left that nobody may have any more: only now is a spec applied, or an instance gone."""
        name = instance.spec.id
        self._unclosed.pop(name, None)
        if error is not None and self._instances.get(name) is instance:
            self._unclosed[name] = f"connections that may not be any more were not closed: {type(error).__name__}"
        if self._leaving.get(name) is instance:
            self._is_gone(name)
        if error is not None or name in self._reported_late:
            self._reported_late.discard(name)
            self._wake()

    def let_go(self) -> None:
        """The broker stops: what was removed is forgotten now, whoever is still connected."""
        for name in list(self._leaving):
            self._is_gone(name)

    def _is_gone(self, name: str) -> None:
        """One that was removed, if it was: others forget it now. What its connections still did, they have seen."""
        instance = self._leaving.pop(name, None)
        if instance is not None:
            self._on_change(instance, False)

    async def _make_directories(self) -> None:
        """Nobody but brokers may make them. One that is new in a release is made by `manage.py zookeeper_secure`."""
        for path in _DIRECTORIES:
            with suppress(NodeExistsError):
                await self._doors.zookeeper.create(path, parents=True)

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
                self.apply(spec, await self._book(spec), await self._secured(spec))
                await self._propose(name)
        except UnreadAccessError as error:
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
        # Behind the spec, never before it: what is read first may be of an earlier generation than what is read then.
        paths = (whitelists_path(name), rules_path(name), acls_path(name), users_path(name))
        reads: list[Future[bytes | None]] = [Task(self._data(path), path) for path in paths]
        whitelists, rules, acls, users = await gather(reads)
        takes_tokens = any(OAUTHBEARER in route.mechanisms for route in spec.routes)
        token_issuers = await self._data(token_issuers_path(name)) if takes_tokens else None
        spec = replace(
            spec,
            acls=await self._in_slices(acls_in_steps(acls)),
            users=await self._in_slices(users_in_steps(users)),
            token_issuers=token_issuers_from_json(token_issuers),
        )
        if spec.whitelists_of is None:
            return spec
        try:
            return joined(spec, whitelists, rules)
        except UnreadAccessError:
            raise
        except ContractError:  # no whitelist waits for rules that cannot be read: they stay what they were
            known = self._instances.get(name)
            return replace(joined(spec, whitelists, None), rules=known.spec.rules if known else RuleSet())

    async def _book(self, spec: InstanceSpec) -> AclBook | None:
        """The ACLs, to be asked; None: as they are asked already."""
        known = self._instances.get(spec.id)
        if known is not None and _acls_of(known.spec) == _acls_of(spec):
            return known.book
        return await self._in_slices(AclBook.building(spec.acls.items if spec.acls else (), spec.authorizer))

    async def _propose(self, name: str) -> None:
        """Have an instance's proposal judged, behind what is in force. One that cannot be read is none."""
        data, instance = await self._data(proposal_path(name)), self._instances.get(name)
        if instance is None:
            return
        known, proposal = instance.shadow, await self._proposal(data)
        if proposal is None:
            if known is not None:
                instance.take_shadow(None)
            return
        base = _acls_of(instance.spec)
        if known is not None and known.proposal == proposal and known.base == base:
            return
        book = None
        if proposal.is_about_acls:
            acls = proposal.acls_after(instance.spec.acls.items if instance.spec.acls is not None else ())
            book = await self._in_slices(AclBook.building(acls, authorizer_after(proposal, instance.spec.authorizer)))
        is_new = known is None or known.proposal.id != proposal.id
        findings = await self._shadows.findings(name, proposal.id) if known is None or is_new else known.findings
        instance.take_shadow(Shadow(proposal, book, findings, self._doors.clock.now_ms, base))
        self._shadows.watch(instance)
        if is_new:
            self._begin(instance.judge_connections())

    async def _proposal(self, data: bytes | None) -> Proposal | None:
        if data is None:
            return None
        try:
            proposal = await self._in_slices(Proposal.reading(data))
        except (
            ContractError
        ):  # of a newer control plane: the other brokers may know what it means, this one says nothing
            return None
        return proposal if proposal.ends_at_ms > self._doors.clock.now_ms() else None

    async def _in_slices(self, steps: Generator[None, None, T]) -> T:
        """The cluster's own work: nobody's requests may delay who is let in."""
        return run_through(steps) if self._slices is None else await self._slices.run(INTERNAL, steps)

    async def _secured(self, spec: InstanceSpec) -> Secured:
        """What its TLS routes are served with. Of an instance that has none nothing is read."""
        if not any(route.wants_tls for route in spec.routes):
            return NOTHING
        known = self._instances.get(spec.id)
        data = await self._data(certificates_path(spec.id))
        return await self._certificates.secured(spec, data, known.secured if known is not None else NOTHING)

    async def _data(self, path: str) -> bytes | None:
        try:
            data, _ = await self._doors.zookeeper.get(path)
        except NoNodeError:
            return None
        return data

    async def _report(self) -> None:
        served, told = [*self._leaving.items(), *self._instances.items()], self._told
        self._told = {}
        self._reported_late = {name for name, instance in served if instance in self._closings}
        applied = self._applied(served, told, frozenset(self._reported_late))
        data = await self._in_slices(applied_in_steps(self._boot, applied))
        path = f"{APPLIED_PATH}/{self._broker_id}"
        zookeeper = self._doors.zookeeper
        stat = await zookeeper.exists(path)
        if stat is not None and stat.ephemeral_owner != zookeeper.session_id():
            await zookeeper.delete(path)  # of an earlier life of this broker
            stat = None
        if stat is None:
            await zookeeper.create(path, data, ephemeral=True, parents=True)
        else:
            await zookeeper.set(path, data)

    def _applied(
        self, served: list[tuple[str, Instance]], told: dict[str, int], late: frozenset[str]
    ) -> Iterator[tuple[str, AppliedInstance]]:
        """What is reported of each; nothing of one of which nothing was, and connections are still being closed."""
        problems = {**self._unclosed, **self._problems}
        for name, instance in served:
            generation = told.get(name) if name in late else instance.spec.generation
            if generation is not None:
                self._told[name] = generation
                yield name, AppliedInstance(generation, problems.get(name))

    # --- applying -----------------------------------------------------------------------------------------------------

    def apply(self, spec: InstanceSpec, book: AclBook | None = None, secured: Secured = NOTHING) -> None:
        """Make listeners, whitelists, limits and certificates what the spec says.

        `book` is of its ACLs, if somebody has made it; `secured` of its certificates.
        """
        instance = self._instances.get(spec.id)
        if (
            instance is not None
            and not _is_newer(spec, instance.spec)
            and secured is instance.secured
            and spec.id not in self._problems
            and spec.id not in self._unclosed
        ):
            return
        if spec.state is InstanceState.DELETED:
            self._remove(spec.id)
            return
        if instance is None:
            self._is_gone(spec.id)
            instance = self._instances[spec.id] = Instance(spec, book, self._everywhere)
        else:
            before, asked = instance.spec, instance.book
            going = instance.apply(spec, book)
            if spec.state is InstanceState.RUNNING:  # else all are closed
                self._closings.begin(instance, going)
            if asked is not instance.book:
                self._begin(asked.letting_go())
            if _permits(before) != _permits(spec):
                self._begin(instance.look_again())
        instance.secured = secured
        self._on_change(instance, True)
        if spec.state is InstanceState.RUNNING:
            self._listen(instance)
        else:
            self._stop_listening(spec.id)
            self._closings.begin(instance, instance.close_connections())
        if spec.id in self._awaited:
            self._tell(spec.id)

    def _begin(self, steps: Generator[None, None, None]) -> None:
        """Long work that nobody waits for."""
        if self._slices is None:
            deque(steps, maxlen=0)
        else:
            self._slices.run(INTERNAL, steps).then(_tell_failure)

    def _shut(self, name: str) -> None:
        """Nobody may use it until its spec is applied again, which `_problems` sees to."""
        self._stop_listening(name)
        instance = self._instances.get(name)
        if instance is not None:
            self._closings.begin(instance, instance.close_connections())

    def _remove(self, name: str) -> None:
        self._stop_listening(name)
        self._problems.pop(name, None)
        self._unclosed.pop(name, None)
        instance = self._instances.pop(name, None)
        if instance is not None:
            instance.shadow = None
            self._leaving[name] = instance
            self._closings.begin(instance, instance.close_connections())
        self._tell(name)

    def _listen(self, instance: Instance) -> None:
        name = instance.spec.id
        here = [route for route in instance.spec.routes if self._broker_id in route.endpoints]
        wanted = {route.id: self._opened(route) for route in here if not self._is_over(route)}
        for key in [key for key in self._listeners if key[0] == name]:
            if wanted.get(key[1]) != self._listeners[key][0] or not _is_served(instance, key[1]):
                self._close(key)
        for route in instance.spec.routes:
            if route.id not in wanted or not _is_served(instance, route.id):
                self._closings.begin(instance, instance.close_route(route.id))
        problems = [
            problem for route in here if route.id in wanted and (problem := self._open(instance, route)) is not None
        ]
        if problems:
            self._problems[name] = "; ".join(problems)
        else:
            self._problems.pop(name, None)
        if any(route.closes_at_ms is not None for route in here):
            self._wait_for_an_end()

    def _opened(self, route: Route) -> Opened:
        return route.endpoints[self._broker_id].bind, route.wants_tls, route.proxy_protocol

    def _open(self, instance: Instance, route: Route) -> str | None:
        """Have a listener for the route, or say why there is none."""
        key, opened = (instance.spec.id, route.id), self._opened(route)
        if key not in self._listeners:
            if not _is_served(instance, route.id):  # as plaintext, say, it would let in whoever should log in
                why = instance.secured.problems.get(route.id) if route.security in SERVED else None
                return _problem_of(route, why or f"this broker does not serve {route.security!r}")
            try:
                listener = self._doors.loop.listen(
                    *opened[0],
                    lambda connection: self._accept(instance, route.id, connection),
                    preface=self._proxies if route.proxy_protocol else None,
                    tls=route.wants_tls,
                    account=instance.names.key,
                    wait_s=lambda: self._wait_s(instance),
                )
            except OSError as error:
                return _problem_of(route, f"cannot listen on {address_text(opened[0])}: {error.strerror}")
            self._listeners[key] = (opened, listener)
        self._ends.pop(key, None)
        if route.closes_at_ms is not None:
            self._ends[key] = route.closes_at_ms
        return None

    def _close(self, key: tuple[str, str]) -> None:
        self._listeners.pop(key)[1].close()
        self._ends.pop(key, None)

    def _stop_listening(self, name: str) -> None:
        for key in [key for key in self._listeners if key[0] == name]:
            self._close(key)

    # --- routes that end ----------------------------------------------------------------------------------------------

    def _is_over(self, route: Route) -> bool:
        return route.closes_at_ms is not None and route.closes_at_ms <= self._doors.loop.clock.now_ms()

    def _wait_for_an_end(self) -> None:
        """One timer for all routes, at the next end."""
        if self._ends_timer is not None:
            self._ends_timer.cancel()
            self._ends_timer = None
        if self._ends and not self._closed:
            left_s = (min(self._ends.values()) - self._doors.loop.clock.now_ms()) / 1000
            delay_s = max(0.0, min(left_s, _LOOK_AT_THE_CLOCK_S))
            self._ends_timer = self._doors.loop.call_later(delay_s, self._end)

    def _end(self) -> None:
        now_ms = self._doors.loop.clock.now_ms()
        for key in [key for key, end_ms in self._ends.items() if end_ms <= now_ms]:
            self._close(key)
            instance = self._instances[key[0]]
            self._closings.begin(instance, instance.close_route(key[1]))
        self._wait_for_an_end()


def _tell_failure(work: Future[None]) -> None:
    if work.error is not None:
        _log.error("long work for an instance has failed", exc_info=work.error)


def _problem_of(route: Route, why: str) -> str:
    """What is the matter with one route. Several are joined by "; ", so there is none in a sentence: tenants write some."""
    return f"route {route.id}: {why.replace('; ', ', ')}"


def authorizer_after(proposal: Proposal, authorizer: Authorizer) -> Authorizer:
    """How ACLs would be meant."""
    if proposal.allow_everyone is None:
        return authorizer
    return replace(authorizer, allow_everyone_if_no_acl_found=proposal.allow_everyone)


def _is_served(instance: Instance, route: str) -> bool:
    found = instance.route(route)
    return found.security in SERVED and (not found.wants_tls or route in instance.secured.servers)


def _acls_of(spec: InstanceSpec) -> tuple[int, Authorizer]:
    """Which ACLs it has, and how they are meant. Nobody writes others of the same version."""
    return spec.acls.version if spec.acls is not None else 0, spec.authorizer


def _permits(spec: InstanceSpec) -> tuple[object, ...]:
    """What could refuse a request that is under way."""
    return *_acls_of(spec), spec.topic_whitelists


def _is_newer(spec: InstanceSpec, applied: InstanceSpec) -> bool:
    return any(new > old for new, old in zip(_versions(spec), _versions(applied), strict=True))


def _versions(spec: InstanceSpec) -> tuple[int, ...]:
    return (
        spec.generation,
        spec.rules.version,
        spec.acls.version if spec.acls is not None else 0,
        spec.users.version if spec.users is not None else 0,
        spec.token_issuers.version if spec.token_issuers is not None else 0,
    )
