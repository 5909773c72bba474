"""Claiming a key, keeping the answer, forgetting both after 24 hours.

=======================  =================================================================================================
a call comes             the insertion of its row is the claim: of several at once, the unique constraint lets one through
it succeeds (2xx)        the answer is kept, and told to whoever repeats the call
it is refused or fails   nothing was changed, or the call itself is safe to repeat: the claim is given back
its server dies          nobody knows whether the change was committed. The claim stays, and a repetition is told so, rather
                         than that something is made and billed twice
=======================  =================================================================================================

`call_once` is all of it around one function: forms of the console (console/once.py), and what is signed (ckafka_api/replay.py).

A key is its caller's own: a person's or a service account's in an organisation, with any of their API keys. The same key for
another request is a mistake of the client, and refused.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from django.db import DatabaseError, IntegrityError, transaction
from django.utils.crypto import salted_hmac

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ConcurrentChange, Conflict, Invalid
from controlplane.idempotency.models import RepeatableCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from controlplane.accounts.selectors import Caller

LOG = logging.getLogger(__name__)
KEPT = timedelta(hours=24)
UNDER_WAY_AT_MOST = timedelta(minutes=1)
"""Longer than any call takes; a claim that is older was left by a server that died."""
LONGEST_KEY = 255


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered to the first call."""

    status: int
    body: str
    etag: str = ""  # empty: it had none


def key_digest(text: str) -> str:
    """What is kept of a key. Raises Invalid."""
    if not 0 < len(text) <= LONGEST_KEY or not all("!" <= letter <= "~" for letter in text):
        raise Invalid(f"Idempotency-Key: must be 1 to {LONGEST_KEY} visible ASCII characters, without spaces")
    return sha256(text.encode()).hexdigest()


def request_digest(method: str, address: str, body: bytes) -> str:
    """What two requests have in common that are the same. Keyed: a body may hold a password, which nobody shall guess by it."""
    request = b"\0".join((method.encode(), address.encode(errors="surrogateescape"), body))
    return salted_hmac("controlplane.idempotency", request, algorithm="sha256").hexdigest()


def call_begin(*, caller: Caller, key: str, request: str, clock: Clock = SYSTEM_CLOCK) -> RepeatableCall | Answer:
    """The claim on a key, or what was answered under it. Raises Conflict, ConcurrentChange."""
    whose = {"user": caller.user, "service_account": caller.service_account}
    rows = RepeatableCall.objects.for_organisation(caller.organisation).filter(**whose, key=key)
    now = clock.now()
    rows.filter(created_at__lt=now - KEPT).delete()
    found = rows.first()
    if found is None:
        row = {"key": key, "request": request, "role": role_of(caller), "created_at": now}
        claim = RepeatableCall(organisation=caller.organisation, **whose, **row)
        try:
            with transaction.atomic():
                claim.save(force_insert=True)
        except IntegrityError:
            found = rows.first()
        else:
            return claim
    if found is None:
        raise _under_way()  # it was given back this moment
    return _repeated(found, request, role_of(caller), clock)


def role_of(caller: Caller) -> str:
    """What decides, beside the limits of a key, which calls are allowed."""
    return str(caller.role) if caller.custom_role is None else caller.custom_role.pk


def _repeated(found: RepeatableCall, request: str, role: str, clock: Clock) -> Answer:
    if found.request != request:
        raise Conflict("this Idempotency-Key was used for another request", code="idempotency_key_reused")
    if found.role not in {"", role}:  # the answer was for whoever had that role; made again, it could be done twice
        raise Conflict(
            "the first call with this Idempotency-Key was made in another role than you have now: look what became of it",
            code="idempotency_other_role",
        )
    if found.status is None:
        if clock.now() - found.created_at < UNDER_WAY_AT_MOST:
            raise _under_way()
        raise Conflict(
            "the first call with this Idempotency-Key was cut off, and whether it was carried out is not known: look before "
            "you make it again under another key",
            code="idempotency_outcome_unknown",
        )
    if not found.is_kept:
        raise Conflict(
            "this was done by the first call with this Idempotency-Key; its answer holds a secret and was not kept",
            code="idempotency_answer_not_kept",
        )
    return Answer(found.status, found.body, found.etag)


def _under_way() -> ConcurrentChange:
    return ConcurrentChange(
        "the first call with this Idempotency-Key is still under way; repeat this one in a moment",
        code="idempotency_in_progress",
    )


def call_end(*, claim: RepeatableCall, status: int, body: str, is_secret: bool, etag: str = "") -> None:
    """The call has succeeded: keep its answer."""
    kept = "" if is_secret else body
    with _answered_in_any_case():
        _row(claim).update(status=status, body=kept, etag=etag, is_kept=not is_secret)


def call_give_back(*, claim: RepeatableCall) -> None:
    """The call was refused: it may be made again under its key."""
    with _answered_in_any_case():
        _row(claim).delete()


def call_once(
    *, caller: Caller, key: str, request: str, change: Callable[[], str], clock: Clock = SYSTEM_CLOCK
) -> tuple[str, bool]:
    """What `change` returns, and False; to a repetition what it returned then, and True.

    Raises what `change` raises, which gives the claim back; Conflict, ConcurrentChange.
    """
    claim = call_begin(caller=caller, key=key, request=request, clock=clock)
    if isinstance(claim, Answer):
        return claim.body, True
    try:
        made = change()
    except Exception:
        call_give_back(claim=claim)
        raise
    call_end(claim=claim, status=200, body=made, is_secret=False)
    return made, False


@contextmanager
def _answered_in_any_case() -> Iterator[None]:
    """What was done is told though the database can keep nothing of it: the claim stays, as that of a call that was cut off."""
    try:
        yield
    except DatabaseError:
        LOG.exception("the answer under a key could not be kept; repetitions will be told that it is not known")


def calls_purge(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Forget calls older than 24 hours; says how many there were."""
    rows = RepeatableCall.objects.unscoped("everyone's are kept equally long")
    return rows.filter(created_at__lt=clock.now() - KEPT).delete()[0]


def _row(claim: RepeatableCall):  # type: ignore[no-untyped-def]  # noqa: ANN202  # a QuerySet
    return RepeatableCall.objects.unscoped("the claim is the caller's").filter(pk=claim.pk)
