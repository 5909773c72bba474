"""Receivers come and go; a webhook's secret is shown once and can be replaced; an e-mail address is confirmed by who reads it.

An e-mail address gets a code, and no message until the code was given back: otherwise anybody could have this service write to
anybody. The mail with the code holds nothing that a tenant has written, and there are few of them for an organisation and
for an address.
"""

from __future__ import annotations

import os
import random
import secrets as randomness
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from controlplane.alarms.delivery import outbox, posting, secrets, words
from controlplane.alarms.delivery.signing import KEY_BYTES, secret_text
from controlplane.alarms.delivery.targets import NOT_PUBLIC, target_of
from controlplane.alarms.evaluation import place_of
from controlplane.alarms.models import Alarm, Delivery, DeliveryKind, DeliveryState, Receiver, ReceiverKind
from controlplane.alarms.rules import MOST_RECEIVERS
from controlplane.alarms.services import instance_locked
from controlplane.core import audit, ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Invalid, LimitReached, NotFound, TooManyAttempts
from controlplane.core.text import name_checked
from controlplane.mail import sender

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

KEPT_PREVIOUS = timedelta(hours=24)
"""So long the secret before signs as well."""
LEAST_BETWEEN_TESTS_S = 10
LONGEST_EMAIL = 254
CODE_LETTERS = 10
CODES_OF_ORGANISATION, CODES_OF_ADDRESS = (20, timedelta(hours=1)), (5, timedelta(hours=24))
"""So many mails with a code, in this time."""


@transaction.atomic
def receiver_create(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    name: str,
    kind: str,
    address: str,
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[Receiver, str | None]:
    """A new receiver, and the secret of a webhook, shown this once.

    Raises NotFound, Invalid, Conflict, LimitReached, Unavailable.
    """
    instance = instance_locked(organisation=organisation, instance_id=instance_id)
    rows = Receiver.objects.for_organisation(organisation).filter(instance=instance)
    if rows.count() >= MOST_RECEIVERS:
        raise LimitReached(f"an instance has at most {MOST_RECEIVERS} receivers", code="too_many_receivers")
    name = _name_checked(name, rows)
    receiver = Receiver(
        id=ids.receiver_id(random.SystemRandom()),
        organisation=organisation,
        instance=instance,
        name=name,
        kind=kind,
        address=_checked(kind, address),  # of a webhook not for long: see below
        created_at=clock.now(),
    )
    text = None
    if kind == ReceiverKind.WEBHOOK:
        key = os.urandom(KEY_BYTES)
        secrets.address_sealed(receiver, receiver.address)
        secrets.secret_sealed(receiver, key)
        text = secret_text(key)
    else:
        _code_drawn(receiver)
    receiver.save(force_insert=True)
    if not receiver.is_confirmed:
        _send_code(receiver, clock.now())
    _audit(receiver, actor, "create", {"name": receiver.name, "kind": kind, "address": receiver.address})
    return receiver, text


@transaction.atomic
def receiver_update(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    receiver_id: str,
    changes: Mapping[str, str],
    check: Callable[[Receiver], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Receiver:
    """Another name, another address (`changes`), or both; alarms go on telling it. `check` is told the one that is to be another.

    A webhook keeps its secret. Another e-mail address gets a code, and until that was given back no message; what waits for the
    address before is given up. Raises NotFound, Invalid, Conflict, LimitReached, Unavailable.
    """
    if not changes:
        raise Invalid("nothing to change: give name or address")
    instance = instance_locked(organisation=organisation, instance_id=instance_id)
    receiver = _locked(organisation, instance, receiver_id)
    if check is not None:
        check(receiver)
    before = _said(receiver)
    others = Receiver.objects.for_organisation(organisation).filter(instance=instance).exclude(pk=receiver.pk)
    if changes.get("name", receiver.name) != receiver.name:
        receiver.name = _name_checked(changes["name"], others)
    address = changes.get("address")
    # One that cannot be opened any more is set anew by what is typed.
    is_moved = address is not None and address != receiver.full_address
    if address is not None and is_moved:
        _move(receiver, _checked(receiver.kind, address), clock.now())
    if not is_moved and receiver.name == before["name"]:
        return receiver
    receiver.save(force_update=True)
    if is_moved and not receiver.is_confirmed:
        _send_code(receiver, clock.now())
    # Where only the path of a webhook is another, it is not shown: that it is another is.
    _audit(receiver, actor, "update", audit.changed(before, _said(receiver)) | ({"moved": True} if is_moved else {}))
    return receiver


def address_problem(*, kind: str, address: str) -> str | None:
    """Why nothing could be sent there at this moment, in a sentence; None: nothing is known against it. Takes 2 s at most.

    It is a remark and no refusal: a name may be made after its receiver. Ask outside of transactions.
    """
    if kind != ReceiverKind.WEBHOOK:
        return None
    target = target_of(address, posting.networks())
    return None if posting.has_address(target) else NOT_PUBLIC.format(host=target.host)


@transaction.atomic
def receiver_confirm(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    receiver_id: str,
    code: str,
    clock: Clock = SYSTEM_CLOCK,
) -> Receiver:
    """Whoever reads the address has said that messages may come. Raises NotFound, Invalid, Unavailable.

    Another mail that asks for it, and has not been sent yet, is not needed any more.
    """
    instance = instance_locked(organisation=organisation, instance_id=instance_id)
    receiver = _locked(organisation, instance, receiver_id)
    if receiver.is_confirmed:
        return receiver
    if not randomness.compare_digest(secrets.code_of(receiver).encode(), code.strip().lower().encode()):
        raise Invalid.field("code", "is not the one that was sent to this address")
    receiver.sealed_code = b""
    receiver.save(force_update=True, update_fields=["sealed_code"])
    asking = Delivery.objects.for_organisation(organisation).filter(receiver=receiver, kind=DeliveryKind.CONFIRM)
    ended = {"state": DeliveryState.FAILED, "error": "the address is confirmed", "ended_at": clock.now()}
    asking.filter(state=DeliveryState.WAITING).update(**ended)
    _audit(receiver, actor, "confirm", {"address": receiver.address})
    return receiver


@transaction.atomic
def receiver_rotate(
    *, organisation: Organisation, actor: str, instance_id: str, receiver_id: str, clock: Clock = SYSTEM_CLOCK
) -> tuple[Receiver, str]:
    """Another secret, shown this once; the one before signs as well for a day. Raises NotFound, Conflict, Unavailable."""
    instance = instance_locked(organisation=organisation, instance_id=instance_id)
    receiver = _locked(organisation, instance, receiver_id)
    if receiver.kind != ReceiverKind.WEBHOOK:
        raise Conflict("an e-mail address has no secret", code="not_a_webhook")
    key = os.urandom(KEY_BYTES)
    secrets.secret_replaced(receiver, key, until=clock.now() + KEPT_PREVIOUS)
    receiver.save(force_update=True)
    _audit(receiver, actor, "rotate", {})
    return receiver, secret_text(key)


@transaction.atomic
def receiver_test(
    *, organisation: Organisation, actor: str, instance_id: str, receiver_id: str, clock: Clock = SYSTEM_CLOCK
) -> Delivery:
    """A message that says that it is a test; of an address that is not confirmed, the code once more.

    Raises NotFound, TooManyAttempts, LimitReached.
    """
    instance = instance_locked(organisation=organisation, instance_id=instance_id)
    receiver = _locked(organisation, instance, receiver_id)
    now = clock.now()
    if receiver.tested_at is not None and now - receiver.tested_at < timedelta(seconds=LEAST_BETWEEN_TESTS_S):
        raise TooManyAttempts(LEAST_BETWEEN_TESTS_S)
    receiver.tested_at = now
    receiver.save(force_update=True, update_fields=["tested_at"])
    _audit(receiver, actor, "test", {})
    if not receiver.is_confirmed:
        return _send_code(receiver, now)
    document = words.test_document(at=now, place=place_of(instance), name=receiver.name)
    return _put(outbox.delivery_of(receiver, kind=DeliveryKind.TEST, document=document, at=now))


@transaction.atomic
def receiver_delete(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    receiver_id: str,
    check: Callable[[Receiver], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """No message goes there any more, those that wait included; alarms forget it. `check` is told the receiver.

    Raises NotFound, Conflict.
    """
    instance = instance_locked(organisation=organisation, instance_id=instance_id)
    # In evaluation's order, alarms first: it holds them while it writes messages, which wait for the receiver.
    rows = Alarm.objects.for_organisation(organisation).filter(instance=instance, deleted_at=None)
    alarms = list(rows.select_for_update().order_by("pk"))
    receiver = _locked(organisation, instance, receiver_id)
    if check is not None:
        check(receiver)
    for alarm in alarms:
        if receiver.pk in alarm.receivers:
            alarm.receivers = [each for each in alarm.receivers if each != receiver.pk]
            alarm.save(force_update=True, update_fields=["receivers"])
    waiting = Delivery.objects.for_organisation(organisation).filter(receiver=receiver, state=DeliveryState.WAITING)
    waiting.update(state=DeliveryState.FAILED, error="the receiver was deleted", ended_at=clock.now())
    _audit(receiver, actor, "delete", {"name": receiver.name, "address": receiver.address})
    Receiver.objects.for_organisation(organisation).filter(pk=receiver.pk).delete()


def _locked(organisation: Organisation, instance: Instance, receiver_id: str) -> Receiver:
    rows = Receiver.objects.for_organisation(organisation).filter(instance=instance)
    receiver = rows.select_for_update().filter(pk=receiver_id).first()
    if receiver is None:
        raise NotFound(f"no receiver {receiver_id}")
    return receiver


def _said(receiver: Receiver) -> dict[str, Any]:
    """Of the address what everybody may see."""
    return {"name": receiver.name, "address": receiver.address}


def _name_checked(name: str, others: QuerySet[Receiver]) -> str:
    """Raises Invalid, and Conflict where another one is called so."""
    name = name_checked(name)
    if others.filter(name=name).exists():
        raise Conflict(f"the instance has a receiver {name}: alarms name them by it", code="receiver_exists")
    return name


def _move(receiver: Receiver, address: str, now: datetime) -> None:
    """It is the caller's to save. Raises Unavailable."""
    waiting = Delivery.objects.for_organisation(receiver.organisation).filter(
        receiver=receiver, state=DeliveryState.WAITING
    )
    if receiver.kind == ReceiverKind.WEBHOOK:
        secrets.address_sealed(receiver, address)  # messages that wait go there: they ask when they are sent
        # Pauses were of the address before. What a worker may be sending now stays his.
        waiting.filter(next_attempt_at__gt=now + timedelta(seconds=outbox.CLAIM_S)).update(next_attempt_at=now)
        return
    waiting.update(state=DeliveryState.FAILED, error=outbox.MOVED, ended_at=now)
    receiver.address = address
    _code_drawn(receiver)


def _code_drawn(receiver: Receiver) -> None:
    """Only whoever reads the address can confirm it. Raises Unavailable."""
    secrets.code_sealed(receiver, ids.letters(randomness.SystemRandom(), CODE_LETTERS))


def _checked(kind: str, address: str) -> str:
    if kind == ReceiverKind.WEBHOOK:
        try:
            target_of(address, posting.networks())
        except ValueError as error:
            raise Invalid.field("address", str(error)) from error
        return address
    if not sender.is_installed():
        raise Conflict(
            "this installation sends no e-mail: its operators have to name a mail server (SLUICE_SMTP)",
            code="email_off",
        )
    try:
        if len(address) > LONGEST_EMAIL or not address.isascii():
            raise ValidationError("too long")
        validate_email(address)
    except ValidationError as error:
        raise Invalid.field("address", "is no e-mail address") from error
    return address


def _send_code(receiver: Receiver, now: datetime) -> Delivery:
    sent = Delivery.objects.unscoped("an address is nobody's own").filter(kind=DeliveryKind.CONFIRM)
    of_organisation, of_address = (
        sent.filter(organisation=receiver.organisation),
        sent.filter(address__iexact=receiver.address),
    )
    for rows, (most, lately) in ((of_organisation, CODES_OF_ORGANISATION), (of_address, CODES_OF_ADDRESS)):
        if rows.filter(created_at__gt=now - lately).count() >= most:
            raise LimitReached("too many codes were sent lately: try again later", code="too_many_codes")
    document = words.confirm_document(at=now, instance_id=receiver.instance_id)
    return _put(outbox.delivery_of(receiver, kind=DeliveryKind.CONFIRM, document=document, at=now))


def _put(delivery: Delivery) -> Delivery:
    delivery.save(force_insert=True)
    return delivery


def _audit(receiver: Receiver, actor: str, action: str, detail: dict[str, Any]) -> None:
    audit.record(
        organisation=receiver.organisation,
        actor=actor,
        action=f"receiver.{action}",
        target=f"{receiver.instance_id}/{receiver.pk}",
        detail=detail,
    )
