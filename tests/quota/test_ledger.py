"""What the master decides from reports, specs and time."""

from dataclasses import replace

import pytest

from quota.contracts.grant import BLOCKED_STORAGE
from quota.contracts.instance import InstanceState
from quota.contracts.report import InstanceReport
from quota.core.ledger import STORAGE_KEPT_S, Ledger
from quota.core.model import Branch
from quota.core.spread import Spread
from tests.quota.samples import INSTANCE, flow, report, spec

LEASE_S = 10.0


def new_ledger(**limits):
    ledger = Ledger(epoch=4, now=0.0, period_ms=1000, lease_ms=10_000)
    ledger.set_specs({INSTANCE: spec(**limits)}, 0.0)
    return ledger


def experienced_ledger(**limits):
    """One that has finished learning: now is 10 s."""
    ledger = new_ledger(**limits)
    ledger.tick(LEASE_S)
    return ledger


def produce(ledger, broker, now):
    return ledger.grants(broker, now).instances[INSTANCE].produce


def test_a_grant_answers_the_report_with_the_epoch_and_the_rule():
    ledger = experienced_ledger()
    for broker, used in ((1, 300), (2, 0), (3, 0)):
        ledger.report(report(broker, flow(used), sequence=7), 10.0)
    grants = ledger.grants(1, 10.0)
    assert (grants.epoch, grants.sequence, grants.lease_ms) == (4, 7, 10_000)
    assert (produce(ledger, 1, 10.0).allocation, produce(ledger, 1, 10.0).branch) == (300, "headroom")
    assert produce(ledger, 2, 10.0).allocation == 30
    assert grants.instances[INSTANCE].consume.allocation == 100


def test_flow_is_per_second_whatever_the_length_of_the_period():
    ledger = experienced_ledger()
    ledger.report(report(1, flow(30), period_ms=100), 10.0)
    assert ledger.allocation(INSTANCE, "produce", 10.0).shares[0].flow_bytes_per_s == 300


def test_a_report_is_good_for_two_periods_and_then_the_leader_is_set_aside_its_initial_share():
    ledger = experienced_ledger()
    for broker in (1, 2, 3):
        ledger.report(report(broker, flow(300 if broker == 3 else 0)), 10.0)
    ledger.report(report(1, flow(0), sequence=2), 12.0)
    assert produce(ledger, 1, 12.0).allocation == 30  # broker 3 still counts with its 300
    ledger.report(report(1, flow(200), sequence=3), 12.5)
    ledger.report(report(2, flow(0), sequence=3), 12.5)
    assert produce(ledger, 1, 12.5).allocation == 200
    share = ledger.allocation(INSTANCE, "produce", 12.5).share(3)
    assert (share.allocation_bytes_per_s, share.branch) == (100, Branch.RESERVED)
    ledger.report(report(3, flow(0), sequence=2), 13.0)
    assert ledger.allocation(INSTANCE, "produce", 13.0).share(3).branch is Branch.HEADROOM


def test_a_silent_broker_that_left_zookeeper_is_forgotten_and_one_that_stays_registered_is_not():
    ledger = experienced_ledger()
    ledger.set_registered([1, 2])
    for broker in (1, 2, 3):
        ledger.report(report(broker), 10.0)
    ledger.report(report(1, sequence=2), 13.0)
    ledger.tick(13.0)
    allocation = ledger.allocation(INSTANCE, "produce", 13.0)
    assert [(share.broker, share.allocation_bytes_per_s) for share in allocation.shares] == [(1, 150), (2, 150)]
    assert ledger.reporting(13.0) == (1,)


def test_a_broker_that_reports_counts_even_while_it_is_not_registered():
    ledger = experienced_ledger()
    ledger.set_registered([])
    ledger.report(report(1), 10.0)
    ledger.tick(10.5)
    assert produce(ledger, 1, 10.5).allocation == 300


def test_an_older_report_of_the_same_boot_is_refused_and_a_new_boot_begins_anew():
    ledger = experienced_ledger()
    assert ledger.report(report(1, flow(50), sequence=9), 10.0)
    assert not ledger.report(report(1, flow(70), sequence=8), 10.1)
    assert not ledger.report(report(1, flow(70), sequence=9), 10.1)
    assert ledger.report(report(1, flow(70), sequence=1, boot="b"), 10.2)


def test_a_new_master_renews_what_brokers_hold_for_one_lease():
    ledger = new_ledger()
    ledger.report(report(1, flow(300, allocation=30)), 0.0)
    ledger.report(report(2, flow(0, allocation=270)), 0.0)
    assert (produce(ledger, 1, 9.9).allocation, produce(ledger, 1, 9.9).branch) == (30, "learning")
    assert produce(ledger, 2, 9.9).allocation == 270
    ledger.report(report(1, flow(300, allocation=30), sequence=2), 10.0)
    ledger.report(report(2, flow(0, allocation=270), sequence=2), 10.0)
    assert (produce(ledger, 1, 10.0).allocation, produce(ledger, 1, 10.0).branch) == (300, "headroom")


def test_while_learning_a_broker_without_a_grant_stays_on_its_initial_share():
    ledger = new_ledger()
    ledger.report(report(1, flow(300)), 0.0)
    assert produce(ledger, 1, 0.0).allocation is None


def test_while_learning_nobody_keeps_more_than_was_bought():
    ledger = new_ledger(produce=200)
    ledger.report(report(1, flow(0, allocation=999)), 0.0)
    assert produce(ledger, 1, 0.0).allocation == 200


@pytest.mark.parametrize(("limit", "allocation"), [(0, 0), (None, None)])
def test_blocked_and_unlimited_need_no_learning(limit, allocation):
    ledger = new_ledger(produce=limit)
    ledger.report(report(1, flow(0, allocation=77)), 0.0)
    assert produce(ledger, 1, 0.0).allocation == allocation
    assert produce(ledger, 1, 0.0).branch != "learning"


def test_full_storage_blocks_producing_on_every_broker_and_lets_consuming_pass():
    ledger = experienced_ledger(storage=1000)
    for broker in (1, 2):
        ledger.report(report(broker, storage=499), 10.0)
    assert produce(ledger, 1, 10.0).blocked is None
    ledger.report(report(2, storage=501, sequence=2), 11.0)
    for broker in (1, 2):
        grant = ledger.grants(broker, 11.0).instances[INSTANCE]
        assert grant.produce.blocked == BLOCKED_STORAGE
        assert grant.consume.blocked is None
        assert grant.storage_used_bytes == 1000


def test_the_block_is_lifted_under_97_percent_and_not_at_97():
    ledger = experienced_ledger(storage=1000)
    blocked = []
    for sequence, used in enumerate((999, 1000, 999, 970, 969, 999, 1000), start=1):
        ledger.report(report(1, storage=used, sequence=sequence), 10.0)
        blocked.append(ledger.storage_full(INSTANCE))
    assert blocked == [False, True, True, True, False, False, True]


def test_a_raised_storage_limit_lifts_the_block_and_no_limit_never_blocks():
    ledger = experienced_ledger(storage=1000)
    ledger.report(report(1, storage=1000), 10.0)
    ledger.set_specs({INSTANCE: spec(storage=2000)}, 10.5)
    assert not ledger.storage_full(INSTANCE)
    ledger.report(report(1, storage=2000, sequence=2), 11.0)
    assert ledger.storage_full(INSTANCE)
    ledger.set_specs({INSTANCE: spec(storage=None)}, 11.0)
    assert not ledger.storage_full(INSTANCE)


def test_storage_of_zero_is_blocked_from_the_start():
    ledger = experienced_ledger(storage=0)
    ledger.report(report(1, storage=0), 10.0)
    assert produce(ledger, 1, 10.0).blocked == BLOCKED_STORAGE


def test_a_new_master_does_not_lift_a_block_while_it_learns():
    ledger = new_ledger(storage=1000)
    ledger.report(report(1, flow(blocked=BLOCKED_STORAGE), storage=10), 0.0)
    assert produce(ledger, 1, 9.0).blocked == BLOCKED_STORAGE
    ledger.report(report(1, flow(blocked=BLOCKED_STORAGE), storage=985, sequence=2), 10.0)
    assert produce(ledger, 1, 10.0).blocked == BLOCKED_STORAGE  # between 97 and 100 %: it stays
    ledger.report(report(1, flow(blocked=BLOCKED_STORAGE), storage=10, sequence=3), 11.0)
    assert produce(ledger, 1, 11.0).blocked is None


def test_the_storage_of_a_broker_that_crashed_counts_on_for_a_while():
    ledger = experienced_ledger(storage=1000)
    ledger.set_registered([1])
    ledger.report(report(1, storage=600), 10.0)
    ledger.report(report(2, storage=600), 10.0)
    ledger.tick(20.0)
    assert ledger.storage_full(INSTANCE)
    ledger.report(report(1, storage=600, sequence=2), 10.0 + STORAGE_KEPT_S)
    ledger.tick(10.5 + STORAGE_KEPT_S)
    assert not ledger.storage_full(INSTANCE)


@pytest.mark.parametrize("kept_s", [90.0, STORAGE_KEPT_S])
def test_and_however_long_the_master_has_been_there(kept_s):
    ledger = experienced_ledger(storage=1000)
    ledger.set_registered([1])
    ledger.report(report(1, storage=600), 5_000.0)
    ledger.report(report(2, storage=600), 5_000.0)
    ledger.tick(5_010.0)
    ledger.tick(5_000.0 + kept_s)
    assert ledger.storage_full(INSTANCE)
    assert ledger.storage_used_bytes(INSTANCE) == 1_200


def test_an_instance_that_nobody_has_reported_stores_nothing_and_has_no_connections():
    ledger = experienced_ledger()
    assert ledger.storage_used_bytes(INSTANCE) == 0
    assert ledger.connections(INSTANCE) == 0
    assert ledger.held(INSTANCE, "produce") == {}
    assert not ledger.knows(1)


def test_a_broker_that_leads_nothing_of_an_instance_gets_no_grant_and_its_storage_still_counts():
    ledger = experienced_ledger()
    ledger.report(report(1, flow(leaders=0), flow(leaders=0), storage=50), 10.0)
    assert ledger.grants(1, 10.0).instances == {}
    assert ledger.storage_used_bytes(INSTANCE) == 50


def test_unknown_and_deleted_instances_get_no_grants():
    ledger = experienced_ledger()
    ledger.set_specs({INSTANCE: spec(state=InstanceState.DELETED)}, 10.0)
    ledger.report(report(1), 10.0)
    assert ledger.grants(1, 10.0).instances == {}


def test_the_bounded_strategy_is_chosen_by_the_spec():
    ledger = experienced_ledger(strategy="bounded")
    ledger.report(report(1, flow(300, throttled_ms=500)), 10.0)
    ledger.report(report(2, flow(0)), 10.0)
    assert (produce(ledger, 1, 10.0).allocation, produce(ledger, 1, 10.0).branch) == (307, "bounded")
    assert produce(ledger, 2, 10.0).allocation == 7


def in_trouble(broker, **counts):
    return replace(report(broker), trouble={name.replace("_", "-"): pair for name, pair in counts.items()})


def test_trouble_is_what_a_broker_says_that_still_reports_and_of_several_the_worst():
    ledger = experienced_ledger()
    ledger.report(report(1), 10.0)
    assert ledger.trouble(10.0) == {}
    ledger.report(in_trouble(2, ins_a=(0, 3), ins_b=(1, 0), ins_c=(2, 0)), 10.0)
    ledger.report(in_trouble(3, ins_a=(1, 1), ins_c=(1, 9)), 11.5)
    assert ledger.trouble(11.5) == {"ins-a": (1, 1), "ins-b": (1, 0), "ins-c": (2, 0)}
    assert ledger.trouble(13.0) == {"ins-a": (1, 1), "ins-c": (1, 9)}, (
        "broker 2 has not been heard for more than two periods"
    )


def test_what_the_cluster_lacks_of_brokers_is_what_a_broker_says_that_still_reports():
    ledger = experienced_ledger()
    ledger.report(report(1), 10.0)
    assert ledger.absent(10.0) == {}
    ledger.report(replace(report(2), absent={3: (6, 1, 0)}), 10.0)
    ledger.report(replace(report(4), absent={5: (1, 0, 0)}), 11.5)
    assert ledger.absent(11.5) == {3: (6, 1, 0), 5: (1, 0, 0)}
    assert ledger.absent(13.0) == {5: (1, 0, 0)}, "broker 2 has not been heard for more than two periods"
    ledger.report(report(4, sequence=2), 13.0)
    assert ledger.absent(13.0) == {}


@pytest.mark.parametrize("facts", [{"throttled_ms": 1}, {"queued": 1}, {"throttled_ms": 1, "queued": 1}])
@pytest.mark.parametrize("direction", ["produce", "consume"])
def test_who_had_to_wait_at_all_gets_as_much_as_is_left(facts, direction):
    ledger = experienced_ledger(strategy="bounded")
    ledger.report(report(1, **{direction: flow(10, **facts)}), 10.0)
    ledger.report(report(2, **{direction: flow(10)}), 10.0)
    granted = [getattr(ledger.grants(broker, 10.0).instances[INSTANCE], direction).allocation for broker in (1, 2)]
    assert granted == [290 + 7, 10 + 7]


def test_one_byte_a_second_is_flow():
    ledger = experienced_ledger()
    ledger.report(report(1, consume=flow(1)), 10.0)
    assert ledger.allocation(INSTANCE, "consume", 10.0).share(1).flow_bytes_per_s == 1


def test_bytes_a_second_are_whole_numbers_whatever_the_period():
    spread = Spread()
    entry = InstanceReport(flow(100), flow(200), 0, 1)
    spread.put(1, entry, 1000)
    spread.lay_out()
    spread.put(1, entry, 300)
    assert (spread.produce, spread.consume) == ([333], [666])
    assert {type(each) for each in (*spread.produce, *spread.consume)} == {int}
