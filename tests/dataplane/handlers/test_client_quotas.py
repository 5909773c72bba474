"""Client quotas as a tenant's AdminClient sets and reads them: throttle rules of its instance."""

from dataclasses import replace

import pytest

from dataplane.handlers.admin import client_quotas
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.configs import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    ComponentData,
    DescribeClientQuotasRequest,
    OpData,
)
from dataplane.records.batch import Record, build_batch
from dataplane.throttle.client_quotas import ANY, DEFAULT, EXACT
from quota.contracts.instance import InstanceSpec
from quota.contracts.rules import RuleKind, RuleSet, ThrottleRule
from tests.dataplane.handlers.asking import Tenant
from tests.simulation.cluster import INSTANCE, SETTINGS, SetData, SimulatedCluster

PRODUCE, CONSUME = "producer_byte_rate", "consumer_byte_rate"
SPEC = f"/sluice/instances/{INSTANCE}"


@pytest.fixture(scope="module")
def shared():
    made = SimulatedCluster(seed=4)
    made.until(made.up)
    return made


@pytest.fixture
def cluster(shared):
    set_rules(shared)
    return shared


def set_rules(cluster, *rules):
    spec = InstanceSpec.from_json(cluster.zookeeper.tree.node(SPEC).data)
    spec = replace(spec, rules=RuleSet(spec.rules.version + 1, rules))
    cluster.zookeeper.write([SetData(SPEC, spec.to_json())])


def rules_of(cluster):
    return InstanceSpec.from_json(cluster.zookeeper.tree.node(SPEC).data).rules.items


def call(cluster, request, version=1, broker=1):
    answer = cluster.client.call(broker, request, version)
    cluster.until(lambda: answer.done, 10)
    return answer.result()


def entry(entity, **ops):
    """`None` takes a value away."""
    parts = tuple(AlterClientQuotasRequestEntityData(kind, name) for kind, name in entity.items())
    settings = tuple(OpData(key, 0.0 if value is None else value, value is None) for key, value in ops.items())
    return AlterClientQuotasRequestEntryData(parts, settings)


def alter(cluster, *entries, version=1, broker=1, validate_only=False):
    """Error codes and sentences, in the order of the entries."""
    answer = call(cluster, AlterClientQuotasRequest(tuple(entries), validate_only), version, broker)
    named = [[(part.entity_type, part.entity_name) for part in row.entity] for row in (*entries, *answer.entries)]
    assert named[: len(entries)] == named[len(entries) :]
    return [(row.error_code, row.error_message) for row in answer.entries]


def describe(cluster, *components, strict=False, version=1, broker=1):
    """{entity: rates}; an error code where it is refused."""
    request = DescribeClientQuotasRequest(tuple(ComponentData(*component) for component in components), strict)
    answer = call(cluster, request, version, broker)
    if answer.error_code:
        assert answer.entries is None
        return answer.error_code
    return {
        tuple((part.entity_type, part.entity_name) for part in row.entity): {v.key: v.value for v in row.values}
        for row in answer.entries
    }


@pytest.mark.parametrize("version", [0, 1])
def test_what_is_set_is_shown_and_taken_away_again(cluster, version):
    assert alter(cluster, entry({"user": "ann"}, **{PRODUCE: 1000.0, CONSUME: 5.0}), version=version) == [(0, None)]
    assert describe(cluster, version=version) == {(("user", "ann"),): {PRODUCE: 1000.0, CONSUME: 5.0}}
    assert alter(cluster, entry({"user": "ann"}, **{CONSUME: None}), version=version) == [(0, None)]
    assert describe(cluster, version=version) == {(("user", "ann"),): {PRODUCE: 1000.0}}
    assert alter(cluster, entry({"user": "ann"}, **{PRODUCE: None}), version=version) == [(0, None)]
    assert describe(cluster, version=version) == {}
    assert rules_of(cluster) == ()


def test_every_broker_shows_what_any_has_written(cluster):
    for broker, name in ((1, "a"), (2, "b"), (3, "c")):
        assert alter(cluster, entry({"client-id": name}, **{PRODUCE: 7.0}), broker=broker) == [(0, None)]
    shown = {(("client-id", name),): {PRODUCE: 7.0} for name in "abc"}
    assert [describe(cluster, broker=broker) for broker in (1, 2, 3)] == [shown] * 3


def test_writers_at_the_same_time_lose_nothing(cluster):
    answers = [
        cluster.client.call(broker, AlterClientQuotasRequest((entry({"user": f"u{broker}"}, **{PRODUCE: 9.0}),)), 1)
        for broker in (1, 2, 3)
    ]
    cluster.until(lambda: all(answer.done for answer in answers), 10)
    assert len(describe(cluster)) == 3


def test_a_quota_holds_its_client_on_all_brokers(cluster):
    cluster.create_topic("orders", 1)
    alter(cluster, entry({"client-id": "client"}, **{PRODUCE: 10_240.0}))
    cluster.network.run_for(0.5)
    tenant = Tenant(cluster)
    answer = tenant.ask(tenant.produce_request(build_batch([Record(None, bytes(51_200))], now_ms=1)), 9)
    assert answer.throttle_time_ms == pytest.approx(4900, abs=150)


ENTITIES = {
    "user": (("user", "ann"),),
    "users": (("user", None),),
    "client": (("client-id", "app"),),
    "both": (("user", "ann"), ("client-id", "app")),
    "half": (("user", "ann"), ("client-id", None)),
}


@pytest.mark.parametrize(
    ("components", "strict", "shown"),
    [
        ([], False, ["user", "users", "client", "both", "half"]),
        ([], True, []),
        ([("user", EXACT, "ann")], False, ["user", "both", "half"]),
        ([("user", EXACT, "ann")], True, ["user"]),
        ([("user", DEFAULT, None)], False, ["users"]),
        ([("user", ANY, None)], True, ["user", "users"]),
        ([("user", ANY, None), ("client-id", ANY, None)], True, ["both", "half"]),
        ([("client-id", DEFAULT, None)], False, ["half"]),
        ([("client-id", EXACT, "other")], False, []),
    ],
)
def test_filters_show_what_kafkas_show(cluster, components, strict, shown):
    alter(cluster, *(entry(dict(entity), **{PRODUCE: 10.0}) for entity in ENTITIES.values()))
    assert set(describe(cluster, *components, strict=strict)) == {ENTITIES[name] for name in shown}


@pytest.mark.parametrize(
    ("entity", "ops", "code"),
    [
        ({}, {PRODUCE: 1.0}, ErrorCode.INVALID_REQUEST),
        ({"user": ""}, {PRODUCE: 1.0}, ErrorCode.INVALID_REQUEST),
        ({"ip": "10.0.0.1"}, {PRODUCE: 1.0}, ErrorCode.UNSUPPORTED_VERSION),
        ({"user": "a"}, {"request_percentage": 50.0}, ErrorCode.INVALID_REQUEST),
        ({"user": "a"}, {"weather": 1.0}, ErrorCode.INVALID_REQUEST),
        ({"user": "a"}, {PRODUCE: 0.5}, ErrorCode.INVALID_REQUEST),
        ({"user": "a"}, {PRODUCE: 0.0}, ErrorCode.INVALID_REQUEST),
        ({"user": "a"}, {PRODUCE: float("nan")}, ErrorCode.INVALID_REQUEST),
        ({"user": "a"}, {PRODUCE: float("inf")}, ErrorCode.INVALID_REQUEST),
        ({"user": "a" * 256}, {PRODUCE: 1.0}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_no_quota_is_refused_alone(cluster, entity, ops, code):
    refused, taken = alter(cluster, entry(entity, **ops), entry({"user": "fine"}, **{PRODUCE: 1.0}))
    assert refused[0] == code
    assert refused[1]
    assert taken == (0, None)
    assert set(describe(cluster)) == {(("user", "fine"),)}


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("ip", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", ANY, None), ("user", EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 7, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_filters_that_are_none_are_refused(cluster, components, code):
    assert describe(cluster, *components) == code


def test_validating_changes_nothing(cluster):
    alter(cluster, entry({"user": "ann"}, **{PRODUCE: 1.0}))
    answers = alter(
        cluster,
        entry({"user": "ann"}, **{PRODUCE: 2.0}),
        entry({"user": "bob"}, weather=1.0),
        validate_only=True,
    )
    assert [code for code, _ in answers] == [0, ErrorCode.INVALID_REQUEST]
    assert describe(cluster) == {(("user", "ann"),): {PRODUCE: 1.0}}


def test_a_rule_for_several_is_shown_for_each_and_changed_elsewhere(cluster):
    rule = ThrottleRule("both", RuleKind.CLIENT, 5, None, users=("ann", "bob"))
    set_rules(cluster, rule, ThrottleRule("t", RuleKind.TOPIC, 5, None, topics=("orders",)))
    assert describe(cluster) == {(("user", name),): {PRODUCE: 5.0} for name in ("ann", "bob")}
    [(code, said)] = alter(cluster, entry({"user": "ann"}, **{PRODUCE: 9.0}))
    assert code == ErrorCode.INVALID_REQUEST
    assert "both" in said
    assert rules_of(cluster)[0] == rule


def test_taking_away_what_is_not_there_is_no_error(cluster):
    assert alter(cluster, entry({"user": "nobody"}, **{PRODUCE: None})) == [(0, None)]
    assert rules_of(cluster) == ()


def test_writing_has_the_rate_of_other_changes_that_all_instances_share():
    settings = replace(
        SETTINGS, controller_mutation_rate=2, controller_quota_window_num=5, controller_quota_window_size_seconds=1
    )
    cluster = SimulatedCluster(seed=6, settings=settings)
    cluster.until(cluster.up)

    def elapsed(writes, **how):
        before = cluster.network.clock.monotonic()
        for n in range(writes):
            assert alter(cluster, entry({"user": "ann"}, **{PRODUCE: 1.0 + n}), **how) == [(0, None)]
        return cluster.network.clock.monotonic() - before

    assert elapsed(30, validate_only=True) < 1
    assert elapsed(11) < 1
    assert elapsed(4) > 1.5


def test_who_loses_the_right_while_he_waits_for_his_turn_changes_nothing(monkeypatch):
    cluster = SimulatedCluster(seed=7)
    cluster.until(cluster.up)
    alter(cluster, entry({"user": "ann"}, **{PRODUCE: 1.0}))
    before = rules_of(cluster)
    broker = cluster.brokers[1]
    instance, clock = broker.registry.get(INSTANCE), broker.doors.loop.clock
    instance.mutation_bucket.charge(instance.mutation_bucket.rate * 14, clock.monotonic())
    answer = cluster.client.call(1, AlterClientQuotasRequest((entry({"user": "late"}, **{PRODUCE: 2.0}),)), 1)
    cluster.network.run_for(0.1)
    assert not answer.done
    monkeypatch.setattr(type(instance), "still_lets_in", lambda *_: False)
    cluster.until(lambda: answer.done, 30)
    assert [row.error_code for row in answer.result().entries] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert rules_of(cluster) == before


def test_a_filter_of_very_many_parts_is_refused_before_anything_is_read(cluster, monkeypatch):
    parts = [("user", EXACT, f"u{n}") for n in range(15_000)]
    reads = []
    monkeypatch.setattr(client_quotas, "read_rules", lambda *of: reads.append(of))
    assert describe(cluster, *parts) == ErrorCode.INVALID_REQUEST
    assert reads == []


def test_an_entity_of_very_many_parts_is_refused_by_the_first_of_them_and_named_whole(cluster, monkeypatch):
    many = tuple(AlterClientQuotasRequestEntityData("user", f"u{n}") for n in range(8_000))
    ann = (AlterClientQuotasRequestEntityData("user", "ann"),)
    ops = tuple(OpData(PRODUCE, 1.0, remove=False) for _ in range(8_000))
    request = AlterClientQuotasRequest(
        (AlterClientQuotasRequestEntryData(many, ()), AlterClientQuotasRequestEntryData(ann, ops))
    )
    looked_at = []
    known, settings = client_quotas.entity_of, client_quotas.Setting
    monkeypatch.setattr(client_quotas, "entity_of", lambda parts: looked_at.extend(parts) or known(parts))
    monkeypatch.setattr(client_quotas, "Setting", lambda *of: looked_at.append(of) or settings(*of))
    first, second = call(cluster, request).entries
    assert (first.error_code, second.error_code) == (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST)
    assert "named twice" in first.error_message
    assert "named twice" in second.error_message
    assert len(first.entity) == 8_000
    assert len(looked_at) <= 10, "what an entry costs grows with parts that say nothing new"


def test_an_answer_that_names_very_many_parts_is_made_in_steps():
    many = tuple(AlterClientQuotasRequestEntityData("user", f"u{n}") for n in range(20_000))
    request = AlterClientQuotasRequest((AlterClientQuotasRequestEntryData(many, ()),))
    pauses = list(client_quotas._answers(request, {}))
    assert len(pauses) > 100
