"""What happens to an account stands in the audit trail of each organisation that its person belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controlplane.core import audit
from controlplane.tenants.selectors import organisation_list

if TYPE_CHECKING:
    from datetime import datetime

    from controlplane.accounts.models import User
    from controlplane.core.origin import Origin


def record_everywhere(
    user: User,
    action: str,
    *,
    actor: str = "",
    origin: Origin | None = None,
    at: datetime | None = None,
    **detail: Any,
) -> None:
    """`actor`: who did it, where it was not the person. `origin` and `at`: of the request, where that is over.

    `detail` must hold no secret.
    """
    for organisation in organisation_list(user=user):
        audit.record(
            organisation=organisation,
            actor=actor or user.email,
            action=action,
            target=user.email,
            detail=detail,
            origin=origin,
            at=at,
        )
