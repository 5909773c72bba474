"""Throttle rules in ZooKeeper: in a node of their own, or in a specification that has everything in it; nobody's is lost."""

from dataclasses import replace

import pytest

from dataplane.doors import Create, Delete, NoNodeError, SetData, ZooKeeperError
from dataplane.tasks import Task
from dataplane.throttle.rule_writer import read_rules, write_rules
from quota.contracts.apart import joined, nodes_of, rules_path, spec_path, whitelists_path
from quota.contracts.instance import InstanceSpec, InstanceState, Limits
from quota.contracts.rules import RuleKind, RuleSet, ThrottleRule
from tests.simulation.zookeeper import ZooKeeperServer
from tests.support.virtual_loop import VirtualNetwork

INSTANCE = "ins-aaaabbbb"
SPEC = InstanceSpec(INSTANCE, 1, InstanceState.RUNNING, Limits(None, None, None, None), ("10.0.0.0/8",), ())
ANN = ThrottleRule("a", RuleKind.CLIENT, 1000, None, users=("ann",))
BOB = ThrottleRule("b", RuleKind.CLIENT, 1000, None, users=("bob",))


class World:
    def __init__(self, nodes):
        self.network = VirtualNetwork(3)
        self.server = ZooKeeperServer(self.network.loop("zookeeper").call_later, lambda: 0.001)
        self.network.loop("10.0.0.1")
        for name in ("", "/instances", "/whitelists", "/rules", "/changes"):
            self.server.write([Create(f"/sluice{name}")])
        self.server.write([Create(path, data) for path, data in nodes.items()])
        self.zookeeper = self.server.connect(2.0)

    def run(self, coroutine):
        task = Task(coroutine)
        self.network.run_for(1)
        return task.result()

    def read(self):
        return self.run(read_rules(self.zookeeper, INSTANCE))

    def write(self, decide):
        async def decided(rules):
            return decide(rules)

        self.run(write_rules(self.zookeeper, INSTANCE, decided))

    def data(self, path):
        found = self.server.tree.find(path)
        return None if found is None else found.data

    @property
    def spec(self):
        spec = InstanceSpec.from_json(self.data(spec_path(INSTANCE)))
        return joined(spec, self.data(whitelists_path(INSTANCE)), self.data(rules_path(INSTANCE)))

    @property
    def changes(self):
        return len(self.server.tree.children("/sluice/changes"))


def whole(*rules):
    spec = replace(SPEC, rules=RuleSet(1, rules)) if rules else SPEC
    return {spec_path(INSTANCE): spec.to_json()}


def apart(*rules):
    return nodes_of(replace(SPEC, rules=RuleSet(1, rules)) if rules else SPEC)


def and_bob(rules):
    return (*(rule for rule in rules if rule != BOB), BOB)


@pytest.mark.parametrize("nodes", [whole, apart])
@pytest.mark.parametrize("before", [(), (ANN,)])
def test_a_rule_is_added_to_what_is_there_and_brokers_are_told(nodes, before):
    world = World(nodes(*before))
    assert world.read() == before
    world.write(and_bob)
    assert world.read() == (*before, BOB)
    assert world.spec == replace(SPEC, rules=RuleSet(len(before) + 1, (*before, BOB)))
    assert world.changes == 1
    world.write(and_bob)
    assert world.changes == 1  # nothing was to be changed


def test_rules_apart_leave_the_specification_as_it_is_and_those_within_stay_within():
    world = World(apart(ANN))
    before = world.data(spec_path(INSTANCE))
    world.write(and_bob)
    assert world.data(spec_path(INSTANCE)) == before
    world = World(whole(ANN))
    world.write(and_bob)
    assert world.data(rules_path(INSTANCE)) is None


@pytest.mark.parametrize("before", [(), (ANN,)])
def test_who_was_overtaken_writes_on_top_of_the_other(before):
    world = World(apart(*before))
    other = replace(ANN, id="c", users=("carl",))
    data = RuleSet(9, (other,)).to_json()
    overtaken = []

    def decide(rules):
        if not overtaken:
            write = SetData(rules_path(INSTANCE), data) if before else Create(rules_path(INSTANCE), data)
            overtaken.append(world.server.write([write]))
        return and_bob(rules)

    world.write(decide)
    assert world.spec.rules == RuleSet(10, (other, BOB))


def test_of_an_instance_that_goes_meanwhile_nothing_is_left():
    world = World(apart())

    def decide(rules):
        if world.data(spec_path(INSTANCE)) is not None:
            world.server.write([Delete(spec_path(INSTANCE)), Delete(whitelists_path(INSTANCE))])
        return and_bob(rules)

    with pytest.raises(ZooKeeperError):
        world.write(decide)
    assert world.data(rules_path(INSTANCE)) is None
    with pytest.raises(NoNodeError):
        world.read()
