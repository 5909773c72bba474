"""Alarms, receivers and events in the console."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.alarms.delivery import secrets
from controlplane.alarms.events import KINDS
from controlplane.alarms.models import Alarm, Delivery, Receiver
from controlplane.console.views.alarms import SHOWN, kinds_shown
from controlplane.history.models import GroupRebalances
from controlplane.instances.models import Instance
from tests.controlplane.alarms.rows import (
    absence,
    alarm_row,
    event_row,
    expiring,
    moved,
    rebalanced,
    receiver_row,
    resized,
    throttled,
)

from .conftest import problem_beside, shown_by, text_of

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


def test_of_a_figure_of_any_the_group_or_broker_whose_value_it_is_is_named(at_alice, at, instance):
    group = {"watch": "any_group_lag_messages", "value": 9.0, "value_of": "billing"}
    broker = {"watch": "any_broker_produce_p99_ms", "value": 400.0, "value_of": "3"}
    for number, members in enumerate((group, broker)):
        alarm_row(instance, f"alm-00000000000{number}", threshold=1.0, **members)
    listed = text_of(at_alice.get(f"{at}/alarms"))
    assert "9 records group billing" in listed
    assert "400 ms broker 3" in listed
    assert "broker 3" in text_of(at_alice.get(f"{at}/alarms/alm-000000000001"))


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


@pytest.fixture
def opened(at_alice, at, instance):
    """A colleague changes the alarm once its page was opened; then the form is sent with what is changed here."""

    def opened(theirs, **ours):
        ann, bob, eve = (receiver_row(instance, f"rcv-00000000000{n}", name=f"receiver {n}").pk for n in (1, 2, 3))
        people = {"ann": ann, "bob": bob, "eve": eve}
        named = lambda fields: {  # noqa: E731
            name: [people[each] for each in value] if name == "receivers" else value for name, value in fields.items()
        }
        alarm = alarm_row(instance, name="storage", threshold=90.0, duration_s=150, repeat_s=3600, receivers=[ann])
        page = shown_by(at_alice.get(f"{at}/alarms/{alarm.id}"))
        before = FORM | {"receivers": [ann]}
        at_alice.post(f"{at}/alarms/{alarm.id}", before | named(theirs) | page)
        answer = at_alice.post(f"{at}/alarms/{alarm.id}", before | named(ours) | page, follow=True)
        alarm.refresh_from_db()
        return alarm, answer, people

    return opened


def test_a_page_that_was_opened_earlier_takes_nothing_back(opened):
    alarm, page, people = opened(
        {"threshold": "95", "repeat_s": "0", "receivers": ["ann", "bob"]},
        name="disk",
        comparison="above",
        receivers=["eve"],
    )
    assert "The rule was changed." in text_of(page)
    assert (alarm.name, alarm.comparison, alarm.threshold, alarm.repeat_s) == ("disk", "above", 95.0, None)
    assert set(alarm.receivers) == {people["bob"], people["eve"]}


def test_a_threshold_is_not_set_for_what_a_colleague_watches_meanwhile(opened):
    """95 of % is no 95 of milliseconds."""
    alarm, page, _ = opened({"watch": "produce_p99_ms", "threshold": "200"}, threshold="95")
    assert page.status_code == 422
    assert "Somebody else has changed what the alarm watches. Load the page again" in text_of(page)
    assert (alarm.watch, alarm.threshold) == ("produce_p99_ms", 200.0)


def test_what_has_nothing_to_do_with_what_is_watched_is_changed_all_the_same(opened):
    alarm, _, _ = opened({"watch": "produce_p99_ms", "threshold": "200"}, name="disk")
    assert (alarm.name, alarm.watch, alarm.threshold) == ("disk", "produce_p99_ms", 200.0)


def test_whoever_watches_something_else_sends_all_that_it_is_compared_with(opened):
    alarm, _, _ = opened({"threshold": "95"}, watch="produce_p99_ms")
    assert (alarm.watch, alarm.threshold) == ("produce_p99_ms", 90.0)


def test_a_rule_that_is_saved_as_it_is_is_no_change(opened):
    assert "Nothing was changed." in text_of(opened({})[1])


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


def test_all_alarms_are_silenced_for_a_time_and_the_silence_is_ended(at_alice, at_viewer, at, instance):
    assert "Silence all alarms" not in text_of(at_alice.get(f"{at}/alarms")), "there is none"
    for number in (1, 2):
        alarm_row(instance, f"alm-00000000000{number}")
    assert "End all silences" not in text_of(at_alice.get(f"{at}/alarms"))
    page = at_alice.post(f"{at}/alarms/silence", {"silence_s": 4 * 3600}, follow=True)
    assert "Messages of all alarms are held back" in text_of(page)
    assert "End all silences" in text_of(page)
    rows = Alarm.objects.unscoped(ROWS)
    assert rows.filter(silenced_until__gt=datetime.now(UTC) + timedelta(hours=3)).count() == 2
    assert "come again" in text_of(at_alice.post(f"{at}/alarms/silence", {"end": ""}, follow=True))
    assert rows.filter(silenced_until=None).count() == 2
    assert at_alice.post(f"{at}/alarms/silence", {"silence_s": 7}).status_code == 400
    assert "Silence all alarms" not in text_of(at_viewer.get(f"{at}/alarms"))


def test_a_receiver_is_given_another_name_and_address(at_alice, at_viewer, at, instance):
    row = receiver_row(instance)
    place = f"{at}/receivers/{row.pk}"
    assert "its secret stays" in text_of(at_alice.get(place))
    page = at_alice.post(
        place, {"change": "", "name": "on call", "address": "https://hooks.example.com/b"}, follow=True
    )
    assert "The receiver was changed" in text_of(page)
    row.refresh_from_db()
    assert (row.name, row.full_address) == ("on call", "https://hooks.example.com/b")
    at_alice.post(place, {"change": "", "name": "on call", "address": "https://hooks.example.com/b"})
    assert Receiver.objects.unscoped(ROWS).get().full_address == "https://hooks.example.com/b", "saved as it was"
    page = at_alice.post(place, {"change": "", "name": "on call", "address": "http://hooks.example.com/"})
    assert page.status_code == 422
    assert problem_beside(page, "address")
    assert "Save changes" not in text_of(at_viewer.get(place))


def test_a_page_that_was_open_takes_back_no_address_that_others_have_changed(at_alice, at, instance):
    row = receiver_row(instance)
    place = f"{at}/receivers/{row.pk}"
    opened = {"change": "", "address": row.full_address, **shown_by(at_alice.get(place))}
    at_alice.post(place, {"change": "", "name": row.name, "address": "https://hooks.example.com/mended"})
    assert "The receiver was changed" in text_of(at_alice.post(place, {**opened, "name": "on call"}, follow=True))
    row.refresh_from_db()
    assert (row.name, row.full_address) == ("on call", "https://hooks.example.com/mended")
    assert "Nothing was changed" in text_of(at_alice.post(place, {**opened, "name": "pager"}, follow=True))


def test_a_code_is_said_to_be_sent_only_where_it_is(at_alice, at, instance, mailing):
    row = receiver_row(instance, kind="email", address="bob@example.com")
    place, form = f"{at}/receivers/{row.pk}", {"change": "", "address": "carol@example.com"}
    at_alice.post(place, {**form, "name": "pager"}, follow=True)
    page = text_of(at_alice.post(place, {**form, "name": "on call"}, follow=True))
    assert "The receiver was changed" in page
    assert "A code was sent" not in page


def test_another_email_address_is_sent_a_code(at_alice, at, instance, mailing):
    row = receiver_row(instance, kind="email", address="bob@example.com")
    form = {"change": "", "name": "pager", "address": "carol@example.com"}
    page = at_alice.post(f"{at}/receivers/{row.pk}", form, follow=True)
    assert "A code was sent to carol@example.com" in text_of(page)
    assert "Not confirmed" in text_of(page)


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


def test_events_of_a_time_are_chosen_and_pages_and_kinds_keep_it(at_alice, at, instance):
    alarm, now = alarm_row(instance), datetime.now(UTC)
    for minutes in range(60):
        event_row(alarm, "fired", now - timedelta(hours=5, minutes=minutes))
    event_row(alarm, "resolved", now - timedelta(hours=1))
    since, until = (f"{now - timedelta(hours=hours):%Y-%m-%dT%H:%M}Z" for hours in (7, 2))
    page = at_alice.get(f"{at}/timeline?show=alarm&since={since}&until={until}")
    assert "Alarm resolved" not in text_of(page)
    older = re.search(r'rel="next" href="([^"]+)"', page.content.decode())[1].replace("&amp;", "&")
    assert "since=" in older
    fired = sum(len(re.findall("Alarm fired", text_of(each))) for each in (page, at_alice.client.get(older)))
    assert fired == 60
    assert re.search(r'href="[^"]*show=health[^"]*since=|href="[^"]*since=[^"]*show=health', page.content.decode())
    empty = at_alice.get(f"{at}/timeline?show=alarm&since={now - timedelta(minutes=30):%Y-%m-%dT%H:%M}Z")
    assert "Nothing has happened in this time" in text_of(empty)
    assert "Alarm resolved" in text_of(at_alice.get(f"{at}/timeline"))


def test_a_time_that_makes_no_sense_is_said_beside_it(at_alice, at):
    page = at_alice.get(f"{at}/timeline?since=2026-01-02T00:00Z&until=2026-01-01T00:00Z")
    assert page.status_code == 422
    assert "later than the beginning" in text_of(page)


def test_events_of_a_deleted_instance_are_read_as_its_history_is(at_alice, at, instance):
    event_row(alarm_row(instance), "fired", datetime.now(UTC) - timedelta(hours=1))
    Instance.objects.unscoped(ROWS).filter(pk=instance.pk).update(state="deleted", deleted_at=datetime.now(UTC))
    page = at_alice.get(f"{at}/timeline")
    assert page.status_code == 200
    assert "Alarm fired" in text_of(page)
    assert f"{at}/receivers" not in page.content.decode(), "what is gone with it has no link"
    history = at_alice.get(f"{at}/history")
    assert f'{at}/timeline"' in history.content.decode(), "a tab leads there"


# --- figures of the history and of groups, and why there is no value -------------------------------------------------------


def test_an_alarm_about_a_group_names_it(at_alice, at):
    form = FORM | {"watch": "group_lag_messages", "group": "billing", "threshold": "1000"}
    page = at_alice.post(f"{at}/new-alarm", form, follow=True)
    assert "Lag of group billing at least 1000 records for 150 s" in text_of(page)
    made = Alarm.objects.unscoped(ROWS).get()
    assert (made.watch, made.group, made.threshold) == ("group_lag_messages", "billing", 1000.0)
    page = at_alice.get(f"{at}/alarms/{made.pk}")
    assert 'value="billing"' in page.content.decode()


def test_a_group_is_needed_for_its_figures_and_forgotten_for_others(at_alice, at):
    page = at_alice.post(f"{at}/new-alarm", FORM | {"watch": "group_lag_seconds", "group": ""})
    assert "say of which" in problem_beside(page, "group")
    at_alice.post(f"{at}/new-alarm", FORM | {"group": "typed and then not shown"})
    assert Alarm.objects.unscoped(ROWS).get().group is None


@pytest.mark.parametrize(
    ("watch", "typed", "kept", "said"),
    [
        ("produce_bytes_per_s", "4.5", 4.5 * 2**20, "Produce flow at least 4.5 MiB/s"),
        ("storage_used_bytes", "3", 3.0 * 2**30, "Storage used at least 3 GiB"),
        ("consume_throttled_ms_per_s", "12.5", 125.0, "Throttled time of consumers at least 12.5 %"),
    ],
)
def test_a_threshold_is_typed_in_the_units_of_people(at_alice, at, watch, typed, kept, said):
    page = at_alice.post(
        f"{at}/new-alarm", FORM | {"watch": watch, "threshold": typed, "duration_min": "0"}, follow=True
    )
    assert said in text_of(page)
    made = Alarm.objects.unscoped(ROWS).get()
    assert made.threshold == kept
    page = at_alice.get(f"{at}/alarms/{made.pk}").content.decode()
    assert re.search(rf'name="threshold" value="{re.escape(typed)}"', page)


@pytest.mark.parametrize(
    ("watch", "threshold"),
    [
        ("produce_bytes_per_s", 1000.0),
        ("storage_used_bytes", 123_456_789.0),
        ("produce_throttled_ms_per_s", 123.456),
        ("storage_used_percent", 33.33333),
    ],
)
def test_saving_a_rule_as_it_is_changes_nothing(at_alice, at, instance, watch, threshold):
    alarm = alarm_row(instance, watch=watch, threshold=threshold, phase="firing", firing_since=datetime.now(UTC))
    page = at_alice.get(f"{at}/alarms/{alarm.pk}").content.decode()
    typed = re.search(r'name="threshold" value="([^"]+)"', page)[1]
    form = {"name": "storage", "watch": watch, "comparison": "at_least", "threshold": typed, "duration_min": "0"}
    at_alice.post(f"{at}/alarms/{alarm.pk}", form | {"repeat_s": "0", "enabled": "on"})
    row = Alarm.objects.unscoped(ROWS).get()
    assert (row.threshold, row.phase) == (threshold, "firing")


def test_what_is_too_much_is_said_in_the_unit_in_which_it_was_typed(at_alice, at):
    page = at_alice.post(f"{at}/new-alarm", FORM | {"watch": "produce_throttled_ms_per_s", "threshold": "100.5"})
    assert "from 0 to 100." in problem_beside(page, "threshold")


def test_the_page_of_a_group_leads_to_an_alarm_about_it(at_alice, at):
    page = at_alice.get(f"{at}/new-alarm?watch=group_lag_messages&group=a%26b")
    assert 'value="a&amp;b"' in page.content.decode()
    assert '<option value="group_lag_messages" selected>' in page.content.decode()
    assert at_alice.get(f"{at}/new-alarm?watch=connections&group=x").status_code == 200


def test_without_a_value_it_is_said_why(at_alice, at, instance):
    alarm = alarm_row(instance, watch="group_lag_seconds", group="billing", phase="no_data", missing="no_group")
    for path in (f"{at}/alarms", f"{at}/alarms/{alarm.pk}"):
        assert "The group was not seen in the last three minutes" in text_of(at_alice.get(path))
    alarm.delete()
    alarm_row(instance, missing="no_sample")
    text = text_of(at_alice.get(f"{at}/alarms"))
    assert "No data" in text
    assert "OK" not in text, "nobody knows that, though it has not been so for long"


def test_what_is_beside_the_choice_shows_itself_in_every_language(at_alice, at):
    """By the numbers of the groups: their names are translated."""
    for language in ("en", "zh-hans"):
        page = at_alice.get(f"{at}/new-alarm", headers={"Accept-Language": language}).content.decode()
        assert re.findall(r'<optgroup label="[^"]+" class="([^"]+)">', page) == [
            "watch-0",
            "watch-1",
            "watch-2",
            "watch-3",
        ]


def test_events_of_some_kinds_are_chosen_and_every_kind_is_among_them(at_alice, at, instance):
    alarm, now = alarm_row(instance), datetime.now(UTC)
    for number in range(60):
        event_row(alarm, "fired", now - timedelta(minutes=number))
    throttled(instance, now - timedelta(hours=3), now - timedelta(hours=2))
    page = at_alice.get(f"{at}/timeline?show=throttling")
    assert "Producers throttled" in text_of(page)
    assert "Alarm fired" not in text_of(page)
    page = at_alice.get(f"{at}/timeline?show=alarm")
    older = re.search(r'rel="next" href="([^"]+)"', page.content.decode())[1].replace("&amp;", "&")
    assert "show=alarm" in older
    assert "Producers throttled" not in text_of(at_alice.client.get(older))
    assert "Nothing has happened" in text_of(at_alice.get(f"{at}/timeline?show=unread"))
    assert at_alice.get(f"{at}/timeline?show=weather").status_code == 404
    assert {kind for show in SHOWN if show != "all" for kind in kinds_shown(show)} == set(KINDS)


@pytest.mark.parametrize(("hours", "colour"), [(1, "healthy"), (-1, "warning")])
def test_what_may_have_expired_unread_is_no_good_news(at_alice, at, instance, hours, colour):
    now = datetime.now(UTC)
    expiring(instance, now - timedelta(hours=3), now, expires=now + timedelta(hours=hours))
    page = at_alice.get(f"{at}/timeline?show=unread")
    words = "No unread records of group billing are about to expire any more"
    assert f'<span class="state {colour}"><i></i>{words}</span>' in page.content.decode()
    assert ("Records of topic orders may have expired unread." in text_of(page)) == (colour == "warning")


def test_groups_that_rebalanced_stand_with_what_else_is_of_groups_and_a_name_forges_nothing(at_alice, at, instance):
    now = datetime.now(UTC)
    rebalanced(instance, now - timedelta(hours=1), times=3, seen=now)
    GroupRebalances.objects.update(group="two\nlines<b>")
    page = at_alice.get(f"{at}/timeline?show=unread")
    assert "Group two\N{REPLACEMENT CHARACTER}lines&lt;b&gt; rebalanced" in text_of(page)
    assert "3 times in the hour from" in text_of(page)


def test_events_of_every_kind_are_listed_in_words(at_alice, at, instance):
    now = datetime.now(UTC)
    Instance.objects.unscoped(ROWS).update(created_at=now - timedelta(days=1))
    resized(instance, now - timedelta(hours=5), 5.0)
    resized(instance, now - timedelta(hours=4), 10.0)
    throttled(instance, now - timedelta(hours=3), now - timedelta(hours=2))
    absence(instance, now - timedelta(hours=2), now - timedelta(hours=1))
    moved(instance, "reb-000000000001", now - timedelta(hours=2), now - timedelta(hours=1))
    expiring(instance, now - timedelta(hours=1), now, group="Storage is full", expires=now + timedelta(hours=1))
    text = text_of(at_alice.get(f"{at}/timeline"))
    for said in (
        "Unread records of group Storage is full are about to expire 1204 records of topic orders may expire unread from",
        "No unread records of group Storage is full are about to expire any more",
        "Resized Bandwidth 5 → 10 MiB/s.",
        "Producers throttled",
        "Producers no longer throttled It lasted 1 h.",
        "Broker 2 of the cluster went away",
        "Broker 2 is back",
        "Moving partitions between brokers: done 1 copied to other brokers, 1 led by another replica.",
    ):
        assert said in text


@pytest.mark.parametrize("addresses", [[], ["127.0.0.1", "10.0.0.1"]])
def test_a_webhook_whose_name_has_no_public_address_now_is_taken_with_a_remark(at_alice, at, names, addresses):
    """A name that nobody has and one that points inside are told by the same words: nobody learns which there are."""
    names["hooks.example.com"] = addresses
    page = at_alice.post(
        f"{at}/receivers", {"name": "pager", "kind": "webhook", "address": "https://hooks.example.com/x"}
    )
    assert "ooks.example.com has no public address" in text_of(page)
    assert "each message looks for it again" in text_of(page)
    assert Receiver.objects.unscoped("a test").count() == 1


def test_a_webhook_that_can_be_reached_has_no_remark(at_alice, at):
    page = at_alice.post(
        f"{at}/receivers", {"name": "pager", "kind": "webhook", "address": "https://hooks.example.com/x"}
    )
    assert "no public address" not in text_of(page)


def test_a_name_that_is_taken_is_said_beside_it_and_old_ones_are_told_apart(at_alice, at, instance):
    for number in (1, 2):
        receiver_row(instance, f"rcv-{number:012}", name="pager")
    page = at_alice.post(
        f"{at}/receivers", {"name": "pager", "kind": "webhook", "address": "https://hooks.example.com/x"}
    )
    assert "has a receiver pager" in problem_beside(page, "name")
    shown = text_of(at_alice.get(f"{at}/new-alarm"))
    assert ", rcv-000000000001" in shown
    assert ", rcv-000000000002" in shown


def test_how_a_receiver_is_told_is_in_the_language_of_the_page(at_alice, at):
    shown = text_of(at_alice.get(f"{at}/receivers", headers={"Accept-Language": "zh-Hans"}))
    assert "电子邮件" in shown
    assert "E-mail" not in shown
