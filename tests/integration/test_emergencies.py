"""Emergencies on the whole stack: what REST, pages, metrics and readiness say of them, and how soon.

What is to be said, and where, stands in docs/runbooks/a-part-is-away.md: `told` looks for it word by word.
How soon is kept in var/reports/emergencies.json, with the bound that it was held to: SOON_S on a machine that is quiet
(`tests.support.waiting.promised`), so that a report from a busy one shows that it is.
"""

from __future__ import annotations

import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.integration.clients import Sender, admin
from tests.integration.looking import Looker, said_while
from tests.integration.whole_stack import WholeStack
from tests.support.evidence import kept, moment
from tests.support.ports import free_block
from tests.support.waiting import promised, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
SOON_S = 10
SLOW_S = 4
"""A page may take so long while a part is away."""
ASKED_S = 12
"""And so long where it is a broker that is asked, and that hangs (`controlplane.kafka.client`)."""
AT_ONCE = 3
"""So many people look: fewer than the web process has threads."""
GOOD = ("200", '"status": "ok"')
"""What the table says of places where all is well."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    whole = WholeStack(tmp_path_factory.mktemp("emergencies"), free_block(2000))
    try:
        whole.start()
        yield whole
    finally:
        whole.stop()


@pytest.fixture(scope="module")
def api(stack):
    """The administrator's, whose organisation's pages operators see as well."""
    return stack.operator()


@pytest.fixture(scope="module")
def looker(stack, api):
    return Looker(stack, api)


@pytest.fixture(scope="module")
def watched(api):
    """An instance that is well."""
    instance = api.running("three copies")
    api.topic(instance, "orders", 3)
    return instance


@pytest.fixture
def instance(api, looker, watched):
    """The same, before a test and after it."""
    is_green(looker, watched)
    return watched


@contextmanager
def stopped(*pids):
    """Processes that hang, as SIGSTOP makes them."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def gone(stack, name):
    """A process that has ended, and is not started again before the end."""
    with stopped(stack.pid("supervisor")):
        os.kill(stack.pid(name), signal.SIGKILL)
        yield


def health(api, instance):
    return api.call("GET", f"/instances/{instance.id}")["health"]


def codes(api, instance):
    return [reason["code"] for reason in health(api, instance)["reasons"]]


def is_sampled(api, instance):
    items = api.call("GET", f"/instances/{instance.id}/history?metrics=storage_used_bytes")["items"]
    return any(each["storage_used_bytes"] is not None for each in items)


def looked(looker, place, address, slow_s=SLOW_S):
    """What is said there: soon enough, and in a sentence where it cannot be shown."""
    answer = looker.look(place, address)
    assert answer.took_s < promised(slow_s), f"{place} took {answer.took_s:.1f} s"
    assert answer.status in (200, 503), f"{place}: {answer.status} {answer.text[:300]}"
    assert "Traceback" not in answer.text
    if answer.status == 503 and place.startswith("REST"):
        assert answer.problem.endswith("Retry-After: 2")
    elif answer.status == 503:
        assert "Try again" in answer.read
    return looker.says(place, answer)


def told(looker, instance, emergency, slow_s=SLOW_S, how=""):
    """All that the table has of an emergency is said soon, and no other place hangs or breaks meanwhile.

    `how` it came to be, where there are several ways: each has figures of its own.
    """
    places, missing = looker.places(instance, "orders"), said_while(emergency)
    others = places.keys() - missing.keys()
    began = time.monotonic()

    def say(place):
        return place, looked(looker, place, places[place], slow_s)

    with ThreadPoolExecutor(AT_ONCE) as people:
        _told(lambda some: dict(people.map(say, some)), missing, f"{emergency}{how and f' ({how})'}", began)
        list(people.map(say, sorted(others)))


def in_time(what, took_s):
    """It was said so many seconds after the emergency began: kept, and soon enough."""
    bound_s = promised(SOON_S)
    print(f"{what}: said after {took_s:.1f} s")
    figures = {
        "seconds": round(took_s, 2),
        "bound_s": round(bound_s, 1),
        "load": round(os.getloadavg()[0], 2),
        "at": moment(),
    }
    kept("emergencies", {what: figures})
    assert took_s < bound_s


def _told(say, missing, emergency, began):
    """Until everything is said. `missing`: what is to be said, by place; `say`: what is said at some places."""
    while True:
        said = say(missing)
        missing = {place: text for place, text in missing.items() if text not in said[place]}
        if not missing:
            break
        assert time.monotonic() - began < 45, {place: (text, said[place][:600]) for place, text in missing.items()}
        time.sleep(0.2)
    took_s = time.monotonic() - began
    in_time(f"{emergency}: everywhere", took_s)


def is_green(looker, instance, emergency=None):
    """All is well again, and nothing is said any more of what was the matter."""
    places = looker.places(instance, "orders")

    def says(place):
        return looker.says(place, looker.look(place, places[place]))

    wait_for(lambda: says("REST: health") == "healthy", 120, "the instance to be healthy")
    wait_for(lambda: '"status": "ok"' in says("/health/ready"), 60, "the service to be ready")
    wait_for(lambda: '"state":"running"' in says("REST: metering"), 120, "the meter to run")
    for place, text in said_while(emergency).items() if emergency else ():
        if text not in GOOD:
            wait_for(lambda place=place, text=text: text not in says(place), 60, f"{place} not to say: {text}")


def test_the_table_has_a_section_for_each_emergency_and_names_places_that_there_are(looker, watched):
    sections = (
        "Storage is full",
        "A broker hangs",
        "No flow master answers",
        "ZooKeeper is away",
        "Redis is away",
        "Metering is away",
        "No worker is there",
    )
    named = {place for each in sections for place in said_while(each)}
    assert named <= looker.places(watched, "orders").keys()


def test_a_topic_that_comes_by_itself_has_the_instances_defaults(api):
    instance = api.running("defaults", config={"auto_create_topics": True, "default_partitions": 4})
    sender = Sender(instance)
    sender.send("by-itself", b"first")
    sender.flush()
    topic = api.call("GET", f"/instances/{instance.id}/topics/by-itself")
    assert (topic["partitions"], topic["replication_factor"]) == (4, 3)
    change = {"config": {"default_replication_factor": 2, "max_message_bytes": 4_000_000}}
    api.finished(api.call("PATCH", f"/instances/{instance.id}", change, expect=202)["operation_id"])
    sender = Sender(instance, **{"message.max.bytes": 5_000_000})
    sender.send("by-itself", os.urandom(3_000_000))
    sender.flush()
    assert sender.refused == []
    assert set(admin(instance).list_topics(timeout=10).topics) == {"by-itself"}


def test_storage_fills_up(api, looker):
    instance = api.running("small", storage_gib=0.004)
    api.topic(instance, "orders", 1)
    wait_for(lambda: health(api, instance)["state"] == "healthy", 30, "the new instance to be healthy")
    sender = Sender(instance)
    for _ in range(40):
        sender.send("orders", os.urandom(64 * 1024))
    sender.flush()
    took_s = wait_for(lambda: "storage_full" in codes(api, instance), 30, "full storage to be said")
    in_time("Storage is full: REST", took_s)
    assert health(api, instance)["state"] == "critical"
    told(looker, instance, "Storage is full")
    refused = {"storage_gib": 0.003}
    problem = api.call("PATCH", f"/instances/{instance.id}", refused, expect=409)
    assert problem["code"] == "storage_below_use"
    api.finished(api.call("PATCH", f"/instances/{instance.id}", {"storage_gib": 1}, expect=202)["operation_id"])
    wait_for(lambda: health(api, instance)["state"] == "healthy", 30, "the larger instance to be healthy")


def test_a_broker_hangs(stack, api, looker, instance):
    with stopped(stack.pid("broker-2")):
        took_s = wait_for(lambda: "route_down" in codes(api, instance), 30, "the route to be down")
        in_time("A broker hangs: route in REST", took_s)
        wait_for(lambda: "partitions_under_replicated" in codes(api, instance), 30, "replicas to be missed")
        assert "partitions_without_leader" not in codes(api, instance)
        told(looker, instance, "A broker hangs", ASKED_S)

        def fleet():
            return looker.page("/fleet").read

        wait_for(lambda: re.search(r"Broker 2: away\..*Since \d{4}-", fleet()), 30, "the fleet page to say since when")
        text = fleet()
        assert "partitions are under-replicated" in text
        assert re.search(r"Broker 2 127\.0\.0\.1:\d+ not registered", text)
    is_green(looker, instance, "A broker hangs")


def test_both_masters_hang(stack, api, looker, instance):
    wait_for(lambda: is_sampled(api, instance), 60, "the figures to be kept, with the first sample of the history")
    with stopped(stack.pid("master-1"), stack.pid("master-2")):
        took_s = wait_for(lambda: "flow_unknown" in codes(api, instance), 30, "the masters to be missed")
        in_time("No flow master answers: REST", took_s)
        told(looker, instance, "No flow master answers")
        wait_for(
            lambda: "each broker lets through its initial share" in looker.page(f"/fleet/instances/{instance.id}").read,
            60,
            "the leases to end",
        )
    is_green(looker, instance, "No flow master answers")


def test_zookeeper_hangs(stack, api, looker, instance):
    wait_for(lambda: is_sampled(api, instance), 60, "the figures to be kept, with the first sample of the history")
    with stopped(stack.pid("zookeeper")):
        told(looker, instance, "ZooKeeper is away")
        sender = Sender(instance)
        sender.send("orders", b"meanwhile")  # brokers serve on
        sender.flush()
        assert sender.refused == []
    is_green(looker, instance, "ZooKeeper is away")


@pytest.mark.parametrize("how", ["hangs", "is gone"])
def test_redis(stack, api, looker, instance, how):
    with stopped(stack.pid("redis")) if how == "hangs" else gone(stack, "redis"):
        told(looker, instance, "Redis is away", how=how)
        began = time.monotonic()
        change = api.call(
            "PATCH", f"/instances/{instance.id}", {"bandwidth_mib_per_s": larger(api, instance)}, expect=202
        )
        assert time.monotonic() - began < promised(SLOW_S)
    api.finished(change["operation_id"], 90)
    is_green(looker, instance, "Redis is away")


def test_metering_hangs(stack, looker, instance):
    with stopped(stack.pid("metering")):
        told(looker, instance, "Metering is away")
    is_green(looker, instance, "Metering is away")


def test_the_worker_hangs(stack, api, looker, instance):
    with stopped(stack.pid("worker")):
        told(looker, instance, "No worker is there")
        began = time.monotonic()
        change = api.call(
            "PATCH", f"/instances/{instance.id}", {"bandwidth_mib_per_s": larger(api, instance)}, expect=202
        )
        assert time.monotonic() - began < promised(SLOW_S)
        assert api.call("GET", f"/operations/{change['operation_id']}")["state"] == "running"
    api.finished(change["operation_id"], 90)
    is_green(looker, instance, "No worker is there")


def larger(api, instance):
    return api.call("GET", f"/instances/{instance.id}")["bandwidth_mib_per_s"] + 1
