"""From where a key may be used, and when it was used last: looked at on every request, written seldom."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Q

from controlplane.accounts.models import AccessKey, ApiKey
from controlplane.core import audit
from controlplane.core.addresses import is_within
from controlplane.core.origin import Origin, current

if TYPE_CHECKING:
    from datetime import datetime

LAST_USED_PRECISION = timedelta(minutes=1)
"""How old `last_used_at` may be: writing it on every request would make every read a write."""
REFUSALS_EVERY = timedelta(hours=1)
"""One entry in the audit trail for all that come meanwhile: a thief's loop must not fill it."""
LONGEST_ADDRESS = 64


def is_from(key: ApiKey, address: str) -> bool:
    """Whether the key may be used from there. An address that nobody can read is on no list."""
    if key.addresses is None:
        return True
    try:
        return is_within(address, map(ip_network, key.addresses))
    except ValueError:
        return False


def use_note(key: ApiKey | AccessKey, address: str, now: datetime) -> None:
    """It was used now, from there."""
    if key.last_used_at is not None and now - key.last_used_at <= LAST_USED_PRECISION:
        return
    written: dict[str, Any] = {"last_used_at": now}
    if isinstance(key, ApiKey):
        written |= {"last_used_address": address[:LONGEST_ADDRESS]}
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - LAST_USED_PRECISION)  # of many requests at once one writes
    type(key).objects.for_organisation(key.organisation).filter(stale, pk=key.pk).update(**written)


@transaction.atomic
def use_refused(key: ApiKey, address: str, now: datetime) -> None:
    """Somebody has it who is not where it belongs: its organisation reads that."""
    lately = Q(refused_at=None) | Q(refused_at__lte=now - REFUSALS_EVERY)
    rows = ApiKey.objects.for_organisation(key.organisation).filter(lately, pk=key.pk)
    if rows.update(refused_at=now, refused_address=address[:LONGEST_ADDRESS]):
        audit.record(
            organisation=key.organisation,
            actor=key.owner_name,
            action="api_key.refused",
            target=key.pk,
            detail={"reason": "address_not_allowed"},
            origin=Origin(current().request_id, address, key.pk),
            at=now,
        )
