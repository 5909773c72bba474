"""The outbox: a mail is written in the transaction of what it is about, and a worker sends it; no request waits for SMTP.

======================  ==========================================================================================
a mail is written       with what it is about: where that is rolled back, there is no mail
it is claimed           an update from `waiting` to `sending`, which of two workers one wins
it is sent              outside of any transaction
the server refuses it   again after a pause that grows from 10 s to an hour, for 24 hours in all
a worker dies           whether the mail went out is not known. It is not sent again: whoever waits for a link can ask
                        for another, and nobody gets the same mail twice. After the claim it counts as failed
======================  ==========================================================================================

Alarms have an outbox of their own, since theirs is the other choice: a message must arrive, if need be twice.
"""

from __future__ import annotations

import json
import logging
import random
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import F

from controlplane.core import ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.core.sealed import opened, sealed
from controlplane.mail import sender
from controlplane.mail.models import Mail, MailState
from controlplane.mail.sender import MailProblem

if TYPE_CHECKING:
    from datetime import datetime

LOG = logging.getLogger(__name__)
FIRST_PAUSE_S, LONGEST_PAUSE_S = 10, 3600
KEEPS_TRYING = timedelta(hours=24)
CLAIM = timedelta(minutes=5)
"""Longer than one mail takes: the server has 5 s for each answer."""
KEPT = timedelta(days=30)
ROUND_S = 25.0
PURGED_AT_ONCE = 1_000


def is_on() -> bool:
    """Whether the service writes to people: a mail server is named, and the address that links begin with."""
    return sender.is_installed() and bool(settings.ENVIRONMENT.console_url)


def mail_write(*, address: str, subject: str, body: str, at: datetime) -> Mail:
    """A mail that is due at once, in the caller's transaction. Raises Unavailable where it cannot be sealed."""
    mail_id = ids.mail_id(random.SystemRandom())
    text = json.dumps({"subject": subject, "body": body}).encode()
    mail = Mail(
        id=mail_id, address=address, sealed=sealed(Mail, "sealed", text, id=mail_id), next_attempt_at=at, created_at=at
    )
    mail.save(force_insert=True)
    return mail


def send_due(*, clock: Clock = SYSTEM_CLOCK, until_s: float = ROUND_S) -> int:
    """Send what is due, the oldest first; how many were tried."""
    _give_up(clock.now())
    done, end = 0, time.monotonic() + until_s
    while time.monotonic() < end:
        mail = _claim(clock.now())
        if mail is None:
            break
        done += 1
        problem = _attempt(mail)
        _record(mail, problem, clock.now())
    return done


def purge(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """What ended a month ago goes, a bounded number of rows at a time; how many."""
    ended = Mail.objects.filter(created_at__lt=clock.now() - KEPT, state__in=(MailState.SENT, MailState.FAILED))
    keys = list(ended.order_by("created_at").values_list("pk", flat=True)[:PURGED_AT_ONCE])
    Mail.objects.filter(pk__in=keys).delete()
    return len(keys)


def pause_s(attempts: int) -> int:
    """Between the attempt of this number, from 1, and the next."""
    return min(FIRST_PAUSE_S << min(attempts - 1, 16), LONGEST_PAUSE_S)


def _give_up(now: datetime) -> None:
    ended = {"state": MailState.FAILED, "ended_at": now, "sealed": b""}
    Mail.objects.filter(state=MailState.WAITING, created_at__lte=now - KEEPS_TRYING).update(**ended)
    # Of these nobody will ever say what became of them.
    lost = Mail.objects.filter(state=MailState.SENDING, next_attempt_at__lte=now)
    lost.update(error="the worker ended while it sent this: it may have gone out", **ended)


def _claim(now: datetime) -> Mail | None:
    """A mail that is ours to send now. `next_attempt_at` is the end of the claim then."""
    for _ in range(8):
        due = Mail.objects.filter(state=MailState.WAITING, next_attempt_at__lte=now)
        mail = due.order_by("next_attempt_at", "pk").first()
        if mail is None:
            return None
        claimed = {"state": MailState.SENDING, "attempts": F("attempts") + 1, "next_attempt_at": now + CLAIM}
        if Mail.objects.filter(pk=mail.pk, state=MailState.WAITING, attempts=mail.attempts).update(**claimed):
            mail.attempts += 1
            return mail
    return None  # others are at it


def _attempt(mail: Mail) -> str:
    """What went wrong; empty: it was taken."""
    if not sender.is_installed():
        return "this installation sends no e-mail"
    try:
        text = json.loads(opened(mail, "sealed", Unavailable("what it says cannot be read: see the log")))
        sender.mailed(subject=text["subject"], body=text["body"], message_id=mail.pk, address=mail.address)
    except (MailProblem, Unavailable) as error:
        return str(error)
    except Exception as error:  # one mail must not keep the others from being sent
        LOG.exception("mail %s", mail.pk)
        return f"an internal error: {type(error).__name__}"
    return ""


def _record(mail: Mail, problem: str, now: datetime) -> None:
    mine = Mail.objects.filter(pk=mail.pk, state=MailState.SENDING, attempts=mail.attempts)
    if problem:
        LOG.warning("mail %s: %s", mail.pk, problem)
        later = now + timedelta(seconds=pause_s(mail.attempts))
        mine.update(state=MailState.WAITING, error=problem, next_attempt_at=later)
    else:
        mine.update(state=MailState.SENT, error="", ended_at=now, sealed=b"")
