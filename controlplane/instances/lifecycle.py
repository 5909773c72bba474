"""The end of an instance: isolated, restored or destroyed.

::

                 delete                      the grace period ends, or an owner destroys it
    running ───────────────> isolated ───────────────────────────────────────────────> deleting ──> deleted
         (or: paid no more)
       ^                      │    ^                                                       ^
       │   open for use       │    │ delete                                                │
       └───────── restoring <─┘────┘                                                       │
    creating, failed (it never was open, there is nothing to keep): delete ────────────────┘

Isolated: brokers have closed its listeners, so that nobody produces or consumes, and keep topics, records, groups, users and
ACLs; its row keeps name, sizes, config, whitelists, routes and ports. It holds its place in the cluster and under the caps of its
organisation, so that restoring it is never refused for want of room, and nothing of it can be changed. Records expire meanwhile
as their topics say. What it costs: docs/subsystems/billing.md.

A request writes what is wanted into the row and starts an operation that brings it to brokers; the row is locked meanwhile, so
that of two who decide at once the second sees what the first has decided. Beat ends grace periods (`grace_periods_end`).

Owners of the organisation are told by e-mail that it was isolated, a day before it is destroyed, and that it was. Each mail is
written in the transaction of what it is about, the row being locked: once, whichever worker dies in between.

With a grace period of 0 (SLUICE_DELETION_GRACE_S) deleting destroys. An instance that was paid in advance and is paid no more
(`instance_expire`) has one all the same: nobody has asked for its end.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.db.models import F

from controlplane.core import audit, operations
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Forbidden, Invalid, NotFound
from controlplane.core.models import Operation, OperationState
from controlplane.env import DELETION_GRACE_S
from controlplane.instances import letters
from controlplane.instances.history import SIZES, spec_change_record
from controlplane.instances.models import Instance, InstanceState, SpecChangeKind
from controlplane.instances.selectors import instance_fresh
from controlplane.instances.services import check_generation, instance_locked
from controlplane.instances.telling import owners_tell
from quota.contracts.instance import InstanceState as SpecState

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from controlplane.accounts.selectors import Caller
    from controlplane.tenants.models import Organisation

LOG = logging.getLogger(__name__)
ISOLATE, RESTORE, DELETE = "instance.isolate", "instance.restore", "instance.delete"
"""Kinds of operation; their steps are in provisioning.py."""
DESTROY, EXPIRE = "instance.destroy", "instance.expire"
"""Of the audit trail: deleted at once, or when the grace period ended; isolated, since what was paid in advance has ended."""
NUMBER = "number"  # of an operation's arguments
HAVE_DATA = (InstanceState.RUNNING, InstanceState.RESTORING)
AT_ONCE = 100
"""Instances whose grace periods are ended in a round."""
FORETOLD = timedelta(hours=24)
"""So long before its destruction owners are told again. With a grace period that is no longer, the first mail was that one."""
AGAIN_AFTER = timedelta(minutes=10)
"""When a destruction by the clock that gave up is tried again."""


def grace_period() -> timedelta:
    """For how long an instance that was deleted can be restored; 0: it is destroyed at once."""
    return timedelta(seconds=settings.ENVIRONMENT.deletion_grace_s)


def grace_period_unpaid() -> timedelta:
    """For how long an instance that is paid no more can be renewed: at least as long as services are used to."""
    return grace_period() or timedelta(seconds=DELETION_GRACE_S)


@transaction.atomic
def instance_delete(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    at_generations: Collection[int] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Operation:
    """Isolate an instance for the grace period, after which it is destroyed. What was never open is destroyed at once.

    Asked again, it answers the operation that is at it or has done it. At another generation than those given (None: any) it
    raises PreconditionFailed; while it is protected, Conflict. Raises NotFound.
    """
    instance = _found(organisation, instance_id)
    if instance.state == InstanceState.ISOLATED:  # its generation was raised by who isolated it
        return _newest(instance, ISOLATE) or _started(instance, ISOLATE, actor, clock)
    check_generation(instance, at_generations)
    check_protection(instance)
    if instance.state not in HAVE_DATA or not grace_period():
        return _destroy(instance, actor, DELETE, clock)
    now = clock.now()
    ends = now + grace_period()
    was = instance.state
    _isolate(instance, now, ends)
    owners_tell(instance, lambda about: letters.isolated(about, until=ends), now)
    audit.record_about(instance, actor, DELETE, _state_told(was, instance) | {"destroys_at": ends.isoformat()}, clock)
    return _started(instance, ISOLATE, actor, clock)


def instance_expire(*, instance: Instance, clock: Clock) -> Operation | None:
    """Isolate an instance that is paid no more. The caller has locked its row, in its transaction; None: it is not in use.

    Deletion protection does not keep it: whoever decides that it ends has looked at that (admission/prepaid.py).
    """
    if instance.state not in HAVE_DATA:
        return None
    now = clock.now()
    ends = now + grace_period_unpaid()
    was = instance.state
    _isolate(instance, now, ends)
    owners_tell(instance, lambda about: letters.expired(about, until=ends), now)
    detail = _state_told(was, instance) | {"destroys_at": ends.isoformat()}
    audit.record_about(instance, audit.SYSTEM, EXPIRE, detail, clock)
    return _started(instance, ISOLATE, audit.SYSTEM, clock)


def _isolate(instance: Instance, now: datetime, ends: datetime) -> None:
    _write(
        instance,
        {
            "state": InstanceState.ISOLATED,
            "spec_state": SpecState.STOPPED.value,
            "isolated_at": now,
            "destroys_at": ends,
            "end_foretold_at": None,
        },
    )
    spec_change_record(instance=instance, kind=SpecChangeKind.ISOLATED, at=now)


@transaction.atomic
def instance_restore(
    *, organisation: Organisation, actor: str, instance_id: str, clock: Clock = SYSTEM_CLOCK
) -> Operation:
    """Open an isolated instance again, as it was and at its old addresses.

    Asked again, it answers the operation that is at it or has done it. Raises NotFound; Conflict for one that is not isolated.
    """
    instance = _found(organisation, instance_id)
    if instance.state in HAVE_DATA:
        begun = _newest(instance, RESTORE)
        if begun is not None:
            return begun
        if instance.state == InstanceState.RESTORING:
            return _started(instance, RESTORE, actor, clock)
    if instance.state == InstanceState.DELETING:
        raise Conflict("the instance is being deleted, and its data with it", code="instance_deleting")
    if instance.state != InstanceState.ISOLATED:
        raise Conflict(f"the instance is {instance.state}: there is nothing to restore", code="instance_not_isolated")
    was = instance.state
    _write(
        instance,
        {
            "state": InstanceState.RESTORING,
            "spec_state": SpecState.RUNNING.value,
            "isolated_at": None,
            "destroys_at": None,
            "end_foretold_at": None,
        },
    )
    audit.record_about(instance, actor, RESTORE, _state_told(was, instance), clock)
    return _started(instance, RESTORE, actor, clock)


@transaction.atomic
def instance_destroy(*, caller: Caller, instance_id: str, confirmation: str, clock: Clock = SYSTEM_CLOCK) -> Operation:
    """Take an instance and all its data away at once, whether it is isolated or not. `confirmation` is its name, whole.

    Owners do that. Asked again, it answers the operation that is at it. Raises NotFound, Forbidden, Invalid, and Conflict for one
    that is protected.
    """
    instance = _found(caller.organisation, instance_id)
    if not caller.may_manage:
        raise Forbidden("only owners of the organisation destroy an instance without a grace period")
    if confirmation.strip() != instance.name.strip():
        raise Invalid.field("name", "must be the name of the instance, whole: its data are deleted for good")
    check_protection(instance)
    return _destroy(instance, caller.actor, DESTROY, clock)


def grace_periods_end(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Destroy what was isolated for its grace period; how many were begun with.

    A destruction that gave up, because the cluster was away for instance, is begun again after a while. One instance that cannot
    be looked after is no obstacle to the others.
    """
    now = clock.now()
    rows = Instance.objects.unscoped("by the clock").filter(destroys_at__lte=now)
    due = rows.filter(state=InstanceState.ISOLATED).order_by("destroys_at").values_list("pk", flat=True)
    late = rows.filter(state=InstanceState.DELETING).order_by("destroys_at").values_list("pk", flat=True)
    begun = 0
    for instance_id in [*due[:AT_ONCE], *_given_up(late, now)]:
        try:
            begun += _grace_period_end(instance_id, clock)
        except Exception:
            LOG.exception("the grace period of %s", instance_id)
    return begun


@transaction.atomic
def _grace_period_end(instance_id: str, clock: Clock) -> bool:
    instance = instance_locked(instance_fresh(instance_id).organisation, instance_id)
    if instance.destroys_at is None or instance.destroys_at > clock.now():
        return False  # restored since
    if instance.state == InstanceState.DELETED:
        return False
    _destroy(instance, audit.SYSTEM, DESTROY, clock)
    return True


def _given_up(instance_ids: Collection[str], now: datetime) -> list[str]:
    """Of those that are being deleted, the ones that nobody is at: their last operation failed a while ago."""
    rows = Operation.objects.unscoped("by the clock").filter(kind=DELETE, target__in=list(instance_ids)[:AT_ONCE])
    recent = rows.exclude(state=OperationState.FAILED, finished_at__lte=now - AGAIN_AFTER)
    busy = set(recent.values_list("target", flat=True))
    return [instance_id for instance_id in list(instance_ids)[:AT_ONCE] if instance_id not in busy]


def ends_foretell(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Tell owners which instances are destroyed within a day; how many were told of. One that fails is no obstacle to the others.

    Where beat was away for that day, nobody is told before: an end that is overdue is not put off for a mail.
    """
    now = clock.now()
    rows = Instance.objects.unscoped("by the clock").filter(state=InstanceState.ISOLATED, end_foretold_at=None)
    near = rows.filter(
        destroys_at__gt=now, destroys_at__lte=now + FORETOLD, isolated_at__lt=F("destroys_at") - FORETOLD
    )
    told = 0
    for instance_id in near.order_by("destroys_at").values_list("pk", flat=True)[:AT_ONCE]:
        try:
            told += _end_foretell(instance_id, clock)
        except Exception:
            LOG.exception("a mail about the end of %s", instance_id)
    return told


@transaction.atomic
def _end_foretell(instance_id: str, clock: Clock) -> bool:
    instance, now = instance_locked(instance_fresh(instance_id).organisation, instance_id), clock.now()
    ends = instance.destroys_at
    if instance.state != InstanceState.ISOLATED or instance.end_foretold_at is not None or ends is None:
        return False  # another worker was faster, or it was restored since
    if not now < ends <= now + FORETOLD:
        return False  # restored, and isolated again
    _write(instance, {"end_foretold_at": now}, raises_generation=False)
    owners_tell(instance, lambda about: letters.near_its_end(about, until=ends), now)
    return True


def check_protection(instance: Instance) -> None:
    """Raises Conflict."""
    if instance.deletion_protection:
        raise Conflict(
            f"{instance.id} is protected against deletion: switch its deletion protection off first, if it is really to go",
            code="deletion_protected",
        )


def overtaken(operation: Operation) -> bool:
    """Whether a later operation has decided otherwise about the instance."""
    return max(_about_its_end(operation.target), key=_order).pk != operation.pk


def _found(organisation: Organisation, instance_id: str) -> Instance:
    """The row, until this transaction ends. Raises NotFound."""
    instance = instance_locked(organisation, instance_id)
    if instance.state == InstanceState.DELETED:  # since it was looked for
        raise NotFound(f"no instance {instance_id}")
    return instance


def _destroy(instance: Instance, actor: str, action: str, clock: Clock) -> Operation:
    """Asked again meanwhile, it answers the operation that is at it; where that gave up, another one begins."""
    begun = _newest(instance, DELETE)
    if begun is not None:
        return begun
    was = instance.state
    _write(instance, {"state": InstanceState.DELETING}, raises_generation=False)
    spec_change_record(instance=instance, kind=SpecChangeKind.CLOSED, at=clock.now())
    members = {name: getattr(instance, name) for name in ("name", *SIZES)}
    detail = members | (_state_told(was, instance) if action == DELETE else {"state": str(was)})
    audit.record_about(instance, actor, action, detail, clock)
    return _started(instance, DELETE, actor, clock)


def _state_told(was: str, instance: Instance) -> dict[str, Any]:
    """For the audit trail."""
    return audit.changed({"state": str(was)}, {"state": str(instance.state)})


def _write(instance: Instance, changes: Mapping[str, object], *, raises_generation: bool = True) -> None:
    """Into the locked row, and the same here."""
    raised = {"generation": F("generation") + 1} if raises_generation else {}
    Instance.objects.unscoped("it was found in its organisation").filter(pk=instance.pk).update(**changes, **raised)
    for name, value in changes.items():
        setattr(instance, name, value)


def _newest(instance: Instance, kind: str) -> Operation | None:
    """The newest of the operations on its end, if it is of this kind and has not failed."""
    newest = max(_about_its_end(instance.id), key=_order, default=None)
    return newest if newest and newest.kind == kind and newest.state != OperationState.FAILED else None


def _about_its_end(instance_id: str) -> list[Operation]:
    rows = Operation.objects.unscoped("whoever asks has found the instance")
    return list(rows.filter(target=instance_id, kind__in=(ISOLATE, RESTORE, DELETE)))


def _order(operation: Operation) -> tuple[int, datetime]:
    """Which came first: they are numbered within their instance. Those of earlier releases are not, and were before."""
    return operation.arguments.get(NUMBER, 0), operation.created_at


def _started(instance: Instance, kind: str, actor: str, clock: Clock) -> Operation:
    """The row is locked, so that no two have one number."""
    return operations.start(
        organisation=instance.organisation,
        kind=kind,
        target=instance.id,
        actor=actor,
        arguments={NUMBER: len(_about_its_end(instance.id)) + 1},
        counted=False,
        clock=clock,
    )
