"""REST of rebalancing: operators alone, from a proposal to its end."""

from __future__ import annotations

import pytest

from controlplane.admission.rules import BANDWIDTH, Room
from controlplane.rebalancing import picture
from controlplane.rebalancing.models import Rebalance
from tests.controlplane.conftest import run_to_the_end

from .conftest import MIB, work

V1 = "/api/v1"


@pytest.fixture
def api(operator, cluster):
    return operator.api


def test_it_can_be_bound_to_maintenance_windows(api):
    assert propose(api, in_windows=True)["wishes"]["in_windows"] is True
    assert propose(api)["wishes"]["in_windows"] is False


def propose(api, clock=None, **wishes):
    response = api.post(f"{V1}/rebalances", wishes)
    assert response.status_code == 202, response.content
    assert run_to_the_end(response.json()["operation_id"], clock).state == "succeeded"
    return api.get(f"{V1}/rebalances/{response.json()['id']}").json()


def act(api, row, action):
    return api.post(f"{V1}/rebalances/{row['id']}/actions", {"action": action})


def test_a_proposal_says_what_it_comes_to_and_moves_nothing(admin, api, place):
    topic = place(admin, *[[1, 2, 3]] * 6)
    found = propose(api, throttle_bytes_per_s=MIB)
    assert (found["state"], found["progress"]["waiting"]) == ("proposed", found["summary"]["moves"])
    leaders = {
        row["broker"]: (row["before"]["leaders"], row["after"]["leaders"]) for row in found["summary"]["brokers"]
    }
    assert (leaders[1][0], sum(before for before, _ in leaders.values())) == (6, 6)
    assert {after for _, after in leaders.values()} <= {1, 2}
    assert found["summary"]["scores"]["leaders"]["after"] == 0
    assert found["estimated_s"] == -(-found["summary"]["busiest_bytes"] // MIB)
    assert all(each.replicas == (1, 2, 3) for each in admin.topics[topic].partitions)


def test_carried_out_each_move_says_how_far_it_is(admin, api, place, clock):
    place(admin, [1, 2, 3])
    found = propose(api, clock, draining=[1], goals=[])
    assert act(api, found, "carry_out").status_code == 202
    row = work(Rebalance.objects.get(), clock)
    (move,) = api.get(f"{V1}/rebalances/{found['id']}/moves").json()["items"]
    assert (move["state"], move["before"], sorted(move["after"])) == ("moving", [1, 2, 3], [2, 3, 4])
    admin.placement.copy()
    work(row, clock, rounds=3)
    assert api.get(f"{V1}/rebalances/{found['id']}").json()["state"] == "done"
    events = api.get(f"{V1}/rebalances/{found['id']}/events").json()
    assert [(each["action"], each["actor"]) for each in events] == [
        ("propose", "charlie@example.com"), ("carry_out", "charlie@example.com"),
    ]  # fmt: skip


def test_moves_come_in_pages(admin, api, place):
    place(admin, *[[1, 2, 3]] * 5)
    found = propose(api, draining=[1], goals=[])
    first = api.get(f"{V1}/rebalances/{found['id']}/moves?limit=3").json()
    second = api.get(f"{V1}/rebalances/{found['id']}/moves?limit=3&cursor={first['next']}").json()
    assert [[each["number"] for each in page["items"]] for page in (first, second)] == [[0, 1, 2], [3, 4]]
    assert second["next"] is None


def test_a_rollback_is_a_proposal_of_its_own(admin, api, place, clock):
    place(admin, [1, 2, 3])
    found = propose(api, clock, draining=[1], goals=[])
    act(api, found, "carry_out")
    row = work(Rebalance.objects.get(), clock)
    admin.placement.copy()
    work(row, clock, rounds=3)
    would = api.post(f"{V1}/rebalances/{found['id']}/actions?dry_run=true", {"action": "roll_back"}).json()["changes"]
    assert (would["rollback_of"], would["state"]) == ([None, found["id"]], [None, "proposed"])
    assert [each["id"] for each in api.get(f"{V1}/rebalances").json()["items"]] == [found["id"]]
    back = act(api, found, "roll_back").json()
    assert (back["rollback_of"], back["state"]) == (found["id"], "proposed")
    assert [each["id"] for each in api.get(f"{V1}/rebalances").json()["items"]] == [back["id"], found["id"]]


def test_the_throttle_is_changed_by_itself(admin, api, place):
    place(admin, [1, 2, 3])
    found = propose(api)
    changed = api.patch(f"{V1}/rebalances/{found['id']}", {"throttle_bytes_per_s": 3 * MIB}).json()
    assert (changed["throttle_bytes_per_s"], changed["at_once"]) == (3 * MIB, found["at_once"])


@pytest.mark.parametrize(
    ("wishes", "field"),
    [
        ({"draining": [9]}, "draining"),
        ({"instances": ["ins-00000000"]}, "instances"),
        ({"goals": ["leaders", "leaders"]}, "goals"),
        ({"goals": ["beauty"]}, "goals.0"),
        ({"throttle_bytes_per_s": 1}, "throttle_bytes_per_s"),
        ({"margin_percent": 101}, "margin_percent"),
        ({"drain": [1]}, "drain"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(api, wishes, field):
    response = api.post(f"{V1}/rebalances", wishes)
    assert response.status_code == 400
    assert [each["field"] for each in response.json()["errors"]] == [field]
    assert not Rebalance.objects.exists()


def test_what_its_state_does_not_allow_is_a_conflict(admin, api, place):
    place(admin, [1, 2, 3])
    found = propose(api)
    assert act(api, found, "pause").status_code == 409
    assert act(api, found, "roll_back").status_code == 409
    assert act(api, found, "cancel").json()["state"] == "cancelled"
    assert act(api, found, "carry_out").status_code == 409
    assert api.get(f"{V1}/rebalances/reb-000000000000").status_code == 404


def test_balance_says_who_has_too_much_and_whom_it_costs_bandwidth(admin, api, place, instance, monkeypatch):
    monkeypatch.setattr(picture, "room_of", lambda _cluster: {BANDWIDTH: Room(2, 1)})
    place(admin, *[[1, 2, 3]] * 4)
    found = api.get(f"{V1}/balance").json()
    assert {row["broker"]: row["loads"]["leaders"] for row in found["brokers"]} == {1: 4, 2: 0, 3: 0, 4: 0}
    assert found["short"] == [{"instance": instance.id, "limit_bytes_per_s": 5 * MIB, "usable_bytes_per_s": 2 * MIB}]
    assert propose(api)["summary"]["tenants"] == [
        {"instance": instance.id, "limit": 5 * MIB, "before": 2 * MIB, "after": 5 * MIB}
    ]


def test_flow_falls_on_what_an_instance_leads_by_size(admin, api, place, instance, flow_master):
    topic = place(admin, [1, 2, 3], [1, 2, 3])
    admin.placement.sizes = {(topic, 0): 2999, (topic, 1): 999}
    rows = [{"broker": 1, "flow": 4000}]
    flow_master.answers[instance.id] = {"produce": {"brokers": rows}, "consume": {"brokers": []}}
    loads = {row["broker"]: row["loads"] for row in api.get(f"{V1}/balance").json()["brokers"]}
    assert (loads[1]["produce"], loads[1]["consume"]) == (4000, 0)
    produce = {row["broker"]: row["after"]["produce"] for row in propose(api, goals=["produce"])["summary"]["brokers"]}
    assert sorted(produce.values()) == [0, 0, 1000, 3000]


@pytest.mark.parametrize("path", ["balance", "rebalances"])
def test_it_is_for_operators(alice, instance, path):
    assert alice.api.get(f"{V1}/{path}").status_code == 403


class TestByItself:
    ADDRESS = f"{V1}/clusters/default/rebalancing"

    def test_nothing_does_until_an_operator_says_so(self, api):
        shown = api.get(self.ADDRESS).json()
        assert (shown["cluster"], shown["mode"], shown["waiting_for"], shown["changed_at"]) == (
            "default",
            "off",
            "",
            None,
        )
        changed = api.patch(self.ADDRESS, {"mode": "propose", "skew_percent": None, "reason": "nights"})
        assert changed.status_code == 200, changed.content
        shown = api.get(self.ADDRESS).json()
        assert (shown["mode"], shown["skew_percent"], shown["new_brokers"]) == ("propose", None, True)
        assert (shown["changed_by"], shown["only_proposes"]) == ("charlie@example.com", False)
        (event,) = api.get(f"{V1}/clusters/default/events").json()
        assert (event["action"], event["reason"]) == ("rebalancing", "nights")

    @pytest.mark.parametrize(
        ("change", "field"),
        [({"mode": "always"}, "mode"), ({"skew_percent": 5}, "skew_percent"), ({"rest_hours": 1.5}, "rest_hours"),
         ({"lasts": 5}, "lasts"), ({"new_brokers": "yes"}, "new_brokers")],
    )  # fmt: skip
    def test_what_makes_no_sense_is_refused_by_name(self, api, change, field):
        response = api.patch(self.ADDRESS, {**change, "reason": "x"})
        assert response.status_code == 400
        assert [each["field"] for each in response.json()["errors"]] == [field]

    def test_a_change_wants_a_reason_and_something_that_changes(self, api):
        assert api.patch(self.ADDRESS, {"mode": "propose"}).status_code == 400
        assert api.patch(self.ADDRESS, {"reason": "x"}).status_code == 400

    def test_it_is_of_a_cluster_that_is_there_and_for_operators(self, api, alice):
        assert api.get(f"{V1}/clusters/other/rebalancing").status_code == 404
        assert alice.api.get(self.ADDRESS).status_code == 403
        assert alice.api.patch(self.ADDRESS, {"mode": "propose", "reason": "x"}).status_code == 403
