"""Calls that are refused without an `Idempotency-Key`.

Of most calls the second one changes nothing, or is refused: the name is taken, the member is there. Of a few it cannot be told
from another one that is meant. Where that is money, the view names its methods in `keyed_methods`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.core.errors import Invalid

if TYPE_CHECKING:
    from rest_framework.request import Request

HEADER = "Idempotency-Key"


def is_required(view: object, method: str | None) -> bool:
    """Whether the view refuses the method without one."""
    return method in getattr(view, "keyed_methods", ())


def require(request: Request, view: object) -> None:
    """After the body was looked at, so that all that is wrong with it is said first. Raises Invalid."""
    if is_required(view, request.method) and HEADER not in request.headers:
        raise Invalid(
            f"{HEADER}: must be sent with this call: without one, a call that is sent again would be carried out again"
        )
