"""What happens to an account stands in the audit trail of each organisation that its person belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controlplane.core import audit
from controlplane.tenants.selectors import organisation_list

if TYPE_CHECKING:
    from controlplane.accounts.models import User


def record_everywhere(user: User, action: str, *, actor: str = "", **detail: Any) -> None:
    """`actor`: who did it, where it was not the person; `detail` must hold no secret."""
    for organisation in organisation_list(user=user):
        audit.record(
            organisation=organisation, actor=actor or user.email, action=action, target=user.email, detail=detail
        )
