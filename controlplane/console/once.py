"""A form that makes something makes it once: by a double click, and by a reload after a time-out, it is sent twice.

The page has a token in the form (`OnceForm`), which is a key as `Idempotency-Key` is (idempotency/services.py), of whoever sends
it. What is sent again under the same token with the same fields is not done again: the view leads to what the first one made. One
that comes while the first is under way waits for it, since a browser shows the last answer alone. What was refused may be mended
and sent again under its token. A form without a token, or with one that is none, is carried out as it is.
"""

from __future__ import annotations

from threading import BoundedSemaphore
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.contrib import messages

from controlplane.console.proof import NOT_CARRIED
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import ConcurrentChange, Conflict
from controlplane.idempotency import services

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest

    from controlplane.accounts.selectors import Caller
    from controlplane.console.forms.base import OnceForm

EVERY_S, MOST_LOOKS = 0.2, 50
"""How one waits for the first: 10 s at most. Most are over within a second."""
WAITING = BoundedSemaphore(1)
"""That one waits: it holds one of the few threads of the web process, which all tenants' pages and calls are answered by."""
UNDER_WAY = "idempotency_in_progress"
NOT_CERTAIN = {
    "idempotency_key_reused": "this form was sent before with other values: look at what it has made before you send it again",
    "idempotency_other_role": "this form was sent before, when you had another role: look at what it has made before you send it "
    "again",
    "idempotency_outcome_unknown": "this form was sent before and cut off, and whether it was carried out is not known: look "
    "before you send it again",
}


def made_once(request: HttpRequest, caller: Caller, form: OnceForm, make: Callable[[], str]) -> str:
    """What `make` returns, now or when the form was sent first; `form` is valid.

    Raises what `make` raises; ConcurrentChange, and Conflict where it is not certain what became of the first: then the form has
    another token, so that whoever has looked can send it again.
    """
    token = form.cleaned_data["once"]
    if token is None:
        return make()
    sent = [(name, value) for name, values in request.POST.lists() if name not in NOT_CARRIED for value in values]
    asked = {
        "caller": caller,
        "key": services.key_digest(f"once:{token}"),
        "request": services.request_digest("POST", request.path, urlencode(sent).encode()),
        "change": make,
    }
    try:
        made, is_repeated = _waited_for(lambda: services.call_once(**asked))
    except Conflict as error:
        if error.code in NOT_CERTAIN:
            form.begin_anew()
            raise Conflict(NOT_CERTAIN[error.code], code=error.code) from error
        raise
    if is_repeated:
        messages.info(request, "The form was sent more than once; it was carried out once.")
    return made


def _waited_for(call: Callable[[], tuple[str, bool]]) -> tuple[str, bool]:
    """What it returns once no other one is under way; where somebody waits already, it is asked once.

    Raises what it raises, ConcurrentChange.
    """
    found = _unless_under_way(call)
    if found is None and WAITING.acquire(blocking=False):
        try:
            for _ in range(MOST_LOOKS):
                SYSTEM_CLOCK.sleep(EVERY_S)
                found = _unless_under_way(call)
                if found is not None:
                    break
        finally:
            WAITING.release()
    if found is None:
        raise ConcurrentChange(
            "this form was sent before and is still being carried out: send it again in a moment to see what it has made",
            code=UNDER_WAY,
        )
    return found


def _unless_under_way(call: Callable[[], tuple[str, bool]]) -> tuple[str, bool] | None:
    try:
        return call()
    except ConcurrentChange as error:
        if error.code != UNDER_WAY:
            raise
        return None
