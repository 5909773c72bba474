"""What the service itself writes to people: sent by a worker, tried again, never twice, and never readable in the database."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from email.utils import parseaddr

import pytest
from django.db import connection, transaction

from controlplane.mail import outbox, sender
from controlplane.mail.models import Mail
from controlplane.mail.outbox import CLAIM, KEEPS_TRYING, KEPT, mail_write, pause_s, purge, send_due

LINK = "https://sluice.example.com/secret-link"


class Died(BaseException):
    """The worker was killed: nothing catches it."""


@pytest.fixture
def written(db, clock):
    return mail_write(address="ann@example.com", subject="Your link €", body=f"Open {LINK}", at=clock.now())


def state():
    row = Mail.objects.get()
    return row.state, row.attempts, row.error


def test_it_is_sent_once_as_plain_text(mails, written, clock):
    assert send_due(clock=clock) == 1
    assert send_due(clock=clock) == 0
    (mail,) = mails.mails
    assert (mail["To"], mail["Subject"]) == ("ann@example.com", "Your link €")
    assert parseaddr(mail["From"])[1] == "service@sluice.example.com"
    assert mail["Message-ID"] == f"<{written.pk}@sluice.example.com>"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail.get_content().strip() == f"Open {LINK}"
    assert state() == ("sent", 1, "")


def test_the_database_does_not_show_what_it_says(written):
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM mail_mail")
        assert b"secret-link" not in b"".join(bytes(str(each), "utf-8") for each in cursor.fetchone())
    assert b"secret-link" not in bytes(written.sealed)


def test_what_it_said_is_forgotten_when_it_was_sent(mails, written, clock):
    send_due(clock=clock)
    assert bytes(Mail.objects.get().sealed) == b""


def test_a_mail_goes_with_the_transaction_that_it_is_about(db, clock):
    with transaction.atomic():
        mail_write(address="ann@example.com", subject="s", body="b", at=clock.now())
        transaction.set_rollback(True)
    assert not Mail.objects.exists()


def test_a_server_that_puts_it_off_is_asked_again_after_growing_pauses(mails, written, clock):
    mails.busy = 2
    send_due(clock=clock)
    assert state() == ("waiting", 1, "the mail server answers 451")
    assert send_due(clock=clock) == 0, "not before the pause is over"
    clock.advance(pause_s(1))
    send_due(clock=clock)
    clock.advance(pause_s(2) - 1)
    assert send_due(clock=clock) == 0
    clock.advance(1)
    send_due(clock=clock)
    assert len(mails.mails) == 1
    assert state() == ("sent", 3, "")


def test_it_is_given_up_after_a_day_and_forgotten(mails, written, clock):
    mails.refuses = True
    send_due(clock=clock)
    clock.advance(KEEPS_TRYING.total_seconds())
    assert send_due(clock=clock) == 0
    row = Mail.objects.get()
    assert (row.state, row.error, bytes(row.sealed)) == ("failed", "the mail server refuses the address", b"")


@pytest.mark.parametrize("sent_before", [False, True])
def test_a_worker_that_dies_while_it_sends_leads_to_no_second_mail(mails, written, clock, monkeypatch, sent_before):
    real = sender.mailed

    def die(**named):
        if sent_before:
            real(**named)
        raise Died

    monkeypatch.setattr(sender, "mailed", die)
    with pytest.raises(Died):
        send_due(clock=clock)
    monkeypatch.setattr(sender, "mailed", real)
    assert send_due(clock=clock) == 0
    clock.advance(CLAIM.total_seconds())
    assert send_due(clock=clock) == 0
    assert len(mails.mails) == sent_before
    assert state() == ("failed", 1, "the worker ended while it sent this: it may have gone out")


def test_of_two_workers_one_sends(mails, written, clock, monkeypatch):
    real = sender.mailed

    def meanwhile(**named):
        assert send_due(clock=clock) == 0, "another worker finds nothing to send"
        real(**named)

    monkeypatch.setattr(sender, "mailed", meanwhile)
    assert send_due(clock=clock) == 1
    assert len(mails.mails) == 1


def test_a_mail_that_cannot_be_opened_keeps_no_other_from_being_sent(mails, written, clock):
    Mail.objects.update(sealed=b"\x01" + b"x" * 40)
    mail_write(address="bob@example.com", subject="s", body="b", at=clock.now() + timedelta(seconds=0))
    assert send_due(clock=clock) == 2
    assert [mail["To"] for mail in mails.mails] == ["bob@example.com"]
    assert Mail.objects.get(pk=written.pk).error == "what it says cannot be read: see the log"


def test_what_ended_a_month_ago_goes(mails, written, clock):
    send_due(clock=clock)
    clock.advance(KEPT.total_seconds())
    assert purge(clock=clock) == 0
    clock.advance(1)
    assert purge(clock=clock) == 1
    assert not Mail.objects.exists()


def test_the_service_writes_to_people_where_it_has_a_server_and_an_address_for_links(settings):
    found = {}
    for smtp in ("", "127.0.0.1:25"):
        for url in ("", "https://sluice.example.com"):
            settings.ENVIRONMENT = replace(settings.ENVIRONMENT, smtp=smtp, console_url=url)
            found[bool(smtp), bool(url)] = outbox.is_on()
    assert found == {(False, False): False, (False, True): False, (True, False): False, (True, True): True}
