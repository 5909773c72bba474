"""What operators of the service have looked at of an organisation: an entry in its audit trail, one an hour for each object.

Lists that show something of everybody (the fleet, maps of heat) are not looking at an organisation, and leave none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.core.audit_folds import record_once
from controlplane.core.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from controlplane.core.scope import Tenant

VIEWED = "staff.viewed"


def view_note(*, organisation: Tenant, by: str, looked_at: str, place: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """`by`: the operator's address; `looked_at`: the id of what was shown; `place`: the first page or call that did."""
    record_once(
        organisation=organisation,
        actor=by,
        action=VIEWED,
        target=looked_at,
        detail={"place": place},
        clock=clock,
    )
