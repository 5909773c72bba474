"""A throttle rule is a row of the ledger, and so are an instance's requests: ALLOCATION.md holds for them, nothing is stored."""

import json
from dataclasses import replace

import pytest

from quota.contracts.grant import Grants
from quota.contracts.instance import ContractError
from quota.contracts.report import FlowReport, InstanceReport
from quota.contracts.rows import LOOP_MS, REQUEST, Row, Unit
from quota.contracts.rules import RuleKind, RuleSet, ThrottleRule
from quota.core.ledger import Ledger
from tests.quota.samples import INSTANCE, flow, spec

RULE = ThrottleRule("rule-1", RuleKind.TOPIC, 100, 100, topics=("orders",))
EACH = ThrottleRule("rule-2", RuleKind.CLIENT, 50, None, users=(None,))
SHARED, ANN, BOB = (
    Row(INSTANCE, "rule-1").key,
    Row(INSTANCE, "rule-2").of_client(["ann"]).key,
    Row(INSTANCE, "rule-2").of_client(["b"]).key,
)
NOW = 10.0


def ledger_with(*rules):
    ledger = Ledger(epoch=1, now=0.0, period_ms=1000, lease_ms=10_000)
    ledger.set_specs({INSTANCE: with_rules(*rules)}, 0.0)
    ledger.tick(NOW)
    return ledger


def with_rules(*rules):
    return replace(spec(produce=1000), rules=RuleSet(1, rules))


def take(ledger, broker, rows, *, sequence=1, leaders=2):
    flows = {
        row: InstanceReport(flow(used, leaders=leaders), flow(leaders=leaders), 0, 0) for row, used in rows.items()
    }
    ledger.report(FlowReport(broker, "b", sequence, 1000, flows), NOW)


def granted(ledger, row, brokers=(1, 2, 3)):
    return [ledger.grants(broker, NOW).instances[row].produce.allocation for broker in brokers]


@pytest.mark.parametrize(
    ("used", "amounts"),
    [((0, 0, 0), [33] * 3), ((26, 26, 26), [33] * 3), ((30, 25, 25), [37, 31, 31]), ((100, 0, 0), [100, 10, 10])],
)
def test_a_rules_limit_is_divided_by_the_documented_rule_whatever_the_instance_does(used, amounts):
    ledger = ledger_with(RULE)
    for broker, flowed in enumerate(used, 1):
        take(ledger, broker, {INSTANCE: 900 if broker == 3 else 0, SHARED: flowed})
    assert granted(ledger, SHARED) == amounts


def test_requests_are_divided_likewise_also_where_there_are_fewer_than_brokers():
    limited = spec(produce=1000)
    limited = replace(limited, limits=replace(limited.limits, requests_per_s=2))
    ledger = ledger_with()
    ledger.set_specs({INSTANCE: limited}, NOW)
    row = Row(INSTANCE, unit=Unit.REQUESTS).key
    for broker, flowed in enumerate((2 * REQUEST, 0, 0), 1):
        take(ledger, broker, {INSTANCE: 0, row: flowed}, leaders=1)
    assert granted(ledger, row) == [2000, 200, 200]
    ledger.set_specs({INSTANCE: spec(produce=1000)}, NOW)
    assert row not in ledger.grants(1, NOW).instances


def test_broker_time_is_divided_likewise():
    limited = spec(produce=1000)
    limited = replace(limited, limits=replace(limited.limits, loop_ms_per_s=300))
    ledger = ledger_with()
    ledger.set_specs({INSTANCE: limited}, NOW)
    row = Row(INSTANCE, unit=Unit.LOOP_TIME).key
    for broker, flowed in enumerate((300 * LOOP_MS, 0, 0), 1):
        take(ledger, broker, {INSTANCE: 0, row: flowed}, leaders=1)
    assert granted(ledger, row) == [300_000, 30_000, 30_000]
    ledger.set_specs({INSTANCE: spec(produce=1000)}, NOW)
    assert row not in ledger.grants(1, NOW).instances


def test_every_client_of_a_rule_for_each_has_the_limit_for_himself():
    ledger = ledger_with(EACH)
    take(ledger, 1, {INSTANCE: 0, ANN: 50, BOB: 0})
    take(ledger, 2, {INSTANCE: 0, ANN: 0, BOB: 50})
    assert granted(ledger, ANN, (1, 2)) == [50, 5]
    assert granted(ledger, BOB, (1, 2)) == [5, 50]


def test_a_client_goes_on_when_the_specs_are_read_again():
    ledger = ledger_with(EACH)
    take(ledger, 1, {ANN: 50})
    ledger.set_specs({INSTANCE: with_rules(EACH, RULE)}, NOW)
    assert granted(ledger, ANN, (1,)) == [50]


def test_rows_of_rules_that_are_gone_are_granted_nothing():
    ledger = ledger_with(EACH, RULE)
    take(ledger, 1, {INSTANCE: 0, ANN: 50, SHARED: 5})
    ledger.set_specs({INSTANCE: with_rules()}, NOW)
    assert ledger.grants(1, NOW).instances.keys() == {INSTANCE}


def test_a_broker_that_leads_nothing_of_a_topic_has_no_part_of_its_rule():
    ledger = ledger_with(RULE)
    take(ledger, 1, {SHARED: 10})
    take(ledger, 2, {SHARED: 0}, leaders=0)
    assert granted(ledger, SHARED, (1,)) == [100]
    assert ledger.grants(2, NOW).instances == {}


def test_rules_store_nothing_and_are_no_instances():
    ledger = ledger_with(RULE)
    take(ledger, 1, {INSTANCE: 0, SHARED: 10})
    assert ledger.specs.keys() == {INSTANCE}
    assert not ledger.storage_full(SHARED)


# --- whose fetches a rule for groups is about ---------------------------------------------------------------------------

GROUP = ThrottleRule("rule-3", RuleKind.GROUP, None, 70, groups=("readers",))
ROW = Row(INSTANCE, GROUP.id).key


def tell(ledger, broker, members, *, sequence=1):
    rows = {ROW: InstanceReport(flow(), flow(), 0, 0)}
    ledger.report(FlowReport(broker, "b", sequence, 1000, rows, {ROW: members} if members else {}), NOW)


def members(ledger, broker):
    return ledger.grants(broker, NOW).members


def test_every_broker_hears_who_is_in_a_group_whichever_coordinates_it():
    ledger = ledger_with(GROUP)
    tell(ledger, 1, [("app", "10.0.0.1")])
    tell(ledger, 2, [("app", "10.0.0.2"), ("app", "10.0.0.1")])
    tell(ledger, 3, [])
    assert members(ledger, 3) == {ROW: (("app", "10.0.0.1"), ("app", "10.0.0.2"))}


def test_members_that_left_are_not_told_any_more():
    ledger = ledger_with(GROUP)
    tell(ledger, 1, [("app", "10.0.0.1")])
    tell(ledger, 1, [], sequence=2)
    assert members(ledger, 1) == {}


def test_members_that_a_broker_has_told_who_is_gone_are_not_told_any_more():
    ledger = ledger_with(GROUP)
    tell(ledger, 1, [("app", "10.0.0.1")])
    tell(ledger, 2, [("other", "10.0.0.2")])
    ledger.set_registered([2])
    ledger.tick(NOW + 2.0)
    assert members(ledger, 2) == {ROW: (("app", "10.0.0.1"), ("other", "10.0.0.2"))}
    ledger.tick(NOW + 2.5)
    assert members(ledger, 2) == {ROW: (("other", "10.0.0.2"),)}


def test_members_cross_the_line_as_they_are():
    ledger = ledger_with(GROUP)
    tell(ledger, 1, [("app", "10.0.0.1")])
    grants = ledger.grants(1, NOW)
    assert Grants.from_document(json.loads(grants.to_json())) == grants
    report = FlowReport(1, "b", 1, 1000, {}, grants.members)
    assert FlowReport.from_document(json.loads(report.to_json())) == report


@pytest.mark.parametrize("members", [7, {ROW: 7}, {ROW: [7]}, {ROW: [["app"]]}])
def test_members_that_are_none_are_refused(members):
    document = json.loads(FlowReport(1, "b", 1, 1000, {}).to_json())
    with pytest.raises(ContractError):
        FlowReport.from_document({**document, "members": members})
