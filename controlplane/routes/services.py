"""Opening, changing and removing routes. Each call checks, writes the row, and leaves the rest to an operation.

A row is written in the transaction that raises the generation of its instance, behind that write: so two callers who would
have six routes together, or two public ones, come one after the other, and the second is refused.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Q

from controlplane.clusters import zookeeper
from controlplane.core import audit, operations
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Invalid, LimitReached, SluiceError
from controlplane.core.models import Operation, OperationState
from controlplane.core.whitelist import whitelist_parse
from controlplane.instances.models import Instance, Route, RouteState
from controlplane.instances.reconcile import publish
from controlplane.instances.selectors import instance_running_get, routes_of_any_state
from controlplane.instances.services import instance_row_change
from controlplane.routes.selectors import route_get
from controlplane.routes.validation import DEFAULTS, MOST_ROUTES, route_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controlplane.tenants.models import Organisation

    Check = Callable[[Route], None]

LOG = logging.getLogger(__name__)
CREATE, UPDATE, DELETE = "route.create", "route.update", "route.delete"
"""Kinds of operation; their steps are in provisioning.py."""
ROUTE = "route"
"""The argument of an operation that says which."""


@transaction.atomic
def route_create(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    members: Mapping[str, Any],
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[Route, Operation]:
    """Another way in. `members` are of validation.DEFAULTS; what is left out is as there.

    Raises Invalid, NotFound, Conflict, LimitReached.
    """
    route = _checked({**DEFAULTS, **members}, members, clock)
    instance = _changed(organisation, instance_id)
    every = list(routes_of_any_state(instance.id))
    _check_room(every, route)
    number = 1 + max((each.number for each in every), default=1)
    made = Route(
        organisation=organisation,
        instance=instance,
        number=number,
        key=f"r{number}",
        created_at=clock.now(),
        **route,
    )
    made.save(force_insert=True)
    operation = _started(CREATE, made, actor, clock, detail=_said(made))
    return made, operation


def route_update(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    route_id: str,
    changes: Mapping[str, Any],
    check: Check | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[Route, Operation]:
    """Other members; one that failed to open is tried again. `check` is told the route that is to be another.

    Raises Invalid, NotFound, Conflict, LimitReached.
    """
    route, operation = _update(organisation, actor, instance_id, route_id, changes, check, clock)
    # Whom a whitelist does not hold any more is cut off within 2 s, as by the instance's: the operation might come later.
    try:
        publish(zookeeper.tree(route.instance.cluster.address), route.instance_id)
    except SluiceError as error:  # the change is stored, and so is the operation
        LOG.warning("route %s: the operation will write it: %s", route, error)
    return route, operation


@transaction.atomic
def _update(
    organisation: Organisation,
    actor: str,
    instance_id: str,
    route_id: str,
    changes: Mapping[str, Any],
    check: Check | None,
    clock: Clock,
) -> tuple[Route, Operation]:
    if not changes:
        raise Invalid(f"nothing to change: give one or more of {', '.join(DEFAULTS)}")
    instance = _changed(organisation, instance_id)
    route = _to_be_used(route_get(organisation=organisation, instance_id=instance.id, route_id=route_id))
    if check is not None:
        check(route)
    after = _checked({name: getattr(route, name) for name in DEFAULTS} | dict(changes), changes, clock)
    _check_room([each for each in routes_of_any_state(instance.id) if each.pk != route.pk], after)
    before = _said(route)
    for name, value in after.items():
        setattr(route, name, value)
    kind = UPDATE
    if route.state == RouteState.FAILED:
        route.state, kind = RouteState.CREATING, CREATE
    route.instance = instance
    route.save(update_fields=[*after, "state"])
    return route, _started(kind, route, actor, clock, detail=audit.changed(before, _said(route)))


@transaction.atomic
def route_delete(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    route_id: str,
    check: Check | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Operation:
    """Nobody gets in by it any more. Asked again meanwhile, it answers the operation that is at it. `check` is told the route.

    Raises NotFound, and Conflict where the instance would have no other that is open.
    """
    found = route_get(organisation=organisation, instance_id=instance_id, route_id=route_id)
    if found.state == RouteState.DELETING:
        begun = _deletion(found)
        if begun is not None:
            return begun
    instance = _changed(organisation, instance_id)
    route = route_get(organisation=organisation, instance_id=instance_id, route_id=route_id)
    if check is not None:
        check(route)
    others = routes_of_any_state(instance.id).exclude(pk=route.pk).filter(state=RouteState.RUNNING)
    others = others.filter(Q(closes_at=None) | Q(closes_at__gt=clock.now()))
    if route.state != RouteState.FAILED and not others.exists():
        raise Conflict(
            "the instance has no other route that is open: open another one before, or delete the instance",
            code="last_route",
        )
    Route.objects.for_organisation(organisation).filter(pk=route.pk).update(state=RouteState.DELETING)
    return _started(DELETE, route, actor, clock, detail=_said(route))


def _deletion(route: Route) -> Operation | None:
    rows = Operation.objects.for_organisation(route.organisation)
    running = rows.filter(target=route.instance_id, kind=DELETE, state=OperationState.RUNNING)
    return next((each for each in running if each.arguments.get(ROUTE) == route.key), None)


def _changed(organisation: Organisation, instance_id: str) -> Instance:
    """The instance with a new generation: until this transaction ends, nobody else changes its routes."""
    instance_running_get(organisation=organisation, instance_id=instance_id)
    return instance_row_change(organisation, instance_id, lambda _instance: {})


def _to_be_used(route: Route) -> Route:
    if route.state == RouteState.DELETING:
        raise Conflict("the route is being removed", code="route_deleting")
    return route


def _checked(route: Mapping[str, Any], asked: Mapping[str, Any], clock: Clock) -> dict[str, Any]:
    """As a row has it. Raises Invalid naming everything that is wrong."""
    problems = route_problems(route, changed=list(asked), now=clock.now())
    if problems:
        raise Invalid.fields(problems)
    whitelist = route["whitelist"]
    return {**route, "whitelist": None if whitelist is None else whitelist_parse(whitelist, field="whitelist")}


def _check_room(others: list[Route], route: Mapping[str, Any]) -> None:
    """Raises LimitReached."""
    there = [each for each in others if each.state != RouteState.REMOVED]
    if len(there) >= MOST_ROUTES:
        raise LimitReached(f"an instance may have {MOST_ROUTES} routes, and has them", code="route_limit")
    if route["public"] and any(each.public for each in there):
        raise LimitReached("an instance may have one public route, and has it", code="public_route_limit")


def _said(route: Route) -> dict[str, Any]:
    """Its members as the audit trail has them."""
    members = {name: getattr(route, name) for name in DEFAULTS}
    closes_at = members.get("closes_at")
    return {**members, "closes_at": closes_at.isoformat()} if closes_at else members


def _started(kind: str, route: Route, actor: str, clock: Clock, detail: Mapping[str, Any]) -> Operation:
    operation = operations.start(
        organisation=route.organisation,
        kind=kind,
        target=route.instance_id,
        actor=actor,
        arguments={ROUTE: route.key},
        counted=kind != DELETE,
        clock=clock,
    )
    audit.record(
        organisation=route.organisation,
        actor=actor,
        action=kind,
        target=f"{route.instance_id}/{route.key}",
        detail=dict(detail),
        clock=clock,
    )
    return operation
