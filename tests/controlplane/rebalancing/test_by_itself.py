"""A cluster is rebalanced by itself, as set: what calls for it has lasted, nobody else is at it, and nothing was undone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.clusters.models import Broker, ClusterEvent, PhysicalCluster
from controlplane.core.errors import ClusterUnavailable, Invalid
from controlplane.rebalancing import automatic, kept, services
from controlplane.rebalancing.models import BalanceMode, BalanceRule, Rebalance, RebalanceEvent, RebalanceState
from tests.controlplane.conftest import run_to_the_end

from .conftest import begun, proposed, replicas_in, work
from .rows import rebalance_row

OLGA = "olga@example.com"


def ruled(cluster, clock, **changes):
    changes = {"mode": "carry_out", **changes}
    return automatic.rule_set(cluster=cluster, actor=OLGA, changes=changes, reason="nights", clock=clock)


def minutes(clock, count):
    """Of beat: it has somebody look, and then looks after clusters."""
    for _ in range(count):
        clock.advance(60)
        kept.look(clock=clock)
        automatic.look_after(clock=clock)


def planned(clock):
    row = Rebalance.objects.latest("created_at")
    assert run_to_the_end(row.operation_id, clock).state == "succeeded"
    row.refresh_from_db()
    return row


def ended(row, admin, clock, most=60):
    """Carried out to its end, which is by the test's clock as all the rest is."""
    row.refresh_from_db()
    for _ in range(most):
        if (row := work(row, clock)).state in ("done", "cancelled", "failed"):
            Rebalance.objects.filter(pk=row.pk).update(finished_at=clock.now())
            return row
        admin.placement.copy()
    raise AssertionError(f"still {row.state}")


@pytest.fixture
def filled(admin, cluster, place):
    """Twelve partitions on three brokers: the fourth has none."""
    return place(admin, *[[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 4)


def test_where_nothing_is_set_nothing_begins(cluster, clock, filled):
    minutes(clock, 20)
    ruled(cluster, clock, mode="off")
    minutes(clock, 20)
    assert not Rebalance.objects.exists()


def test_a_new_broker_is_filled_once_it_has_been_there_for_a_while(admin, cluster, clock, filled):
    ruled(cluster, clock)
    minutes(clock, 10)
    assert not Rebalance.objects.exists()
    assert BalanceRule.objects.get().waiting_for == "new_broker"
    minutes(clock, 1)
    row = planned(clock)
    assert (row.created_by, row.cause, row.state) == ("system", "broker 4 has no replicas yet", "proposed")
    assert row.summary["moves"] > 0
    minutes(clock, 1)
    row = ended(Rebalance.objects.get(), admin, clock)
    assert row.state == "done"
    assert any(4 in replicas for replicas in replicas_in(admin, filled))
    events = RebalanceEvent.objects.order_by("pk").values_list("action", "actor")
    assert list(events) == [("propose", "system"), ("carry_out", "system")]
    minutes(clock, 20)
    assert Rebalance.objects.count() == 1
    assert BalanceRule.objects.get().waiting_for == ""


def test_where_it_is_only_to_propose_operators_have_it_carried_out(cluster, clock, filled):
    ruled(cluster, clock, mode="propose")
    minutes(clock, 11)
    row = planned(clock)
    minutes(clock, 30)
    row.refresh_from_db()
    assert (row.state, Rebalance.objects.count()) == ("proposed", 1)
    services.rebalance_carry_out(rebalance_id=row.id, actor=OLGA, clock=clock)


def test_skew_has_to_last(admin, cluster, clock, place):
    even, skewed = [[1, 2, 3], [2, 3, 4], [3, 4, 1], [4, 1, 2]] * 10, [[1, 2, 3]] * 40
    ruled(cluster, clock, new_brokers=False, skew_percent=100, lasting_minutes=10)
    place(admin, *skewed)
    minutes(clock, 8)
    place(admin, *even)
    minutes(clock, 1)
    assert BalanceRule.objects.get().waiting_since is None
    place(admin, *skewed)
    minutes(clock, 10)
    assert not Rebalance.objects.exists()
    minutes(clock, 1)
    assert Rebalance.objects.get().cause == "broker 1 leads 300 % more partitions than the average"


def test_it_goes_as_the_rule_says(cluster, clock, filled):
    ruled(cluster, clock, in_windows=True, throttle_bytes_per_s=2**20, at_once=3)
    minutes(clock, 11)
    row = Rebalance.objects.get()
    assert (row.wishes["in_windows"], row.throttle_bytes_per_s, row.at_once) == (True, 2**20, 3)


def test_a_drained_broker_stays_so(admin, cluster, clock, filled):
    drain = ended(begun(cluster, clock, draining=[4], goals=[]), admin, clock)
    assert drain.state == "done"
    clock.advance(7 * 3600)
    ruled(cluster, clock)
    minutes(clock, 20)
    assert Rebalance.objects.count() == 1
    Broker.objects.create(cluster=cluster, broker_id=5, host="127.0.0.1", port=19005)
    minutes(clock, 20)
    row = Rebalance.objects.exclude(pk=drain.pk).get()
    assert (row.cause, row.wishes["draining"]) == ("broker 5 has no replicas yet", [4])


def test_while_somebody_else_has_a_proposal_it_waits(cluster, clock, filled):
    other = proposed(cluster, clock)
    ruled(cluster, clock)
    minutes(clock, 20)
    assert Rebalance.objects.get() == other
    assert BalanceRule.objects.get().waiting_for == ""
    services.rebalance_cancel(rebalance_id=other.id, actor=OLGA, clock=clock)
    minutes(clock, 11)
    assert Rebalance.objects.count() == 2, "what an operator only tried out is no reason to rest"


def test_while_a_broker_with_replicas_is_away_nothing_begins(cluster, clock, filled):
    ruled(cluster, clock)
    Broker.objects.filter(broker_id=3).update(away_since=clock.now())
    minutes(clock, 20)
    assert not Rebalance.objects.exists()
    Broker.objects.filter(broker_id=3).update(away_since=None)
    minutes(clock, 11)
    assert Rebalance.objects.exists()


def test_nothing_is_judged_by_what_was_seen_long_ago(cluster, clock, filled):
    ruled(cluster, clock)
    minutes(clock, 2)
    clock.advance(15 * 60)
    automatic.look_after(clock=clock)
    assert not Rebalance.objects.exists()
    minutes(clock, 1)
    assert Rebalance.objects.exists()


def test_after_one_it_rests(admin, cluster, clock, filled):
    ended(begun(cluster, clock, goals=["leaders"], leaders_only=True), admin, clock)
    ruled(cluster, clock, rest_hours=2)
    minutes(clock, 100)
    assert Rebalance.objects.count() == 1
    minutes(clock, 25)
    assert Rebalance.objects.count() == 2


def test_one_that_would_move_nothing_is_discarded(cluster, clock):
    row = rebalance_row(cluster, moves=0)
    Rebalance.objects.update(cause="x", created_by="system")
    ruled(cluster, clock, mode="propose")
    automatic.look_after(clock=clock)
    row.refresh_from_db()
    assert row.state == RebalanceState.CANCELLED
    assert row.events.latest("pk").actor == "system"


def test_where_a_second_person_has_to_approve_nothing_is_carried_out_before(cluster, clock, filled, settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, rebalance_approval=True)
    ruled(cluster, clock)
    minutes(clock, 11)
    row = planned(clock)
    minutes(clock, 5)
    row.refresh_from_db()
    assert row.state == RebalanceState.PROPOSED
    services.rebalance_approve(rebalance_id=row.id, actor=OLGA, clock=clock)
    minutes(clock, 1)
    row.refresh_from_db()
    assert row.state == RebalanceState.RUNNING


@pytest.mark.parametrize("how", ["rolled back", "called back", "failed"])
def test_what_was_undone_is_proposed_again_and_not_carried_out(admin, cluster, clock, filled, how):
    ruled(cluster, clock, rest_hours=1)
    minutes(clock, 11)
    row = planned(clock)
    minutes(clock, 1)
    if how == "rolled back":
        ended(row, admin, clock)
        back = services.rebalance_roll_back(rebalance_id=row.id, actor=OLGA, clock=clock)
        ended(services.rebalance_carry_out(rebalance_id=back.id, actor=OLGA, clock=clock), admin, clock)
    elif how == "called back":
        services.rebalance_cancel(rebalance_id=row.id, actor=OLGA, clock=clock)
        ended(row, admin, clock)
    else:
        Rebalance.objects.update(state=RebalanceState.FAILED, finished_at=clock.now())
    known = Rebalance.objects.count()
    assert automatic.only_proposes(BalanceRule.objects.get())
    minutes(clock, 80)
    assert Rebalance.objects.count() == known + 1
    again = planned(clock)
    minutes(clock, 5)
    again.refresh_from_db()
    assert (again.state, bool(again.cause)) == (RebalanceState.PROPOSED, True)
    ruled(cluster, clock)
    minutes(clock, 1)
    again.refresh_from_db()
    assert again.state == RebalanceState.RUNNING


def test_one_cluster_does_not_cost_another_its_own(cluster, clock, monkeypatch):
    second = PhysicalCluster.objects.create(name="second", zookeeper_hosts="z:2181")
    asked = []

    def away(each, _clock):
        asked.append(each)
        raise ClusterUnavailable("away")

    for each in (cluster, second):
        ruled(each, clock)
    monkeypatch.setattr(automatic, "_look_after", away)
    automatic.look_after(clock=clock)
    assert asked == [cluster, second]


class TestTheRule:
    def test_it_is_on_record(self, cluster, clock):
        ruled(cluster, clock, mode="propose", skew_percent=None)
        event = ClusterEvent.objects.get()
        assert (event.actor, event.action, event.reason) == (OLGA, "rebalancing", "nights")
        assert event.detail == {"mode": {"from": "off", "to": "propose"}, "skew_percent": {"from": 50, "to": None}}

    def test_what_is_not_named_stays(self, cluster, clock):
        ruled(cluster, clock, rest_hours=12)
        row = automatic.rule_set(cluster=cluster, actor=OLGA, changes={"mode": "propose"}, reason="x", clock=clock)
        assert (row.mode, row.rest_hours) == (BalanceMode.PROPOSE, 12)

    @pytest.mark.parametrize(
        ("changes", "field"),
        [({"mode": "always"}, "mode"), ({"skew_percent": 19}, "skew_percent"), ({"lasting_minutes": 4}, "lasting_minutes"),
         ({"rest_hours": 0}, "rest_hours"), ({"throttle_bytes_per_s": 1}, "throttle_bytes_per_s"), ({"at_once": 0}, "at_once")],
    )  # fmt: skip
    def test_what_makes_no_sense_is_refused_by_name(self, cluster, clock, changes, field):
        with pytest.raises(Invalid) as refused:
            automatic.rule_set(cluster=cluster, actor=OLGA, changes=changes, reason="x", clock=clock)
        assert [each.field for each in refused.value.errors] == [field]
        assert not BalanceRule.objects.exists()

    def test_it_wants_a_change_and_a_reason(self, cluster, clock):
        for changes, reason in (({}, "x"), ({"mode": "propose"}, " ")):
            with pytest.raises(Invalid):
                automatic.rule_set(cluster=cluster, actor=OLGA, changes=changes, reason=reason, clock=clock)
