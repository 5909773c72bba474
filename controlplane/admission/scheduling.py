"""Changes of size that are to be made later: scheduled, cancelled, and carried out by the clock.

What is wanted is judged twice by the rules of the change itself: when it is scheduled, by a dry run, so that nobody waits for
what could not be done anyway; and at its time, when the instance, the room of its cluster, the caps and the price may be others.
Where it would be charged in advance by then, it is refused if who asked for it does not pay so.

::

    waiting ──> begun      at its time: the change was made, and its operation brings it to brokers
       │  └───> refused    at its time: by the rules of the change; `problem` says why
       └──────> cancelled

The row is locked while it is carried out, in the transaction that makes the change: a worker that dies leaves neither, and of
two only one does it. What may succeed a little later (another change of the instance is being written, 20 operations run on
it) is tried again in each round, for an hour.

Owners of the organisation are told by e-mail what has become of it: that it was refused, in the transaction that refuses it; that
it was made, when its operation has ended. `told_at` is written with the mail, the row being locked: each is told once. Of an
instance that is being deleted for good nobody is told, and `told_at` is written all the same.

One that was asked for in a maintenance window and finds it shut, workers having been late, waits for the next opening.
"""

from __future__ import annotations

import logging
import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.admission import dry_runs, purchases
from controlplane.admission.models import ScheduledChange, ScheduledState
from controlplane.admission.rules import BANDWIDTH, PARTITIONS, SIZES, STORAGE
from controlplane.core import audit, ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound, SluiceError
from controlplane.core.models import Operation, OperationState
from controlplane.instances import letters, windows
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get
from controlplane.instances.services import instance_locked
from controlplane.instances.telling import owners_tell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.core.dry_runs import Outlook
    from controlplane.mail.letter import Letter
    from controlplane.tenants.models import Organisation

LOG = logging.getLogger(__name__)
FARTHEST = timedelta(days=30)
MOST_WAITING = 20
"""Of one instance."""
TRIED_FOR = timedelta(hours=1)
AT_ONCE = 100
"""Changes that are carried out in a round."""
_SAID = {BANDWIDTH: "{:g} MiB/s of bandwidth", STORAGE: "{:g} GiB of storage", PARTITIONS: "{} partitions"}
_MAY_PASS = ("too_many_operations",)
"""Refusals that are over by themselves, beside those that are retriable."""


def change_check(
    *,
    organisation: Organisation,
    instance_id: str,
    at: datetime,
    changes: Mapping[str, Any],
    clock: Clock,
    **words: Any,
) -> Outlook:
    """What the change would do if it were made now. Raises Invalid, and what purchases.instance_change raises."""
    now = clock.now()
    if not now < at <= now + FARTHEST:
        raise Invalid.field("at", f"must be to come, and within {FARTHEST.days} days")
    if not changes or set(changes) - set(SIZES):
        raise Invalid(f"nothing to change later: give one or more of {', '.join(SIZES)}")
    return dry_runs.changing(organisation=organisation, instance_id=instance_id, changes=changes, clock=clock, **words)


def next_window(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK) -> datetime:
    """When the maintenance window of an instance opens next. Raises NotFound, and Conflict where it has none."""
    window = instance_get(organisation=organisation, instance_id=instance_id).maintenance_window
    if window is None:
        raise Conflict(
            f"{instance_id} has no maintenance window: give it one, or say when the change is to be made",
            code="no_maintenance_window",
        )
    return windows.begins_next(window, clock.now())


@transaction.atomic
def change_schedule(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    at: datetime,
    changes: Mapping[str, Any],
    accept_full_storage: bool = False,
    confirm_price: bool = False,
    in_window: bool = False,
    admit_paying: Callable[[], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
    source: ids.RandomSource | None = None,
) -> ScheduledChange:
    """Have sizes changed at a moment to come. Asked for the same again while it waits, it answers that.

    `in_window`: where the maintenance window is shut when it could be made, it is made when that opens next.
    `admit_paying` as of purchases.instance_change. Whether they pay in advance is kept, and holds at the time of the change, too:
    the instance may be paid in advance by then. Raises Invalid, NotFound, LimitReached, and what the change itself would
    raise now.
    """
    words: dict[str, Any] = {"accept_full_storage": accept_full_storage, "confirm_price": confirm_price}
    # Before the row is locked: the check locks the cluster first, as every change does, and lets go of it.
    asked: dict[str, Any] = {"organisation": organisation, "instance_id": instance_id, "actor": actor}
    change_check(**asked, at=at, changes=changes, admit_paying=admit_paying, clock=clock, **words)
    instance = instance_locked(organisation, instance_id)  # its changes are counted by one at a time
    pays = purchases.may_pay(admit_paying)
    waiting = ScheduledChange.objects.for_organisation(organisation).filter(
        instance=instance, state=ScheduledState.WAITING
    )
    for each in waiting.filter(at=at, in_window=in_window):
        if each.changes == dict(changes):
            return each if each.pays_in_advance or not pays else _taken_over(each, actor, clock)
    if waiting.count() >= MOST_WAITING:
        raise LimitReached(
            f"{MOST_WAITING} changes of {instance_id} are scheduled, and no more may: cancel one",
            code="too_many_scheduled",
        )
    made = ScheduledChange(
        id=ids.scheduled_change_id(source or random.SystemRandom()),
        organisation=organisation,
        instance=instance,
        actor=actor,
        changes=dict(changes),
        at=at,
        in_window=in_window,
        pays_in_advance=pays,
        created_at=clock.now(),
        **words,
    )
    made.save(force_insert=True)
    _schedule_on_record(made, clock)
    return made


def _taken_over(change: ScheduledChange, actor: str, clock: Clock) -> ScheduledChange:
    """Somebody who pays in advance asks for what somebody waits for who does not: it is theirs from now on."""
    change.actor, change.pays_in_advance = actor, True
    change.save(update_fields=["actor", "pays_in_advance"])
    _schedule_on_record(change, clock)
    return change


def _schedule_on_record(change: ScheduledChange, clock: Clock) -> None:
    detail = {"id": change.id, "at": change.at.isoformat(), **change.changes}
    _on_record(change, change.actor, "instance.schedule", detail, clock)


@transaction.atomic
def change_cancel(
    *, organisation: Organisation, actor: str, instance_id: str, change_id: str, clock: Clock = SYSTEM_CLOCK
) -> ScheduledChange:
    """It is not made. Cancelled again, nothing happens. Raises NotFound, and Conflict for one that does not wait any more."""
    change = change_get(organisation=organisation, instance_id=instance_id, change_id=change_id)
    change = ScheduledChange.objects.for_organisation(organisation).select_for_update().get(pk=change.pk)
    if change.state == ScheduledState.CANCELLED:
        return change
    if change.state != ScheduledState.WAITING:
        raise Conflict(f"the change was {change.state} already", code="change_not_waiting")
    _end(change, ScheduledState.CANCELLED, clock)
    detail = {"id": change.id, "at": change.at.isoformat(), **change.changes}
    _on_record(change, actor, "instance.unschedule", detail, clock)
    return change


def change_list(*, organisation: Organisation, instance_id: str) -> QuerySet[ScheduledChange]:
    """Changes of an instance that were scheduled, in any state. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return ScheduledChange.objects.for_organisation(organisation).filter(instance=instance)


def change_get(*, organisation: Organisation, instance_id: str, change_id: str) -> ScheduledChange:
    """One of them. Raises NotFound."""
    found = change_list(organisation=organisation, instance_id=instance_id).filter(pk=change_id).first()
    if found is None:
        raise NotFound(f"no scheduled change {change_id}")
    return found


def changes_carry_out(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Those whose time has come; how many were begun. One that fails is no obstacle to the others."""
    rows = ScheduledChange.objects.unscoped("by the clock").filter(state=ScheduledState.WAITING, at__lte=clock.now())
    begun = 0
    for change_id in list(rows.order_by("at", "pk").values_list("pk", flat=True)[:AT_ONCE]):
        try:
            begun += _carry_out(change_id, clock)
        except Exception:
            LOG.exception("scheduled change %s", change_id)
    return begun


def changes_tell(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Write to owners what has become of changes whose operation has ended; of how many."""
    rows = ScheduledChange.objects.unscoped("by the clock").filter(state=ScheduledState.BEGUN, told_at=None)
    untold = dict(rows.order_by("ended_at", "pk").values_list("pk", "operation_id")[:AT_ONCE])
    operations = Operation.objects.unscoped("by the clock").filter(pk__in=untold.values())
    ended = dict(operations.exclude(state=OperationState.RUNNING).values_list("pk", "state"))
    told = 0
    for change_id, operation_id in untold.items():
        if operation_id not in ended:
            continue
        try:
            told += _tell(change_id, OperationState(ended[operation_id]), clock)
        except Exception:
            LOG.exception("a mail about scheduled change %s", change_id)
    return told


@transaction.atomic
def _tell(change_id: str, ended: OperationState, clock: Clock) -> bool:
    change, now = _locked(change_id), clock.now()
    if change.told_at is not None:
        return False  # another worker was faster
    said = letters.change_made if ended == OperationState.SUCCEEDED else letters.change_stuck
    wanted = sizes_text(change.changes)
    if not _is_gone(change):
        owners_tell(change.instance, lambda about: said(about, sizes=wanted, at=change.at), now)
    change.told_at = now
    change.save(update_fields=["told_at"])
    return True


def sizes_text(changes: Mapping[str, Any]) -> str:
    """``20 MiB/s of bandwidth, 90 partitions``."""
    return ", ".join(_SAID[name].format(changes[name]) for name in SIZES if name in changes)


def _locked(change_id: str) -> ScheduledChange:
    rows = ScheduledChange.objects.unscoped("by the clock").select_related("organisation", "instance__organisation")
    return rows.select_for_update(of=("self",)).get(pk=change_id)


@transaction.atomic
def _carry_out(change_id: str, clock: Clock) -> bool:
    change = _locked(change_id)
    if change.state != ScheduledState.WAITING:
        return False  # another worker was faster, or it was cancelled
    if change.in_window and _put_off(change, clock):
        return False
    try:
        with transaction.atomic():  # what is refused leaves nothing but the refusal
            _, operation = purchases.instance_change(
                organisation=change.organisation,
                actor=change.actor,
                instance_id=change.instance_id,
                changes=change.changes,
                accept_full_storage=change.accept_full_storage,
                confirm_price=change.confirm_price,
                admit_paying=None if change.pays_in_advance else _refuse_paying,
                clock=clock,
            )
    except SluiceError as error:
        _refused(change, error, clock)
        return False
    change.operation_id, change.problem = operation.id, ""
    _end(change, ScheduledState.BEGUN, clock)
    return True


def _refuse_paying() -> None:
    """Of an instance that is paid in advance since: larger, it is charged for at once. Raises Forbidden."""
    raise Forbidden(
        "the instance is paid in advance now, and who has scheduled the change does not pay in advance: "
        "an owner or a member has to ask for it",
        code="not_in_role",
    )


def _put_off(change: ScheduledChange, clock: Clock) -> bool:
    """To the next opening, where workers were late and the window is shut; False: it is open, or there is none any more."""
    window, now = change.instance.maintenance_window, clock.now()
    if change.at > now:
        return True  # by another worker
    if window is None or _is_gone(change) or windows.is_open(window, now):
        return False
    change.at = windows.begins_next(window, now)
    change.problem = "the maintenance window was shut when it could have been made: it waits for the next one"
    change.save(update_fields=["at", "problem"])
    return True


def _is_gone(change: ScheduledChange) -> bool:
    """Its instance is being deleted for good, or is: nobody is written to about sizes of it."""
    return change.instance.state in (InstanceState.DELETING, InstanceState.DELETED)


def _refused(change: ScheduledChange, error: SluiceError, clock: Clock) -> None:
    change.problem = error.detail
    if (error.retriable or error.code in _MAY_PASS) and clock.now() < change.at + TRIED_FOR:
        change.save(update_fields=["problem"])
        return
    _end(change, ScheduledState.REFUSED, clock)
    wanted = sizes_text(change.changes)

    def refused(about: letters.About) -> Letter:
        problem = error.detail if about.name else ""  # it may hold what a tenant has written
        return letters.change_refused(about, sizes=wanted, at=change.at, problem=problem)

    if not _is_gone(change):
        owners_tell(change.instance, refused, clock.now())
    change.told_at = clock.now()
    change.save(update_fields=["told_at"])
    _on_record(change, audit.SYSTEM, "instance.schedule.refuse", {"id": change.id, "problem": error.detail}, clock)


def _end(change: ScheduledChange, state: ScheduledState, clock: Clock) -> None:
    change.state, change.ended_at = state, clock.now()
    change.save(update_fields=["state", "operation_id", "problem", "ended_at"])


def _on_record(change: ScheduledChange, actor: str, action: str, detail: dict[str, Any], clock: Clock) -> None:
    audit.record(
        organisation=change.organisation,
        actor=actor,
        action=action,
        target=change.instance_id,
        detail=detail,
        clock=clock,
    )
