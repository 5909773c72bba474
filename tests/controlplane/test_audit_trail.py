"""Who asked for which change, from where, by which key: by REST, on a page, and on the command line."""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta

import pytest
from django.http import HttpResponse
from django.test import Client

from controlplane.core import audit, origin
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Role

from .console.conftest import at_alice, at_charlie, at_viewer, problem_beside, text_of  # noqa: F401  # fixtures
from .test_instances_api import problem

URL = "/api/v1/audit"


def record(person, action="topic.create", target="ins-a/orders", **options):
    return audit.record(
        organisation=person.organisation, actor=person.user.email, action=action, target=target, **options
    )


def actions(person, **query):
    answer = person.api.get(URL, query)
    assert answer.status_code == 200, answer.content
    return [entry["action"] for entry in answer.json()["items"]]


def test_a_change_by_rest_tells_its_key_its_address_and_its_request(alice):
    answer = alice.api.post("/api/v1/api-keys", {"name": "pipeline"}, REMOTE_ADDR="10.1.2.3")
    (entry,) = alice.api.get(URL, {"action": "api_key.create"}).json()["items"][:1]
    key = alice.api.get("/api/v1/api-keys").json()["items"][0]["id"]
    assert (entry["actor"], entry["address"], entry["key"]) == ("alice@example.com", "10.1.2.3", key)
    assert entry["request_id"] == answer["X-Request-Id"] == str(uuid.UUID(answer["X-Request-Id"]))
    assert entry["target"] == answer.json()["id"]


def test_a_change_in_the_console_tells_no_key(at_alice):  # noqa: F811
    page = at_alice.post("keys", {"name": "pipeline"}, REMOTE_ADDR="2001:db8::7")
    entry = AuditEntry.objects.for_organisation(at_alice.organisation).latest("pk")
    assert (entry.action, entry.address, entry.key) == ("api_key.create", "2001:db8::7", "")
    assert entry.request_id == page["X-Request-Id"]


def test_what_no_request_asked_for_has_no_origin(alice):
    entry = record(alice)
    assert (entry.address, entry.key, entry.request_id) == ("", "", "")


def test_every_answer_has_an_id_of_its_own_whatever_the_caller_says(alice, client):
    sent = str(uuid.uuid4())
    answers = [
        alice.api.get("/api/v1/me", headers={"X-Request-Id": sent}),
        client.get("/api/v1/me"),
        client.get("/nothing"),
        client.get("/sign-in"),
    ]
    found = {answer["X-Request-Id"] for answer in answers}
    assert len(found) == len(answers)
    assert sent not in found


def test_an_address_behind_a_proxy_is_what_the_proxy_saw(alice, settings):
    from dataclasses import replace

    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, tls=True)
    alice.api.post("/api/v1/api-keys", {"name": "x"}, headers={"X-Forwarded-For": "6.6.6.6, 10.0.0.7"}, secure=True)
    assert AuditEntry.objects.for_organisation(alice.organisation).latest("pk").address == "10.0.0.7"


def test_a_forged_address_is_not_taken_without_a_proxy(alice):
    alice.api.post("/api/v1/api-keys", {"name": "x"}, headers={"X-Forwarded-For": "6.6.6.6"})
    assert AuditEntry.objects.for_organisation(alice.organisation).latest("pk").address == "127.0.0.1"


def test_a_long_address_is_cut_and_not_refused(alice):
    alice.api.post("/api/v1/api-keys", {"name": "x"}, REMOTE_ADDR=f"fe80::1%{'z' * 200}")
    assert len(AuditEntry.objects.for_organisation(alice.organisation).latest("pk").address) == audit.LONGEST_ADDRESS


def test_the_newest_come_first_page_by_page(alice):
    for number in range(7):
        record(alice, target=f"t{number}")
    seen, cursor = [], None
    while True:
        page = alice.api.get(URL, {"limit": 3, "action": "topic", **({"cursor": cursor} if cursor else {})}).json()
        seen += [entry["target"] for entry in page["items"]]
        record(alice, target="meanwhile")
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == [f"t{number}" for number in reversed(range(7))]


def deleted_before_and_created_after(who):
    """A moment, with the topic `orders` deleted before it and `payments` created after."""
    now = SYSTEM_CLOCK.now()
    record(who, "topic.delete", "orders")
    record(who, "topic.create", "payments")
    AuditEntry.objects.for_organisation(who.organisation).filter(action="topic.delete").update(
        at=now - timedelta(days=2)
    )
    return (now - timedelta(days=1)).isoformat()


def test_it_is_asked_for_by_actor_action_target_and_time(alice):
    day_ago = deleted_before_and_created_after(alice)
    assert actions(alice, action="topic") == ["topic.create", "topic.delete"]
    assert actions(alice, action="topic.create") == ["topic.create"]
    assert actions(alice, target="orders") == ["topic.delete"]
    assert actions(alice, actor="bob@example.com") == []
    assert actions(alice, action="topic", **{"from": day_ago}) == ["topic.create"]
    assert actions(alice, action="topic", to=day_ago) == ["topic.delete"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"from": "yesterday"}, "from"),
        ({"limit": "0"}, "limit"),
        ({"cursor": "x"}, "cursor"),
        ({"actor": "a\0b"}, "actor"),
        ({"target": "\ud800"}, "target"),
    ],
)
def test_a_bad_question_is_named(alice, query, field):
    from urllib.parse import urlencode

    text = urlencode(query, errors="surrogatepass")
    answer = alice.api.get(f"{URL}?{text}")
    if answer.status_code == 200:  # the half of a pair did not survive its way here
        assert field == "target"
        return
    assert problem(answer, 400, "invalid")["errors"][0]["field"] == field


def test_another_organisation_reads_its_own_only(alice, charlie):
    record(alice)
    assert "topic.create" not in actions(charlie)


def test_the_page_shows_it_and_is_searched(alice, at_alice, at_viewer, at_charlie):  # noqa: F811
    record(alice, "topic.create", "ins-a/orders", detail={"partitions": 6, "config": ["a=b"], "nothing": None})
    record(alice, "topic.delete", "ins-a/payments")
    page = text_of(at_viewer.get("audit"))
    assert page.index("topic.delete") < page.index("topic.create")
    assert "partitions 6 config a=b" in page
    assert "nothing" not in page.split("Audit log", 2)[2]
    found = text_of(at_alice.get("audit?q=payments"))
    assert "topic.delete" in found
    assert "topic.create" not in found
    assert "No entry matches" in text_of(at_alice.get("audit?q=zzz"))
    assert at_charlie.client.get(at_alice.address("audit")).status_code == 404


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("action=topic", {"topic.create", "topic.delete"}),
        ("action=topic.create", {"topic.create"}),
        ("actor=alice@example.com", {"topic.create", "topic.delete"}),
        ("actor=alice", set()),  # whole, as by REST
        ("action=topic&q=payments", {"topic.delete"}),
        ("action=topic&since=2000-01-01T00:00", {"topic.create", "topic.delete"}),
        ("action=topic&until=2000-01-01T00:00", set()),
    ],
)
def test_the_page_and_its_file_are_filtered_as_rest_is(alice, at_alice, query, shown):  # noqa: F811
    record(alice, "topic.create", "ins-a/orders")
    record(alice, "topic.delete", "ins-a/payments")
    page, file = at_alice.get(f"audit?{query}"), at_alice.get(f"audit.csv?{query}")
    text = b"".join(file.streaming_content).decode()
    for action in ("topic.create", "topic.delete"):
        assert (f'mono">{action}<' in page.content.decode()) is (action in shown), action
        assert (f",{action}," in text) is (action in shown), action
    assert ("No entry fits" in text_of(page)) is not shown


def test_a_time_that_is_none_and_one_that_ends_before_it_begins_are_said_beside_their_field(at_alice):  # noqa: F811
    for query, field in (
        ("since=yesterday", "since"),
        ("since=2026-11-30T10:00&until=2026-11-29T10:00", "until"),
    ):
        page = at_alice.get(f"audit?{query}")
        assert page.status_code == 422
        assert problem_beside(page, field), query
        assert at_alice.get(f"audit.csv?{query}").status_code == 302, "to the page, which says it"


def test_the_box_and_the_filter_keep_each_other(at_alice):  # noqa: F811
    page = at_alice.get("audit?q=orders&action=topic").content.decode()
    assert '<input type="hidden" name="action" value="topic">' in page
    assert '<input type="hidden" name="q" value="orders">' in page


def detail_of(person, action):
    return person.api.get(URL, {"action": action}).json()["items"][0]["detail"]


def test_a_change_tells_what_was_before_and_what_is_now(alice, bob, instance):
    path = f"/api/v1/instances/{instance.id}"
    alice.api.patch(path, {"storage_gib": 20, "partitions": 60, "config": {"default_partitions": 6}})
    assert detail_of(alice, "instance.update") == {
        "storage_gib": {"from": 10, "to": 20},
        "config": {"default_partitions": {"from": 3, "to": 6}},
    }
    alice.api.put(f"{path}/whitelist", {"cidrs": ["10.0.0.0/8"]})
    assert detail_of(alice, "instance.whitelist") == {"cidrs": {"from": ["127.0.0.0/8"], "to": ["10.0.0.0/8"]}}

    alice.api.post(f"{path}/topics", {"name": "orders", "partitions": 2, "config": {"retention.ms": "1000"}})
    alice.api.patch(f"{path}/topics/orders", {"partitions": 4, "config": {"retention.ms": None, "segment.ms": "9000"}})
    assert detail_of(alice, "topic.update") == {
        "partitions": {"from": 2, "to": 4},
        "config": {"retention.ms": {"from": "1000", "to": None}, "segment.ms": {"from": None, "to": "9000"}},
    }
    for cidrs, before in (([], None), (["10.0.0.7/32"], []), (None, ["10.0.0.7/32"])):
        alice.api.put(f"{path}/topics/orders/whitelist", {"cidrs": cidrs})
        assert detail_of(alice, "topic.whitelist") == {"cidrs": {"from": before, "to": cidrs}}

    member = alice.organisation.memberships.get(user=bob.user)
    tenants.member_role_set(
        organisation=alice.organisation, actor="alice@example.com", membership_id=member.pk, role=Role.VIEWER
    )
    assert detail_of(alice, "member.role") == {"role": {"from": "member", "to": "viewer"}}


def test_the_page_shows_both(alice, at_alice):  # noqa: F811
    detail = {
        "storage_gib": {"from": 10, "to": 20},
        "config": {"audit": {"from": False, "to": True}},
        "cidrs": {"from": None, "to": []},
        "others": {"from": ["10.0.0.0/8", "::1/128"], "to": None},
    }
    record(alice, "instance.update", "ins-a", detail=detail)
    page = text_of(at_alice.get("audit"))
    assert "storage gib 10 → 20 config audit False → True cidrs not set → empty" in page
    assert "others 10.0.0.0/8, ::1/128 → not set" in page


def test_signing_in_is_told_to_each_organisation(db):
    browser = Client()
    sign_up = {"email": "dora@example.com", "password": "water over the wheel"}
    browser.post("/sign-up", {**sign_up, "organisation_name": "Mill"})
    browser.post("/organisations/new", {"name": "Second"})
    browser.post("/sign-out")
    entries = AuditEntry.objects.unscoped("a test").filter(action="account.sign_in")
    browser.post("/sign-in", {**sign_up, "password": "not this one"})
    assert not entries.exists()
    browser.post("/sign-in", sign_up, REMOTE_ADDR="10.9.9.9")
    told = [(entry.organisation.name, entry.actor, entry.address) for entry in entries.order_by("organisation__name")]
    assert told == [("Mill", "dora@example.com", "10.9.9.9"), ("Second", "dora@example.com", "10.9.9.9")]


def answered(request, see=lambda: None):
    """By a chain of which only this middleware is there."""
    return origin.OriginMiddleware(lambda _request: see() or HttpResponse())(request)


def test_lines_of_the_log_bear_the_id_of_their_request(rf):
    line = logging.LogRecord("x", logging.INFO, "", 0, "text", (), None)
    answer = answered(rf.get("/"), lambda: origin.WithRequestId().filter(line) and None)
    assert line.request == f"{answer['X-Request-Id']} "
    origin.WithRequestId().filter(line)
    assert line.request == ""


def test_what_raised_leaves_no_origin_behind(rf):
    def fail():
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        answered(rf.get("/"), fail)
    assert origin.current() == origin.Origin()
