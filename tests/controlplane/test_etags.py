"""Two who change a thing within an instance or an organisation at once: by ``ETag`` and ``If-Match`` the later one is told."""

from __future__ import annotations

import pytest

from controlplane.alarms.api import MEASURED
from controlplane.alarms.models import STATE, Alarm
from controlplane.api import preconditions
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry
from controlplane.core.sealed import sealed
from controlplane.instances import services as instances
from controlplane.instances.models import Route
from controlplane.loads.models import Load
from controlplane.loads.ranges import Asked
from controlplane.loads.services import run_ask
from controlplane.sso.models import SsoProvider
from controlplane.tenants.models import Membership

from .admission.passing import Passing
from .alarms.rows import alarm_row, receiver_row
from .budgets.rows import budget_row
from .loads.rows import load_row
from .rows import custom_role_row, service_account_row
from .sso.rows import provider_row
from .test_instances_api import URL, problem

RULE = {"kind": "topic", "topics": ["orders"], "produce_mib_per_s": 1}


@pytest.fixture
def time(monkeypatch):
    """The service's own clock, held."""
    return Passing(monkeypatch)


THINGS = (
    "throttle rule", "route", "alarm", "budget", "role", "service account", "topic", "member", "load", "single sign-on",
    "receiver",
)  # fmt: skip


@pytest.fixture(params=THINGS)
def thing(request, alice, bob, instance):
    """Its address, and two changes of it."""
    at = f"{URL}/{instance.id}"
    if request.param == "member":
        at = f"/api/v1/members/{Membership.objects.get(organisation=alice.organisation, user=bob.user).pk}"
        return at, {"role": "viewer"}, {"role": "billing"}
    if request.param == "load":
        return f"{at}/lake-loads/{load_row(instance).id}", {"every_minutes": 30}, {"every_minutes": 60}
    if request.param == "receiver":
        hooks = ({"address": f"https://hooks.example.com/{path}"} for path in ("hers", "his"))
        return f"{at}/receivers/{receiver_row(instance).id}", *hooks
    if request.param == "single sign-on":
        provider_row(alice.organisation)
        return "/api/v1/sso", {"in_force": True}, {"in_force": False}
    if request.param == "throttle rule":
        made = alice.api.post(f"{at}/throttle-rules", RULE).json()["id"]
        return f"{at}/throttle-rules/{made}", {"produce_mib_per_s": 2}, {"produce_mib_per_s": 3}
    if request.param == "route":
        alice.api.post(f"{at}/routes", {"security": "ssl"})
        return f"{at}/routes/r2", {"connections": 5}, {"connections": 6}
    if request.param == "alarm":
        return f"{at}/alarms/{alarm_row(instance).id}", {"threshold": 70}, {"threshold": 60}
    if request.param == "budget":
        return f"/api/v1/budgets/{budget_row(alice.organisation).id}", {"name": "hers"}, {"name": "his"}
    if request.param == "service account":
        at = f"/api/v1/service-accounts/{service_account_row(alice.organisation).id}"
        return at, {"name": "hers"}, {"disabled": True}
    if request.param == "role":
        return f"/api/v1/roles/{custom_role_row(alice.organisation).id}", {"name": "hers"}, {"name": "his"}
    alice.api.post(f"{at}/topics", {"name": "orders", "partitions": 1})
    return f"{at}/topics/orders", {"config": {"retention.ms": "1000"}}, {"config": {"retention.ms": "2000"}}


def audited():
    return AuditEntry.objects.unscoped("a test").count()


@pytest.fixture(params=["organisation", "what is paid in advance", "elastic bandwidth"])
def setting(request, alice, time, instance):
    """What is there as long as the instance or the organisation is: its address, how it is changed, and two changes of it."""
    at = f"{URL}/{instance.id}"
    if request.param == "organisation":
        return f"/api/v1/organisations/{alice.organisation.id}", "patch", {"name": "hers"}, {"name": "his"}
    if request.param == "elastic bandwidth":
        return f"{at}/elastic-bandwidth", "put", {"cap_mib_per_s": 8}, {"cap_mib_per_s": 9, "budget_per_month": "10.00"}
    assert time.done(alice.api.post(f"{at}/prepaid", {"months": 1})).state == "succeeded"
    return f"{at}/prepaid", "patch", {"at_end": "renew"}, {"renew_months": 3}


def test_of_two_who_set_at_once_the_later_is_told(alice, bob, setting):
    url, method, hers, his = setting
    change = getattr(alice.api, method)
    seen = alice.api.get(url)
    assert alice.api.get(url, HTTP_IF_NONE_MATCH=seen["ETag"]).status_code == 304
    foretold = change(f"{url}?dry_run=true", hers, HTTP_IF_MATCH=seen["ETag"])
    assert (foretold.status_code, foretold.json()["dry_run"]) == (200, True)
    assert change(url, hers, HTTP_IF_MATCH=seen["ETag"]).status_code in (200, 202)
    after, before = alice.api.get(url), audited()
    assert after["ETag"] != seen["ETag"]
    for query in ("", "?dry_run=true"):
        for tag in (seen["ETag"], "x", f"W/{after['ETag']}"):
            problem(change(f"{url}{query}", his, HTTP_IF_MATCH=tag), 412, "precondition_failed")
    assert (alice.api.get(url).json(), audited()) == (after.json(), before)
    assert change(url, his, HTTP_IF_MATCH=f'"0", {after["ETag"]}').status_code in (200, 202)


def test_who_sets_and_names_none_or_any_changes_what_is_there(alice, setting):
    url, method, hers, his = setting
    change = getattr(alice.api, method)
    assert change(url, hers).status_code in (200, 202)
    assert change(url, his, HTTP_IF_MATCH="*").status_code in (200, 202)


def test_what_is_bought_makes_another_etag_of_how_an_instance_is_paid(alice, time, instance):
    url = f"{URL}/{instance.id}/prepaid"
    seen = alice.api.get(url)["ETag"]
    assert time.done(alice.api.post(url, {"months": 1})).state == "succeeded"
    bought = alice.api.get(url)
    assert bought["ETag"] != seen
    time.on(days=3)
    later = alice.api.get(url)
    assert (later["ETag"], later.json()["refund"] != bought.json()["refund"]) == (bought["ETag"], True)


def test_a_secret_that_is_given_anew_makes_another_etag(alice, instance):
    """It is shown nowhere, so nothing else says that somebody has changed it."""
    row, url = provider_row(alice.organisation), "/api/v1/sso"
    seen = alice.api.get(url)
    row.client_secret = sealed(SsoProvider, "client_secret", b"another", organisation_id=alice.organisation.pk)
    row.save(update_fields=["client_secret"])
    again = alice.api.get(url)
    assert (again.json(), again["ETag"] == seen["ETag"]) == (seen.json(), False)

    load = load_row(instance, kind="bucket", bucket="events-1", path="lake", region="eu-central-1", access_key="AK1")
    url = f"{URL}/{instance.id}/lake-loads/{load.id}"
    seen = alice.api.get(url)
    assert alice.api.patch(url, {"secret_key": "another"}, HTTP_IF_MATCH=seen["ETag"]).status_code == 200
    again = alice.api.get(url)
    assert (again.json(), again["ETag"] == seen["ETag"]) == (seen.json(), False)
    problem(alice.api.patch(url, {"secret_key": "his"}, HTTP_IF_MATCH=seen["ETag"]), 412, "precondition_failed")


def test_of_a_member_owners_are_told_more_and_the_etag_is_one(alice, bob):
    url = f"/api/v1/members/{Membership.objects.get(organisation=alice.organisation, user=bob.user).pk}"
    hers, his = alice.api.get(url), bob.api.get(url)
    assert (hers.json()["second_factor"], his.json()["second_factor"]) == (False, None)
    assert hers["ETag"] == his["ETag"]
    assert hers.json() in alice.api.get("/api/v1/members").json()["items"]
    problem(bob.api.patch(url, {"role": "owner"}, HTTP_IF_MATCH=his["ETag"]), 403, "forbidden")


def test_what_is_not_set_yet_has_no_etag_that_could_match(alice):
    body = {"label": "Corp", "issuer": "https://login.example.com", "client_id": "c", "client_secret": "s"}
    for tag in ('"0"', preconditions.content_etag({})):
        problem(alice.api.put("/api/v1/sso", body, HTTP_IF_MATCH=tag), 412, "precondition_failed")


def test_of_two_who_change_at_once_the_later_is_told(alice, thing):
    url, hers, his = thing
    seen = alice.api.get(url)["ETag"]
    assert alice.api.patch(url, hers, HTTP_IF_MATCH=seen).status_code in (200, 202)
    after, before = alice.api.get(url), audited()
    assert after["ETag"] != seen
    refused = problem(alice.api.patch(url, his, HTTP_IF_MATCH=seen), 412, "precondition_failed")
    assert "get it again" in refused["detail"]
    assert refused["retriable"] is False
    problem(alice.api.delete(url, HTTP_IF_MATCH=seen), 412, "precondition_failed")
    assert (alice.api.get(url).json(), audited()) == (after.json(), before)
    assert alice.api.patch(url, his, HTTP_IF_MATCH=f'"0", {after["ETag"]}').status_code in (200, 202)


def test_it_is_deleted_by_its_present_etag(alice, thing):
    url, *_ = thing
    assert alice.api.delete(url, HTTP_IF_MATCH=alice.api.get(url)["ETag"]).status_code in (202, 204)


def test_a_dry_run_is_refused_alike(alice, thing):
    url, hers, _ = thing
    tried = alice.api.patch(f"{url}?dry_run=true", hers, HTTP_IF_MATCH='"0"')
    problem(tried, 412, "precondition_failed")
    assert tried.content == alice.api.patch(url, hers, HTTP_IF_MATCH='"0"').content
    foretold = alice.api.patch(f"{url}?dry_run=true", hers, HTTP_IF_NONE_MATCH=alice.api.get(url)["ETag"])
    assert foretold.status_code == 200, "of a change that header says nothing"
    assert foretold.json()["changes"]


@pytest.mark.parametrize("tag", ["", "x", '"x"', "7", "W/{}"])
def test_what_is_no_strong_etag_of_it_matches_nothing(alice, thing, tag):
    url, hers, _ = thing
    header = tag.format(alice.api.get(url)["ETag"])
    problem(alice.api.patch(url, hers, HTTP_IF_MATCH=header), 412, "precondition_failed")


def test_who_names_none_or_any_changes_what_is_there(alice, thing):
    url, hers, his = thing
    assert alice.api.patch(url, hers).status_code in (200, 202)
    assert alice.api.patch(url, his, HTTP_IF_MATCH="*").status_code in (200, 202)


def test_what_is_known_is_not_told_again(alice, thing):
    url, hers, _ = thing
    tag = alice.api.get(url)["ETag"]
    for header in (tag, f"W/{tag}", "*"):
        answer = alice.api.get(url, HTTP_IF_NONE_MATCH=header)
        assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", tag)
    alice.api.patch(url, hers)
    assert alice.api.get(url, HTTP_IF_NONE_MATCH=tag).status_code == 200


def test_others_things_are_missing_whatever_is_matched(charlie, alice, thing):
    url, hers, _ = thing
    tag = alice.api.get(url)["ETag"]
    for header in ("*", tag, '"0"'):
        problem(charlie.api.patch(url, hers, HTTP_IF_MATCH=header), 404, "not_found")
    problem(charlie.api.get(url, HTTP_IF_NONE_MATCH=tag), 404, "not_found")


def test_what_is_measured_is_in_no_etag(alice, instance):
    alarm, at = alarm_row(instance), f"{URL}/{instance.id}"
    alice.api.post(f"{at}/routes", {"security": "ssl"})
    load = load_row(instance)
    urls = [f"{at}/alarms/{alarm.id}", f"{at}/routes/r2", f"{at}/lake-loads/{load.id}"]
    tags = [alice.api.get(url)["ETag"] for url in urls]
    Load.objects.unscoped("a test").update(failures=2, next_start_at=SYSTEM_CLOCK.now())
    run_ask(load, asked_by="alice", asked=Asked(), now=SYSTEM_CLOCK.now())
    Alarm.objects.unscoped("a test").update(phase="firing", value=99.0)
    Route.objects.unscoped("a test").filter(key="r2").update(state="running")
    assert [alice.api.get(url)["ETag"] for url in urls] == tags


@pytest.fixture(params=["cluster", "balance rule", "caps"])
def of_operators(request, alice, charlie, instance):
    """What only operators change: who asks, its address, and two changes of it."""
    charlie.user.is_staff = True
    charlie.user.save()
    url, *ways = {
        "cluster": ("/api/v1/clusters/default", {"capacity": 70}, {"state": "cordoned"}),
        "balance rule": ("/api/v1/clusters/default/rebalancing", {"rest_hours": 5}, {"rest_hours": 6}),
        "caps": (f"/api/v1/organisations/{alice.organisation.id}/caps", {"instances": 7}, {"partitions": 900}),
    }[request.param]
    hers, his = ({**change, "reason": "measured"} for change in ways)
    return charlie, url, hers, his


def test_of_two_operators_the_later_is_told(of_operators):
    operator, url, hers, his = of_operators
    seen = operator.api.get(url)["ETag"]
    assert operator.api.get(url, HTTP_IF_NONE_MATCH=seen).status_code == 304
    changed = operator.api.patch(url, hers, HTTP_IF_MATCH=seen)
    assert (changed.status_code, changed["ETag"]) == (200, operator.api.get(url)["ETag"])
    assert changed["ETag"] != seen
    before = operator.api.get(url).json()
    problem(operator.api.patch(url, his, HTTP_IF_MATCH=seen), 412, "precondition_failed")
    problem(operator.api.patch(f"{url}?dry_run=true", his, HTTP_IF_MATCH=seen), 412, "precondition_failed")
    assert operator.api.get(url).json() == before
    assert operator.api.patch(url, his, HTTP_IF_MATCH=changed["ETag"]).status_code == 200


def test_what_is_used_of_caps_is_in_no_etag(alice, charlie, instance):
    charlie.user.is_staff = True
    charlie.user.save()
    url = f"/api/v1/organisations/{alice.organisation.id}/caps"
    seen = charlie.api.get(url)
    assert alice.api.patch(f"{URL}/{instance.id}", {"storage_gib": 20}).status_code == 202
    again = charlie.api.get(url)
    assert (again["ETag"], again.json() == seen.json()) == (seen["ETag"], False)


def test_a_cluster_that_is_to_be_retired_is_compared_first(charlie, instance):
    charlie.user.is_staff = True
    charlie.user.save()
    body = {"state": "retired", "reason": "old"}
    url = "/api/v1/clusters/default"
    problem(charlie.api.patch(url, body, HTTP_IF_MATCH='"0"'), 412, "precondition_failed")
    problem(charlie.api.patch(url, body, HTTP_IF_MATCH=charlie.api.get(url)["ETag"]), 409, "cluster_in_use")


def test_nothing_that_evaluation_writes_of_an_alarm_is_in_its_etag(alice, instance):
    alarm = alarm_row(instance, watch="any_group_lag_messages", threshold=1000.0)
    url = f"{URL}/{instance.id}/alarms/{alarm.id}"
    seen = alice.api.get(url)
    later = SYSTEM_CLOCK.now()
    others = {
        "phase": "firing", "value": 99.0, "value_of": "billing", "missing": "no_group", "told": True, "told_no_data": True,
        "owed": {"rcv-000000000001": "firing"},
        **dict.fromkeys(("since", "seen_at", "looked_at", "firing_since", "told_at"), later),
    }  # fmt: skip
    assert set(others) == set(STATE)
    Alarm.objects.unscoped("a test").update(**others)
    after = alice.api.get(url)
    assert after["ETag"] == seen["ETag"]
    changed = {name for name, value in after.json().items() if value != seen.json()[name]}
    assert changed == set(MEASURED)


class TestWhitelists:
    def test_the_instances_etag_is_theirs(self, alice, bob, instance):
        url = f"{URL}/{instance.id}"
        seen = alice.api.get(url)["ETag"]
        answer = alice.api.put(f"{url}/whitelist", {"cidrs": ["10.0.0.0/8"]}, HTTP_IF_MATCH=seen)
        assert (answer.status_code, answer["ETag"]) == (200, alice.api.get(url)["ETag"])
        for method, body in (("put", {"cidrs": []}), ("patch", {"add": ["192.0.2.1/32"]})):
            refused = getattr(bob.api, method)(f"{url}/whitelist", body, HTTP_IF_MATCH=seen)
            problem(refused, 412, "precondition_failed")
        assert alice.api.get(url).json()["whitelist"] == ["10.0.0.0/8"]
        assert (
            bob.api.patch(f"{url}/whitelist", {"add": ["192.0.2.1/32"]}, HTTP_IF_MATCH=answer["ETag"]).status_code
            == 200
        )

    def test_a_topics(self, alice, instance):
        url = f"{URL}/{instance.id}/topics"
        alice.api.post(url, {"name": "orders", "partitions": 1})
        seen = alice.api.get(f"{url}/orders")["ETag"]
        for path, method, body in (
            ("whitelist", "put", {"cidrs": ["10.0.0.0/8"]}),
            ("note", "patch", {"note": "hers"}),
        ):
            assert getattr(alice.api, method)(f"{url}/orders/{path}", body, HTTP_IF_MATCH=seen).status_code == 200
            problem(
                getattr(alice.api, method)(f"{url}/orders/{path}", body, HTTP_IF_MATCH=seen), 412, "precondition_failed"
            )
            seen = alice.api.get(f"{url}/orders")["ETag"]

    @pytest.mark.parametrize(
        ("path", "method", "hers", "his"),
        [
            ("whitelist", "put", {"cidrs": ["10.0.0.0/8"]}, {"cidrs": []}),
            ("note", "patch", {"note": "hers"}, {"note": "his"}),
        ],
    )
    def test_of_a_topic_somebody_may_change_it_until_the_very_lock(
        self, alice, instance, monkeypatch, path, method, hers, his
    ):
        """Between what the call has read of the topic and the lock somebody else is faster: the call is refused."""
        url = f"{URL}/{instance.id}/topics"
        alice.api.post(url, {"name": "orders", "partitions": 1})
        seen, real = alice.api.get(f"{url}/orders")["ETag"], instances.instance_locked

        def overtaken(*given):
            monkeypatch.setattr(instances, "instance_locked", real)
            assert getattr(alice.api, method)(f"{url}/orders/{path}", hers).status_code == 200
            return real(*given)

        monkeypatch.setattr(instances, "instance_locked", overtaken)
        refused = getattr(alice.api, method)(f"{url}/orders/{path}", his, HTTP_IF_MATCH=seen)
        problem(refused, 412, "precondition_failed")
        now = alice.api.get(f"{url}/orders").json()  # hers went back with his transaction: a test has one connection
        assert (now["whitelist"], now["note"]) == (None, "")


def test_a_topic_that_is_made_again_with_its_name_is_another(alice, instance):
    url = f"{URL}/{instance.id}/topics"
    alice.api.post(url, {"name": "orders", "partitions": 1})
    seen = alice.api.get(f"{url}/orders")["ETag"]
    alice.api.delete(f"{url}/orders")
    alice.api.post(url, {"name": "orders", "partitions": 1})
    problem(alice.api.delete(f"{url}/orders", HTTP_IF_MATCH=seen), 412, "precondition_failed")
    problem(alice.api.put(f"{url}/orders/whitelist", {"cidrs": []}, HTTP_IF_MATCH=seen), 412, "precondition_failed")


def test_policies(alice, instance):
    url = f"{URL}/{instance.id}/policies"
    seen = alice.api.get(url)["ETag"]
    hers = {"policy": "retention", "level_percent": 80}
    assert alice.api.put(f"{url}/disk", hers, HTTP_IF_MATCH=seen).status_code == 200
    for query in ("", "?dry_run=true"):
        his = alice.api.put(f"{url}/disk{query}", {"policy": "none"}, HTTP_IF_MATCH=seen)
        problem(his, 412, "precondition_failed")
    assert alice.api.get(url).json()["disk"]["policy"] == "retention"
    assert alice.api.put(f"{url}/disk", {"policy": "none"}, HTTP_IF_MATCH=alice.api.get(url)["ETag"]).status_code == 200
