"""The stack as `manage.py up` starts it, from the tenant's first REST call to the last record, through kills and restarts."""

from __future__ import annotations

import os
import signal
import socket
import time
import urllib.request

import pytest
from confluent_kafka import TopicPartition

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import encode_request
from dataplane.protocol.schema import message_info
from tests.demo.stack import first_address
from tests.integration import asks
from tests.integration.clients import consumer, create_topic, produce, read_all, take
from tests.integration.whole_stack import Api, WholeStack
from tests.support.ports import free_block
from tests.support.waiting import promised, wait_for
from tests.support.wire import Wire, answers

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

OUTSIDE = "127.0.0.99"
ROWS = [b"row %d" % number for number in range(500)]
WINDOW_ENDS_LATE_S = 2
"""A broker ends a window with the first report after it, which it makes once a second; and some time on a busy machine."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    whole = WholeStack(tmp_path_factory.mktemp("whole"), free_block(2000))
    try:
        print(f"first start: {whole.start():.1f} s")
        yield whole
    finally:
        whole.stop()


def stored(tenant, topic="orders"):
    return sorted(value for part in read_all(tenant, topic).values() for value in part)


def test_an_instance_from_its_creation_to_its_end(stack):
    api = stack.api()
    instance, operation = api.create("orders of spring")
    seen = list(api.steps(operation))
    assert [step["name"] for step in seen[0]["steps"]] == [
        "allocate addresses",
        "write specification",
        "wait for brokers",
        "open for use",
    ]
    assert seen[-1]["state"] == "succeeded"
    assert [step["state"] for step in seen[-1]["steps"]] == ["succeeded"] * 4
    assert [found["progress"] for found in seen] == sorted(found["progress"] for found in seen)
    shown = api.call("GET", f"/instances/{instance}")
    assert (shown["state"], shown["name"]) == ("running", "orders of spring")
    assert len(shown["bootstrap"].split(",")) == 3

    bought = api.running("another")
    made = api.topic(bought, "orders", **{"min.insync.replicas": "2"})
    assert len(made["partition_details"]) == 3
    produce(bought, "orders", ROWS)
    assert stored(bought) == sorted(ROWS)
    create_topic(bought, "by-client", 2)  # a tenant's own AdminClient and REST see the same
    listed = api.call("GET", f"/instances/{bought.id}/topics")["items"]
    assert [topic["name"] for topic in listed] == ["by-client", "orders"]

    changed = api.call("PATCH", f"/instances/{bought.id}", {"bandwidth_mib_per_s": 40, "name": "wider"}, expect=202)
    api.finished(changed["operation_id"])
    shown = api.call("GET", f"/instances/{bought.id}")
    assert (shown["bandwidth_mib_per_s"], shown["name"]) == (40, "wider")
    wait_for(lambda: shared_out(api, bought) == (40 * 2**20, 5), 10, "the master to share out the new limit")
    wait_for(lambda: used(api, bought) > 0, 10, "the storage to be reported")

    # Isolated, nobody gets in; restored, all is there as before and at the same addresses.
    shut = api.call("DELETE", f"/instances/{bought.id}", expect=202)
    api.finished(shut["operation_id"])
    shown = api.call("GET", f"/instances/{bought.id}")
    assert (shown["state"], shown["bootstrap"]) == ("isolated", bought.bootstrap)
    with pytest.raises(ConnectionError):
        socket.create_connection(first_address(bought.bootstrap), timeout=5).close()
    opened = api.call("POST", f"/instances/{bought.id}/restore", expect=202)
    api.finished(opened["operation_id"])
    assert stored(bought) == sorted(ROWS)
    produce(bought, "orders", ROWS)

    for target, name in ((bought.id, "wider"), (instance, "orders of spring")):
        api.finished(api.call("DELETE", f"/instances/{target}", expect=202)["operation_id"])
        gone = api.call("POST", f"/instances/{target}/destroy", {"name": name}, expect=202)
        assert [step["state"] for step in api.finished(gone["operation_id"])["steps"]] == ["succeeded"] * 5
        api.call("GET", f"/instances/{target}", expect=404)
    with pytest.raises(ConnectionError):
        socket.create_connection(first_address(bought.bootstrap), timeout=5).close()


def shared_out(api: Api, bought) -> tuple[int, int]:
    """The limit, and how many leaders it is shared out to."""
    produce_side = api.call("GET", f"/instances/{bought.id}/allocation")["produce"]
    return produce_side["limit"], sum(share["leaders"] for share in produce_side["brokers"])


def used(api: Api, bought) -> int:
    return api.call("GET", f"/instances/{bought.id}")["storage_used_bytes"] or 0


def test_whoever_had_to_wait_is_told_why_by_rest(stack):
    api = stack.api()
    bought = api.running("narrow", bandwidth_mib_per_s=1)
    api.topic(bought, "orders")
    produce(bought, "orders", [os.urandom(64 * 1024) for _ in range(64)])  # 4 MiB
    throttling = f"/instances/{bought.id}/throttling"

    def waited():
        """On a busy machine the broker's time is a limit that is met, too: its row is named."""
        items = api.call("GET", throttling)["items"]
        return [each for each in items if each["direction"] == "produce" and each["rule"] is None]

    wait_for(waited, 60, "the interval to come from the master")
    interval = waited()[0]
    assert interval["limit"] == 2**20
    assert interval["throttled_ms"] > 0
    assert interval["explanation"].startswith("Producing waited ")
    assert {broker["broker"] for broker in interval["inputs"]["brokers"]} <= {1, 2, 3}
    days = api.call("GET", f"/instances/{bought.id}/guarantee")["items"]
    assert sum(day["throttled_ms"] for day in days) >= interval["throttled_ms"]
    wait_for(lambda: history(api, bought, "produce_throttled_ms_per_s"), 60, "the waiting to be in the history")
    wait_for(
        lambda: max(history(api, bought, "storage_used_bytes"), default=0) >= 4 * 2**20,
        60,
        "a sample of the storage in the history",
    )
    assert history(api, bought, "produce_limit_bytes_per_s") == {2**20}


def test_what_flows_is_in_the_history(stack):
    api = stack.api()
    bought = api.running("remembered", bandwidth_mib_per_s=2)
    api.topic(bought, "orders")

    def flowing():
        """A sample is of one second in ten: it is met by whoever goes on."""
        produce(bought, "orders", [os.urandom(64 * 1024) for _ in range(32)])
        return history(api, bought, "produce_bytes_per_s")

    wait_for(flowing, 60, "a second in which something flowed to be sampled")
    assert max(flowing()) <= 3 * 2**20


def history(api: Api, bought, metric: str) -> set[float]:
    """The values of the last hour that are known, and not 0."""
    items = api.call("GET", f"/instances/{bought.id}/history?metrics={metric}")["items"]
    return {each[metric] for each in items} - {None, 0}


def test_whitelists_by_rest_are_in_force_within_two_seconds(stack):
    api = stack.api()
    bought = api.running("guarded")
    api.topic(bought, "orders")
    address = first_address(bought.bootstrap)
    assert not answers(address, OUTSIDE)
    began = time.monotonic()
    api.call("PUT", f"/instances/{bought.id}/whitelist", {"cidrs": ["127.0.0.0/8"]})
    wait_for(lambda: answers(address, OUTSIDE), promised(2), "the wider whitelist")
    assert time.monotonic() - began < promised(2)
    began = time.monotonic()
    api.call("PUT", f"/instances/{bought.id}/topics/orders/whitelist", {"cidrs": ["10.0.0.0/8"]})
    wait_for(lambda: "orders" not in topics_seen(bought), promised(2), "the topic's whitelist")
    assert time.monotonic() - began < promised(2)
    api.call("PUT", f"/instances/{bought.id}/topics/orders/whitelist", {"cidrs": None})
    wait_for(lambda: "orders" in topics_seen(bought), promised(2), "the topic to be open again")


def topics_seen(bought) -> list[str]:
    with consumer(bought) as reader:
        return list(reader.list_topics(timeout=10).topics)


def test_another_tenants_instance_does_not_exist(stack):
    mine, theirs = stack.api(0), stack.api(1)
    bought = mine.running("mine")
    for method, path, body in (
        ("GET", "", None),
        ("PATCH", "", {"name": "stolen"}),
        ("DELETE", "", None),
        ("GET", "/allocation", None),
        ("GET", "/topics", None),
        ("PUT", "/whitelist", {"cidrs": []}),
    ):
        theirs.call(method, f"/instances/{bought.id}{path}", body, expect=404)
    assert bought.id not in {item["id"] for item in theirs.call("GET", "/instances")["items"]}
    assert mine.call("GET", f"/instances/{bought.id}")["name"] == "mine"


def test_an_operation_goes_on_after_its_worker_was_killed(stack):
    """All brokers stand still, so that the worker dies while it waits for them; they come back as zombies would."""
    api = stack.api()
    brokers = [stack.pid(f"broker-{n}") for n in (1, 2, 3)]
    worker = stack.pid("worker")
    for pid in brokers:
        os.kill(pid, signal.SIGSTOP)
    try:
        instance, operation = api.create("interrupted")
        wait_for(lambda: step(api, operation, 2) == "running", 20, "the third step")
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: stack.pid("worker") not in (worker, None), 30, "another worker")
        assert api.call("GET", f"/operations/{operation}")["state"] == "running"
    finally:
        for pid in brokers:
            os.kill(pid, signal.SIGCONT)
    done = api.finished(operation, 60)
    assert [one["state"] for one in done["steps"]] == ["succeeded"] * 4
    shown = api.call("GET", f"/instances/{instance}")
    assert shown["state"] == "running"
    assert answers(first_address(shown["bootstrap"]))


def step(api: Api, operation: str, number: int) -> str:
    return api.call("GET", f"/operations/{operation}")["steps"][number]["state"]


def test_a_killed_broker_is_started_again(stack):
    api = stack.api()
    bought = api.running("steady")
    api.topic(bought, "orders", 6, **{"min.insync.replicas": "2"})
    pid = stack.pid("broker-2")
    os.kill(pid, signal.SIGKILL)
    produce(bought, "orders", ROWS, enable_idempotence=True, message_timeout_ms=60_000)
    wait_for(lambda: stack.pid("broker-2") not in (pid, None), 30, "the supervisor to start it")
    wait_for(lambda: replicas_in_sync(api, bought) == 18, 60, "all replicas to be in sync")
    assert stored(bought) == sorted(ROWS)


def replicas_in_sync(api: Api, bought) -> int:
    found = api.call("GET", f"/instances/{bought.id}/topics/orders")
    return sum(len(partition["isr"]) for partition in found["partition_details"])


def test_a_second_start_resumes_with_everything(stack):
    api = stack.api()
    bought = api.running("kept")
    api.topic(bought, "orders", 3, **{"retention.ms": "86400000"})
    produce(bought, "orders", ROWS)
    with consumer(bought, "billing") as reader:
        reader.subscribe(["orders"])
        take(reader, 200)
        reader.commit(asynchronous=False)
    key = api.key
    assert stack.stop() == 0
    assert not stack.layout.stack_file.exists()
    seconds = stack.start()
    print(f"second start: {seconds:.1f} s")
    assert seconds < 45  # 15 on a machine that does nothing else
    api = stack.api()
    assert api.key == key
    shown = api.call("GET", f"/instances/{bought.id}")
    assert (shown["state"], shown["bootstrap"]) == ("running", bought.bootstrap)
    topic = api.call("GET", f"/instances/{bought.id}/topics/orders")
    assert topic["config"]["retention.ms"] == "86400000"
    with consumer(bought, "billing") as reader:
        reader.subscribe(["orders"])
        assert len(take(reader, 300)) == 300
        produce(bought, "orders", [b"after"])
        assert take(reader, 1)[0].value() == b"after"
    assert len(stored(bought)) == 501


def test_a_group_from_its_lag_to_its_reset(stack):
    """By REST, with a real consumer, beside another tenant's group of the same name."""
    api, others = stack.api(), stack.api(1)
    bought, theirs = api.running("groups"), others.running("groups")
    for one, theirs_api in ((bought, api), (theirs, others)):
        theirs_api.topic(one, "orders", 1)
        produce(one, "orders", ROWS)
        # its word that it leaves may be lost, as the coordinator may move just then: then its session has to end
        with consumer(one, "billing", client_id="reader-1", session_timeout_ms=8_000) as reader:
            reader.subscribe(["orders"])
            read = take(reader, 100)[-1]
            reader.commit(message=read, asynchronous=False)
            shown = theirs_api.call("GET", f"/instances/{one.id}/groups/billing")
            (member,) = shown["members"]
            assert (shown["state"], member["client_id"]) == ("Stable", "reader-1")
            assert member["partitions"] == [{"topic": "orders", "partitions": [0]}]
            body = {"topic": "orders", "strategy": "earliest"}
            refusal = theirs_api.call("POST", f"/instances/{one.id}/groups/billing/offsets", body, expect=409)
            assert refusal["code"] == "group_not_empty"
    url = f"/instances/{bought.id}/groups"
    wait_for(lambda: api.call("GET", f"{url}/billing")["state"] == "Empty", 20, "the consumer to have left")
    shown = api.call("GET", f"{url}/billing")
    oldest_s = time.time() - read_time(bought, read.offset() + 1)
    assert shown["lag_messages"] == len(ROWS) - read.offset() - 1
    assert abs(shown["lag_seconds"] - oldest_s) < 1
    preview = api.call("POST", f"{url}/billing/offsets", {**body, "dry_run": True})
    assert preview["read_again"] == read.offset() + 1
    assert api.call("POST", f"{url}/billing/offsets", body) == preview
    assert api.call("GET", f"{url}/billing")["lag_messages"] == len(ROWS)
    api.call("DELETE", f"{url}/billing", expect=204)
    assert api.call("GET", url)["items"] == []
    assert [group["name"] for group in others.call("GET", f"/instances/{theirs.id}/groups")["items"]] == ["billing"]
    others.call("GET", f"{url}/billing", expect=404)


def read_time(tenant, offset) -> float:
    """The moment of one record, in seconds, as a consumer has it."""
    with consumer(tenant, "looking") as reader:
        reader.assign([TopicPartition("orders", 0, offset)])
        (message,) = take(reader, 1)
        return message.timestamp()[1] / 1000


class Counting:
    """A client that counts what it produces and consumes, on one connection to the leader of a topic's only partition."""

    def __init__(self, api: Api, bought, topic: str = "counted") -> None:
        self.topic = topic
        self.leader = api.call("GET", f"/instances/{bought.id}/topics/{topic}")["partition_details"][0]["leader"]
        host, port = bought.bootstrap.split(",")[self.leader - 1].split(":")
        self._wire = Wire((host, int(port)))
        self._offset = 0
        self.requests = self.produced_bytes = self.consumed_bytes = 0
        self.record_bytes = 0  # each produced once, and consumed once

    def go_on(self, size: int) -> None:
        """One batch there, and back again."""
        batch = asks.batch(os.urandom(size))
        sent = self._exchange(asks.produce(self.topic, batch), 9)
        self.produced_bytes += sent[0]
        self.record_bytes += len(batch)
        answer = self._exchange(asks.fetch(self.topic, self._offset), 12)
        self.consumed_bytes += answer[1]
        self._offset += 1

    def _exchange(self, request, version: int) -> tuple[int, int]:
        """Bytes of the request, and of its answer."""
        api = APIS[ApiKey(message_info(type(request)).api_key)]
        frame = encode_request(api, version, self.requests, "counting", request)
        self._wire.socket.sendall(frame)
        self.requests += 1
        return len(frame), len(self._wire.frame()) + 4

    def close(self) -> None:
        self._wire.socket.close()


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("step_s", "busy_s", "before_s"), [(10, 15, 0), pytest.param(60, 58, 7200, marks=pytest.mark.long)]
)
def test_history_and_prometheus_say_what_a_client_has_counted(stack, step_s, busy_s, before_s):
    """To 1 %, and as good as to the byte, since brokers count what passes.

    Minutes are asked for with hours before them, which samples do not reach: then they are the rows that are kept for 15 days.
    """
    api = stack.api()
    bought = api.running("counted", bandwidth_mib_per_s=8)
    for topic in ("counted", "beside"):
        api.topic(bought, topic, 1)
        wait_for(lambda topic=topic: replicas_of(api, bought, topic) == 3, 60, "the topic's replicas")
    if before_s:
        time.sleep(60 - time.time() % 60)  # of a whole minute
    while time.time() % step_s < WINDOW_ENDS_LATE_S:  # what flows now would be told of the step before
        time.sleep(0.1)
    began = int(time.time()) // step_s * step_s
    clients = [Counting(api, bought), Counting(api, bought, "beside")]
    until = time.monotonic() + busy_s
    while time.monotonic() < until:  # in bursts, which samples of one second in ten would miss or multiply
        for client, size in zip(clients, (32 * 1024, 8 * 1024), strict=True):
            for _ in range(20):
                client.go_on(size)
        time.sleep(1.3)
    for client in clients:
        client.close()
    ended = int(time.time()) // step_s * step_s + step_s
    produced_bytes, consumed_bytes = (
        sum(getattr(client, name) for client in clients) for name in ("produced_bytes", "consumed_bytes")
    )
    requests = sum(client.requests for client in clients)
    wanted = {
        "produce_bytes_per_s": produced_bytes,
        "consume_bytes_per_s": consumed_bytes,
        "requests_per_s": requests,
    }

    span = f"from={utc(began - before_s)}&to={utc(ended)}&step={step_s}"

    def told() -> dict[str, float] | None:
        """None: not all of it is known yet."""
        items = api.call("GET", f"/instances/{bought.id}/history?{span}&metrics={','.join(wanted)}")["items"]
        if len(items) < (ended - began + before_s) // step_s or None in items[-1].values():
            return None
        return {name: sum(item[name] or 0 for item in items) * step_s for name in wanted}

    wait_for(lambda: told() is not None, 180, "the last step to be known")
    found = told()
    off = {name: round(found[name] / value - 1, 4) for name, value in wanted.items()}
    print(f"history in steps of {step_s} s is off by {off}")
    assert max(map(abs, off.values())) <= 0.01
    for client in clients:
        items = api.call("GET", f"/instances/{bought.id}/topics/{client.topic}/history?{span}")["items"]
        for name in ("produce_bytes_per_s", "consume_bytes_per_s"):
            moved = sum(item[name] or 0 for item in items) * step_s
            print(f"{name} of topic {client.topic} is off by {moved / client.record_bytes - 1:.4f}")
            assert moved == pytest.approx(client.record_bytes, rel=0.01)
    by_broker = [
        api.call("GET", f"/instances/{bought.id}/brokers/{broker}/history?{span}")["items"] for broker in (1, 2, 3)
    ]
    asked = [sum(item["requests_per_s"] or 0 for item in items) * step_s for items in by_broker]
    assert sum(asked) == pytest.approx(requests, rel=0.01)
    lines = dict(line.rsplit(" ", 1) for line in scraped(api, bought).splitlines() if not line.startswith("#"))
    own = f'{{instance_id="{bought.id}"}}'
    counters = {
        f"sluice_produced_bytes_total{own}": produced_bytes,
        f"sluice_consumed_bytes_total{own}": consumed_bytes,
        f'sluice_requests_total{{instance_id="{bought.id}",api="Produce"}}': requests / 2,
        f'sluice_requests_total{{instance_id="{bought.id}",api="Fetch"}}': requests / 2,
    }
    for client in clients:
        of_topic = f'{{instance_id="{bought.id}",topic="{client.topic}"}}'
        counters[f"sluice_topic_produced_bytes_total{of_topic}"] = client.record_bytes
        counters[f"sluice_topic_consumed_bytes_total{of_topic}"] = client.record_bytes
    for name, value in counters.items():
        assert float(lines[name]) == pytest.approx(value, rel=0.01), name


def utc(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def replicas_of(api: Api, bought, topic: str) -> int:
    found = api.call("GET", f"/instances/{bought.id}/topics/{topic}")
    return sum(len(partition["isr"]) for partition in found["partition_details"])


def scraped(api: Api, bought) -> str:
    address = f"{api.url}/instances/{bought.id}/prometheus"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {api.key}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode()
