"""Alarms and receivers by REST: what is taken and refused, who may, what is audited, and what becomes of a change."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.alarms.delivery import outbox, secrets
from controlplane.alarms.evaluation import evaluate
from controlplane.alarms.models import Alarm, AlarmEvent, Delivery, Receiver
from controlplane.api.examples.bodies import BODIES
from controlplane.core.models import AuditEntry
from controlplane.idempotency.models import RepeatableCall
from controlplane.instances.models import Instance
from tests.controlplane.test_instances_api import problem

from .rows import STORAGE, alarm_row, event_row, receiver_row

ROWS = "a test"
RULE = {"name": "storage", **STORAGE}
HOOK = {"name": "pager", "kind": "webhook", "address": "https://hooks.example.com/x?token=tell-nobody"}
MAIL = {"name": "bob", "kind": "email", "address": "bob@example.com"}


@pytest.fixture
def url(instance):
    return f"/api/v1/instances/{instance.id}"


@pytest.fixture
def made(alice, url):
    answer = alice.api.post(f"{url}/alarms", RULE)
    assert answer.status_code == 201, answer.content
    return answer.json()


@pytest.fixture
def hooked(alice, url):
    return alice.api.post(f"{url}/receivers", HOOK).json()


@pytest.fixture
def mailing(settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, smtp="127.0.0.1:1", email_from="alarms@sluice.example.com")


def audited(alice, action):
    return list(AuditEntry.objects.for_organisation(alice.organisation).filter(action=action).order_by("pk"))


def code_of(receiver_id):
    return secrets.code_of(Receiver.objects.unscoped(ROWS).get(pk=receiver_id))


# --- alarms -------------------------------------------------------------------------------------------------------------


def test_one_is_made_shown_and_listed(alice, bob, url, made):
    assert {name: made[name] for name in RULE} == {**RULE, "threshold": 90}
    assert (made["state"], made["value"], made["firing_since"], made["unit"]) == ("ok", None, None, "%")
    assert (made["enabled"], made["duration_s"], made["repeat_s"], made["receivers"]) == (True, 0, None, [])
    assert bob.api.get(f"{url}/alarms/{made['id']}").json() == made
    assert alice.api.get(f"{url}/alarms").json() == {"items": [made], "next": None}
    (entry,) = audited(alice, "alarm.create")
    assert entry.target == f"{url.rpartition('/')[2]}/{made['id']}"
    assert entry.detail["watch"] == "storage_used_percent"


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"threshold": None}, "threshold"),
        ({"threshold": "90"}, "threshold"),
        ({"comparison": None}, "comparison"),
        ({"comparison": "near"}, "comparison"),
        ({"watch": "weather"}, "watch"),
        ({"watch": "storage_full"}, "comparison"),
        ({"name": " "}, "name"),
        ({"duration_s": 86_401}, "duration_s"),
        ({"duration_s": True}, "duration_s"),
        ({"repeat_s": 299}, "repeat_s"),
        ({"receivers": ["rcv-000000000009"]}, "receivers.0"),
        ({"enabled": 1}, "enabled"),
        ({"threshold": 1001}, "threshold"),
        ({"group": "billing"}, "group"),
        ({"watch": "group_lag_messages", "group": "x" * 1001}, "group"),
        ({"watch": "group_lag_messages", "group": 7}, "group"),
        ({"treshold": 9}, "treshold"),
    ],
)
def test_what_is_wrong_is_named_by_its_field(alice, url, members, field):
    found = problem(alice.api.post(f"{url}/alarms", RULE | members), 400, "invalid")
    assert field in {each["field"] for each in found["errors"]}
    assert Alarm.objects.unscoped(ROWS).count() == 0


def test_an_alarm_about_a_group_names_it_and_begins_anew_with_another(alice, url):
    body = {"name": "lag", "watch": "group_lag_messages", "comparison": "above", "threshold": 1000}
    assert {each["field"] for each in problem(alice.api.post(f"{url}/alarms", body), 400, "invalid")["errors"]} == {
        "group"
    }
    made = alice.api.post(f"{url}/alarms", body | {"group": " billing "}).json()
    assert (made["group"], made["unit"], made["missing"]) == (" billing ", "records", None)
    path = f"{url}/alarms/{made['id']}"
    Alarm.objects.unscoped(ROWS).update(phase="firing", firing_since=datetime.now(UTC), value=5000, missing="no_group")
    assert alice.api.get(path).json()["missing"] == "no_group"
    changed = alice.api.patch(path, {"group": "shipping"}).json()
    assert (changed["group"], changed["state"], changed["value"], changed["missing"]) == ("shipping", "ok", None, None)
    changed = alice.api.patch(path, {"watch": "connections", "threshold": 1000}).json()
    assert (changed["watch"], changed["group"], changed["threshold"]) == ("connections", None, 1000)
    problem(alice.api.patch(path, {"group": "billing"}), 400, "invalid")


def test_there_are_fifty_at_most(alice, url, instance):
    for number in range(50):
        alarm_row(instance, f"alm-{number:012}")
    problem(alice.api.post(f"{url}/alarms", RULE), 409, "too_many_alarms")
    assert alice.api.delete(f"{url}/alarms/alm-000000000007").status_code == 204
    assert alice.api.post(f"{url}/alarms", RULE).status_code == 201


def test_a_viewer_looks_and_changes_nothing(viewer, url, made, hooked):
    alarm, receiver = f"{url}/alarms/{made['id']}", f"{url}/receivers/{hooked['id']}"
    for path in (alarm, f"{alarm}/events", receiver, f"{receiver}/messages", f"{url}/events"):
        assert viewer.api.get(path).status_code == 200
    for method, path in (
        ("post", f"{url}/alarms"), ("patch", alarm), ("delete", alarm), ("post", f"{alarm}/silence"),
        ("post", f"{url}/receivers"), ("delete", receiver), ("post", f"{receiver}/test"),
        ("post", f"{receiver}/secret"), ("post", f"{receiver}/confirm"), ("patch", receiver),
    ):  # fmt: skip
        problem(getattr(viewer.api, method)(path, {}), 403, "forbidden")


def test_a_viewer_sees_of_a_webhook_where_it_goes_and_not_what_is_as_good_as_a_password(alice, viewer, url):
    address = "https://hooks.example.com:8443/services/T0/B0/a-secret?token=x"
    body = {"name": "on call", "kind": "webhook", "address": address}
    made = alice.api.post(f"{url}/receivers", body).json()
    assert made["address"] == alice.api.get(f"{url}/receivers/{made['id']}").json()["address"] == address
    for seen in (
        viewer.api.get(f"{url}/receivers/{made['id']}").json(),
        viewer.api.get(f"{url}/receivers").json()["items"][0],
    ):
        assert seen["address"] == "https://hooks.example.com:8443"


def test_an_instance_that_is_being_deleted_takes_none(alice, url, made):
    Instance.objects.unscoped(ROWS).update(state="deleting")
    problem(alice.api.post(f"{url}/alarms", RULE), 409, "instance_deleting")


def test_the_same_key_makes_one(alice, url):
    answers = [alice.api.post(f"{url}/alarms", RULE, HTTP_IDEMPOTENCY_KEY="k") for _ in range(2)]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert Alarm.objects.unscoped(ROWS).count() == 1


def test_a_change_of_the_name_leaves_the_state_and_one_of_the_threshold_begins_anew(
    alice, url, storage, clock, sampled
):
    receiver = alice.api.post(f"{url}/receivers", HOOK).json()["id"]
    made = alice.api.post(f"{url}/alarms", RULE | {"receivers": [receiver]}).json()["id"]
    path = f"{url}/alarms/{made}"
    clock.time = datetime.now(UTC)
    storage.percent = 95
    clock.advance(30)
    sampled(clock)
    evaluate(clock=clock)
    assert alice.api.get(path).json()["state"] == "firing"
    assert alice.api.patch(path, {"name": "disk", "repeat_s": 600}).json()["state"] == "firing"
    changed = alice.api.patch(path, {"threshold": 99}).json()
    assert (changed["state"], changed["value"], changed["firing_since"]) == ("ok", None, None)
    events = alice.api.get(f"{path}/events").json()["items"]
    assert {(each["kind"], each["actor"]) for each in events} == {("fired", ""), ("resolved", "alice@example.com")}
    types = [row.document["type"] for row in Delivery.objects.unscoped(ROWS).order_by("created_at")]
    assert sorted(types) == ["alarm.firing", "alarm.resolved"]
    resolved = Delivery.objects.unscoped(ROWS).exclude(document__type="alarm.firing").get()
    assert resolved.document["data"]["alarm"]["threshold"] == 90, "the message is about the rule that fired"
    assert audited(alice, "alarm.update")[-1].detail == {"threshold": {"from": 90, "to": 99}}


@pytest.mark.parametrize("change", [{"enabled": False}, None])
def test_switching_off_and_deleting_tell_those_who_know_it_as_firing(alice, url, instance, change):
    receiver = receiver_row(instance)
    alarm = alarm_row(instance, receivers=[receiver.pk], phase="firing", firing_since=datetime.now(UTC), told=True)
    path = f"{url}/alarms/{alarm.id}"
    answer = alice.api.delete(path) if change is None else alice.api.patch(path, change)
    assert answer.status_code in (200, 204)
    assert Delivery.objects.unscoped(ROWS).get().document["type"] == "alarm.resolved"
    assert alice.api.get(path).status_code == (404 if change is None else 200)


def test_a_figure_becomes_a_reason_without_what_it_was_compared_with(alice, url, made):
    changed = alice.api.patch(f"{url}/alarms/{made['id']}", {"watch": "route_down"}).json()
    assert (changed["watch"], changed["comparison"], changed["threshold"]) == ("route_down", None, None)
    problem(alice.api.patch(f"{url}/alarms/{made['id']}", {"watch": "connections"}), 400, "invalid")


@pytest.mark.parametrize("watch", ["storage_used_bytes", "connections", "produce_throttled_ms_per_s"])
def test_a_figure_of_another_unit_does_not_take_the_threshold_along(alice, url, made, watch):
    path = f"{url}/alarms/{made['id']}"
    refused = problem(alice.api.patch(path, {"watch": watch}), 400, "invalid")
    assert [(each["field"], each["detail"]) for each in refused["errors"]] == [
        ("threshold", f"{watch} is compared: say with what")
    ]
    assert alice.api.get(path).json() == made
    changed = alice.api.patch(path, {"watch": watch, "threshold": 7}).json()
    assert (changed["watch"], changed["comparison"], changed["threshold"]) == (watch, made["comparison"], 7)


def test_a_figure_of_the_same_unit_keeps_the_threshold(alice, url, made):
    changed = alice.api.patch(f"{url}/alarms/{made['id']}", {"watch": "produce_percent"}).json()
    assert (changed["watch"], changed["threshold"]) == ("produce_percent", made["threshold"])


def test_a_figure_of_a_group_does_not_take_the_threshold_of_one_of_the_instance(alice, url, made):
    path, of_group = f"{url}/alarms/{made['id']}", {"watch": "group_lag_seconds", "group": "billing"}
    problem(alice.api.patch(path, of_group), 400, "invalid")
    assert alice.api.patch(path, of_group | {"threshold": 600}).json()["threshold"] == 600


def test_a_change_of_nothing_is_refused_and_one_to_the_same_is_nothing(alice, url, made):
    problem(alice.api.patch(f"{url}/alarms/{made['id']}", {}), 400, "invalid")
    assert alice.api.patch(f"{url}/alarms/{made['id']}", {"threshold": 90}).json() == made
    assert audited(alice, "alarm.update") == []


def test_a_silence_begins_and_ends(alice, url, made):
    path = f"{url}/alarms/{made['id']}/silence"
    until = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    answer = alice.api.post(path, {"until": until.isoformat()})
    assert datetime.fromisoformat(answer.json()["silenced_until"]) == until
    assert alice.api.post(path, {"until": None}).json()["silenced_until"] is None
    example = BODIES["AlarmSilenceRequest"]
    assert alice.api.post(path, example).status_code == 200, "whenever somebody tries what is published"
    for wrong in (datetime.now(UTC) - timedelta(seconds=1), datetime.now(UTC) + timedelta(days=31)):
        problem(alice.api.post(path, {"until": wrong.isoformat()}), 400, "invalid")
    problem(alice.api.post(path, {}), 400, "invalid")
    told = [entry.detail["until"] for entry in audited(alice, "alarm.silence")]
    assert [(each["from"] is None, each["to"] is None) for each in told] == [(True, False), (False, True)]
    assert told[1]["from"] == told[0]["to"]


def test_all_alarms_are_silenced_at_once_and_one_that_is_silenced_for_longer_stays_so(alice, url, instance):
    now = datetime.now(UTC).replace(microsecond=0)
    longer, until = now + timedelta(days=2), now + timedelta(hours=1)
    alarm_row(instance, "alm-000000000001")
    alarm_row(instance, "alm-000000000002", silenced_until=longer)
    alarm_row(instance, "alm-000000000003", silenced_until=now + timedelta(minutes=1), enabled=False)
    alarm_row(instance, "alm-000000000004", deleted_at=now)
    path = f"{url}/silence"
    foretold = alice.api.post(f"{path}?dry_run=true", {"until": until.isoformat()}).json()
    assert {name.partition(".")[0] for name in foretold["changes"]} == {"alm-000000000001", "alm-000000000003"}
    assert audited(alice, "alarm.silence") == [], "nothing was done"
    answer = alice.api.post(path, {"until": until.isoformat()})
    assert answer.status_code == 200, answer.content
    found = {each["id"]: datetime.fromisoformat(each["silenced_until"]) for each in answer.json()["items"]}
    assert found == {"alm-000000000001": until, "alm-000000000002": longer, "alm-000000000003": until}
    assert len(audited(alice, "alarm.silence")) == 2, "each alarm that was changed has an entry of its own"
    ended = alice.api.post(path, {"until": None}).json()["items"]
    assert [each["silenced_until"] for each in ended] == [None, None, None]
    assert alice.api.post(path, {"until": None}).status_code == 200
    assert len(audited(alice, "alarm.silence")) == 5, "what is so already is no change"


def test_a_silence_of_all_alarms_is_30_days_at_most_and_viewers_begin_none(alice, viewer, url, instance):
    alarm_row(instance)
    for wrong in (datetime.now(UTC) - timedelta(seconds=1), datetime.now(UTC) + timedelta(days=31)):
        problem(alice.api.post(f"{url}/silence", {"until": wrong.isoformat()}), 400, "invalid")
    problem(alice.api.post(f"{url}/silence", {}), 400, "invalid")
    assert viewer.api.post(f"{url}/silence", {"until": None}).status_code == 403


def test_events_come_page_by_page_the_newest_first(alice, url, instance):
    alarm, now = alarm_row(instance), datetime.now(UTC)
    for number in range(7):
        event_row(alarm, at=now - timedelta(minutes=number // 2), kind="fired" if number % 2 else "told", value=number)
    found, address = [], f"{url}/alarms/{alarm.id}/events?limit=3"
    while address:
        page = alice.api.get(address).json()
        found += page["items"]
        address = page["next"] and f"{url}/alarms/{alarm.id}/events?limit=3&cursor={page['next']}"
    assert len(found) == len({(each["time"], each["kind"]) for each in found}) == 7
    assert [each["time"] for each in found] == sorted((each["time"] for each in found), reverse=True)
    for cursor in ("x", "W10", "WyIyMDI2IiwgInRleHQiXQ", "WyIyMDI2LTAxLTAxIiwgLTFd"):
        problem(alice.api.get(f"{url}/alarms/{alarm.id}/events?cursor={cursor}"), 400, "invalid")


# --- receivers ----------------------------------------------------------------------------------------------------------


def test_a_webhooks_secret_is_shown_once_and_sealed(alice, url):
    answer = alice.api.post(f"{url}/receivers", HOOK)
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    made = answer.json()
    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    assert made["confirmed"] is True
    assert alice.api.get(f"{url}/receivers/{made['id']}").json() == made
    assert alice.api.get(f"{url}/receivers").json()["items"] == [made]
    row = Receiver.objects.unscoped(ROWS).get()
    assert secret.removeprefix("whsec_").encode() not in bytes(row.secret)
    (entry,) = audited(alice, "receiver.create")
    assert "tell-nobody" not in str(entry.detail)
    assert entry.detail["address"] == "https://hooks.example.com"


def test_a_repeated_call_does_not_show_a_secret_again(alice, url):
    alice.api.post(f"{url}/receivers", HOOK, HTTP_IDEMPOTENCY_KEY="k")
    again = alice.api.post(f"{url}/receivers", HOOK, HTTP_IDEMPOTENCY_KEY="k")
    assert b"whsec_" not in again.content
    assert Receiver.objects.unscoped(ROWS).count() == 1


def test_no_answer_that_is_kept_for_repetitions_has_a_webhooks_path_in_it(alice, url, hooked):
    place = f"{url}/receivers/{hooked['id']}"
    for number, (path, body) in enumerate((("confirm", {"code": "none"}), ("test", None), ("secret", None))):
        answer = alice.api.post(f"{place}/{path}", body, HTTP_IDEMPOTENCY_KEY=f"k{number}")
        assert answer.status_code in (200, 202)
    kept = RepeatableCall.objects.unscoped(ROWS)
    assert kept.count() == 3
    assert not any("tell-nobody" in call.body for call in kept)


def test_another_secret_is_made_and_the_one_before_stays_for_a_day(alice, url, hooked):
    answer = alice.api.post(f"{url}/receivers/{hooked['id']}/secret")
    assert answer["Cache-Control"] == "no-store"
    rotated = answer.json()
    assert rotated["secret"] != hooked["secret"]
    until = datetime.fromisoformat(rotated["previous_secret_until"]) - datetime.now(UTC)
    assert timedelta(hours=23) < until <= timedelta(hours=24)
    assert len(audited(alice, "receiver.rotate")) == 1


@pytest.mark.parametrize(
    "address",
    [
        "http://hooks.example.com/",
        "https://127.0.0.1/",
        "https://[::ffff:10.0.0.1]/",
        "https://hooks.example.com:25/",
        "x",
    ],
)
def test_a_webhook_goes_to_public_addresses_inside_tls(alice, url, address):
    found = problem(alice.api.post(f"{url}/receivers", HOOK | {"address": address}), 400, "invalid")
    assert found["errors"][0]["field"] == "address"


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "db", "db.internal", "printer.local", "x.home.arpa"])
def test_a_name_that_can_be_no_public_server_is_refused_where_it_is_typed(alice, url, host):
    found = problem(alice.api.post(f"{url}/receivers", HOOK | {"address": f"https://{host}/x"}), 400, "invalid")
    assert found["errors"][0]["detail"] == f"{host} has no public address"


def test_two_receivers_of_an_instance_are_not_called_the_same(alice, url, hooked, mailing):
    problem(alice.api.post(f"{url}/receivers", HOOK), 409, "receiver_exists")
    problem(alice.api.post(f"{url}/receivers", MAIL | {"name": hooked["name"]}), 409, "receiver_exists")
    assert alice.api.delete(f"{url}/receivers/{hooked['id']}").status_code == 204
    assert alice.api.post(f"{url}/receivers", HOOK).status_code == 201


def test_an_email_address_is_confirmed_by_who_reads_it(alice, url, mailing):
    made = alice.api.post(f"{url}/receivers", MAIL).json()
    assert (made["confirmed"], made["secret"]) == (False, None)
    mailed = Delivery.objects.unscoped(ROWS).get()
    code = code_of(made["id"])
    assert (mailed.kind, mailed.address) == ("confirm", "bob@example.com")
    assert code not in str(mailed.document), "it is put in when the mail is sent"
    assert code not in alice.api.get(f"{url}/receivers/{made['id']}").content.decode()
    assert code not in alice.api.get(f"{url}/receivers/{made['id']}/messages").content.decode()
    problem(alice.api.post(f"{url}/receivers/{made['id']}/confirm", {"code": "wrong"}), 400, "invalid")
    confirmed = alice.api.post(f"{url}/receivers/{made['id']}/confirm", {"code": f" {code.upper()} "}).json()
    assert confirmed["confirmed"] is True
    mailed.refresh_from_db()
    assert (mailed.state, mailed.error) == ("failed", "the address is confirmed"), "it had not been sent yet"


def test_the_mail_has_the_code_and_the_database_has_not(alice, url, instance, mail):
    made = alice.api.post(f"{url}/receivers", MAIL).json()
    code = code_of(made["id"])
    assert outbox.send_due() == 1
    (mailed,) = mail.mails
    assert f"    {code}" in mailed.get_content().splitlines()
    row = Receiver.objects.unscoped(ROWS).get()
    assert code not in str(Delivery.objects.unscoped(ROWS).get().document)
    assert code.encode() not in bytes(row.sealed_code)
    answer = alice.api.post(f"{url}/receivers/{made['id']}/confirm", {"code": code})
    assert answer.json()["confirmed"] is True
    assert Delivery.objects.unscoped(ROWS).get().state == "sent"


def test_the_mail_with_the_code_holds_nothing_that_a_tenant_has_written(alice, url, mailing, instance):
    Instance.objects.unscoped(ROWS).update(name="buy at evil.example.com")
    alice.api.post(f"{url}/receivers", MAIL | {"name": "click evil.example.com"})
    text = Delivery.objects.unscoped(ROWS).get().document["data"]["text"]
    assert "evil" not in text
    assert instance.id in text


def test_codes_are_few_for_an_organisation_and_for_an_address(alice, url, mailing):
    def add(address):
        answer = alice.api.post(f"{url}/receivers", MAIL | {"address": address})
        if answer.status_code == 201:
            assert alice.api.delete(f"{url}/receivers/{answer.json()['id']}").status_code == 204
        return answer

    assert [add("bob@example.com").status_code for _ in range(5)] == [201] * 5
    problem(add("bob@example.com"), 409, "too_many_codes")
    problem(add("Bob@EXAMPLE.com"), 409, "too_many_codes")
    assert [add(f"bob{n}@example.com").status_code for n in range(15)] == [201] * 15
    problem(add("somebody@example.com"), 409, "too_many_codes")


@pytest.mark.parametrize(
    "address", ["bob", "bob@", "a@b", "bob@example.com\nBcc: eve@example.com", "bøb@example.com", "a" * 260]
)
def test_what_is_no_email_address_is_refused(alice, url, mailing, address):
    found = problem(alice.api.post(f"{url}/receivers", MAIL | {"address": address}), 400, "invalid")
    assert found["errors"][0]["field"] == "address"


def test_without_a_mail_server_no_address_is_taken(alice, url):
    problem(alice.api.post(f"{url}/receivers", MAIL), 409, "email_off")


def test_there_are_ten_at_most(alice, url, instance):
    for number in range(10):
        receiver_row(instance, f"rcv-{number:012}")
    problem(alice.api.post(f"{url}/receivers", HOOK), 409, "too_many_receivers")


def test_a_test_message_is_on_its_way_and_not_more_than_one_in_ten_seconds(alice, url, hooked):
    answer = alice.api.post(f"{url}/receivers/{hooked['id']}/test")
    assert answer.status_code == 202
    assert (answer.json()["kind"], answer.json()["state"]) == ("test", "waiting")
    again = problem(alice.api.post(f"{url}/receivers/{hooked['id']}/test"), 429, "too_many_attempts")
    assert again["retriable"] is True
    (shown,) = alice.api.get(f"{url}/receivers/{hooked['id']}/messages").json()["items"]
    assert shown["id"] == answer.json()["id"]
    assert (shown["attempts"], shown["error"], shown["ended_at"]) == (0, None, None)


def test_a_receiver_that_is_deleted_is_gone_from_alarms_and_from_the_outbox(alice, url, instance):
    receiver = receiver_row(instance)
    alarm_row(instance, receivers=[receiver.pk])
    alice.api.post(f"{url}/receivers/{receiver.pk}/test")
    assert alice.api.delete(f"{url}/receivers/{receiver.pk}").status_code == 204
    assert Alarm.objects.unscoped(ROWS).get().receivers == []
    row = Delivery.objects.unscoped(ROWS).get()
    assert (row.state, row.error, row.receiver_id) == ("failed", "the receiver was deleted", None)


def test_a_webhook_moves_and_keeps_its_secret_and_its_alarms(alice, url, instance, hooked):
    place, moved = f"{url}/receivers/{hooked['id']}", "https://hooks.example.com/y?token=another-one"
    alarm = alarm_row(instance, receivers=[hooked["id"]])
    before = Receiver.objects.unscoped(ROWS).get()
    alice.api.post(f"{place}/test")
    Delivery.objects.unscoped(ROWS).update(attempts=12, next_attempt_at=datetime.now(UTC) + timedelta(minutes=50))
    answer = alice.api.patch(place, {"name": "on call", "address": moved})
    assert answer.status_code == 200, answer.content
    assert (answer.json()["name"], answer.json()["confirmed"]) == ("on call", True)
    assert alice.api.get(place).json()["address"] == moved
    row = Receiver.objects.unscoped(ROWS).get()
    assert (bytes(row.secret), row.address) == (bytes(before.secret), "https://hooks.example.com")
    alarm.refresh_from_db()
    assert alarm.receivers == [row.pk]
    waiting = Delivery.objects.unscoped(ROWS).get()
    assert waiting.state == "waiting", "what waits goes to the new address"
    assert waiting.next_attempt_at <= datetime.now(UTC), "at once: it is not the one that did not answer"
    (entry,) = audited(alice, "receiver.update")
    assert entry.detail == {"name": {"from": "pager", "to": "on call"}, "moved": True}, "and no path of an address"


def test_a_repeated_change_of_a_webhook_has_no_path_in_its_answer(alice, url, hooked):
    body = {"address": "https://hooks.example.com/z?token=tell-nobody-either"}
    assert alice.api.patch(f"{url}/receivers/{hooked['id']}", body, HTTP_IDEMPOTENCY_KEY="k").status_code == 200
    assert "tell-nobody-either" not in RepeatableCall.objects.unscoped(ROWS).get().body


def test_another_email_address_is_confirmed_anew_and_what_waits_for_the_one_before_is_given_up(
    alice, url, instance, mailing
):
    row = receiver_row(instance, kind="email", address="bob@example.com")
    alarm = alarm_row(instance, receivers=[row.pk])
    place = f"{url}/receivers/{row.pk}"
    alice.api.post(f"{place}/test")
    body = {"address": "carol@example.com"}
    foretold = alice.api.patch(f"{place}?dry_run=true", body).json()
    assert foretold["changes"]["confirmed"] == [True, False]
    assert [(each["who"], each["names"]) for each in foretold["affected"]] == [("alarms", [alarm.pk])]
    assert Delivery.objects.unscoped(ROWS).count() == 1, "nothing was sent"
    changed = alice.api.patch(place, body).json()
    assert (changed["address"], changed["confirmed"]) == ("carol@example.com", False)
    sent = Delivery.objects.unscoped(ROWS).order_by("created_at")
    assert [(each.kind, each.address, each.state) for each in sent] == [
        ("test", "bob@example.com", "failed"), ("confirm", "carol@example.com", "waiting"),
    ]  # fmt: skip
    assert alice.api.post(f"{place}/confirm", {"code": code_of(row.pk)}).json()["confirmed"] is True


def test_the_code_of_the_new_address_never_goes_to_the_old_one(alice, url, mail):
    made = alice.api.post(f"{url}/receivers", MAIL).json()["id"]
    alice.api.patch(f"{url}/receivers/{made}", {"address": "carol@example.com"})
    before = Delivery.objects.unscoped(ROWS).filter(address="bob@example.com")
    before.update(state="waiting")  # as if it had been written a moment after the address was another
    outbox.send_due()
    assert [each["To"] for each in mail.mails] == ["carol@example.com"], (
        "the old address holds up no code of the new one"
    )
    assert (before.get().state, before.get().error) == ("failed", "the receiver has another address")


def test_a_change_to_the_same_is_nothing_and_what_will_not_do_is_refused(alice, url, instance, hooked, mailing):
    place = f"{url}/receivers/{hooked['id']}"
    assert alice.api.patch(place, {"name": "pager", "address": HOOK["address"]}).status_code == 200
    assert audited(alice, "receiver.update") == []
    receiver_row(instance, "rcv-000000000009", name="other")
    problem(alice.api.patch(place, {"name": "other"}), 409, "receiver_exists")
    problem(alice.api.patch(place, {}), 400, "invalid")
    problem(alice.api.patch(place, {"kind": "email"}), 400, "invalid")
    for address in ("bob@example.com", "http://hooks.example.com/", "https://127.0.0.1/"):
        found = problem(alice.api.patch(place, {"address": address}), 400, "invalid")
        assert found["errors"][0]["field"] == "address"


def test_codes_are_few_for_a_receiver_whose_address_is_changed_again_and_again(alice, url, instance, mailing):
    row = receiver_row(instance, kind="email", address="bob@example.com")
    answers = [
        alice.api.patch(f"{url}/receivers/{row.pk}", {"address": f"bob{number}@example.com"}) for number in range(21)
    ]
    assert {answer.status_code for answer in answers[:20]} == {200}
    problem(answers[20], 409, "too_many_codes")


def test_an_email_address_has_no_secret(alice, url, instance):
    receiver = receiver_row(instance, kind="email", address="bob@example.com")
    problem(alice.api.post(f"{url}/receivers/{receiver.pk}/secret"), 409, "not_a_webhook")


def test_history_outlives_an_alarm(alice, url, instance):
    alarm = alarm_row(instance)
    event_row(alarm, at=datetime.now(UTC))
    alice.api.delete(f"{url}/alarms/{alarm.id}")
    assert AlarmEvent.objects.unscoped(ROWS).count() == 1
    assert alice.api.get(f"{url}/events").json()["items"][0]["kind"] == "alarm.fired"
