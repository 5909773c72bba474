"""What the clock does with organisations that are marked for deletion: owners are told a day before, then what may go goes.

Each in a transaction of its own, under the lock on its row: an owner who takes it back at that moment comes before or after it.
One that cannot be looked after is no obstacle to the others. Whatever is in the way all the same, such as an operation that an
operator has begun meanwhile, is waited for: owners are told once, and the log of the service once a day.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.organisations import letters
from controlplane.organisations.kept import EMPTIED, GOES
from controlplane.organisations.obstacles import obstacles
from controlplane.organisations.telling import REMOVE, owners_tell
from controlplane.tenants import in_use
from controlplane.tenants.models import Organisation

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from django.db.models import Model, QuerySet

    from controlplane.organisations.obstacles import Obstacle

LOG = logging.getLogger(__name__)
FORETOLD = timedelta(hours=24)
"""So long before the end owners are told again."""
AT_ONCE = 100
"""Organisations of which something is done in a round."""
AGAIN = timedelta(hours=24)
"""How often the log says that something is in the way."""


def look_after(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Tell owners of ends that are near, and delete what is due; how many were deleted."""
    now = clock.now()
    marked = Organisation.objects.filter(deleted_at=None, deletion_asked_at__isnull=False)
    _each(
        marked.filter(deletion_foretold_at=None, deletes_at__gt=now, deletes_at__lte=now + FORETOLD), _foretell, clock
    )
    return _each(marked.filter(deletes_at__lte=now), _remove, clock)


def _each(rows: QuerySet[Organisation], act: Callable[[Organisation, Clock], bool], clock: Clock) -> int:
    """So many a round; those that nothing can be done for keep no others from their turn."""
    done = 0
    for row in list(rows.order_by("deletes_at", "pk")):
        if done == AT_ONCE:
            break
        try:
            done += act(row, clock)
        except Exception:
            LOG.exception("the end of %s", row.pk)
    return done


@transaction.atomic
def _foretell(organisation: Organisation, clock: Clock) -> bool:
    row, now = in_use.locked_any(organisation), clock.now()
    ends = row.deletes_at
    if ends is None or row.deletion_foretold_at is not None or not now < ends <= now + FORETOLD:
        return False  # another worker was faster, or it was taken back since
    row.deletion_foretold_at = now
    row.save(update_fields=["deletion_foretold_at"])
    owners_tell(row, lambda about: letters.near_its_end(about, until=ends), now)
    return True


@transaction.atomic
def _remove(organisation: Organisation, clock: Clock) -> bool:
    row, now = in_use.locked_any(organisation), clock.now()
    if row.deletes_at is None or row.deletes_at > now or row.deleted_at is not None:
        return False
    in_the_way = obstacles(organisation=row, now=now)
    if in_the_way:
        _held_up(row, row.deletes_at, in_the_way, now)
        return False
    owners_tell(row, lambda about: letters.deleted(about, at=now), now)
    gone = {model.__name__: _delete(model, row) for model in GOES}
    for model, members in EMPTIED:
        model._base_manager.filter(organisation=row).update(**members)  # noqa: SLF001  # the manager without a scope of a model
    row.deleted_at = now
    row.save(update_fields=["deleted_at"])
    detail = {"name": row.name, "gone": {name: count for name, count in gone.items() if count}}
    audit.record(organisation=row, actor=audit.SYSTEM, action=REMOVE, target=row.id, detail=detail, clock=clock)
    LOG.info("%s is deleted", row.pk)
    return True


def _held_up(row: Organisation, ends: datetime, in_the_way: list[Obstacle], now: datetime) -> None:
    """Say so: `deletion_foretold_at` is before the end until that was said once."""
    told = row.deletion_foretold_at
    is_first = told is None or told < ends
    if not is_first and told is not None and now < told + AGAIN:
        return
    LOG.warning("%s is not deleted yet: %s", row.pk, "; ".join(each.detail for each in in_the_way))
    if is_first:
        owners_tell(row, letters.held_up, now)
    row.deletion_foretold_at = now
    row.save(update_fields=["deletion_foretold_at"])


def _delete(model: type[Model], organisation: Organisation) -> int:
    """All rows of one kind; how many."""
    rows = model._base_manager.filter(organisation=organisation)  # noqa: SLF001  # the same
    _, by_model = rows.delete()
    return by_model.get(model._meta.label, 0)  # noqa: SLF001  # Django's own name for it
