"""The steps of a route's operations. Each is idempotent: a worker may die in the middle of any of them.

======================= =========================================================================================
create                  allocate addresses; write specification; wait for brokers; open for use
update                  write specification; wait for brokers
delete                  close listeners; free addresses
======================= =========================================================================================

They are steps of the instance: what is written is always all that it has. Ports are given back when brokers have closed the
listeners, so that nobody else is given one on which a broker still listens.

A route that could not be opened is taken out of the specification, or every other change of the instance would wait for it as
well. The certificate that its tenant has brought for it is kept until it is removed. One that could not be changed stays in, as
it was wanted: the reconciler goes on trying.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F

from controlplane.certificates import services as certificates
from controlplane.clusters import services as clusters
from controlplane.core import operations
from controlplane.core.errors import Conflict
from controlplane.core.operations import Finished, NotYet, OperationKind, Step
from controlplane.instances import reconcile
from controlplane.instances.models import Instance, RouteState
from controlplane.instances.plan import Await
from controlplane.instances.provisioning import (
    BROKERS_PATIENCE_S,
    allocate_addresses,
    wait_for_brokers,
    write_specification,
)
from controlplane.instances.selectors import instance_fresh, routes_of_any_state
from controlplane.routes.services import CREATE, DELETE, ROUTE, UPDATE

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet

    from controlplane.core.models import Operation
    from controlplane.instances.models import Route

_GOING = (RouteState.DELETING, RouteState.REMOVED)


def register() -> None:
    """Make the three kinds of operation known."""
    operations.register(
        OperationKind(
            CREATE,
            (
                Step("allocate addresses", _while_wanted(allocate_addresses)),
                Step("write specification", _while_wanted(write_specification)),
                Step("wait for brokers", _while_wanted(wait_for_brokers), BROKERS_PATIENCE_S),
                Step("open for use", open_for_use),
            ),
            failed=mark_failed,
        )
    )
    operations.register(
        OperationKind(
            UPDATE,
            (
                Step("write specification", _while_wanted(write_specification)),
                Step("wait for brokers", _while_wanted(wait_for_brokers), BROKERS_PATIENCE_S),
            ),
        )
    )
    operations.register(
        OperationKind(
            DELETE,
            (
                Step("close listeners", close_listeners, BROKERS_PATIENCE_S),
                Step("free addresses", free_addresses),
            ),
        )
    )


def _while_wanted(run: Callable[[Operation], Finished | NotYet]) -> Callable[[Operation], Finished | NotYet]:
    """A step of the instance, for a route that is not to go. Raises Conflict once it is."""

    def step(operation: Operation) -> Finished | NotYet:
        if _rows(operation).filter(state__in=_GOING).exists():
            raise Conflict("the route is being removed", code="route_deleting")
        return run(operation)

    return step


def open_for_use(operation: Operation) -> Finished:
    """The state its tenant waits for."""
    _rows(operation).filter(state=RouteState.CREATING).update(state=RouteState.RUNNING)
    return Finished(result={"instance_id": operation.target, "route_id": operation.arguments[ROUTE]})


def close_listeners(operation: Operation) -> Finished | NotYet:
    """Its listeners alone: the specification has it no more."""
    outcome = reconcile.converge(operation.target)
    return NotYet(outcome.note) if isinstance(outcome, Await) else Finished()


def free_addresses(operation: Operation) -> Finished:
    """Give back the ports; the route is gone, and so is the private key of its certificate."""
    certificates.route_forget(instance=instance_fresh(operation.target), route=operation.arguments[ROUTE])
    _rows(operation).update(state=RouteState.REMOVED)  # before: reconcile.addresses_allocate
    freed = clusters.ports_release(owner=operation.target, route=operation.arguments[ROUTE])
    return Finished(note=f"{freed} ports")


@transaction.atomic
def mark_failed(operation: Operation) -> None:
    """Of an opening that gave up: brokers are told of it no more."""
    if _rows(operation).filter(state=RouteState.CREATING).update(state=RouteState.FAILED):
        instance = instance_fresh(operation.target)
        rows = Instance.objects.unscoped("the operation names its target").filter(pk=instance.pk)
        rows.update(generation=F("generation") + 1)


def _rows(operation: Operation) -> QuerySet[Route]:
    return routes_of_any_state(operation.target).filter(key=operation.arguments[ROUTE])
