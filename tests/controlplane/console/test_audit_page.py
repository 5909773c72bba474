"""The audit of an instance in the console: what a new user sees, filters, pages, and the switch."""

from __future__ import annotations

import re

import pytest

from controlplane.access import trail
from controlplane.core.models import Operation
from controlplane.instances.models import Instance
from quota.contracts.audit import AuditKind
from tests.controlplane.access.test_audit_trail import Topic

from .conftest import problem_beside, text_of


@pytest.fixture
def at(instance):
    return f"instances/{instance.id}/audit"


@pytest.fixture
def topic(admin, instance):
    return Topic(admin, instance)


def config_of(instance):
    return Instance.objects.unscoped("a test").get(pk=instance.pk).config


def test_who_comes_first_reads_what_it_is_and_that_it_is_off(at_alice, at):
    page = text_of(at_alice.get(at))
    assert "The audit is off" in page
    assert "who connects and logs in" in page
    assert "Nothing was written down" in page
    assert "Switch on" in page
    assert "Audit" in text_of(at_alice.get(at.replace("audit", "acls")))


def test_the_switch_is_a_change_of_the_instance_and_says_when_it_begins(at_alice, at, instance):
    page = at_alice.post(at, {"audit": "on"}, follow=True)
    assert "The audit is on: within seconds" in text_of(page)
    assert "Nothing has happened yet" in text_of(page)
    assert config_of(instance) == {"audit": True}
    assert Operation.objects.for_organisation(at_alice.organisation).filter(kind="instance.update").count() == 1
    page = at_alice.post(at, {"audit": "off"}, follow=True)
    assert "What was written stays until it expires" in text_of(page)
    assert config_of(instance) == {"audit": False}


@pytest.mark.parametrize("said", [{}, {"audit": "perhaps"}, {"audit": "off"}])
def test_what_changes_nothing_begins_nothing(at_alice, at, instance, said):
    assert "Nothing was changed" in text_of(at_alice.post(at, said, follow=True))
    assert config_of(instance) == {}
    assert not Operation.objects.for_organisation(at_alice.organisation).filter(kind="instance.update").exists()


def test_a_viewer_reads_it_and_has_no_switch(at_viewer, at, topic):
    topic.write(principal="User:ann")
    page = text_of(at_viewer.get(at))
    assert "User:ann" in page
    assert "Switch on" not in page
    assert at_viewer.post(at, {"audit": "on"}).status_code == 403


def test_rows_say_what_happened_to_whom_and_why(at_alice, at, topic):
    topic.write(
        AuditKind.DENIAL,
        "TOPIC_AUTHORIZATION_FAILED",
        principal="User:bob",
        client_id="billing",
        api="PRODUCE",
        operation="WRITE",
        resource="TOPIC:orders",
        reason="no ACL permits it",
    )
    topic.write(AuditKind.REQUEST, "NONE", principal="User:ann", api="CREATE_TOPICS", resource="TOPIC:new", left_out=3)
    page = text_of(at_alice.get(at))
    assert re.search(r"2026-11-22 12:00:00 UTC broker 1 Denied WRITE TOPIC:orders in PRODUCE User:bob billing", page)
    assert "10.0.0.0 route default TOPIC_AUTHORIZATION_FAILED No ACL permits it." in page
    assert "CREATE_TOPICS TOPIC:new User:ann" in page
    assert "carried out 3 records before this one left out" in page
    assert page.index("CREATE_TOPICS") < page.index("Denied WRITE")


def test_filters_stand_in_the_address_and_say_when_nothing_fits(at_alice, at, topic):
    topic.write(AuditKind.DENIAL, "TOPIC_AUTHORIZATION_FAILED", principal="User:bob", resource="TOPIC:orders")
    topic.write(AuditKind.AUTHENTICATION, "success", principal="User:ann")
    page = text_of(at_alice.get(at, data={"kind": "denial", "outcome": "", "principal": ""}))
    assert "TOPIC:orders" in page
    assert "User:ann" not in page
    page = text_of(at_alice.get(at, data={"principal": "carol", "since": "2026-11-22T11:00"}))
    assert "Nothing fits" in page
    assert "Show everything" in page
    wrong = at_alice.get(at, data={"since": "2026-11-22T12:00", "until": "2026-11-22T11:00"})
    assert wrong.status_code == 422
    assert problem_beside(wrong, "since")


def test_older_ones_are_one_page_on_and_the_newest_one_back(at_alice, at, topic):
    topic.write(count=60)
    page = at_alice.get(at)
    assert page.content.decode().count('scope="row"') == 50
    older = re.search(r'href="([^"]+)">Older<', page.content.decode())[1].replace("&amp;", "&")
    rest = at_alice.client.get(older)
    assert rest.content.decode().count('scope="row"') == 10
    assert "Older" not in text_of(rest)
    assert "Newest" in text_of(rest)


def test_a_look_that_found_nothing_yet_says_how_far_it_was(at_alice, at, topic, monkeypatch):
    monkeypatch.setattr(trail, "MOST_LOOKED_AT", 20)
    topic.write(count=30)
    page = text_of(at_alice.get(at, data={"kind": "denial"}))
    assert "Nothing that fits among the last 20 records" in page
    assert "Older" in page


def test_a_topic_that_cannot_be_read_now_is_said_calmly(at_alice, at, topic, admin):
    topic.write()
    admin.groups.stretches = 0
    page = at_alice.get(at)
    assert page.status_code == 503
    assert "The audit cannot be read now" in text_of(page)
    assert "Brokers go on writing it" in text_of(page)
