"""The outbox: messages are written in the transaction of what they are about, and sent from there until they have arrived.

==========================  ======================================================================================
a message is written        with its event; of each event one to each receiver, by a unique constraint
it is claimed               an update from the attempts that were read to one more, which of two workers one wins; the next
                            attempt is put beyond the longest time that sending takes
it is sent                  outside of any transaction, to several receivers at once, to each the oldest first until one fails
what became of it           is written, if nobody has claimed it since
a worker dies               before it sent: the message is due again when the claim is over. After: it is sent once more, with the
                            same id, by which the receiver knows it
it cannot be sent           again after a pause that grows from 10 s to an hour, for 24 hours in all
==========================  ======================================================================================

A receiver that does not answer costs little: its other messages wait as long as the one that was tried, and a round takes a few
of each receiver only. Organisations take turns: who has many messages, or slow receivers, keeps no other waiting for more than
the batch that is on its way. What is behind a silence or an address that is not confirmed is never written.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import F, Min
from django.utils.translation import override

from controlplane.accounts.models import User
from controlplane.alarms.delivery import posting, secrets
from controlplane.alarms.delivery.limits import MOST_PER_HOUR, told_lately
from controlplane.alarms.delivery.posting import PostProblem
from controlplane.alarms.delivery.signing import headers
from controlplane.alarms.delivery.targets import target_of
from controlplane.alarms.delivery.words import email_of, with_code
from controlplane.alarms.models import Delivery, DeliveryKind, DeliveryState, Receiver, ReceiverKind
from controlplane.core import ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.core.wording import filled, said_in
from controlplane.mail import sender
from controlplane.mail.sender import MailProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.alarms.models import AlarmEvent

LOG = logging.getLogger(__name__)
FIRST_PAUSE_S, LONGEST_PAUSE_S = 10, 3600
KEEPS_TRYING = timedelta(hours=24)
CLAIM_S = 180
"""Longer than a batch takes: 32 messages of up to 5 s each, 8 receivers at once, and a mail server of the operator's own."""
AT_ONCE, BATCH, OF_ONE_RECEIVER, LOOKED_AT = 8, 32, 8, 500
ROUND_S = 25.0
LONGEST_ERROR = 300
MOVED = "the receiver has another address"
_MACHINERY = "messages of all organisations are sent"


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A claimed message with all that sending needs: nothing asks the database on another thread."""

    delivery: Delivery
    kind: str
    address: str
    keys: tuple[bytes, ...] = ()
    problem: str = ""
    code: str = ""  # of a mail that asks whether messages may come
    language: str = settings.LANGUAGE_CODE  # of who reads a mail


def pause_s(attempts: int) -> int:
    """Between the attempt of this number, from 1, and the next."""
    return min(FIRST_PAUSE_S << min(attempts - 1, 16), LONGEST_PAUSE_S)


def delivery_of(
    receiver: Receiver, *, kind: str, document: Mapping[str, Any], at: datetime, event: AlarmEvent | None = None
) -> Delivery:
    """A message that is due at once. It is the caller's to save."""
    return Delivery(
        id=ids.delivery_id(random.SystemRandom()),
        organisation_id=receiver.organisation_id,
        instance_id=receiver.instance_id,
        receiver=receiver,
        address=receiver.address,
        event=event,
        kind=kind,
        document=dict(document),
        next_attempt_at=at,
        created_at=at,
    )


def write(told: Sequence[tuple[AlarmEvent, Sequence[str], Mapping[str, Any]]], *, at: datetime) -> None:
    """A message of each event to each of its receivers: event, their ids, document. In the transaction of the events."""
    wanted = {name for _, receivers, _ in told for name in receivers}
    if not wanted:
        return
    rows = Receiver.objects.unscoped("alarms name receivers of their own instance only").filter(
        pk__in=wanted, sealed_code=b""
    )
    known = {row.pk: row for row in rows}
    lately = Counter(told_lately(list(known), at))
    deliveries = []
    for event, receivers, document in told:
        for name in receivers:
            receiver = known.get(name)
            if receiver is None or receiver.instance_id != event.instance_id:
                continue
            delivery = delivery_of(receiver, kind=DeliveryKind.ALARM, document=document, at=at, event=event)
            deliveries.append(_counted(delivery, lately))
    Delivery.objects.unscoped(_MACHINERY).bulk_create(deliveries, batch_size=500)


def write_budget(receivers: Iterable[Receiver], document: Mapping[str, Any], *, at: datetime) -> int:
    """A message of a budget's alert to each of its receivers that is confirmed; how many. In the transaction of the alert."""
    known = [receiver for receiver in receivers if receiver.is_confirmed]
    lately = Counter(told_lately([receiver.pk for receiver in known], at))
    deliveries = [
        _counted(delivery_of(receiver, kind=DeliveryKind.BUDGET, document=document, at=at), lately)
        for receiver in known
    ]
    Delivery.objects.unscoped(_MACHINERY).bulk_create(deliveries)
    return len(deliveries)


def _counted(delivery: Delivery, lately: Counter[str]) -> Delivery:
    """One more to its receiver; beyond what an hour has it is kept as given up."""
    receiver = delivery.receiver_id or ""
    lately[receiver] += 1
    if lately[receiver] > MOST_PER_HOUR:
        delivery.state, delivery.ended_at = DeliveryState.FAILED, delivery.created_at
        delivery.error = f"not sent: more than {MOST_PER_HOUR} messages in an hour"
    return delivery


def send_due(*, clock: Clock = SYSTEM_CLOCK, until_s: float = ROUND_S) -> int:
    """Send what is due; how many were tried."""
    done, end = 0, time.monotonic() + until_s
    while time.monotonic() < end:
        claimed = claim(clock=clock)
        if not claimed:
            break
        for prepared, problem in _sent(claimed, clock):
            _record(prepared, problem, clock)
        done += len(claimed)
    return done


def claim(*, clock: Clock = SYSTEM_CLOCK) -> list[Delivery]:
    """Messages that are ours to send now, a few of each receiver. What was tried for a day is given up on the way."""
    now = clock.now()
    rows = Delivery.objects.unscoped(_MACHINERY).filter(state=DeliveryState.WAITING, next_attempt_at__lte=now)
    rows.filter(created_at__lte=now - KEEPS_TRYING).update(state=DeliveryState.FAILED, ended_at=now)
    found: list[Delivery] = []
    taken: Counter[str | None] = Counter()
    for row in _due(rows):
        if taken[row.receiver_id] >= OF_ONE_RECEIVER:
            continue
        taken[row.receiver_id] += 1
        mine = rows.filter(pk=row.pk, attempts=row.attempts)
        if mine.update(attempts=F("attempts") + 1, next_attempt_at=now + timedelta(seconds=CLAIM_S)):
            row.attempts += 1
            found.append(row)
        if len(found) == BATCH:
            break
    return found


def _due(rows: QuerySet[Delivery]) -> Iterable[Delivery]:
    """Of the organisations that have waited longest, by turns, each one's oldest first."""
    waiting = rows.values_list("organisation").annotate(first=Min("next_attempt_at")).order_by("first", "organisation")
    names = [name for name, _ in waiting[:BATCH]]
    turns = [
        rows.filter(organisation=name)
        .order_by("next_attempt_at", "created_at", "pk")
        .select_related("receiver")[: LOOKED_AT // len(names)]
        for name in names
    ]
    return (row for row in chain.from_iterable(zip_longest(*turns)) if row is not None)


def _sent(claimed: Sequence[Delivery], clock: Clock) -> Iterable[tuple[_Prepared, str]]:
    """Each with what went wrong; empty: it was taken."""
    timestamp = int(clock.now().timestamp())
    by_receiver: dict[str | None, list[_Prepared]] = {}
    languages = _languages(claimed)
    for delivery in sorted(claimed, key=lambda each: each.created_at):
        prepared = _prepared(delivery, clock.now())
        if prepared.kind == ReceiverKind.EMAIL:
            prepared = replace(prepared, language=languages.get(prepared.address.lower(), settings.LANGUAGE_CODE))
        by_receiver.setdefault(delivery.receiver_id, []).append(prepared)
    with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="alarms") as pool:
        for done in pool.map(lambda group: _in_order(group, timestamp), by_receiver.values()):
            yield from done


def _languages(claimed: Sequence[Delivery]) -> dict[str, str]:
    """By address, of those that are people's who sign in here; all others are written to in English."""
    mails = {
        row.address.lower() for row in claimed if row.receiver is not None and row.receiver.kind == ReceiverKind.EMAIL
    }
    return dict(User.objects.filter(email__in=mails).values_list("email", "language")) if mails else {}


def _in_order(group: Sequence[_Prepared], timestamp: int) -> list[tuple[_Prepared, str]]:
    """To one receiver, on a thread of its own. What one has met the others need not meet."""
    done: list[tuple[_Prepared, str]] = []
    problem = ""
    for prepared in group:
        if prepared.problem == MOVED:  # says nothing of the address that the others go to
            done.append((prepared, MOVED))
            continue
        problem = problem or _attempt(prepared, timestamp)
        done.append((prepared, problem))
    return done


def _prepared(delivery: Delivery, now: datetime) -> _Prepared:
    receiver = delivery.receiver
    if receiver is None:
        return _Prepared(delivery, "", "", problem="the receiver was deleted")
    if receiver.kind == ReceiverKind.EMAIL and delivery.address != receiver.address:
        # Claimed a moment before: the code of the new address is not for who reads the old one.
        return _Prepared(delivery, "", "", problem=MOVED)
    try:
        if delivery.kind == DeliveryKind.CONFIRM:
            code = secrets.code_of(receiver)
            problem = "" if code else "the address is confirmed"
            return _Prepared(delivery, receiver.kind, delivery.address, code=code, problem=problem)
        if receiver.kind != ReceiverKind.WEBHOOK:
            return _Prepared(delivery, receiver.kind, delivery.address)
        return _Prepared(delivery, receiver.kind, receiver.address_opened(), secrets.keys_at(receiver, now))
    except Unavailable as error:
        return _Prepared(delivery, receiver.kind, delivery.address, problem=error.detail)


def _attempt(prepared: _Prepared, timestamp: int) -> str:
    if prepared.problem:
        return prepared.problem
    send: Callable[[_Prepared, int], None] = _post if prepared.kind == ReceiverKind.WEBHOOK else _mail
    try:
        send(prepared, timestamp)
    except (PostProblem, MailProblem) as error:
        return str(error)
    except Exception as error:  # one message must not keep the others from being sent
        LOG.exception("message %s", prepared.delivery.pk)
        return f"an internal error: {type(error).__name__}"
    return ""


def _post(prepared: _Prepared, timestamp: int) -> None:
    message_id, body = prepared.delivery.pk, json.dumps(prepared.delivery.document, ensure_ascii=False).encode()
    try:
        target = target_of(prepared.address, posting.networks())
    except ValueError as error:
        raise PostProblem(f"the address {error}") from error
    signed = headers(prepared.keys, message_id=message_id, timestamp=timestamp, body=body)
    posting.posted(target, body, signed)


def _mail(prepared: _Prepared, _timestamp: int) -> None:
    if not sender.is_installed():
        raise MailProblem("this installation sends no e-mail")
    delivery = prepared.delivery
    with override(prepared.language):
        text = email_of(delivery.document, filled, partial(said_in, prepared.language))
    if prepared.code:
        text = with_code(text, prepared.code)
    sender.mailed(subject=text.subject, body=text.body, message_id=delivery.pk, address=prepared.address)


def _record(prepared: _Prepared, problem: str, clock: Clock) -> None:
    """What became of an attempt, unless another worker has claimed the message since."""
    delivery, now = prepared.delivery, clock.now()
    rows = Delivery.objects.unscoped(_MACHINERY)
    mine = rows.filter(pk=delivery.pk, attempts=delivery.attempts, state=DeliveryState.WAITING)
    if not problem:
        mine.update(state=DeliveryState.SENT, error="", ended_at=now)
        return
    error = problem[:LONGEST_ERROR]
    if delivery.receiver_id is None or problem == MOVED:
        mine.update(state=DeliveryState.FAILED, error=error, ended_at=now)
        return
    later = now + timedelta(seconds=pause_s(delivery.attempts))
    if not mine.update(error=error, next_attempt_at=later):
        return  # given up meanwhile, as where the address is another: the code for the new one does not wait for the old one
    # Those of the same receiver wait along, each with the reason, until one of them gets through.
    others = rows.filter(receiver=delivery.receiver_id, state=DeliveryState.WAITING, next_attempt_at__lt=later)
    others.filter(attempts=0).update(error=error, next_attempt_at=later)
