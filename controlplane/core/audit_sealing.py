"""Entries of the audit trail become links of their organisation's chain, and the chain is followed: audit_chain.py has the rule.

======================  ==========================================================================================
an entry is written     in the transaction of what it tells, without a number: no two changes wait for each other
that is committed       the same process chains whatever of the organisation is not chained, in a transaction of its own
it died before that     the worker does it within seconds
two do it at once       one waits for the row of the chain's end, and finds nothing left. That no number is given twice, the
                        database sees to
======================  ==========================================================================================

So the order of the chain is the order of commits, as near as it can be known, and not that of ids. Sealing within the transaction
of the change was rejected: it would hold the row of the chain's end until the commit, in whatever order with other locks, and two
changes of one organisation would wait for each other, or for ever.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import DatabaseError, transaction
from django.db.models import Max

from controlplane.core.audit_chain import FIRST, Break, Link, chained, ends_elsewhere, followed, missing, not_kept
from controlplane.core.errors import Invalid
from controlplane.core.models import AuditChain, AuditEntry

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from controlplane.core.scope import Tenant

LOG = logging.getLogger(__name__)
AT_ONCE = 500
MOST_FOLLOWED = 1_000
"""Entries of one answer: some ten milliseconds, as much as another page costs."""
MOST_ORGANISATIONS = 1_000
_MACHINERY = "the chain is each organisation's own, and sealing serves all"


@dataclass(frozen=True, slots=True)
class Verification:
    """How far a chain is whole."""

    checked: int  # entries that were computed again
    last: Link  # the last of those that fit
    newest: int  # the number at which the chain ends
    waiting: int  # entries that are not chained yet
    broken: Break | None

    @property
    def first(self) -> int:
        """The number of the first entry that was."""
        return self.last.number - self.checked + 1

    @property
    def following(self) -> int | None:
        """The number after which it goes on; None: the chain is at its end, or broken."""
        return self.last.number if self.broken is None and self.last.number < self.newest else None


def extend(organisation_id: str) -> int:
    """Chain what is not chained yet; how many entries."""
    total = 0
    while _unchained(organisation_id).exists():
        done = _extend_some(organisation_id)
        total += done
        if done < AT_ONCE:
            break
    return total


def extend_all() -> int:
    """The worker's part: what those left who died between commit and sealing. One broken chain keeps no other waiting."""
    rows = AuditEntry.objects.unscoped(_MACHINERY).filter(number=None).order_by("organisation_id")
    total = 0
    for organisation_id in list(rows.values_list("organisation_id", flat=True).distinct()[:MOST_ORGANISATIONS]):
        try:
            total += extend(organisation_id)
        except DatabaseError:
            LOG.exception("the audit trail of %s cannot be chained: see manage.py audit_chain", organisation_id)
    return total


def verify(*, organisation: Tenant, after: int = 0, kept_hash: str = "") -> Verification:
    """Follow the chain behind the entry of this number, 0: from the first on; at most MOST_FOLLOWED entries.

    `kept_hash`: what the caller knows that entry's hash to be. The entry itself is computed again as well: were it, or the
    hash of the one before it, another than at that time, so would its own be. Raises Invalid.
    """
    rows = AuditEntry.objects.for_organisation(organisation)
    # In this order: the end of the chain is written with the entries, so that it is never before the newest that was seen.
    newest_seen = rows.aggregate(newest=Max("number"))["newest"] or 0
    head = _head(organisation)
    waiting = rows.filter(number=None).count()
    start, broken = _start(rows, after, kept_hash, head)
    if broken is not None or start is None:
        return Verification(0, Link(max(after - 1, 0)), head.number, waiting, broken)
    behind = rows.filter(number__gt=after, number__lte=head.number).order_by("number")[:MOST_FOLLOWED]
    last, broken = followed(behind.iterator(1_000), start)
    if broken is None and (last.number >= head.number or last.number - start.number < MOST_FOLLOWED):
        broken = _end_problem(last, head, newest_seen)
    return Verification(last.number - start.number, last, head.number, waiting, broken)


def _start(rows: QuerySet[AuditEntry], after: int, kept_hash: str, head: Link) -> tuple[Link | None, Break | None]:
    if after == 0:
        if kept_hash:
            raise Invalid.field("hash", "goes with `after`")
        return Link(), None
    entry = rows.filter(number=after).first()
    if entry is None:
        if after > head.number and not kept_hash:
            raise Invalid.field("after", f"the newest entry is {head.number}")
        return None, missing(after)
    if not kept_hash:
        return Link(after, entry.hash), None
    if entry.hash != kept_hash:
        return None, not_kept(after, entry.pk)
    before = FIRST if after == 1 else rows.filter(number=after - 1).values_list("hash", flat=True).first()
    if before is None:
        return None, missing(after - 1)
    _, broken = followed([entry], Link(after - 1, before))
    return Link(after, entry.hash), broken


def _end_problem(last: Link, head: Link, newest_seen: int) -> Break | None:
    """Of a chain that was followed to where no entry is behind."""
    if last.number < head.number:
        return missing(last.number + 1)
    if newest_seen > head.number or last.hash != head.hash:
        return ends_elsewhere(head.number)
    return None


@transaction.atomic
def _extend_some(organisation_id: str) -> int:
    chain = _locked(organisation_id)
    found = list(_unchained(organisation_id).order_by("pk")[:AT_ONCE])
    last = chained(found, Link(chain.number, chain.hash))
    AuditEntry.objects.unscoped(_MACHINERY).bulk_update(found, ["number", "hash"])
    AuditChain.objects.unscoped(_MACHINERY).filter(pk=chain.pk).update(number=last.number, hash=last.hash)
    return len(found)


def _locked(organisation_id: str) -> AuditChain:
    """The end of the chain, which nobody else moves before this transaction is over."""
    rows = AuditChain.objects.unscoped(_MACHINERY)
    rows.get_or_create(organisation_id=organisation_id, defaults={"number": 0, "hash": FIRST})
    return rows.select_for_update().get(organisation_id=organisation_id)


def _unchained(organisation_id: str) -> QuerySet[AuditEntry]:
    return AuditEntry.objects.unscoped(_MACHINERY).filter(organisation_id=organisation_id, number=None)


def _head(organisation: Tenant) -> Link:
    chain = AuditChain.objects.for_organisation(organisation).first()
    return Link(chain.number, chain.hash) if chain else Link()
