"""Alarms, receivers and events in the console."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.alarms.delivery import secrets
from controlplane.alarms.models import Alarm, Delivery, Receiver
from tests.controlplane.alarms.rows import alarm_row, event_row, receiver_row

from .conftest import problem_beside, text_of

ROWS = "a test"
FORM = {
    "name": "storage", "watch": "storage_used_percent", "comparison": "at_least", "threshold": "90", "duration_min": "2.5",
    "repeat_s": "3600", "enabled": "on",
}  # fmt: skip


@pytest.fixture
def at(instance):
    return f"instances/{instance.id}"


@pytest.fixture
def mailing(settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, smtp="127.0.0.1:1", email_from="alarms@sluice.example.com")


def test_the_first_alarm(at_alice, at, instance):
    assert "No alarm yet" in text_of(at_alice.get(f"{at}/alarms"))
    receiver = receiver_row(instance)
    page = at_alice.post(f"{at}/new-alarm", FORM | {"receivers": [receiver.pk]}, follow=True)
    assert "storage is looked at within 30 seconds" in text_of(page)
    assert "Storage used at least 90 % for 150 s" in text_of(page)
    made = Alarm.objects.unscoped(ROWS).get()
    assert (made.duration_s, made.repeat_s, made.receivers, made.threshold) == (150, 3600, [receiver.pk], 90.0)


def test_a_health_reason_needs_no_threshold(at_alice, at):
    at_alice.post(f"{at}/new-alarm", FORM | {"watch": "route_down"})
    made = Alarm.objects.unscoped(ROWS).get()
    assert (made.comparison, made.threshold) == (None, None)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", " ", "required"),
        ("threshold", "", "say with what"),
        ("threshold", "-1", "from 0 to"),
        ("duration_min", "1441", "1440"),
        ("watch", "weather", "not one of the available choices"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(at_alice, at, field, value, said):
    page = at_alice.post(f"{at}/new-alarm", FORM | {field: value})
    assert page.status_code == 422
    assert said in problem_beside(page, field)


def test_the_loudest_stands_first_and_the_overview_has_a_line(at_alice, at, instance):
    assert "alarm fires" not in text_of(at_alice.get(at))
    now = datetime.now(UTC)
    alarm_row(instance, "alm-000000000001", name="quiet")
    alarm_row(instance, "alm-000000000002", name="loud", phase="firing", since=now, firing_since=now, value=93.5)
    alarm_row(instance, "alm-000000000003", name="blind", phase="no_data", firing_since=now)
    alarm_row(instance, "alm-000000000004", name="off", enabled=False, phase="ok")
    alarm_row(instance, "alm-000000000005", name="hushed", silenced_until=now + timedelta(hours=1))
    page = at_alice.get(f"{at}/alarms")
    names = re.findall(r'class="row-link"[^>]*>(.*?)</a>', page.content.decode())
    assert names == ["loud", "blind", "hushed", "quiet", "off"]
    assert "Firing" in text_of(page)
    assert "93.5 %" in text_of(page)
    assert "fires since" in text_of(page)
    assert "silenced until" in text_of(page)
    overview = text_of(at_alice.get(at))
    assert "2 alarms fire:" in overview
    assert "blind" in overview
    part = at_alice.get(f"{at}/alarms", headers={"HX-Request": "true"})
    assert b"<html" not in part.content


def test_one_alarm_its_history_and_its_rule(at_alice, at, instance):
    receiver = receiver_row(instance)
    alarm = alarm_row(instance, receivers=[receiver.pk], duration_s=90, repeat_s=777)
    event_row(alarm, "fired", datetime.now(UTC), value=93.0)
    page = at_alice.get(f"{at}/alarms/{alarm.id}")
    assert "Fired 93 %" in text_of(page)
    assert "pager" in text_of(page)
    assert 'value="1.5"' in page.content.decode()
    assert "Every 777 s" in text_of(page)
    changed = FORM | {"name": "disk", "duration_min": "0", "receivers": []}
    page = at_alice.post(f"{at}/alarms/{alarm.id}", changed, follow=True)
    assert "The rule was changed" in text_of(page)
    row = Alarm.objects.unscoped(ROWS).get()
    assert (row.name, row.duration_s, row.receivers) == ("disk", 0, [])


def test_a_silence_is_begun_and_ended_and_an_alarm_deleted(at_alice, at, instance):
    alarm = alarm_row(instance)
    page = at_alice.post(f"{at}/alarms/{alarm.id}/silence", {"silence_s": 30 * 86_400}, follow=True)
    assert "are held back" in text_of(page)
    assert Alarm.objects.unscoped(ROWS).get().silenced_until is not None
    page = at_alice.post(f"{at}/alarms/{alarm.id}/silence", {"end": ""}, follow=True)
    assert "come again" in text_of(page)
    assert Alarm.objects.unscoped(ROWS).get().silenced_until is None
    assert at_alice.post(f"{at}/alarms/{alarm.id}/silence", {"silence_s": 7}).status_code == 400
    assert "was deleted" in text_of(at_alice.post(f"{at}/alarms/{alarm.id}/removal", follow=True))


def test_a_webhook_is_added_and_its_secret_shown_once(at_alice, at):
    form = {"name": "pager", "kind": "webhook", "address": "https://hooks.example.com/"}
    page = at_alice.post(f"{at}/receivers", form)
    secret = re.search(r"whsec_[A-Za-z0-9+/=]+", page.content.decode())[0]
    assert secret not in at_alice.get(f"{at}/receivers").content.decode()
    row = Receiver.objects.unscoped(ROWS).get()
    page = at_alice.post(f"{at}/receivers/{row.pk}", {"secret": ""})
    assert re.search(r"whsec_[A-Za-z0-9+/=]+", page.content.decode())[0] != secret
    assert "signed with the one before as well" in text_of(page)


@pytest.mark.parametrize("address", ["http://hooks.example.com/", "https://127.0.0.1/"])
def test_an_address_that_will_not_do_is_said_beside_it(at_alice, at, address):
    page = at_alice.post(f"{at}/receivers", {"name": "pager", "kind": "webhook", "address": address})
    assert problem_beside(page, "address")


def test_without_a_mail_server_it_is_said(at_alice, at):
    assert "sends no e-mail yet" in text_of(at_alice.get(f"{at}/receivers"))
    page = at_alice.post(f"{at}/receivers", {"name": "bob", "kind": "email", "address": "bob@example.com"})
    assert "sends no e-mail" in problem_beside(page, "address")


def test_an_email_address_is_confirmed_by_its_code(at_alice, at, mailing):
    form = {"name": "bob", "kind": "email", "address": "bob@example.com"}
    page = at_alice.post(f"{at}/receivers", form, follow=True)
    assert "A code was sent to bob@example.com" in text_of(page)
    assert "Not confirmed" in text_of(page)
    row = Receiver.objects.unscoped(ROWS).get()
    code = secrets.code_of(row)
    assert code not in page.content.decode()
    wrong = at_alice.post(f"{at}/receivers/{row.pk}", {"code": "nothing"})
    assert "Is not the one" in problem_beside(wrong, "code")
    assert "is confirmed" in text_of(at_alice.post(f"{at}/receivers/{row.pk}", {"code": code}, follow=True))


def test_messages_show_what_became_of_them_and_a_test_is_sent(at_alice, at, instance):
    receiver = receiver_row(instance)
    page = at_alice.post(f"{at}/receivers/{receiver.pk}/test", follow=True)
    assert "On its way" in text_of(page)
    Delivery.objects.unscoped(ROWS).update(attempts=3, error="hooks.example.com answers 503")
    page = text_of(at_alice.get(f"{at}/receivers/{receiver.pk}"))
    assert "Tried 3 times hooks.example.com answers 503" in page
    assert "Tried 3 times" in text_of(at_alice.get(f"{at}/receivers"))
    assert "told nothing any more" in text_of(at_alice.post(f"{at}/receivers/{receiver.pk}/removal", follow=True))


def test_a_viewer_sees_them_and_no_form(at_viewer, at, instance):
    alarm, receiver = alarm_row(instance), receiver_row(instance)
    for path in ("alarms", f"alarms/{alarm.id}", "receivers", f"receivers/{receiver.id}", "new-alarm"):
        page = at_viewer.get(f"{at}/{path}").content.decode()
        main = page[page.index("<main") :]
        assert 'method="post"' not in main, path
        assert "New alarm</a>" not in main


def test_events_are_listed_in_words_with_a_way_to_the_older_ones(at_alice, at, instance):
    alarm = alarm_row(instance)
    for number in range(60):
        event_row(alarm, "fired", datetime.now(UTC) - timedelta(minutes=number))
    page = at_alice.get(f"{at}/timeline")
    text = text_of(page)
    assert "Alarm fired storage" in text
    assert "Create an instance: done" in text
    older = re.search(r'rel="next" href="([^"]+)"', page.content.decode())[1].replace("&amp;", "&")
    assert (
        len(re.findall("Alarm fired", text)) + len(re.findall("Alarm fired", text_of(at_alice.client.get(older)))) == 60
    )
    assert at_alice.get(f"{at}/timeline?at=x&of=0&key=1").status_code == 400
