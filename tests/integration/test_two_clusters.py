"""Two physical clusters as `make up CLUSTERS=2` starts them: instances on both, apart in everything, and one that is drained."""

from __future__ import annotations

import os
import signal

import pytest
from confluent_kafka import KafkaException

from tests.integration.clients import produce, read_all
from tests.integration.whole_stack import WholeStack
from tests.support.ports import free_block
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400), pytest.mark.long]
ROWS = [b"row %d" % number for number in range(200)]


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    whole = WholeStack(tmp_path_factory.mktemp("two"), free_block(2000), clusters=2)
    try:
        print(f"first start: {whole.start():.1f} s")
        yield whole
    finally:
        whole.stop()


@pytest.fixture(scope="module")
def operator(stack):
    return stack.operator()


@pytest.fixture(scope="module")
def pair(stack, operator):
    """A running instance on each cluster, by the cluster's name, with a topic and records."""
    api, found = stack.api(), {}
    for number in range(6):
        if len(found) == 2:
            break
        bought = api.running(f"instance {number}")
        found.setdefault(home_of(operator, bought.id), bought)
    assert set(found) == {"default", "second"}, "what is bought goes to the cluster that has sold less"
    for name, bought in found.items():
        api.topic(bought, "orders")
        produce(bought, "orders", [row + b" of " + name.encode() for row in ROWS])
    return found


def on(operator, cluster):
    """Ids of what is on a cluster."""
    return {each["instance_id"] for each in operator.call("GET", f"/clusters/{cluster}/leaving")["instances"]}


def home_of(operator, instance):
    return next(name for name in ("default", "second") if instance in on(operator, name))


def stored(bought):
    return sorted(value for part in read_all(bought, "orders").values() for value in part)


def is_done(ask):
    """Whether this goes well now: a client whose broker was just killed says so, and has to ask again."""
    try:
        return ask()
    except (AssertionError, KafkaException):
        return False


def test_both_are_registered_with_brokers_of_their_own(operator):
    def there():
        items = operator.call("GET", "/clusters")["items"]
        return {each["name"]: (each["brokers"], each["brokers_there"]) for each in items}

    wait_for(lambda: there() == {"default": (3, 3), "second": (3, 3)}, 60, "the brokers of both to be seen")


def test_each_instance_has_its_own_records_on_its_own_brokers(stack, pair):
    ports = {
        name: {int(each.rpartition(":")[2]) for each in bought.bootstrap.split(",")} for name, bought in pair.items()
    }
    assert not ports["default"] & ports["second"]
    for name, bought in pair.items():
        assert stored(bought) == sorted(row + b" of " + name.encode() for row in ROWS)


def test_each_limit_is_shared_out_by_its_own_master(stack, pair):
    api = stack.api()
    brokers = {"default": {1, 2, 3}, "second": {4, 5, 6}}
    for name, bought in pair.items():

        def shared(bought=bought):
            found = api.call("GET", f"/instances/{bought.id}/allocation")["produce"]["brokers"]
            return {each["broker"] for each in found if each["leaders"]}

        wait_for(lambda shared=shared, name=name: shared() == brokers[name], 60, f"the master of {name}")


def test_a_broker_that_dies_in_one_cluster_is_nothing_to_the_other(stack, pair):
    pid = stack.pid("broker-5")
    os.kill(pid, signal.SIGKILL)
    assert stored(pair["default"]) == sorted(row + b" of default" for row in ROWS)
    rows = sorted(row + b" of second" for row in ROWS)
    wait_for(lambda: is_done(lambda: stored(pair["second"]) == rows), 60, "the others to lead what it led")
    wait_for(lambda: stack.pid("broker-5") not in (None, pid), 60, "the broker to be started again")
    api = stack.api()
    wait_for(lambda: is_done(lambda: api.topic(pair["second"], "on-all-three")), 60, "the broker to be back")


def test_one_is_drained(stack, operator, pair):
    """The last test: the cluster stays so."""
    before = on(operator, "second")
    changed = operator.call("PATCH", "/clusters/second", {"state": "draining", "reason": "old machines"})
    assert changed["state"] == "draining"
    api = stack.api()
    new = [api.create(f"after {number}")[0] for number in range(3)]
    assert set(new) <= on(operator, "default")
    assert on(operator, "second") == before
    left = operator.call("GET", "/clusters/second/leaving")["instances"]
    assert {each["destination"] for each in left} == {"default"}
    assert stored(pair["second"]) == sorted(row + b" of second" for row in ROWS), "who is there goes on"
    api.topic(pair["second"], "more")
