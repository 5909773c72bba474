"""Emergencies on the whole stack: what REST and the pages say of them, and how soon."""

from __future__ import annotations

import http.cookiejar
import json
import os
import re
import signal
import urllib.parse
import urllib.request
from contextlib import contextmanager

import pytest

from controlplane.stack.report import ADMIN_EMAIL
from tests.integration.clients import Sender, admin
from tests.integration.whole_stack import WholeStack
from tests.support.ports import free_block
from tests.support.waiting import promised, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
SOON_S = 10


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    whole = WholeStack(tmp_path_factory.mktemp("emergencies"), free_block(2000))
    try:
        whole.start()
        yield whole
    finally:
        whole.stop()


@pytest.fixture(scope="module")
def staff(stack):
    """A page as an operator sees it, as text."""
    url = stack.document()["console"]
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def get(path):
        with opener.open(f"{url}{path}", timeout=30) as answer:
            return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.read().decode()))

    with opener.open(f"{url}/sign-in", timeout=30) as answer:
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', answer.read().decode())[1]
    password = json.loads(stack.layout.secrets_file.read_text())["admin_password"]
    form = {"csrfmiddlewaretoken": token, "email": ADMIN_EMAIL, "password": password, "next": "/fleet"}
    request = urllib.request.Request(
        f"{url}/sign-in", urllib.parse.urlencode(form).encode(), {"Referer": f"{url}/sign-in"}
    )
    opener.open(request, timeout=30).close()
    return get


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


def health(api, instance):
    return api.call("GET", f"/instances/{instance.id}")["health"]


def codes(api, instance):
    return [reason["code"] for reason in health(api, instance)["reasons"]]


def is_sampled(api, instance):
    items = api.call("GET", f"/instances/{instance.id}/history?metrics=storage_used_bytes")["items"]
    return any(each["storage_used_bytes"] is not None for each in items)


def test_a_topic_that_comes_by_itself_has_the_instances_defaults(stack):
    api = stack.api()
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


def test_storage_fills_up(stack):
    api = stack.api()
    instance = api.running("small", storage_gib=0.004)
    api.topic(instance, "orders", 1)
    wait_for(lambda: health(api, instance)["state"] == "healthy", 30, "the new instance to be healthy")
    sender = Sender(instance)
    for _ in range(40):
        sender.send("orders", os.urandom(64 * 1024))
    sender.flush()
    took_s = wait_for(lambda: "storage_full" in codes(api, instance), 30, "full storage to be said")
    print(f"storage full: said after {took_s:.1f} s")
    assert took_s < promised(SOON_S)
    assert health(api, instance)["state"] == "critical"
    refused = {"storage_gib": 0.003}
    problem = api.call("PATCH", f"/instances/{instance.id}", refused, expect=409)
    assert problem["code"] == "storage_below_use"
    api.finished(api.call("PATCH", f"/instances/{instance.id}", {"storage_gib": 1}, expect=202)["operation_id"])
    wait_for(lambda: health(api, instance)["state"] == "healthy", 30, "the larger instance to be healthy")


def test_a_broker_hangs(stack, staff):
    api = stack.api()
    instance = api.running("three copies")
    api.topic(instance, "orders", 3)
    wait_for(lambda: health(api, instance)["state"] == "healthy", 30, "the instance to be healthy")
    with stopped(stack.pid("broker-2")):
        took_s = wait_for(lambda: "route_down" in codes(api, instance), 30, "the route to be down")
        print(f"broker stopped: route said after {took_s:.1f} s")
        assert took_s < promised(SOON_S)
        wait_for(lambda: "partitions_under_replicated" in codes(api, instance), 30, "replicas to be missed")
        assert "partitions_without_leader" not in codes(api, instance)
        wait_for(lambda: re.search(r"Broker 2: away\..*Since \d{4}-", staff("/fleet")), 30, "the fleet page to say so")
        text = staff("/fleet")
        assert "partitions are under-replicated" in text
        assert re.search(r"Broker 2 127\.0\.0\.1:\d+ not registered", text)
    wait_for(lambda: health(api, instance)["state"] == "healthy", 90, "the broker to be back in sync")
    wait_for(lambda: "Broker 2: away." not in staff("/fleet"), 30, "the fleet page to forget it")


def test_both_masters_hang(stack, staff):
    api = stack.api()
    instance = api.running("without masters")
    api.topic(instance, "orders", 3)
    wait_for(lambda: health(api, instance)["state"] == "healthy", 30, "the instance to be healthy")
    wait_for(lambda: is_sampled(api, instance), 60, "the figures to be kept, with the first sample of the history")
    with stopped(stack.pid("master-1"), stack.pid("master-2")):
        took_s = wait_for(lambda: "flow_unknown" in codes(api, instance), 30, "the masters to be missed")
        print(f"masters stopped: said after {took_s:.1f} s")
        assert took_s < promised(SOON_S)
        text = staff(f"/fleet/instances/{instance.id}")
        assert "These are the last known figures" in text
        wait_for(
            lambda: "each broker lets through its initial share" in staff(f"/fleet/instances/{instance.id}"),
            60,
            "the leases to end",
        )
    wait_for(lambda: health(api, instance)["state"] == "healthy", 60, "the masters to be back")
