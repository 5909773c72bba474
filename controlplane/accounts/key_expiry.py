"""Owners of keys that expire are told a week before, once; of a service account's key the owners of the organisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q

from controlplane.accounts.identity import letters, links
from controlplane.accounts.key_rules import TOLD_BEFORE
from controlplane.accounts.models import AccessKey, ApiKey
from controlplane.accounts.owners import owners_write
from controlplane.mail import outbox

if TYPE_CHECKING:
    from datetime import datetime

AT_ONCE = 500


def expiries_tell(*, now: datetime) -> int:
    """How many mails were written. Where the service sends none, nobody counts as told."""
    if not outbox.is_on():
        return 0
    rows = ApiKey.objects.unscoped("owners of all organisations are told")
    soon = rows.filter(revoked_at=None, expiry_told_at=None, expires_at__gt=now, expires_at__lte=now + TOLD_BEFORE)
    of_somebody = Q(user__is_active=True) | Q(service_account__isnull=False)  # keys of deleted ones are revoked
    rows = soon.filter(of_somebody).select_related("user", "service_account", "organisation")
    found = list(rows.filter(organisation__deletion_asked_at=None).order_by("expires_at")[:AT_ONCE])
    return sum(_told(key, now) for key in found) + _access_expiries_tell(now)


def _access_expiries_tell(now: datetime) -> int:
    """The same of access keys."""
    rows = AccessKey.objects.unscoped("owners of all organisations are told").filter(
        revoked_at=None,
        expiry_told_at=None,
        expires_at__gt=now,
        expires_at__lte=now + TOLD_BEFORE,
        user__is_active=True,
        organisation__deletion_asked_at=None,
    )
    return sum(_access_told(key, now) for key in list(rows.select_related("user").order_by("expires_at")[:AT_ONCE]))


@transaction.atomic
def _access_told(key: AccessKey, now: datetime) -> bool:
    rows = AccessKey.objects.unscoped("the same").filter(pk=key.pk, expiry_told_at=None, revoked_at=None)
    if not rows.update(expiry_told_at=now) or key.expires_at is None:
        return False
    letter = letters.access_key_expiring(secret_id=key.secret_id, expires_at=key.expires_at)
    links.letter_write(letter=letter, address=key.user.email, language=key.user.language, now=now)
    return True


@transaction.atomic
def _told(key: ApiKey, now: datetime) -> bool:
    """Of two workers one writes the mail."""
    rows = ApiKey.objects.unscoped("the same").filter(pk=key.pk, expiry_told_at=None, revoked_at=None)
    if not rows.update(expiry_told_at=now) or key.expires_at is None:
        return False
    if key.service_account is not None:
        letter = letters.service_account_key_expiring(
            prefix=key.prefix, service_account_id=key.service_account.id, expires_at=key.expires_at
        )
        owners_write(organisation=key.organisation, compose=lambda _is_read: letter, at=now)
        return True
    if key.user is None:
        return False
    letter = letters.api_key_expiring(prefix=key.prefix, expires_at=key.expires_at)
    links.letter_write(letter=letter, address=key.user.email, language=key.user.language, now=now)
    return True
