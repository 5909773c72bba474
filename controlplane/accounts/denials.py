"""Who was refused something in an organisation: an entry in its audit trail, in the one that the caller is of.

Told are refusals that are the caller's own doing: a role, a scope, an instance that a key is not for, what owners alone decide.
What another organisation has is missing, here as in the answer, and that one is told nothing. Of one actor, key, way and object
there is one entry an hour; of different ones at most `MOST` (core/audit_folds.py), so that nobody fills the log.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError

from controlplane.accounts.selectors import Caller
from controlplane.api import problems
from controlplane.core.audit_folds import Most, record_once
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Forbidden, NotForCaller, SluiceError

if TYPE_CHECKING:
    from django.http import HttpRequest
    from rest_framework.response import Response

LOG = logging.getLogger(__name__)
DENIED = "access.denied"
MOST = Most(of_actor=50, of_all=200)
OF_ACCOUNT = frozenset({"second_factor_needed", "address_not_confirmed", "sso_needed"})
"""What an account or a session lacks: it is refused everything alike, and told once, not once of each page."""
LONGEST_REASON = 300
LONGEST_TARGET = 320


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's hook: what `problems` answers, and a refusal goes on record. The answer is the same whether that succeeds or not."""
    answer = problems.exception_handler(error, context)  # first: it ends a transaction that the error has broken
    request = context["request"]
    # What authentication has found; to ask for `request.user` would authenticate once more where that was refused.
    caller = getattr(request, "_user", None)
    if isinstance(caller, Caller):
        denial_note(caller, error, way=str(request.method), target=place_of(request))
    return answer


def denial_note(caller: Caller, error: Exception, *, way: str, target: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Write down that the caller was refused this, if that is what the error says."""
    if not isinstance(error, Forbidden | NotForCaller):
        return
    lacks = error.code in OF_ACCOUNT
    try:
        record_once(
            organisation=caller.organisation,
            actor=caller.actor,
            action=DENIED,
            target=caller.organisation.pk if lacks else target[:LONGEST_TARGET],
            detail={"method": way, "code": _code(error), "reason": error.detail[:LONGEST_REASON]},
            alike=() if lacks else (way,),
            most=MOST,
            clock=clock,
        )
    except DatabaseError:
        LOG.exception("a denial is not in the audit trail of %s", caller.organisation.pk)


def _code(error: SluiceError) -> str:
    """Why: what the caller is not told, its organisation is."""
    return "instances_limited" if isinstance(error, NotForCaller) else error.code


def place_of(request: HttpRequest) -> str:
    """What was asked for: the address without what is asked about it."""
    return request.path
