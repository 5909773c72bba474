"""Messages on their way: to real receivers, by a worker that dies at each step, and again until they have arrived."""

from __future__ import annotations

from dataclasses import replace
from email.utils import parseaddr
from itertools import pairwise

import pytest
from django.db import IntegrityError, transaction

from controlplane.alarms.delivery import outbox, posting
from controlplane.alarms.delivery.limits import MOST_PER_HOUR
from controlplane.alarms.delivery.outbox import CLAIM_S, KEEPS_TRYING, pause_s, send_due
from controlplane.alarms.models import Delivery, Receiver
from controlplane.core.clock import SystemClock
from controlplane.instances.models import Instance
from controlplane.sealing.keyring import drawn

from .rows import KEY, alarm_row, event_row, receiver_row
from .verifying import verified

ROWS = "a test"


class Died(BaseException):
    """The worker was killed: nothing catches it."""


@pytest.fixture
def webhook(instance, hook, inside):
    return receiver_row(instance, address=hook.url)


@pytest.fixture
def write(instance, clock):
    """Writes the message of a new event to receivers."""

    def write(*receivers, kind="fired", **document):
        alarm = write.alarm = write.alarm or alarm_row(instance)
        clock.advance(1)
        event = event_row(alarm, kind, at=clock.now())
        text = {"type": "alarm.firing", "timestamp": "t", "data": {"n": Delivery.objects.unscoped(ROWS).count()}}
        outbox.write([(event, [each.pk for each in receivers], text | document)], at=clock.now())
        return event

    write.alarm = None
    return write


def rows():
    return Delivery.objects.unscoped(ROWS).order_by("created_at", "pk")


def states():
    return [(row.state, row.attempts, row.error) for row in rows()]


def test_a_webhook_is_sent_and_signed(write, webhook, hook, clock):
    write(webhook)
    assert send_due(clock=clock) == 1
    (taken,) = hook.taken
    row = rows().get()
    assert (row.state, row.attempts, row.error, row.ended_at) == ("sent", 1, "", clock.now())
    assert taken.document == row.document
    assert taken.headers["webhook-id"] == row.pk
    assert taken.headers["webhook-timestamp"] == str(int(clock.now().timestamp()))
    assert verified(KEY, taken.headers, taken.body)
    assert not verified(b"x" * 32, taken.headers, taken.body)
    assert not verified(KEY, taken.headers, taken.body + b" ")
    assert not verified(KEY, {**taken.headers, "webhook-timestamp": "1"}, taken.body)
    assert send_due(clock=clock) == 0


def test_an_email_is_plain_text_with_an_id_of_its_own(instance, write, mail, clock):
    receiver = receiver_row(instance, kind="email", address="bob@example.com", secret=b"")
    place = {"organisation": {"id": "org-1", "name": "Harbour"}, "instance": {"id": "ins-1", "name": "orders"}}
    data = {
        **place, "alarm": {"id": "alm-1", "name": "storage €"}, "value": 93.0, "since": "2026-11-24T03:11:31Z",
        "is_repeated": False, "text": "Storage used is 93 %.\n.",
    }  # fmt: skip
    write(receiver, timestamp="2026-11-24T03:16:31Z", data=data)
    assert send_due(clock=clock) == 1
    (mailed,) = mail.mails
    assert mailed["Subject"] == "[Firing] storage €: orders"
    assert parseaddr(mailed["From"])[1] == "alarms@sluice.example.com"
    assert mailed["To"] == "bob@example.com"
    assert mailed["Message-ID"] == f"<{rows().get().pk}@sluice.example.com>"
    assert mailed.get_content_type() == "text/plain"
    lines = mailed.get_content().splitlines()
    assert lines[:2] == ["Storage used is 93 %.", "."]
    assert "Instance: orders (ins-1)" in lines
    assert "Firing since: 2026-11-24T03:11:31Z" in lines
    assert states() == [("sent", 1, "")]


def test_a_name_cannot_write_headers(instance, write, mail, clock):
    receiver = receiver_row(instance, kind="email", address="bob@example.com")
    place = {"organisation": {"id": "o", "name": "n"}, "instance": {"id": "i", "name": "a\nBcc: eve@example.com"}}
    write(receiver, type="alarm.test", data={**place, "text": "x"})
    send_due(clock=clock)
    assert mail.mails == []
    assert states()[0][2] == "the mail server cannot be reached: BadHeaderError"


# --- what does not arrive at once ---------------------------------------------------------------------------------------


def test_what_was_refused_is_tried_again_with_the_same_id_after_growing_pauses(write, webhook, hook, clock):
    hook.status = 503
    write(webhook)
    began, at = clock.now(), []
    while rows().get().state == "waiting":
        if send_due(clock=clock):
            at.append((clock.now() - began).total_seconds())
        clock.advance(10 if len(at) < 6 else 60)  # whole minutes later on: what is due in between waits for the next
    pauses = [after - before for before, after in pairwise(at)]
    assert pauses[:4] == [10, 20, 40, 80]
    assert all(after >= before for before, after in pairwise(pauses))
    assert max(pauses) == 3600
    assert 20 <= len(at) <= 40
    assert at[-1] <= KEEPS_TRYING.total_seconds()
    ended = rows().get()
    assert (ended.state, ended.attempts) == ("failed", len(at))
    assert ended.error == "127.0.0.1 answers 503"
    assert {taken.headers["webhook-id"] for taken in hook.taken} == {ended.pk}
    assert len({taken.headers["webhook-timestamp"] for taken in hook.taken}) == len(at)
    assert all(verified(KEY, taken.headers, taken.body) for taken in hook.taken)


def test_a_receiver_that_comes_back_gets_it(write, webhook, hook, clock):
    hook.answers = [500, 302]
    write(webhook)
    for _ in range(4):
        send_due(clock=clock)
        clock.advance(30)
    assert states() == [("sent", 3, "")]


def test_a_mail_server_that_is_busy_or_away_is_tried_again(instance, write, mail, clock, settings):
    receiver = receiver_row(instance, kind="email", address="bob@example.com")
    document = {"type": "receiver.confirm", "data": {"text": "x"}}
    mail.busy = 1
    write(receiver, **document)
    send_due(clock=clock)
    assert states() == [("waiting", 1, "the mail server answers 451")]
    mail.refuses = True
    clock.advance(60)
    send_due(clock=clock)
    assert states() == [("waiting", 2, "the mail server refuses the address")]
    mail.refuses, settings.EMAIL_PORT = False, 1
    clock.advance(60)
    send_due(clock=clock)
    assert states() == [("waiting", 3, "the mail server cannot be reached: ConnectionRefusedError")]
    settings.EMAIL_PORT = mail.port
    clock.advance(60)
    send_due(clock=clock)
    assert states() == [("sent", 4, "")]
    assert len(mail.mails) == 1


def test_without_a_mail_server_it_is_said(instance, write, clock, settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, smtp="")
    write(receiver_row(instance, kind="email", address="bob@example.com"))
    send_due(clock=clock)
    assert states() == [("waiting", 1, "this installation sends no e-mail")]


def test_to_one_receiver_the_oldest_goes_first_and_what_is_behind_a_failure_waits_along(write, webhook, hook, clock):
    for _ in range(12):
        write(webhook)
    hook.answers = [204, 204, 500]
    send_due(clock=clock)
    assert [taken.document["data"]["n"] for taken in hook.taken] == [0, 1, 2]
    assert [state for state, _, _ in states()] == ["sent"] * 2 + ["waiting"] * 10
    assert {error for _, _, error in states()[2:]} == {"127.0.0.1 answers 500"}
    assert send_due(clock=clock) == 0
    clock.advance(pause_s(1))
    send_due(clock=clock)
    assert [state for state, _, _ in states()] == ["sent"] * 12


def test_a_receiver_that_is_dead_holds_up_nobody_else(instance, write, webhook, hook, clock):
    dead = receiver_row(instance, "rcv-000000000002", address="https://10.0.0.1/")
    for _ in range(outbox.LOOKED_AT // 10):
        write(dead, webhook)
    send_due(clock=clock)
    assert len(hook.taken) == outbox.LOOKED_AT // 10
    assert rows().filter(receiver=dead, attempts__gt=0).count() <= outbox.OF_ONE_RECEIVER


def test_an_organisation_with_many_messages_holds_up_no_other(instance, charlie, clock):
    """Its receivers are slow, say: that its messages were due before is no reason to send them all first."""
    wanted = outbox.LOOKED_AT // outbox.OF_ONE_RECEIVER + 1
    for receiver in (receiver_row(instance, f"rcv-{number:012}") for number in range(100, 100 + wanted)):
        for _ in range(outbox.OF_ONE_RECEIVER):
            outbox.delivery_of(receiver, kind="test", document={}, at=clock.now()).save(force_insert=True)
    clock.advance(1)
    other = Instance.objects.unscoped(ROWS).get(pk=instance.pk)
    other.pk, other.organisation = "ins-00000001", charlie.organisation
    other.save(force_insert=True)
    theirs = outbox.delivery_of(receiver_row(other), kind="test", document={}, at=clock.now())
    theirs.save(force_insert=True)
    claimed = outbox.claim(clock=clock)
    assert theirs.pk in {row.pk for row in claimed}
    assert len(claimed) == outbox.BATCH


def test_an_address_that_is_allowed_no_more_is_not_connected_to(write, webhook, hook, clock, settings):
    write(webhook)
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, webhook_networks="")
    send_due(clock=clock)
    assert hook.taken == []
    assert states()[0][2].startswith("the address must begin with https://")


def test_more_than_so_many_in_an_hour_are_not_sent(write, webhook, clock):
    for _ in range(MOST_PER_HOUR + 2):
        write(webhook)
    assert [row.state for row in rows()][MOST_PER_HOUR - 1 :] == ["waiting", "failed", "failed"]
    assert rows().last().error == "not sent: more than 120 messages in an hour"
    clock.advance(3600)
    write(webhook)
    assert rows().last().state == "waiting"


# --- a worker that dies -------------------------------------------------------------------------------------------------


def test_one_that_dies_between_claim_and_sending_has_another_send_it(write, webhook, hook, clock):
    write(webhook)
    assert len(outbox.claim(clock=clock)) == 1  # and that was all
    assert send_due(clock=clock) == 0, "it is claimed"
    clock.advance(CLAIM_S)
    assert send_due(clock=clock) == 1
    assert states() == [("sent", 2, "")]
    assert len(hook.taken) == 1


@pytest.mark.parametrize("kind", ["webhook", "email"])
def test_one_that_dies_between_sending_and_writing_that_down_sends_it_twice_with_one_id(
    kind, instance, write, hook, mail, inside, clock, monkeypatch
):
    address = hook.url if kind == "webhook" else "bob@example.com"
    write(receiver_row(instance, kind=kind, address=address), type="receiver.confirm", data={"text": "x"})

    def killed(*_arguments):
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(outbox, "_record", killed)
        with pytest.raises(Died):
            send_due(clock=clock)
    clock.advance(CLAIM_S)
    send_due(clock=clock)
    ids = [taken.headers["webhook-id"] for taken in hook.taken] or [each["X-Sluice-Message"] for each in mail.mails]
    assert ids == [rows().get().pk] * 2
    assert states() == [("sent", 2, "")]


def test_one_that_dies_in_the_midst_of_a_transaction_has_written_neither_event_nor_message(
    instance, storage, clock, sampled, monkeypatch
):
    from controlplane.alarms.evaluation import evaluate
    from controlplane.alarms.models import Alarm, AlarmEvent

    receiver = receiver_row(instance)
    moments = dict.fromkeys(("created_at", "since", "seen_at"), clock.now())
    alarm_row(instance, receivers=[receiver.pk], **moments)
    storage.percent = 95
    real = outbox.write

    def killed(*_arguments, **_options):
        raise Died

    clock.advance(30)
    sampled(clock)
    monkeypatch.setattr(outbox, "write", killed)
    with pytest.raises(Died):
        evaluate(clock=clock)
    assert AlarmEvent.objects.unscoped(ROWS).count() == 0
    assert Alarm.objects.unscoped(ROWS).get().phase == "ok"
    monkeypatch.setattr(outbox, "write", real)
    clock.advance(30)
    sampled(clock)
    evaluate(clock=clock)
    assert (AlarmEvent.objects.unscoped(ROWS).count(), rows().count()) == (1, 1)


def test_one_that_was_paused_beyond_its_claim_does_not_undo_what_another_has_written(write, webhook, hook, clock):
    write(webhook)
    slow = outbox.claim(clock=clock)
    clock.advance(CLAIM_S)
    send_due(clock=clock)
    hook.status = 500
    for prepared, problem in outbox._sent(slow, clock):
        outbox._record(prepared, problem, clock)
    assert states() == [("sent", 2, "")]


def test_of_two_workers_one_claims(write, webhook, clock):
    write(webhook)
    real = SystemClock()
    assert (len(outbox.claim(clock=clock)), len(outbox.claim(clock=clock))) == (1, 0)
    assert real.now() > clock.now()


def test_an_event_is_written_for_a_receiver_once(write, webhook, clock):
    event = write(webhook)
    with pytest.raises(IntegrityError), transaction.atomic():
        outbox.write([(event, [webhook.pk], {})], at=clock.now())


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_while_a_secret_is_replaced_both_sign_and_afterwards_the_new_one_alone(alice, write, webhook, hook, clock):
    from controlplane.alarms.receivers import receiver_rotate

    place = {"organisation": alice.organisation, "actor": "a", "instance_id": webhook.instance_id}
    _, text = receiver_rotate(**place, receiver_id=webhook.pk, clock=clock)
    write(webhook)
    send_due(clock=clock)
    clock.advance(24 * 3600)
    write(webhook)
    send_due(clock=clock)
    both, alone = hook.taken
    assert verified(KEY, both.headers, both.body)
    assert verified(text, both.headers, both.body)
    assert not verified(KEY, alone.headers, alone.body)
    assert verified(text, alone.headers, alone.body)


def test_a_secret_that_cannot_be_opened_is_said_and_holds_up_nobody(
    instance, write, webhook, hook, clock, settings, tmp_path
):  # fmt: skip
    path = tmp_path / "encryption.keys"
    path.write_text(drawn())  # without the one before
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, encryption_keys_file=path)
    sound = receiver_row(instance, "rcv-000000000002", address=hook.url)
    write(webhook, sound)
    send_due(clock=clock)
    assert len(hook.taken) == 1
    lost = rows().get(receiver=webhook)
    assert lost.error == "the address of this webhook cannot be read any more: make another receiver"


def test_a_receiver_that_is_deleted_is_sent_nothing(write, webhook, hook, clock):
    write(webhook)
    Receiver.objects.unscoped(ROWS).all().delete()
    send_due(clock=clock)
    assert (hook.taken, states()) == ([], [("failed", 1, "the receiver was deleted")])


def test_what_nobody_foresaw_keeps_no_other_message_from_being_sent(instance, write, webhook, hook, clock, monkeypatch):
    other = receiver_row(instance, "rcv-000000000002", address=hook.url + "&broken")
    real = posting.posted

    def broken(target, *rest):
        if target.path.endswith("broken"):
            raise KeyError("a secret detail")
        real(target, *rest)

    monkeypatch.setattr(posting, "posted", broken)
    write(other, webhook)
    send_due(clock=clock)
    assert len(hook.taken) == 1
    assert rows().get(receiver=other).error == "an internal error: KeyError"
