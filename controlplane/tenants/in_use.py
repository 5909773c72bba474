"""Whether an organisation is in use: one that is marked for deletion is closed to everybody, and nothing of it is changed.

Whoever comes is refused where they are known by a key or a session. A request that was let in just before the mark was set is
refused here: what could be in the way of a deletion, or would give somebody a way in, is written under this lock. Keys alone are
not: they are refused whenever they were made.

Who needs several locks of an organisation takes them in this order, or two of them wait for each other: the organisation, its
provider of single sign-on, memberships, links to the provider, keys. Under the organisation's lock memberships may be locked one
by one; whoever does not have it locks one of each organisation, those of several by `pk`. A purchase has its own rows before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.core.errors import Conflict
from controlplane.tenants.models import Organisation

if TYPE_CHECKING:
    from controlplane.core.scope import Tenant

DELETING = "organisation_deleting"
"""The code of every refusal for this reason."""


def check(organisation: Organisation) -> None:
    """Raises Conflict where it is marked for deletion, or deleted."""
    if organisation.deleted_at is not None:
        raise Conflict("the organisation was deleted", code=DELETING)
    if not organisation.is_in_use:
        raise Conflict("the organisation is being deleted", code=DELETING)


def locked(organisation: Tenant) -> Organisation:
    """The row as it is; until this transaction ends, nobody else changes it or marks it. Raises Conflict as `check` does.

    Rows that refer to it can be written meanwhile: only who takes this lock waits.
    """
    row = locked_any(organisation)
    check(row)
    return row


def locked_any(organisation: Tenant) -> Organisation:
    """The same, whether it is in use or not."""
    return Organisation.objects.select_for_update(no_key=True).get(pk=organisation.pk)
