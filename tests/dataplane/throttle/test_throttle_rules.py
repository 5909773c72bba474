"""Throttle rules hold on every broker, for whom they are, and for nobody else."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dataplane.doors import Create
from dataplane.protocol.messages.discovery import FindCoordinatorRequest
from dataplane.protocol.messages.groups import JoinGroupRequest, JoinGroupRequestProtocol
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.records.batch import Record, build_batch
from dataplane.throttle.rules import MOST_CLIENTS, QUIET_S, InstanceRules
from quota.agent.agent import Agent
from quota.contracts.grant import Grants
from quota.contracts.instance import InstanceSpec
from quota.contracts.namespace import InstanceNames
from quota.contracts.rows import Row
from quota.contracts.rules import RuleKind, RuleSet, ThrottleRule
from tests.dataplane.handlers.asking import Tenant, Wire, records_of
from tests.simulation.cluster import INSTANCE, SetData, SimulatedCluster

KIB = 1024
ANN = SimpleNamespace(principal="User:ann", peer="10.0.0.9")
SPEC = f"/sluice/instances/{INSTANCE}"


def topic_rule(*topics, produce=None, consume=None):
    return ThrottleRule("t", RuleKind.TOPIC, produce, consume, topics=topics)


def client_rule(users=(), clients=(), produce=None, consume=None):
    return ThrottleRule("c", RuleKind.CLIENT, produce, consume, users=tuple(users), clients=tuple(clients))


def group_rule(*groups, consume):
    return ThrottleRule("g", RuleKind.GROUP, None, consume, groups=groups)


class RuledCluster(SimulatedCluster):
    """A cluster whose tenant has throttle rules."""

    def __init__(self, *rules):
        super().__init__(seed=15)
        self.until(self.up)
        for topic in ("orders", "events"):
            self.create_topic(topic, 1, on=(1, 2, 3))  # both have the same leader
        self.changes = 0
        self.set_rules(*rules)

    def set_rules(self, *rules):
        self.change(rules=self.spec.rules.changed(rules))

    def set_limits(self, **limits):
        self.change(limits=replace(self.spec.limits, **limits), generation=self.spec.generation + 1)

    @property
    def spec(self):
        return InstanceSpec.from_json(self.zookeeper.tree.node(SPEC).data)

    def change(self, **members):
        spec = replace(self.spec, **members)
        self.changes += 1
        change = Create(f"/sluice/changes/change-{self.changes:010}", f'{{"instance":"{INSTANCE}"}}'.encode())
        self.zookeeper.write([SetData(SPEC, spec.to_json()), change])
        self.network.run_for(0.2)

    @property
    def now(self):
        return self.network.clock.monotonic()

    def seconds(self, act):
        """How long something takes."""
        began = self.now
        act()
        return self.now - began


def batch(size):
    return build_batch([Record(None, bytes(size))], now_ms=1)


def produces(cluster, topic, size=50 * KIB, count=1):
    tenant = Tenant(cluster)

    def act():
        for _ in range(count):
            assert tenant.produce(9, batch(size), topic).error_code == 0

    return act


# --- topics -----------------------------------------------------------------------------------------------------------


def test_a_topic_rule_holds_producing_to_its_rate():
    cluster = RuledCluster(topic_rule("orders", produce=100 * KIB))
    # 10 KiB are saved up; the last of eleven requests need not be paid for
    assert cluster.seconds(produces(cluster, "orders", count=11)) == pytest.approx(4.9, abs=0.3)


def test_a_topic_rule_delays_no_request_for_another_topic_on_the_same_connection():
    cluster = RuledCluster(topic_rule("orders", produce=10 * KIB))
    tenant = Tenant(cluster)
    assert tenant.partition("orders").state.leader_id == tenant.partition("events").state.leader_id
    produces(cluster, "orders", 100 * KIB)()
    assert cluster.seconds(produces(cluster, "events")) < 0.5
    assert cluster.seconds(produces(cluster, "orders", KIB)) > 8


def test_who_waits_for_a_rule_that_is_taken_away_is_let_go():
    cluster = RuledCluster(topic_rule("orders", produce=KIB))
    tenant = Tenant(cluster)
    assert tenant.produce(9, batch(100 * KIB)).error_code == 0
    waiting = tenant.start_produce(9, batch(KIB))
    cluster.network.run_for(2)
    assert not waiting.done
    cluster.set_rules()
    cluster.network.run_for(2)
    assert waiting.done


def test_a_long_request_that_waits_for_a_rule_is_memory_until_its_connection_ends():
    cluster = RuledCluster(topic_rule("orders", produce=KIB))
    tenant = Tenant(cluster)
    assert tenant.produce(9, batch(100 * KIB)).error_code == 0
    broker = cluster.brokers[tenant.partition().state.leader_id]
    wire = Wire(tenant)
    cluster.network.run_for(0.1)
    parts = tuple(PartitionProduceData(index, bytes(batch(KIB))) for index in range(300))
    end_before = tenant.partition().log.end_offset
    (client,) = [each for each in broker.registry.get(INSTANCE).connections if each._connection.peer[0] == "10.0.1.9"]
    wire.send(ProduceRequest(acks=1, timeout_ms=5_000, topic_data=(TopicProduceData("orders", parts),)), 9)
    cluster.network.run_for(2)
    (taken,) = broker.decoded._taken.values()
    assert taken > 300 * KIB
    client.close()
    cluster.network.run_for(2)
    assert broker.decoded._taken == {}
    cluster.network.run_for(200)
    assert tenant.partition().log.end_offset == end_before


def test_a_client_that_went_while_it_waited_does_not_keep_its_connection():
    cluster = RuledCluster(topic_rule("orders", produce=KIB))
    tenant = Tenant(cluster)
    assert tenant.produce(9, batch(100 * KIB)).error_code == 0
    broker = cluster.brokers[tenant.partition().state.leader_id]
    wires = [Wire(tenant) for _ in range(2)]
    for wire in wires:
        wire.send(tenant.produce_request(batch(KIB)), 9)
    cluster.network.run_for(0.5)
    ours = [each for each in broker.registry.get(INSTANCE).connections if each._connection.peer[0] == "10.0.1.9"]
    wires[0]._connection.close()
    for _ in range(5):
        for each in ours:
            each.look(3)
    cluster.network.run_for(0.5)
    assert [each._connection.is_open for each in ours] == [False, True]


def test_the_answer_tells_a_client_nothing_of_a_topic_rule():
    cluster = RuledCluster(topic_rule("orders", produce=KIB))
    tenant = Tenant(cluster)
    assert tenant.ask(tenant.produce_request(batch(20 * KIB)), 9).throttle_time_ms == 0


def test_another_connection_is_no_way_around_a_topic_rule():
    cluster = RuledCluster(topic_rule("orders", produce=10 * KIB))
    produces(cluster, "orders", 50 * KIB)()
    wire = Wire(Tenant(cluster))
    wire.send(Tenant.produce_request(batch(KIB)), 9)
    cluster.network.run_for(3)
    assert not wire.answers
    cluster.network.run_for(2)
    assert len(wire.answers) == 1


def test_a_request_of_very_many_partitions_is_no_way_around_a_topic_rule():
    cluster = RuledCluster(topic_rule("orders", produce=10 * KIB))
    produces(cluster, "orders", 50 * KIB)()
    wire = Wire(Tenant(cluster))
    rows = (PartitionProduceData(0, batch(KIB)), *(PartitionProduceData(n, batch(1)) for n in range(1, 400)))
    request = ProduceRequest(acks=1, timeout_ms=5_000, topic_data=(TopicProduceData("orders", rows),))
    wire.send(request, 9, correlation_id=1)
    wire.send(Tenant.produce_request(batch(1)), 9, correlation_id=2)
    cluster.network.run_for(3)
    assert not wire.answers
    cluster.network.run_for(20)
    assert [int.from_bytes(answer[:4]) for answer in wire.answers] == [1, 2]


def test_topics_of_one_rule_share_its_limit():
    cluster = RuledCluster(topic_rule("orders", "events", produce=100 * KIB))
    produces(cluster, "orders", 200 * KIB)()
    assert cluster.seconds(produces(cluster, "events", KIB)) == pytest.approx(1.9, abs=0.3)


def test_a_topic_under_a_consume_rule_is_read_at_its_rate_and_never_stalls():
    cluster = RuledCluster(topic_rule("orders", consume=100 * KIB))
    produces(cluster, "orders", 20 * KIB, count=25)()
    tenant = Tenant(cluster)
    rows = []
    taken = cluster.seconds(lambda: rows.extend(read_all(tenant, "orders", 25)))
    assert len(rows) == 25
    assert taken == pytest.approx(4, abs=1)


def test_other_topics_are_read_in_full_while_one_owes():
    cluster = RuledCluster(topic_rule("orders", consume=10 * KIB))
    produces(cluster, "orders", 50 * KIB)()
    produces(cluster, "events", 50 * KIB, count=10)()
    tenant = Tenant(cluster)
    assert tenant.fetch(11, 0, "orders").records
    assert not tenant.fetch(11, 1, "orders").records
    assert cluster.seconds(lambda: read_all(tenant, "events", 10)) < 1


def read_all(tenant, topic, count):
    rows = []
    while len(rows) < count:
        rows += [row for row in records_of(tenant.fetch(11, len(rows), topic).records) if row[0] >= len(rows)]
    return rows


def test_a_rule_that_is_taken_away_holds_nobody_any_more():
    cluster = RuledCluster(topic_rule("orders", produce=KIB))
    produces(cluster, "orders")()
    cluster.set_rules()
    assert all(broker.registry.get(INSTANCE).rules is None for broker in cluster.brokers.values())
    assert cluster.seconds(produces(cluster, "orders")) < 0.5


def test_a_rule_that_is_changed_is_in_force_at_the_new_rate():
    cluster = RuledCluster(topic_rule("orders", produce=KIB))
    produces(cluster, "orders", 100 * KIB)()
    cluster.set_rules(topic_rule("orders", produce=100 * KIB))
    assert cluster.seconds(produces(cluster, "orders")) == pytest.approx(0.8, abs=0.4)


# --- clients ----------------------------------------------------------------------------------------------------------


def test_a_client_rule_holds_its_client_and_tells_him():
    cluster = RuledCluster(client_rule(clients=["client"], produce=10 * KIB))
    tenant = Tenant(cluster)
    answer = tenant.ask(tenant.produce_request(batch(50 * KIB)), 9)
    assert answer.throttle_time_ms == pytest.approx(4900, abs=150)
    assert cluster.seconds(produces(cluster, "orders", KIB)) == pytest.approx(4.9, abs=0.3)


def test_a_client_rule_is_nothing_to_others():
    cluster = RuledCluster(client_rule(clients=["another"], produce=KIB), topic_rule("events", produce=KIB))
    assert cluster.seconds(produces(cluster, "orders", count=5)) < 0.5


def test_a_client_that_is_held_may_do_everything_but_produce():
    cluster = RuledCluster(client_rule(users=["ANONYMOUS"], produce=KIB))
    produces(cluster, "orders", 100 * KIB)()
    tenant = Tenant(cluster)
    assert cluster.seconds(lambda: tenant.fetch(11, 0)) < 0.5
    assert cluster.seconds(lambda: tenant.offsets(5, -1)) < 0.5


def test_a_client_under_a_consume_rule_gets_a_seconds_worth_at_a_time():
    cluster = RuledCluster(client_rule(clients=["client"], consume=50 * KIB))
    produces(cluster, "orders", 20 * KIB, count=10)()
    tenant = Tenant(cluster)
    assert 0 < len(tenant.fetch(11, 0).records) <= 50 * KIB
    assert cluster.seconds(lambda: read_all(tenant, "orders", 10)) == pytest.approx(4, abs=1)


def test_brokers_are_not_clients():
    cluster = RuledCluster(client_rule([None], [None], produce=KIB, consume=KIB))
    produces(cluster, "orders", 100 * KIB)()  # at acks=all: the followers have fetched it
    partition = Tenant(cluster).partition("orders")
    assert partition.state.high_watermark == 1


# --- flows of their own -----------------------------------------------------------------------------------------------


class Clock:
    def __init__(self):
        self.time = 0.0

    def monotonic(self):
        return self.time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def rules(clock):
    made = InstanceRules(Agent(broker=1, boot="b", now=0.0), clock, INSTANCE, InstanceNames("simulate"))
    made.configure(RuleSet(1, (client_rule(clients=[None], produce=1000, consume=1000),)))
    return made


def charge(rules, client, size):
    return rules.charge_produce(ANN, client, size, ())


def test_a_rule_for_each_gives_every_client_the_limit(rules):
    assert charge(rules, "a", 2100) == pytest.approx(2)
    assert charge(rules, "b", 1100) == pytest.approx(1)


def test_made_up_client_ids_share_a_limit_when_they_are_too_many(rules):
    for number in range(MOST_CLIENTS):
        assert charge(rules, f"client {number}", 100) == 0
    waits = [charge(rules, f"more {number}", 100) for number in range(11)]
    assert waits[-1] == pytest.approx(1)
    assert len(list(rules.rows())) == MOST_CLIENTS + 1


def test_a_quiet_client_gives_up_its_flow_when_it_owes_nothing(rules, clock):
    charge(rules, "a", 100)
    charge(rules, "owes", int(1000 * (QUIET_S + 10)))
    keys = [row.key for row in rules.rows()]
    assert keys == [
        Row(INSTANCE, "c").key,
        Row(INSTANCE, "c").of_client(["a"]).key,
        Row(INSTANCE, "c").of_client(["owes"]).key,
    ]
    clock.time = QUIET_S + 1
    assert [row.key for row in rules.rows()] == [keys[0], keys[2]]


def test_a_flow_keeps_its_debt_when_rules_change(rules):
    rules.configure(RuleSet(2, (client_rule(clients=["a"], produce=1000),)))
    charge(rules, "a", 3100)
    rules.configure(RuleSet(3, (client_rule(clients=["a"], produce=1000), topic_rule("orders", produce=5))))
    assert rules.produce_debt(ANN, "a", ()).delay(0.0) == pytest.approx(3)


# --- consumer groups --------------------------------------------------------------------------------------------------

GROUP_ROW = Row(INSTANCE, "g").key


def join(cluster, group):
    """Become a member, on whatever broker is the coordinator."""
    protocols = (JoinGroupRequestProtocol("range", b""),)
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=protocols,
    )

    async def ask():
        while True:
            found = await cluster.client.call(1, FindCoordinatorRequest(key=group, key_type=0), 2)
            if not found.error_code:
                answer = await cluster.client.call(found.node_id, request, 3)
                if not answer.error_code:
                    return found.node_id
            await cluster.client.sleep(0.2)

    return cluster.run(ask())


def tell(cluster, members):
    """What the master says to every broker."""
    for broker in cluster.brokers.values():
        broker.agent.apply(Grants(1, 1, 10_000, {}, {GROUP_ROW: members}), cluster.now)


def test_the_coordinator_reports_who_is_in_a_group_with_a_rule():
    cluster = RuledCluster(group_rule("readers", consume=KIB))
    coordinator = join(cluster, "readers")
    join(cluster, "others")
    told = {broker: dict(room.facts())[GROUP_ROW].members for broker, room in cluster.brokers.items()}
    assert told == {broker: (("client", "10.0.1.1"),) if broker == coordinator else () for broker in cluster.ids}


def test_a_member_of_a_group_with_a_rule_is_held_on_every_broker():
    cluster = RuledCluster(group_rule("readers", consume=50 * KIB))
    produces(cluster, "orders", 20 * KIB, count=10)()
    tell(cluster, [("client", "10.0.1.1")])
    tenant = Tenant(cluster)
    assert cluster.seconds(lambda: read_all(tenant, "orders", 10)) == pytest.approx(4, abs=1)


@pytest.mark.parametrize("member", [("client", "10.0.1.2"), ("another", "10.0.1.1")])
def test_whoever_is_in_no_group_with_a_rule_reads_on(member):
    cluster = RuledCluster(group_rule("readers", consume=KIB))
    produces(cluster, "orders", 20 * KIB, count=10)()
    tell(cluster, [member])
    assert cluster.seconds(lambda: read_all(Tenant(cluster), "orders", 10)) < 1
