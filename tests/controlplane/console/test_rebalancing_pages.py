"""Operators propose, look, and have a rebalance carried out, in the console."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.rebalancing import kept
from controlplane.rebalancing.metrics import rebalancing_text
from controlplane.rebalancing.models import BalanceRule, Rebalance, RebalanceState
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.rebalancing.rows import rebalance_row

from .conftest import text_of

RULE = {
    "mode": "propose", "new_brokers": "on", "skew_percent": "70", "lasting_minutes": "20", "rest_hours": "6",
    "throttle_mib_per_s": "7.5", "at_once": "3", "reason": "nights",
}  # fmt: skip
FORM = {"goals": ["leaders"], "margin_percent": 10, "throttle_mib_per_s": 50, "at_once": 20}


@pytest.fixture
def topic(alice, instance, admin):
    alice.api.post(f"/api/v1/instances/{instance.id}/topics", {"name": "orders", "partitions": 6})
    return f"{instance.id.removeprefix('ins-')}.orders"


def test_the_page_shows_what_a_worker_saw_of_the_load(at_staff, instance, topic):
    assert "The load is not known." in text_of(at_staff.get("/fleet/rebalancing"))
    kept.look()
    text = text_of(at_staff.get("/fleet/rebalancing"))
    assert "How far the fullest broker is above the average: leaders 200 %" in text
    assert "Broker 1 6 0 B/s 0 B/s 6" in text
    assert 'sluice_cluster_skew_percent{cluster="default",goal="leaders"} 200' in rebalancing_text()


def test_a_proposal_is_made_looked_at_and_begun(at_staff, instance, topic, clock):
    page = at_staff.post("/fleet/rebalancing", {**FORM, "cluster": instance.cluster_id})
    row = Rebalance.objects.get()
    assert page.headers["Location"] == f"/fleet/rebalancing/{row.id}"
    assert "Planning" in text_of(at_staff.get(page.headers["Location"]))
    run_to_the_end(row.operation_id)
    text = text_of(at_staff.get(page.headers["Location"]))
    assert "4 moves, of which 4 only change the leader; 0 B to copy" in text
    assert "Broker 1 6 → 2" in text
    page = at_staff.post(page.headers["Location"], {"act": "carry_out"}, follow=True)
    assert "It has begun." in text_of(page)
    row.refresh_from_db()
    assert row.state == RebalanceState.RUNNING
    assert "sluice_rebalances" in rebalancing_text()


def test_it_can_be_bound_to_maintenance_windows(at_staff, instance, topic):
    for ticked in ({"in_windows": "on"}, {}):
        at_staff.post("/fleet/rebalancing", {**FORM, "cluster": instance.cluster_id, **ticked})
        assert Rebalance.objects.latest("created_at").wishes["in_windows"] is bool(ticked)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"draining": "9"}, "There is no broker 9 in this cluster."),
        ({"draining": "all"}, "Give the ids of brokers, such as 1, 2."),
        ({"instances": "ins-00000000"}, "There is no instance ins-00000000 in this cluster."),
    ],
)
def test_what_cannot_be_meant_is_said_beside_its_field(at_staff, instance, topic, wrong, said):
    page = at_staff.post("/fleet/rebalancing", {**FORM, "cluster": instance.cluster_id, **wrong})
    assert page.status_code == 422
    assert said in text_of(page)
    assert not Rebalance.objects.exists()


def test_the_throttle_is_changed_while_it_is_under_way(at_staff, instance):
    row = rebalance_row(instance.cluster, state=RebalanceState.RUNNING)
    at_staff.post(f"/fleet/rebalancing/{row.id}", {"act": "pace", "throttle_mib_per_s": "7.5", "at_once": "3"})
    row.refresh_from_db()
    assert (row.throttle_bytes_per_s, row.at_once) == (7.5 * 2**20, 3)
    page = at_staff.post(f"/fleet/rebalancing/{row.id}", {"act": "pace", "throttle_mib_per_s": "0", "at_once": "3"})
    assert page.status_code == 422


def test_a_tenant_that_gets_bandwidth_back_is_told_of_in_a_sentence(at_staff, instance):
    row = rebalance_row(instance.cluster, instance=instance.id)
    text = text_of(at_staff.get(f"/fleet/rebalancing/{row.id}"))
    assert f"Moving the leader of orders-0 returns 3.0 of the 20 MiB/s of {instance.id}." in text


def test_what_its_state_does_not_allow_is_said(at_staff, instance):
    row = rebalance_row(instance.cluster, state=RebalanceState.DONE)
    page = at_staff.post(f"/fleet/rebalancing/{row.id}", {"act": "pause"})
    assert page.status_code == 409
    assert "The rebalance is done and cannot be paused: only one that is running can." in text_of(page)
    assert "Pause" not in [act.title for act in page.context["acts"]]


def test_what_is_under_way_asks_again_and_what_is_over_does_not(at_staff, instance):
    row = rebalance_row(instance.cluster, state=RebalanceState.RUNNING)
    assert "every 2s" in at_staff.get(f"/fleet/rebalancing/{row.id}/now").content.decode()
    assert "every 5s" in at_staff.get(f"/fleet/rebalancing/{row.id}").content.decode()
    Rebalance.objects.update(state=RebalanceState.DONE)
    assert "every 2s" not in at_staff.get(f"/fleet/rebalancing/{row.id}/now").content.decode()
    assert "every 5s" not in at_staff.get(f"/fleet/rebalancing/{row.id}").content.decode()


def test_a_page_that_shows_another_state_than_the_present_one_comes_again(at_staff, instance):
    row = rebalance_row(instance.cluster, state=RebalanceState.PROPOSED)
    address = f"/fleet/rebalancing/{row.id}/now"
    assert at_staff.get(f"{address}?seen=planning").headers["HX-Refresh"] == "true"
    assert "HX-Refresh" not in at_staff.get(f"{address}?seen=proposed").headers


def test_to_carry_out_and_to_cancel_are_asked_twice_and_say_what_happens(at_staff, instance):
    row = rebalance_row(instance.cluster)
    text = text_of(at_staff.get(f"/fleet/rebalancing/{row.id}"))
    assert "3 moves, 300 MiB to copy: about 5 s at 50 MiB/s." in text
    assert "Clients go on; where a leader changes they turn to the new one." in text
    Rebalance.objects.update(state=RebalanceState.RUNNING)
    text = text_of(at_staff.get(f"/fleet/rebalancing/{row.id}"))
    assert "Moves that are done stay: roll back to undo them too." in text
    assert "Time left, about" in text


@pytest.mark.parametrize("asked_by", ["olga@example.com", "staff@example.com"])
def test_approval_is_offered_to_whoever_may_give_it(at_staff, instance, settings, asked_by):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, rebalance_approval=True)
    row = rebalance_row(instance.cluster)
    me = at_staff.get(f"/fleet/rebalancing/{row.id}").context["user"].email
    Rebalance.objects.update(created_by=me if asked_by == "staff@example.com" else asked_by)
    page = at_staff.get(f"/fleet/rebalancing/{row.id}")
    offered = [act.name for act in page.context["acts"]]
    assert ("approve" in offered) == (asked_by == "olga@example.com")
    assert "carry_out" not in offered
    assert "has to approve this before it can be carried out" in text_of(page)


def test_a_proposal_says_what_was_asked_for_and_who_did_what(at_staff, instance):
    row = rebalance_row(instance.cluster)
    wishes = {"goals": ["leaders", "bandwidth"], "draining": [2, 3], "margin_percent": 5, "in_windows": True}
    Rebalance.objects.update(wishes=wishes)
    at_staff.post(f"/fleet/rebalancing/{row.id}", {"act": "pace", "throttle_mib_per_s": "7.5", "at_once": "3"})
    text = text_of(at_staff.get(f"/fleet/rebalancing/{row.id}"))
    assert "Drain brokers 2, 3" in text
    assert "Goals leaders, sold" in text
    assert "Tolerance 5 % of the average" in text
    assert "When in the maintenance windows of instances that have one" in text
    assert "Pace changed to 7.5 MiB/s, 3 partitions at once" in text


def test_where_there_is_nothing_to_move_nothing_can_be_carried_out(at_staff, instance):
    row = rebalance_row(instance.cluster, moves=0)
    Rebalance.objects.update(summary={**row.summary, "stuck": [], "stuck_count": 0})
    page = at_staff.get(f"/fleet/rebalancing/{row.id}")
    assert "There is nothing to move" in text_of(page)
    assert [act.name for act in page.context["acts"]] == ["approve", "discard"]


def test_one_that_left_moves_out_does_not_look_done(at_staff, instance):
    row = rebalance_row(instance.cluster, state=RebalanceState.DONE)
    Rebalance.objects.update(problem="2 of 3 moves could not be made: each says why")
    for address in ("/fleet/rebalancing", f"/fleet/rebalancing/{row.id}"):
        assert "Done in part" in text_of(at_staff.get(address))


class TestByItself:
    ADDRESS = "/fleet/clusters/default/rebalancing"

    def test_it_is_set_and_on_record(self, at_staff, instance):
        assert "Nothing begins by itself." in text_of(at_staff.get("/fleet/rebalancing"))
        assert "Nothing begins by itself." in text_of(at_staff.get(self.ADDRESS))
        page = at_staff.post(self.ADDRESS, RULE)
        assert (page.status_code, page["Location"]) == (302, self.ADDRESS)
        rule = BalanceRule.objects.get()
        assert (rule.mode, rule.new_brokers, rule.skew_percent, rule.in_windows) == ("propose", True, 70, False)
        assert (rule.throttle_bytes_per_s, rule.at_once) == (7.5 * 2**20, 3)
        assert "Proposals are made by themselves." in text_of(at_staff.get("/fleet/rebalancing"))
        assert "Set by admin@example.com" in text_of(at_staff.get(self.ADDRESS))
        assert "Rebalancing by itself: off \N{RIGHTWARDS ARROW} propose" in text_of(
            at_staff.get("/fleet/clusters/default")
        )

    def test_without_a_threshold_skew_does_not_count(self, at_staff, instance):
        at_staff.post(self.ADDRESS, {**RULE, "skew_percent": ""})
        assert BalanceRule.objects.get().skew_percent is None

    @pytest.mark.parametrize(
        "wrong", [{"reason": ""}, {"skew_percent": "5"}, {"mode": "always"}, {"throttle_mib_per_s": "0"}]
    )
    def test_what_makes_no_sense_is_not_set(self, at_staff, instance, wrong):
        assert at_staff.post(self.ADDRESS, {**RULE, **wrong}).status_code == 422
        assert not BalanceRule.objects.exists()

    def test_the_page_says_what_it_waits_for_and_that_it_only_proposes(self, at_staff, instance):
        at_staff.post(self.ADDRESS, {**RULE, "mode": "carry_out"})
        now = SYSTEM_CLOCK.now()
        BalanceRule.objects.update(waiting_for="skew", waiting_since=now)
        assert "A broker above the average since" in text_of(at_staff.get(self.ADDRESS))
        rebalance_row(instance.cluster, state=RebalanceState.FAILED)
        Rebalance.objects.update(cause="x", begun_at=now, finished_at=now)
        assert "Set this again to have it go on." in text_of(at_staff.get(self.ADDRESS))

    def test_a_proposal_that_nobody_has_asked_for_says_why_it_is_there(self, at_staff, instance):
        row = rebalance_row(instance.cluster)
        Rebalance.objects.update(cause="broker 4 has no replicas yet", created_by="system")
        assert "By itself Broker 4 has no replicas yet" in text_of(at_staff.get("/fleet/rebalancing"))
        text = text_of(at_staff.get(f"/fleet/rebalancing/{row.id}"))
        assert "Nobody has asked for this: broker 4 has no replicas yet." in text
        assert "Proposed by itself" in text

    def test_nobody_else_sees_it(self, at_alice, instance):
        assert at_alice.client.get(self.ADDRESS).status_code == 404
        assert at_alice.client.post(self.ADDRESS, RULE).status_code == 404
