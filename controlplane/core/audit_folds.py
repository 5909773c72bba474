"""Entries of the audit trail about what can be repeated at will: one an hour of what is alike, and so many an hour altogether.

Whoever looks, or is refused, can do so a thousand times a second. So an entry is written for the first of what is alike, and the
row that remembers it (`AuditFold`) is read and not written for all that follow within the hour. How many different ones there may
be is bounded too, of one actor and of all together: of those beyond that one entry says that there were more. An actor's own
bound is the lower one, so that nobody hides others by filling the log.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.models import AuditEntry, AuditFold
from controlplane.core.origin import current

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.core.origin import Origin
    from controlplane.core.scope import Tenant

TOGETHER = timedelta(hours=1)
_HEAD = "head "
"""Of each family a row of an organisation that is locked by whoever writes: what is counted is counted by one at a time. Of each,
since what Kafka clients change is written in large portions, which nobody in front of a page is to wait for."""


@dataclass(frozen=True, slots=True)
class Most:
    """How many different entries of an action an organisation's log gets within the hour."""

    of_actor: int
    of_all: int


def record_once(
    *,
    organisation: Tenant,
    actor: str,
    action: str,
    target: str,
    detail: dict[str, Any],
    alike: Sequence[str] = (),
    most: Most | None = None,
    counted_as: str = "",
    origin: Origin | None = None,
    at: datetime | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> AuditEntry | None:
    """The entry; None: one of the same actor, key, action, target and `alike` was written within the hour, or too many others.

    Of those that are too many, one entry with the target "more" says so. `counted_as`: of what there are so many at most, where
    that is not the action. `detail` must hold no secret. `origin` and `at` as in `audit.record`.
    """
    origin = origin or current()
    family, now, whose = counted_as or action, clock.now(), _digest(actor, origin.key)
    digest = _digest(actor, origin.key, action, target, *alike)
    full = (_digest("full", family, whose), _digest("full", family))
    fresh = AuditFold.objects.for_organisation(organisation).filter(at__gt=now - TOGETHER)
    if fresh.filter(digest__in=(digest, *full)).exists():
        return None
    with transaction.atomic():
        _locked(organisation, family, now)
        if fresh.filter(digest__in=(digest, *full)).exists():  # by somebody who was faster
            return None
        _forget(organisation, now)
        exceeded = _exceeded(fresh.filter(action=family), whose, most)
        if exceeded is not None:
            is_all, number = exceeded
            digest, actor = full[is_all], audit.SYSTEM if is_all else actor
            target, detail = "more", {"written_within_the_hour": number}
        AuditFold(organisation_id=organisation.pk, digest=digest, action=family, whose=whose, at=now).save(
            force_insert=True
        )
        return audit.record(
            organisation=organisation,
            actor=actor,
            action=action,
            target=target,
            detail=detail,
            origin=origin,
            at=at or now,
        )


def _exceeded(written: QuerySet[AuditFold], whose: str, most: Most | None) -> tuple[bool, int] | None:
    """Whether it is the bound of all, or else the actor's, and how large it is; None: there is room."""
    if most is None:
        return None
    if written.count() >= most.of_all:
        return True, most.of_all
    if written.filter(whose=whose).count() >= most.of_actor:
        return False, most.of_actor
    return None


def _locked(organisation: Tenant, family: str, now: datetime) -> None:
    """Until this transaction ends nobody else writes a fold of the organisation and the family."""
    rows, head = AuditFold.objects.for_organisation(organisation), f"{_HEAD}{family}"
    rows.get_or_create(digest=head, defaults={"organisation_id": organisation.pk, "action": "", "whose": "", "at": now})
    rows.select_for_update().get(digest=head)


def _forget(organisation: Tenant, now: datetime) -> None:
    """What is older than the hour, so that there are never more rows than entries within it."""
    rows = AuditFold.objects.for_organisation(organisation).filter(at__lte=now - TOGETHER)
    rows.exclude(digest__startswith=_HEAD).delete()


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
