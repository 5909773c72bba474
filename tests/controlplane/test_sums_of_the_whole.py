"""Who is for some instances alone is told what is in the way, and not how much the organisation has or may have."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.accounts import services as accounts
from controlplane.admission import rules
from controlplane.admission.models import ScheduledState
from controlplane.core import sums
from controlplane.core.models import Operation
from controlplane.policies.models import DiskPolicy
from tests.controlplane.admission.conftest import installed  # noqa: F401  # a fixture
from tests.controlplane.admission.rows import change_row
from tests.controlplane.conftest import client_of
from tests.controlplane.console.conftest import text_of
from tests.controlplane.rows import LONG_AGO
from tests.controlplane.test_custom_roles import built_in_given, given_to, role_of
from tests.controlplane.test_instances_api import problem

CAP = "bandwidth: the organisation may have 400 MiB/s (in use: 137.5 MiB/s; asked for: 300 MiB/s more)"
BUDGET = "with more storage this month would cost more than the budget Board (secret) of CNY 5 of CNY 98765.00"
SECRETS = ("137.5", "98765", "Board")
TOO_MUCH = {"bandwidth_mib_per_s": 401, "confirm_price": True}


@pytest.fixture
def limited(alice, bob, instance):
    """Bob may change this one, and look at what happens to it."""
    scopes = {"instances": "change", "alarms": "look", "read": "look"}
    given_to(alice, bob, role_of(alice, scopes=scopes, instances=[instance.id]))
    return bob


@pytest.fixture
def at_limited(limited):
    browser = Client()
    browser.force_login(limited.user)
    return browser


# --- the sentences ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", rules.ORGANISATION)
def test_each_sentence_about_a_cap_is_known(resource):
    """As admission says it: a cap whose sentence reads otherwise one day fails here."""
    amounts = (Decimal("98765.00"), Decimal("1234.50")) if resource == rules.PRICE else (98_765, 1234.5)
    exceeded = rules.Exceeded(resource, amounts[0], amounts[1], amounts[1])
    whole = rules.sentence_of(exceeded, has="the organisation may have", currency="CNY")
    title = rules.RESOURCES[resource].title
    assert sums.without(whole) == f"{title}: the organisation may not have so much"
    both = sums.without(f"{whole}; {whole}. To have a cap raised, ask the operators of this service")
    assert (
        both == f"{sums.without(whole)}; {sums.without(whole)}. To have a cap raised, ask the operators of this service"
    )


def test_the_sentence_about_a_budget_is_known():
    assert sums.without(BUDGET) == "with more storage this month would cost more than a budget of the organisation"
    for other in ("", "the cluster has 9 MiB/s (in use: 5 MiB/s; asked for: 5 MiB/s more)", "storage: 5 GiB"):
        assert sums.without(other) == other, "of a cluster, or of the instance itself, it says what it says to all"


# --- refused now -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_a_size_that_the_cap_forbids_is_refused_without_sums(alice, limited, instance, flow_master, query):
    url = f"/api/v1/instances/{instance.id}{query}"
    refused = problem(limited.api.patch(url, TOO_MUCH), 409, "organisation_cap")
    assert "bandwidth: the organisation may not have so much. To have a cap raised" in refused["detail"]
    (exceeded,) = refused["exceeded"]
    assert exceeded == {"resource": "bandwidth_mib_per_s", "limit": None, "used": None, "asked": 396}
    assert "400 MiB" not in str(refused)
    assert problem(alice.api.patch(url, TOO_MUCH), 409, "organisation_cap")["exceeded"][0]["limit"] == 400


def test_a_key_of_some_instances_is_told_no_more(alice, instance, flow_master):
    _, text = accounts.api_key_create(
        organisation=alice.organisation, user=alice.user, name="k", scopes=["instances"], instances=[instance.id]
    )
    refused = problem(client_of(text).patch(f"/api/v1/instances/{instance.id}", TOO_MUCH), 409, "organisation_cap")
    assert "400 MiB" not in str(refused)


def test_nor_is_one_that_schedules_it(limited, instance, flow_master):
    at = (timezone.now() + timedelta(days=1)).isoformat()
    url = f"/api/v1/instances/{instance.id}/scheduled-changes"
    refused = problem(limited.api.post(url, {"at": at, **TOO_MUCH}), 409, "organisation_cap")
    assert "400 MiB" not in str(refused)


def test_nor_is_one_who_looks_what_a_policy_could_buy(limited, instance, flow_master, installed):  # noqa: F811
    installed(caps={"storage_gib": 15})
    url = f"/api/v1/instances/{instance.id}/policies/disk?dry_run=true"
    wanted = {"policy": "expansion", "max_storage_gib": 20, "confirm_price": True}
    said = limited.api.put(url, wanted)
    assert said.status_code == 200, said.content
    (line,) = said.json()["problems"]
    assert line.startswith("20 GiB could not be bought now: storage: the organisation may not have so much")


def test_nor_is_the_page_of_its_settings(at_limited, limited, instance, flow_master):
    sent = {
        "name": "events",
        "bandwidth_mib_per_s": "401",
        "storage_gib": "10",
        "partitions": "60",
        "confirm_price": "on",
    }
    answer = at_limited.post(f"/{limited.organisation.id}/instances/{instance.id}/settings", sent)
    assert answer.status_code in (409, 422), text_of(answer)
    assert "Bandwidth: the organisation may not have so much" in text_of(answer)
    assert "may have 400" not in text_of(answer)


# --- kept, and read later --------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(instance):
    """What workers have written down: whole, for owners."""
    Operation(
        id="op-000000000001", organisation=instance.organisation, kind="policies.expand", target=instance.id, actor="system",
        state="failed", steps=[{"name": "buy storage", "state": "failed", "note": BUDGET}], error=BUDGET,
        error_code="over_budget", runnable_at=LONG_AGO, created_at=timezone.now(), finished_at=timezone.now(),
    ).save(force_insert=True)  # fmt: skip
    about = {"organisation": instance.organisation, "instance": instance}
    DiskPolicy(**about, policy="expansion", max_storage_gib=20, problem=CAP, problem_at=LONG_AGO).save(
        force_insert=True
    )
    row = change_row(instance)
    row.state, row.problem, row.ended_at = ScheduledState.REFUSED, CAP, timezone.now()
    row.save()


RESTS = ("operations", "operations/op-000000000001", "instances/{i}/policies", "instances/{i}/scheduled-changes",
         "instances/{i}/events")  # fmt: skip
PAGES = ("operations/op-000000000001", "instances/{i}/policies", "instances/{i}/settings", "instances/{i}/timeline",
         "instances/{i}", "instances")  # fmt: skip


@pytest.mark.parametrize("path", RESTS)
def test_rest_tells_no_sums_of_what_was_kept(kept, alice, limited, instance, path):
    url = f"/api/v1/{path.format(i=instance.id)}"
    answer = limited.api.get(url)
    assert answer.status_code == 200, answer.content
    told = answer.content.decode()
    assert [each for each in SECRETS if each in told] == []
    whole = alice.api.get(url).content.decode()
    assert "98765" in whole or "137.5" in whole, "there is something to hide"
    assert "organisation may not have so much" in told or "a budget of the organisation" in told


@pytest.mark.parametrize("path", PAGES)
def test_nor_does_the_console(kept, alice, limited, at_limited, instance, flow_master, path):
    address = f"/{limited.organisation.id}/{path.format(i=instance.id)}"
    answer = at_limited.get(address)
    assert answer.status_code == 200, text_of(answer)
    assert [each for each in SECRETS if each in answer.content.decode()] == []
    owner = Client()
    owner.force_login(alice.user)
    whole = owner.get(address).content.decode()
    is_told = any(each in whole for each in SECRETS)
    assert is_told == (path != "instances"), "there is something to hide; the list has no such sentence for anybody"


def test_owners_read_the_whole_on_the_page(kept, alice, instance, flow_master):
    browser = Client()
    browser.force_login(alice.user)
    assert "98765" in text_of(browser.get(f"/{alice.organisation.id}/operations/op-000000000001"))
    assert "137.5" in text_of(browser.get(f"/{alice.organisation.id}/instances/{instance.id}/policies"))


def test_what_one_request_was_is_forgotten_with_it(kept, alice, limited, instance):
    """The mark belongs to the request: the next one of the same thread may be an owner's."""
    url = f"/api/v1/instances/{instance.id}/policies"
    for _ in range(2):
        assert "137.5" not in limited.api.get(url).content.decode()
        assert "137.5" in alice.api.get(url).content.decode()
    assert sums.are_told()


# --- who sees no costs -----------------------------------------------------------------------------------------------------


@pytest.fixture
def operator(alice, bob, instance):
    built_in_given(alice, bob, "operator")
    return bob


def test_an_operator_is_told_what_is_in_the_way_and_no_sums(operator, instance, flow_master):
    url = f"/api/v1/instances/{instance.id}"
    refused = problem(operator.api.patch(url, TOO_MUCH), 409, "organisation_cap")
    assert "bandwidth: the organisation may not have so much. To have a cap raised" in refused["detail"]
    assert refused["exceeded"][0]["limit"] is None


@pytest.mark.parametrize("path", RESTS)
def test_nor_does_rest_tell_operators_of_what_was_kept(kept, operator, instance, path):
    told = operator.api.get(f"/api/v1/{path.format(i=instance.id)}")
    assert told.status_code == 200, told.content
    assert [each for each in SECRETS if each in told.content.decode()] == []


@pytest.mark.parametrize("path", PAGES)
def test_nor_does_the_console_tell_operators(kept, operator, instance, flow_master, path):
    browser = Client()
    browser.force_login(operator.user)
    answer = browser.get(f"/{operator.organisation.id}/{path.format(i=instance.id)}")
    assert answer.status_code == 200, text_of(answer)
    assert [each for each in SECRETS if each in answer.content.decode()] == []
