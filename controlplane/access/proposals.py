"""A change of who may do what, tried on real traffic before it is put in force: made, put in force, discarded, expired.

An instance has one proposal at most: other whitelists of the instance and of its routes, ACLs that come and go, and what holds
for what has no ACL. Brokers judge by it what they let in anyway and say who would be cut off (`quota.contracts.proposals`);
nobody is. The proposal and what was found stand in ZooKeeper alone.

**Put in force** is what its parts would be one by one, at once: rows, whitelists and ACLs are checked as by their own calls, and
ZooKeeper is written in one transaction, which takes the proposal away as well. It is written before the rows are committed: if
ZooKeeper refuses, nothing has happened. When its answer is lost, the rows stay as they were and the reconciler puts whitelists
back; ACLs may be in force then, and the caller is told to look.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.access.acls import NAMED_IN_AUDIT
from controlplane.access.records import legible_acls
from controlplane.clusters import coordination, zookeeper
from controlplane.clusters import proposals as store
from controlplane.core import audit, ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, FieldProblem, Invalid, LimitReached, NotFound
from controlplane.core.whitelist import whitelist_parse, whitelist_problems
from controlplane.instances.models import Instance, Route
from controlplane.instances.selectors import (
    instance_fresh,
    instance_get,
    instance_running_get,
    routes_wanted,
    spec_wanted,
)
from controlplane.instances.services import instance_row_change, proposal_expired
from controlplane.instances.spec import config_of
from quota.contracts.acls import MOST_ACLS, acl_fault, acls_problem
from quota.contracts.apart import acls_path
from quota.contracts.proposals import Cut, Findings, Proposal, Seen, proposal_problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.tenants.models import Organisation
    from quota.contracts.acls import Acl

LEAST_S, USUAL_S, LONGEST_S = 60, 86_400, 7 * 86_400


@dataclass(frozen=True, slots=True)
class BrokerFindings:
    """How much a broker has judged, and since when."""

    broker: int
    since: datetime
    connections: int
    requests: int


@dataclass(frozen=True, slots=True)
class CutOff:
    """Who would be cut off from what, on all brokers together."""

    cut: Cut
    count: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class ProposalView:
    """A proposal with what was found. `silent`: brokers that are there and have not said that they judge it."""

    proposal: Proposal
    made_at: datetime
    ends_at: datetime
    brokers: list[BrokerFindings]
    silent: list[int]
    cut_off: list[CutOff]  # the most frequent first
    left_out: int

    @property
    def connections(self) -> int:
        """That were judged."""
        return sum(each.connections for each in self.brokers)

    @property
    def requests(self) -> int:
        """Questions of requests that were judged."""
        return sum(each.requests for each in self.brokers)


def proposal_make(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    whitelist: Sequence[object] | None = None,
    route_whitelists: Mapping[str, Sequence[object]] = MappingProxyType({}),
    acls_added: Sequence[Acl] = (),
    acls_removed: Sequence[Acl] = (),
    allow_everyone: bool | None = None,
    lasts_s: int = USUAL_S,
    extends: bool = False,
    clock: Clock = SYSTEM_CLOCK,
    source: ids.RandomSource | None = None,
) -> ProposalView:
    """Have it judged for so long, in place of the proposal before, or (`extends`) together with it, all of it anew.

    Raises NotFound, Invalid, LimitReached, Conflict, ConcurrentChange, ClusterUnavailable.
    """
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    _check(instance, whitelist, route_whitelists, {"acls_added": acls_added, "acls_removed": acls_removed}, lasts_s)
    now_ms = _ms(clock)
    proposal = Proposal(
        ids.proposal_id(source or random.SystemRandom()),
        now_ms,
        now_ms + lasts_s * 1000,
        None if whitelist is None else tuple(whitelist_parse(whitelist, field="whitelist")),
        {route: tuple(whitelist_parse(cidrs, field=route)) for route, cidrs in route_whitelists.items()},
        tuple(dict.fromkeys(acls_added)),
        tuple(dict.fromkeys(acls_removed)),
        allow_everyone,
    )
    if proposal.whitelist is None and not proposal.route_whitelists and not proposal.is_about_acls:
        raise Invalid.field("acls_added", "nothing is proposed: name a whitelist, ACLs, or what holds without an ACL")
    tree = zookeeper.tree(instance.cluster.address)
    before = store.proposal_read(tree, instance.id) if extends else None
    if before is not None and before.ends_at_ms > now_ms:
        proposal = _together(before, proposal)
    problem = proposal_problem(proposal)
    if problem:
        raise Invalid(problem, code="too_large")
    if proposal.is_about_acls:
        _acls_after(proposal, coordination.beside_read(tree, acls_path(instance.id)))
    store.proposal_write(tree, instance.id, proposal)
    _audit(organisation, actor, "proposal.create", instance, proposal, clock)
    return _view(instance, proposal)


def proposal_get(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK) -> ProposalView:
    """That of an instance with what brokers have found. Raises NotFound, also when its time is over, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return _view(instance, _present(instance, clock))


def proposal_discard(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    proposal_id: str | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Nobody judges by it any more, and what was found is gone. Raises NotFound, ConcurrentChange, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    proposal = _present(instance, clock)
    tree = zookeeper.tree(instance.cluster.address)
    if not store.proposal_remove(tree, instance.id, proposal_id or proposal.id):
        raise _missing()
    _audit(organisation, actor, "proposal.discard", instance, proposal, clock)


def proposal_put_in_force(
    *, organisation: Organisation, actor: str, instance_id: str, proposal_id: str, clock: Clock = SYSTEM_CLOCK
) -> None:
    """All of it, from now on: within 2 s, on open connections too. `proposal_id`: the one whose findings were looked at.

    Raises NotFound, Invalid, LimitReached, Conflict, ConcurrentChange, ClusterUnavailable.
    """
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    proposal = _present(instance, clock)
    if proposal.id != proposal_id:
        raise _missing()
    with transaction.atomic():
        _put_in_force(organisation, actor, instance, proposal, clock)


def access_in_force(*, organisation: Organisation, instance_id: str) -> dict[str, Any]:
    """What a proposal can be about: whitelists by route, ACLs, what holds without one. Raises NotFound, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    data = coordination.beside_read(zookeeper.tree(instance.cluster.address), acls_path(instance.id))
    return {
        "whitelist": instance.whitelist,
        "route_whitelists": {route.key: route.whitelist for route in routes_wanted(instance.id)},
        "acls": [acl.document() for acl in legible_acls(data).items],
        "allow_everyone_if_no_acl_found": config_of(instance.config)["allow_everyone_if_no_acl_found"],
    }


def _put_in_force(organisation: Organisation, actor: str, instance: Instance, proposal: Proposal, clock: Clock) -> None:
    """ZooKeeper last, and within the transaction: if it refuses, there is nothing to be taken back."""
    changes = _changes(proposal)
    if changes or proposal.route_whitelists or proposal.allow_everyone is not None:
        instance = instance_row_change(organisation, instance.id, lambda row: _with_config(row, proposal, changes))
        _routes_change(organisation, instance, proposal)
        spec = spec_wanted(instance_fresh(instance.id))
    else:
        spec = None
    _audit(organisation, actor, "proposal.put_in_force", instance, proposal, clock)
    has_acls = bool(proposal.acls_added or proposal.acls_removed)
    store.proposal_put_in_force(
        zookeeper.tree(instance.cluster.address),
        instance.id,
        proposal.id,
        spec=spec,
        acls=(lambda data: _acls_after(proposal, data)) if has_acls else None,
    )


def _check(
    instance: Instance,
    whitelist: Sequence[object] | None,
    route_whitelists: Mapping[str, Sequence[object]],
    acls: Mapping[str, Sequence[Acl]],
    lasts_s: int,
) -> None:
    """Raises Invalid naming everything that is wrong. What is removed is looked at, too: it has to be read again."""
    problems = [] if whitelist is None else whitelist_problems(whitelist, field="whitelist")
    known = {route.key for route in routes_wanted(instance.id)}
    for route, cidrs in route_whitelists.items():
        if route not in known:
            problems.append(FieldProblem(f"route_whitelists.{route}", "the instance has no such route"))
        problems += whitelist_problems(cidrs, field=f"route_whitelists.{route}")
    for name, each in acls.items():
        faults = ((at, acl_fault(acl)) for at, acl in enumerate(each))
        problems += [FieldProblem(f"{name}.{at}.{fault[0]}", fault[1]) for at, fault in faults if fault is not None]
    if not LEAST_S <= lasts_s <= LONGEST_S:
        problems.append(FieldProblem("lasts_s", f"must be {LEAST_S} to {LONGEST_S} seconds"))
    if problems:
        raise Invalid.fields(problems)


def _together(before: Proposal, proposal: Proposal) -> Proposal:
    """Both; where they contradict each other the later one."""
    added = [acl for acl in before.acls_added if acl not in proposal.acls_removed]
    removed = [acl for acl in before.acls_removed if acl not in proposal.acls_added]
    return replace(
        proposal,
        whitelist=before.whitelist if proposal.whitelist is None else proposal.whitelist,
        route_whitelists={**before.route_whitelists, **proposal.route_whitelists},
        acls_added=tuple(dict.fromkeys([*added, *proposal.acls_added])),
        acls_removed=tuple(dict.fromkeys([*removed, *proposal.acls_removed])),
        allow_everyone=before.allow_everyone if proposal.allow_everyone is None else proposal.allow_everyone,
    )


def _changes(proposal: Proposal) -> dict[str, Any]:
    return {} if proposal.whitelist is None else {"whitelist": list(proposal.whitelist)}


def _with_config(row: Instance, proposal: Proposal, changes: Mapping[str, Any]) -> dict[str, Any]:
    if proposal.allow_everyone is None:
        return dict(changes)
    return {**changes, "config": {**row.config, "allow_everyone_if_no_acl_found": proposal.allow_everyone}}


def _routes_change(organisation: Organisation, instance: Instance, proposal: Proposal) -> None:
    """Behind the instance's row, as whoever changes a route does."""
    known = {route.key for route in routes_wanted(instance.id)}
    for route, cidrs in proposal.route_whitelists.items():
        if route not in known:
            raise Conflict(f"route {route} is gone: discard the proposal", code="route_not_found")
        rows = Route.objects.for_organisation(organisation).filter(instance=instance, key=route)
        rows.update(whitelist=list(cidrs))


def _acls_after(proposal: Proposal, data: bytes | None) -> bytes | None:
    before = legible_acls(data)
    items = proposal.acls_after(before.items)
    problem = acls_problem(items)
    if problem:
        raise LimitReached(problem, code="too_many_acls" if len(items) > MOST_ACLS else "too_large")
    after = before.changed(items)
    return None if after.items == before.items else after.to_json()


def _present(instance: Instance, clock: Clock) -> Proposal:
    """Raises NotFound. One whose time is over is discarded by whoever finds it."""
    tree = zookeeper.tree(instance.cluster.address)
    proposal = store.proposal_read(tree, instance.id)
    if proposal is None:
        raise _missing()
    if proposal.ends_at_ms <= _ms(clock):
        if store.proposal_remove(tree, instance.id, proposal.id):
            proposal_expired(instance.id, proposal.id, clock=clock)
        raise _missing()
    return proposal


def _view(instance: Instance, proposal: Proposal) -> ProposalView:
    tree = zookeeper.tree(instance.cluster.address)
    found = store.findings_read(tree, instance.id, proposal.id)
    seen: dict[Cut, Seen] = {}
    for findings in found.values():
        for cut, one in findings.cuts.items():
            if cut in seen:
                seen[cut].add(one)
            else:
                seen[cut] = one
    cut_off = [CutOff(cut, one.count, _moment(one.first_ms), _moment(one.last_ms)) for cut, one in seen.items()]
    live = [broker.id for broker in coordination.live_brokers(tree)]
    return ProposalView(
        proposal,
        _moment(proposal.made_at_ms),
        _moment(proposal.ends_at_ms),
        [_of_broker(broker, findings) for broker, findings in sorted(found.items())],
        [broker for broker in live if broker not in found],
        sorted(cut_off, key=lambda each: (-each.count, each.cut)),
        sum(findings.left_out for findings in found.values()),
    )


def _of_broker(broker: int, findings: Findings) -> BrokerFindings:
    return BrokerFindings(broker, _moment(findings.since_ms), findings.connections, findings.requests)


def _moment(ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def _ms(clock: Clock) -> int:
    return int(clock.now().timestamp() * 1000)


def _missing() -> NotFound:
    return NotFound("the instance has no such proposal", code="proposal_not_found")


def _audit(
    organisation: Organisation, actor: str, action: str, instance: Instance, proposal: Proposal, clock: Clock
) -> None:
    detail = {
        "id": proposal.id,
        "whitelist": None if proposal.whitelist is None else list(proposal.whitelist),
        "route_whitelists": {route: list(cidrs) for route, cidrs in proposal.route_whitelists.items()},
        "acls_added": [acl.document() for acl in proposal.acls_added[:NAMED_IN_AUDIT]],
        "acls_removed": [acl.document() for acl in proposal.acls_removed[:NAMED_IN_AUDIT]],
        "allow_everyone_if_no_acl_found": proposal.allow_everyone,
    }
    audit.record(organisation=organisation, actor=actor, action=action, target=instance.id, detail=detail, clock=clock)
