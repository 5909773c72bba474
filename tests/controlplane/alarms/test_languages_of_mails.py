"""Mails of alarms and budgets are in the language of the user whose address it is, and in English where it is nobody's here."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import pytest
from django.utils.translation import override

from controlplane.accounts.models import User
from controlplane.alarms.delivery import outbox
from controlplane.alarms.delivery.outbox import send_due
from controlplane.alarms.delivery.words import (
    ENDED,
    alarm_document,
    budget_document,
    confirm_document,
    email_of,
)
from controlplane.alarms.delivery.words import test_document as document_of_test
from controlplane.alarms.machine import Telling
from controlplane.alarms.rules import FIGURES, MISSING, OF_ANY_BROKER, OF_ANY_GROUP, REASONS, Comparison, Rule
from controlplane.core.wording import filled, said_in
from tests.controlplane.identity.test_languages_of_mails import CHINESE, english_of

from .rows import alarm_row, event_row, receiver_row

AT = datetime(2026, 12, 3, 10, tzinfo=UTC)
PLACE = {"organisation": {"id": "org-1", "name": "harbour"}, "instance": {"id": "ins-1", "name": "orders"}}
NAMES = {
    "Broker",
    "broker",
    "Kafka",
    "alarm",
    "alm",
    "rcv",
    "bdg",
    "storage",
    "ms",
    "min",
    "h",
    "GiB",
    "TiB",
    "PiB",
    "EiB",
    "KiB",
    "B",
    "T",
    "Z",
    "the",
    "code",
}


def document_of(watch: str, telling: Telling = Telling.FIRING, **members: object) -> dict:
    figure = FIGURES.get(watch)
    rule = Rule(
        watch,
        None if figure is None else Comparison.AT_LEAST,
        None if figure is None else 1.0,
        300,
        group="billing" if figure and figure.of_group else None,
        topic="audit" if figure and figure.of_topic else None,
    )
    members.setdefault("value_of", "billing" if watch in OF_ANY_GROUP else "3" if watch in OF_ANY_BROKER else "")
    return alarm_document(
        telling=telling, at=AT, place=PLACE, alarm_id="alm-1", name="alarm", rule=rule,
        **{"value": 2.0, "since": AT, "is_repeated": True, **members},
    )  # fmt: skip


def in_chinese(document: dict) -> str:
    with override(CHINESE):
        text = email_of(document, filled, partial(said_in, CHINESE))
    return f"{text.subject}\n{text.body}"


def all_documents():
    for watch in (*REASONS, *FIGURES):
        for telling in Telling:
            yield document_of(watch, telling)
        yield document_of(watch, Telling.RESOLVED, is_back=True, since=None)
        yield document_of(watch, Telling.NO_DATA, value=None, detail=next(iter(MISSING.values())))
        for ended in ENDED:
            yield document_of(watch, Telling.RESOLVED, ended=ended)
    for number in (1.0, 7.0):
        for group in ("", "billing"):
            yield document_of("expiring_unread_messages", value=number, value_of=group)
    yield document_of_test(at=AT, place=PLACE, name="storage")
    yield confirm_document(at=AT, instance_id="ins-1")
    for kind, is_over in (("actual", False), ("actual", True), ("forecast", False)):
        for instance in (None, PLACE["instance"]):
            yield budget_document(
                at=AT, place={**PLACE, "instance": instance}, month="2026-12", kind=kind, percent=80, lower=[50], so_far="80.00",
                budget={"id": "bdg-1", "name": "storage", "amount": "100.00", "currency": "CNY"}, forecast="99.00",
                counted_until=AT, is_over=is_over,
            )  # fmt: skip


def test_no_line_of_any_mail_is_left_in_english():
    left = {}
    for document in all_documents():
        for line in in_chinese(document).split("\n"):
            words = [word for word in english_of(line) if word not in NAMES]
            if words:
                left[line] = words
    assert left == {}


def test_what_a_document_says_is_what_its_mail_says_in_english():
    for document in all_documents():
        assert document["data"]["text"] in email_of(document).body


def test_a_message_of_an_earlier_release_keeps_its_english_text():
    document = document_of("storage_used_percent")
    del document["data"]["detail"]
    assert document["data"]["text"] in in_chinese(document)


@pytest.fixture
def told(instance, clock, mail):
    """Sends one message of an alarm to an e-mail receiver of each of these addresses; the mails by address."""

    def told(*addresses: str) -> dict:
        receivers = [
            receiver_row(instance, f"rcv-00000000000{number}", name=f"r{number}", kind="email", address=address)
            for number, address in enumerate(addresses)
        ]
        event = event_row(alarm_row(instance), at=clock.now())
        document = document_of("storage_used_percent", is_repeated=False)
        outbox.write([(event, [each.pk for each in receivers], document)], at=clock.now())
        assert send_due(clock=clock) == len(addresses)
        return {each["To"]: each for each in mail.mails}

    return told


def test_each_reads_it_in_the_language_of_their_own(alice, told):
    User.objects.filter(email="alice@example.com").update(language=CHINESE)
    mails = told("Alice@example.com", "oncall@example.com")
    assert mails["Alice@example.com"]["Subject"].startswith("[触发中]")
    assert "已用存储不低于 1 %" in mails["Alice@example.com"].get_content()
    assert mails["oncall@example.com"]["Subject"].startswith("[Firing]")
    assert "Storage used is 2 %. The alarm fires at:" in mails["oncall@example.com"].get_content()


def test_languages_are_one_statement_however_many_mails_there_are(told, django_assert_num_queries):
    claimed: list = []
    told("a@example.com", "b@example.com", "c@example.com")
    claimed += outbox.Delivery.objects.unscoped("a test").select_related("receiver")
    with django_assert_num_queries(1):
        assert outbox._languages(claimed) == {}
