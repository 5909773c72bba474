"""The fleet as operators see it."""

from __future__ import annotations

import pytest

from controlplane.console.shares import shares_of
from controlplane.instances.models import Instance

from .conftest import text_of
from .test_instance_pages import MIB, flowing


@pytest.fixture
def reporting(flow_master):
    flow_master.broker_rows = [
        {
            "broker": broker,
            "reporting": broker != 2,
            "instances": 1,
            "leaders": leaders,
            "produce": {"flow": MIB, "allocation": 2 * MIB},
            "consume": {"flow": 0, "allocation": 2 * MIB},
        }
        for broker, leaders in ((1, 3), (2, 1))
    ]


def test_brokers_are_shown_with_leaders_flow_and_allocation(at_staff, brokers, reporting):
    text = text_of(at_staff.get("/fleet"))
    assert "Broker 1 127.0.0.1:19001 Reporting 3 75 % 1 1 MiB/s of 2 MiB/s" in text
    assert "Broker 2 127.0.0.1:19002 Silent 1 25 %" in text
    assert "Broker 3 127.0.0.1:19003 Silent \N{EN DASH}" in text


def test_a_broker_that_went_away_is_still_shown_while_it_is_remembered(at_staff, brokers, reporting):
    brokers.kill(1)
    assert "Broker 1 not registered Away 3" in text_of(at_staff.get("/fleet/brokers"))


def test_every_tenants_instance_is_found(at_staff, instance, flow_master):
    flow_master.answers[instance.id] = flowing()
    for query in ("", "?q=EVENTS", f"?q={instance.id}", "?q=alice"):
        assert "events" in text_of(at_staff.get(f"/fleet{query}"))
    assert "Nothing matches “x-y”" in text_of(at_staff.get("/fleet?q=x-y"))


def test_one_instance_with_its_allocation(at_staff, instance, flow_master):
    flow_master.answers[instance.id] = flowing()
    text = text_of(at_staff.get(f"/fleet/instances/{instance.id}"))
    assert "alice's" in text
    assert "Burst" in text
    live = at_staff.get(f"/fleet/instances/{instance.id}/live").json()
    assert live["produce"]["brokers"][0]["allocation"] == 5 * MIB


def test_a_cluster_that_is_away_leaves_the_page_standing(at_staff, instance, tree):
    tree.away = True
    page = at_staff.get("/fleet")
    assert page.status_code == 200
    text = text_of(page)
    assert "does not answer" in text
    assert "events" in text


def test_on_a_phone_the_brokers_of_one_instance_are_shown_when_they_are_asked_for(at_staff, instance, flow_master):
    flow_master.answers[instance.id] = flowing()
    body = at_staff.get("/fleet/allocation").content.decode()
    assert f"?open={instance.id}" in body
    assert 'class="shut"' in body
    body = at_staff.get(f"/fleet/allocation?open={instance.id}").content.decode()
    assert 'class="shut"' not in body
    assert f'hx-get="/fleet/allocation?open={instance.id}"' in body  # it stays so while the page goes on by itself


def test_the_allocation_page_has_ten_instances(at_staff, instance, flow_master):
    instance_of = Instance.objects.unscoped("a test")
    for number in range(11):
        row = instance_of.get(pk=instance.pk)
        row.pk, row.name = f"ins-{number:08d}", f"more-{number}"
        row.save(force_insert=True)
    text = text_of(at_staff.get("/fleet/allocation"))
    assert text.count("Not known to the flow master.") == 10
    assert "1\N{EN DASH}10 of 12" in text


def test_an_instance_that_is_none_is_not_found(at_staff, db):
    assert at_staff.get("/fleet/instances/ins-00000000").status_code == 404
    assert at_staff.get("/fleet/instances/ins-00000000/live").status_code == 404


def test_the_fleet_says_that_strangers_must_not_reach_an_installation_that_sends_no_mail(at_staff):
    assert "Strangers must not reach this installation" in text_of(at_staff.get("/fleet"))


def test_it_does_not_where_mail_is_sent(at_staff, mails):
    assert "Strangers must not reach this installation" not in text_of(at_staff.get("/fleet"))


def test_an_operator_without_an_organisation_begins_with_the_fleet(at_staff):
    assert at_staff.get("/")["Location"] == "/fleet"


def test_the_allocation_page_shows_each_brokers_figures_and_their_sum_against_the_limit(
    at_staff, instance, flow_master
):
    flow_master.answers[instance.id] = flowing(produce=4 * MIB)
    text = text_of(at_staff.get("/fleet/allocation"))
    assert "events produce alice's" in text
    assert "5 MiB/s limit 4 MiB/s in all 5 MiB/s 100 % of the limit Burst" in text
    assert "Broker 1 1 1 MiB/s 4 MiB/s 5 MiB/s Burst" in text


@pytest.mark.parametrize("page", ["/fleet", "/fleet/allocation"])
def test_the_rules_own_name_stands_in_a_tooltip(at_staff, instance, flow_master, page):
    flow_master.answers[instance.id] = flowing()
    assert '<span title="Rule: headroom">Burst</span>' in at_staff.get(page).content.decode()


def test_the_allocation_page_polls_for_its_rows_alone_with_its_search(at_staff, instance, flow_master):
    flow_master.answers[instance.id] = flowing()
    part = at_staff.get("/fleet/allocation?q=events", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert 'hx-get="/fleet/allocation?q=events"' in part
    assert 'hx-trigger="every 2s"' in part


def test_the_allocation_page_without_a_master_or_without_the_instance_says_so(at_staff, instance, flow_master):
    assert "no flow master is active" in text_of(at_staff.get("/fleet/allocation")).lower()
    flow_master.answers["ins-00000000"] = flowing()
    assert "Not known to the flow master." in text_of(at_staff.get("/fleet/allocation"))
    assert "Nothing matches “x-y”" in text_of(at_staff.get("/fleet/allocation?q=x-y"))


def test_shares_of_what_is_unlimited_have_no_sum():
    brokers = [{"broker": 1, "leaders": 1, "initial_share": None, "flow": 7, "allocation": None, "branch": "unlimited"}]
    (shares,) = shares_of({"consume": {"limit": None, "branch": "unlimited", "brokers": brokers}})
    assert (shares.granted, shares.granted_percent, shares.used) == (None, None, 7)
