"""What the ledger keeps between reports is what it would work out anew from everything it was told."""

from hypothesis import given, settings
from hypothesis import strategies as st

from quota.contracts.grant import BLOCKED_STORAGE, Grant
from quota.contracts.report import FlowReport, InstanceReport
from quota.core import ledger as module
from quota.core.ledger import Ledger
from tests.quota.samples import flow, spec

INSTANCES = ("ins-aaaaaaaa", "ins-bbbbbbbb", "ins-cccccccc")
BROKERS = (1, 2, 3)

entries = st.builds(
    lambda used, leaders, waits, storage: InstanceReport(
        flow(used, leaders=leaders, throttled_ms=waits), flow(used // 2, leaders=leaders), storage, 1
    ),
    st.sampled_from([0, 10, 90, 300]),
    st.integers(0, 2),
    st.sampled_from([0, 0, 5]),
    st.sampled_from([0, 300, 400]),
)
reports = st.tuples(
    st.just("report"),
    st.sampled_from(BROKERS),
    st.dictionaries(st.sampled_from(INSTANCES), entries, max_size=3),
    st.sampled_from([1000, 1000, 400]),
)
others = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from([0.1, 0.9, 2.5, 1000.0])),
    st.tuples(st.just("specs"), st.sets(st.sampled_from(INSTANCES)), st.sampled_from([300, 600, 0, None])),
    st.tuples(st.just("registered"), st.sets(st.sampled_from(BROKERS))),
)
steps = st.lists(st.one_of(reports, reports, others), max_size=25)


@settings(max_examples=200, deadline=None)
@given(steps, st.sampled_from(["ckafka", "bounded"]))
def test_grants_are_what_the_whole_state_says(steps, strategy):
    ledger = Ledger(epoch=1, now=0.0, period_ms=1000, lease_ms=2000)
    ledger.set_specs({each: spec(each, strategy=strategy) for each in INSTANCES}, 0.0)
    now, said = 0.0, {}
    for sequence, (kind, *what) in enumerate(steps, 1):
        if kind == "report":
            broker, instances, period_ms = what
            ledger.report(FlowReport(broker, "a", sequence, period_ms, instances), now)
            said[broker] = instances
        elif kind == "wait":
            now += what[0]
            ledger.tick(now)
        elif kind == "specs":
            ledger.set_specs({each: spec(each, produce=what[1], strategy=strategy) for each in what[0]}, now)
        else:
            ledger.set_registered(what[0])
        check(ledger, said, now)


def check(ledger, said, now):
    for broker in filter(ledger.knows, BROKERS):
        grants = ledger.grants(broker, now).instances
        leading = {each for each, entry in said[broker].items() if entry.produce.leaders}
        assert grants.keys() == leading & ledger.specs.keys()
        for instance, granted in grants.items():
            blocked = BLOCKED_STORAGE if ledger.storage_full(instance) else None
            assert granted.produce == anew(ledger, instance, "produce", broker, now)._replace(blocked=blocked)
            assert granted.consume == anew(ledger, instance, "consume", broker, now)
            assert granted.storage_used_bytes == ledger.storage_used_bytes(instance)


def anew(ledger, instance, direction, broker, now):
    share = ledger.allocation(instance, direction, now).share(broker)
    return Grant(share.allocation_bytes_per_s, share.branch.value)


def test_storage_is_the_sum_of_what_brokers_last_said():
    ledger = Ledger(epoch=1, now=-10.0, period_ms=1000, lease_ms=1000)
    ledger.set_specs({INSTANCES[0]: spec(INSTANCES[0])}, 0.0)
    for sequence, sizes in enumerate([(100, 200), (150, 200), (0, 700)], 1):
        for broker, size in enumerate(sizes, 1):
            entry = InstanceReport(flow(), flow(), size, 0)
            ledger.report(FlowReport(broker, "a", sequence, 1000, {INSTANCES[0]: entry}), float(sequence))
        assert ledger.storage_used_bytes(INSTANCES[0]) == sum(sizes)
    ledger.report(FlowReport(2, "a", 9, 1000, {}), 4.0)
    assert ledger.storage_used_bytes(INSTANCES[0]) == 0


def continued(sequence, used=None, gone=(), leaders=2):
    """A report of broker 1 that names the first instance where something flowed."""
    rows = {}
    if used is not None:
        rows[INSTANCES[0]] = InstanceReport(flow(used, leaders=leaders), flow(leaders=leaders), 5, 0)
    return FlowReport(1, "a", sequence, 1000, rows, partial=True, gone=gone)


def reported():
    """A ledger, and the whole report of broker 1 with which it begins."""
    ledger = Ledger(epoch=1, now=-10.0, period_ms=1000, lease_ms=1000)
    ledger.set_specs({each: spec(each) for each in INSTANCES}, 0.0)
    idle = {each: InstanceReport(flow(), flow(), 5, 0) for each in INSTANCES}
    ledger.report(FlowReport(1, "a", 1, 1000, idle), 0.0)
    return ledger


def named(ledger):
    grants = ledger.grants(1, 0.0)
    return grants.partial, set(grants.instances), set(grants.gone)


def test_only_what_became_another_grant_is_answered_to_what_continues_a_report():
    ledger = reported()
    assert named(ledger) == (False, set(INSTANCES), set()), "the first answer of all"
    ledger.report(continued(2), 0.0)
    assert named(ledger) == (True, set(), set())
    ledger.report(continued(3, used=10), 0.0)
    assert named(ledger) == (True, set(), set()), "it was worked out anew, and is the same"
    ledger.set_specs({each: spec(each, produce=600 if each == INSTANCES[0] else 300) for each in INSTANCES}, 0.0)
    ledger.report(continued(4), 0.0)
    assert named(ledger) == (True, {INSTANCES[0]}, set())
    ledger.report(continued(5, gone=(INSTANCES[1],)), 0.0)
    assert named(ledger) == (True, set(), {INSTANCES[1]})
    assert named(ledger) == (True, set(), set()), "it is said once"
    ledger.report(continued(6, used=0, leaders=0), 0.0)
    assert named(ledger) == (True, set(), {INSTANCES[0]}), "it leads nothing of it any more"
    ledger.report(continued(7, used=0, leaders=2), 0.0)
    assert named(ledger) == (True, {INSTANCES[0]}, set()), "and leads something again"


def test_a_whole_report_that_was_not_answered_is_answered_wholly_with_the_one_that_continues_it():
    ledger = reported()
    ledger.report(continued(2, used=10), 0.0)
    assert named(ledger) == (False, set(INSTANCES), set())
    ledger.report(continued(3), 0.0)
    assert named(ledger) == (True, set(), set())


def test_what_has_not_changed_is_not_worked_out_again(monkeypatch):
    divisions = []
    real = module.divide
    monkeypatch.setattr(module, "divide", lambda *columns: divisions.append(columns) or real(*columns))
    ledger = Ledger(epoch=1, now=-10.0, period_ms=1000, lease_ms=1000)
    ledger.set_specs({each: spec(each) for each in INSTANCES}, 0.0)
    idle = {each: InstanceReport(flow(), flow(), 5, 0) for each in INSTANCES}
    for sequence in range(1, 4):
        for broker in BROKERS:
            ledger.report(FlowReport(broker, "a", sequence, 990 + sequence, idle), sequence / 2)
        for broker in BROKERS:
            assert len(ledger.grants(broker, sequence / 2).instances) == 3
    assert len(divisions) == 6
    busy = {**idle, INSTANCES[1]: InstanceReport(flow(50), flow(), 5, 0)}
    ledger.report(FlowReport(1, "a", 4, 1000, busy), 1.6)
    for broker in BROKERS:
        ledger.grants(broker, 1.6)
    assert len(divisions) == 8
