"""A form that makes something, sent twice: by a double click, or by a reload after a time-out. It is made once."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from uuid import uuid4

import pytest

from controlplane.accounts.models import ApiKey
from controlplane.admission import purchases
from controlplane.alarms.models import Alarm
from controlplane.budgets.models import Budget
from controlplane.console import once
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import PriceUnconfirmed
from controlplane.core.models import Operation
from controlplane.idempotency.models import RepeatableCall
from controlplane.instances.models import Instance, Route
from controlplane.kafka import topics
from controlplane.loads.models import Load
from tests.controlplane.rows import service_account_row

from .conftest import text_of
from .test_alarm_pages import FORM as ALARM
from .test_budget_pages import FORM as BUDGET
from .test_dangerous_pages import PASSWORD, carried, is_asked
from .test_instance_pages import SIZES
from .test_load_pages import FORM as LOAD
from .test_route_pages import OPENED as ROUTE

ROWS = "a test"
NEW = "instances/new"
BOUGHT = SIZES | {"whitelist": "10.0.0.0/8\n127.0.0.1"}
TWICE = "The form was sent more than once; it was carried out once."


def token_of(page) -> str:
    """What the form that was opened is sent with."""
    return re.search(r'name="once" value="([^"]+)"', page.content.decode())[1]


@pytest.fixture
def opened(at_alice):
    return BOUGHT | {"once": token_of(at_alice.get(NEW))}


def instances():
    return Instance.objects.unscoped(ROWS)


def calls():
    return RepeatableCall.objects.unscoped(ROWS)


# --- an instance ------------------------------------------------------------------------------------------------------


def test_the_same_form_twice_buys_one_instance_and_leads_to_it_both_times(at_alice, brokers, opened):
    first, second = (at_alice.post(NEW, opened) for _ in range(2))
    made = instances().get()
    assert first["Location"] == second["Location"] == at_alice.address(f"instances/{made.id}/new-topic")
    assert Operation.objects.for_organisation(at_alice.organisation).filter(kind="instance.create").count() == 1
    assert TWICE in text_of(at_alice.client.get(second["Location"]))


def test_whoever_sends_it_once_is_told_nothing_of_that(at_alice, brokers, opened):
    assert TWICE not in text_of(at_alice.post(NEW, opened, follow=True))


def test_months_in_advance_are_paid_once(at_alice, brokers, opened):
    for _ in range(2):
        assert at_alice.post(NEW, opened | {"prepaid_months": "1", "prepaid_at_end": "expire"}).status_code == 302
    assert instances().count() == 1


def test_each_page_that_is_opened_buys_an_instance_of_its_own(at_alice, brokers):
    for _ in range(2):
        assert at_alice.post(NEW, BOUGHT | {"once": token_of(at_alice.get(NEW))}).status_code == 302
    assert instances().count() == 2


@pytest.mark.parametrize("token", [{}, {"once": ""}, {"once": "none of ours"}, {"once": "x" * 5000}])
def test_a_form_without_a_token_is_carried_out_and_has_one_when_it_comes_back(at_alice, brokers, token):
    refused = at_alice.post(NEW, BOUGHT | token | {"partitions": "0"})
    assert refused.status_code == 422
    again = BOUGHT | {"once": token_of(refused)}
    for sent in (BOUGHT | token, again, again):
        assert at_alice.post(NEW, sent).status_code == 302
    assert instances().count() == 2


def test_what_was_refused_is_mended_and_sent_again_with_the_token_that_it_had(at_alice, brokers, opened, monkeypatch):
    wrong = at_alice.post(NEW, opened | {"partitions": "0"})
    assert (wrong.status_code, token_of(wrong)) == (422, opened["once"])

    def dear(**_members):
        raise PriceUnconfirmed("that is a lot")

    with monkeypatch.context() as patch:
        patch.setattr(purchases, "instance_buy", dear)
        refused = at_alice.post(NEW, opened)
    assert (refused.status_code, token_of(refused)) == (422, opened["once"])
    for _ in range(2):
        assert at_alice.post(NEW, opened | {"confirm_price": "on"}).status_code == 302
    assert instances().count() == 1


def test_a_token_is_of_whoever_sends_it(at_alice, at_bob, brokers, opened):
    first, his = at_alice.post(NEW, opened), at_bob.post(NEW, opened)
    assert his.status_code == 302
    assert his["Location"] != first["Location"]


def test_the_page_that_asks_who_it_is_comes_between_and_the_form_still_buys_once(
    at_alice, alice, brokers, opened, monkeypatch
):
    alice.user.set_password(PASSWORD)
    alice.user.save()
    at_alice.client.force_login(alice.user)
    later = SYSTEM_CLOCK.now() + timedelta(minutes=15)
    with monkeypatch.context() as patch:
        patch.setattr(
            "controlplane.console.proof.SYSTEM_CLOCK", type("Later", (), {"now": staticmethod(lambda: later)})
        )
        sent = opened | {"prepaid_months": "1"}
        asked = at_alice.post(NEW, sent)
        assert is_asked(asked)
        proved = at_alice.post(NEW, carried(asked) | {"proof": PASSWORD})
        assert proved.status_code == HTTPStatus.FOUND
        assert at_alice.post(NEW, carried(asked) | {"proof": PASSWORD})["Location"] == proved["Location"]
        assert at_alice.post(NEW, carried(asked))["Location"] == proved["Location"], "and without the password"
    assert instances().count() == 1


# --- where it is not certain what became of the first ----------------------------------------------------------------


def test_other_values_under_the_same_token_are_refused_and_bought_when_they_are_sent_again(at_alice, brokers, opened):
    """Whoever goes back and types another name may want another instance, or has not seen that there is one."""
    at_alice.post(NEW, opened)
    refused = at_alice.post(NEW, opened | {"name": "other"})
    assert refused.status_code == 422
    assert "This form was sent before with other values" in text_of(refused)
    assert instances().count() == 1
    again = opened | {"name": "other", "once": token_of(refused)}
    assert at_alice.post(NEW, again).status_code == 302
    assert set(instances().values_list("name", flat=True)) == {"events", "other"}


def test_one_whose_server_died_is_not_bought_again_before_somebody_has_looked(at_alice, brokers, opened, monkeypatch):
    class Died(BaseException):
        pass

    def dies(**_members):
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(purchases, "instance_buy", dies)
        with pytest.raises(Died):
            at_alice.post(NEW, opened)
    calls().update(created_at=SYSTEM_CLOCK.now() - timedelta(minutes=5))
    page = at_alice.post(NEW, opened)
    assert page.status_code == 422
    assert "whether it was carried out is not known: look before you send it again." in text_of(page)
    assert instances().count() == 0
    assert at_alice.post(NEW, opened | {"once": token_of(page)}).status_code == 302


def test_whoever_has_another_role_meanwhile_is_told_to_look(at_alice, bob, at_bob, brokers, opened):
    at_bob.post(NEW, opened)
    bob.user.memberships.update(role="owner")
    page = at_bob.post(NEW, opened)
    assert "when you had another role" in text_of(page)
    assert instances().count() == 1
    assert token_of(page) != opened["once"]


# --- while the first is under way -------------------------------------------------------------------------------------


@pytest.fixture
def meanwhile(at_alice, brokers, opened, monkeypatch):
    """The second click while the first is being carried out; what it was answered, and for how long it has waited."""
    buy, answers, slept = purchases.instance_buy, [], []

    class Clock:
        now = staticmethod(SYSTEM_CLOCK.now)
        sleep = staticmethod(slept.append)

    def slow(**members):
        if not answers:
            answers.append(at_alice.post(NEW, opened))
        return buy(**members)

    monkeypatch.setattr(once, "SYSTEM_CLOCK", Clock)
    monkeypatch.setattr(purchases, "instance_buy", slow)
    return answers, slept


def test_one_that_takes_long_is_told_of_and_bought_once(at_alice, opened, meanwhile):
    answers, slept = meanwhile
    assert at_alice.post(NEW, opened).status_code == 302
    (second,) = answers
    assert second.status_code == 422
    assert "This form was sent before and is still being carried out" in text_of(second)
    assert slept == [once.EVERY_S] * once.MOST_LOOKS
    assert token_of(second) == opened["once"], "sent again, it leads to what the first made"
    assert instances().count() == 1


def test_where_one_waits_already_another_is_told_at_once(at_alice, opened, meanwhile):
    """The web process has few threads, for all tenants: whoever reloads ten times must not hold them all."""
    answers, slept = meanwhile
    with once.WAITING:
        assert at_alice.post(NEW, opened).status_code == 302
    assert "still being carried out" in text_of(answers[0])
    assert slept == []


def test_the_second_waits_for_the_first_and_leads_to_what_it_has_made(at_alice, brokers, opened, monkeypatch):
    """The first is on another server; it ends while the second waits."""
    at_alice.post(NEW, opened)
    made = instances().get()
    calls().update(status=None, body="")

    class Clock:
        now = staticmethod(SYSTEM_CLOCK.now)

        @staticmethod
        def sleep(_seconds):
            calls().update(status=200, body=made.id)

    monkeypatch.setattr(once, "SYSTEM_CLOCK", Clock)
    assert at_alice.post(NEW, opened)["Location"] == at_alice.address(f"instances/{made.id}/new-topic")
    assert instances().count() == 1


def test_the_second_does_it_where_the_first_was_refused_meanwhile(at_alice, brokers, opened, monkeypatch):
    at_alice.post(NEW, opened)
    calls().update(status=None)

    class Clock:
        now = staticmethod(SYSTEM_CLOCK.now)
        sleep = staticmethod(lambda _seconds: calls().delete())

    monkeypatch.setattr(once, "SYSTEM_CLOCK", Clock)
    assert at_alice.post(NEW, opened).status_code == 302
    assert instances().count() == 2


# --- a message, an alarm, a route, a load, a budget -------------------------------------------------------------------


def test_the_same_message_twice_is_one_record_and_both_times_it_is_said_where(at_alice, instance, admin):
    topic = f"instances/{instance.id}/topics/orders"
    at_alice.post(
        f"instances/{instance.id}/new-topic", {"name": "orders", "partitions": "3", "replication_factor": "1"}
    )
    sent = {"value": "x", "partition": "1", "once": token_of(at_alice.get(f"{topic}/messages/new"))}
    for _ in range(2):
        page = at_alice.post(f"{topic}/messages/new", sent, follow=True)
        assert "The message is at offset 0 of partition 1." in text_of(page)
    assert TWICE in text_of(page)
    physical = f"{instance.id.removeprefix('ins-')}.orders"
    assert len(admin.groups.logs[physical, 1][1]) == 1


def test_the_same_alarm_twice_is_one_alarm(at_alice, instance):
    path = f"instances/{instance.id}/new-alarm"
    sent = ALARM | {"once": token_of(at_alice.get(path))}
    for _ in range(2):
        page = at_alice.post(path, sent, follow=True)
        assert "storage is looked at within 30 seconds" in text_of(page)
    assert Alarm.objects.unscoped(ROWS).count() == 1


def test_the_same_route_twice_is_one_route(at_alice, instance):
    path = f"instances/{instance.id}/new-route"
    sent = {name: value for name, value in ROUTE.items() if name != "public"} | {"once": token_of(at_alice.get(path))}
    first, second = (at_alice.post(path, sent) for _ in range(2))
    assert first.status_code == 302, text_of(first)
    assert first["Location"] == second["Location"]
    assert Route.objects.unscoped(ROWS).filter(key__in=["r2", "r3"]).count() == 1


def test_the_same_load_twice_is_one_load(at_alice, instance, settings):
    settings.ENVIRONMENT = replace(
        settings.ENVIRONMENT, lake_folders="file:/lake", lake_buckets="aws", metering_absent=""
    )
    topics.create(instance.cluster.address, instance.id, "orders", partitions=2, replication_factor=1, config={})
    path = f"instances/{instance.id}/new-lake-load"
    sent = LOAD | {"every_minutes": "60", "once": token_of(at_alice.get(path))}
    for _ in range(2):
        page = at_alice.post(path, sent, follow=True)
        assert "The load of orders was set up. The first run begins at once." in text_of(page)
    assert Load.objects.unscoped(ROWS).count() == 1


def test_the_same_budget_twice_is_one_budget(at_alice):
    sent = BUDGET | {"once": token_of(at_alice.get("new-budget"))}
    for _ in range(2):
        page = at_alice.post("new-budget", sent, follow=True)
        assert "sea is looked at every five minutes" in text_of(page)
    assert Budget.objects.unscoped(ROWS).count() == 1


def test_a_token_is_of_the_page_that_it_was_opened_on(at_alice, instance):
    path = f"instances/{instance.id}/new-alarm"
    sent = {"once": str(uuid4())}
    at_alice.post(path, ALARM | sent)
    page = at_alice.post(NEW, BOUGHT | sent)
    assert "This form was sent before with other values" in html.unescape(text_of(page))
    assert instances().count() == 1


# --- an API key, whose secret nothing keeps ---------------------------------------------------------------------------

NOT_AGAIN = "The key stood in the first answer alone. If you have not seen that, rotate it: you are shown another."


def keys_of(at):
    return ApiKey.objects.for_organisation(at.organisation).filter(name="pipeline")


def secrets_in(page):
    return re.findall(r'id="new-key"[^>]*>(slc_[^<]+)<', page.content.decode())


def test_a_key_is_made_once_and_its_secret_is_in_the_first_answer_alone(at_alice):
    asked = {"name": "pipeline", "once": token_of(at_alice.get("keys"))}
    first, second = (at_alice.post("keys", asked) for _ in range(2))
    assert (first.status_code, second.status_code, keys_of(at_alice).count()) == (200, 200, 1)
    (text,) = secrets_in(first)
    assert NOT_AGAIN not in text_of(first)
    assert secrets_in(second) == []
    assert TWICE in text_of(second)
    assert NOT_AGAIN in text_of(second)
    assert text not in repr(list(calls().values()))


def test_the_page_that_shows_a_key_makes_the_next_one(at_alice):
    page = at_alice.get("keys")
    for _ in range(2):
        page = at_alice.post("keys", {"name": "pipeline", "once": token_of(page)})
        assert len(secrets_in(page)) == 1
    assert keys_of(at_alice).count() == 2


def test_nor_is_a_key_of_a_service_account_made_twice(at_alice):
    account = service_account_row(at_alice.organisation)
    place = f"service-accounts/{account.id}"
    asked = {"name": "pipeline", "once": token_of(at_alice.get(place))}
    first, second = (at_alice.post(f"{place}/keys", asked) for _ in range(2))
    assert keys_of(at_alice).get().service_account_id == account.id
    assert [len(secrets_in(page)) for page in (first, second)] == [1, 0]
    assert NOT_AGAIN in text_of(second)
    assert len(secrets_in(at_alice.post(f"{place}/keys", asked | {"once": token_of(second)}))) == 1
