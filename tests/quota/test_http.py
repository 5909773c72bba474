"""The master's read API, over loopback."""

import asyncio
import json
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from quota.contracts.identity import CONTROL_PLANE, METERING, MONITORING, OPERATOR, Keys, broker, master
from quota.contracts.loop_time import LoopUse, LoopWindow
from quota.contracts.mastership import Mastership
from quota.contracts.report import InstanceReport, LoopLoad
from quota.contracts.rows import Row, Unit
from quota.master import reading
from quota.master.election import Role
from quota.master.http import MAX_HEAD_BYTES
from quota.master.journal import ELASTIC, Journal
from quota.master.reading import HttpServer
from quota.master.service import Service
from quota.master.zookeeper import ZooKeeperLost
from tests.quota.samples import INSTANCE, flow, report, spec

NOW = 100.0
KEYS = Keys("the secret")
HEADER = f"Authorization: {KEYS.bearer(CONTROL_PLANE)}\r\n"


async def nothing_to_learn(_instance):
    """What ZooKeeper has of an instance that nobody made."""


def ask(service, *requests, **circumstances):
    """Status and body of raw requests."""
    answers = exchange(service, *requests, **circumstances)
    return [(int(head.split(" ")[1]), body) for head, body in answers]


def exchange(service, *requests, current=None, journal=None, elastic=None, learn=nothing_to_learn, open_metrics=False):
    """Head and body of raw requests."""

    async def scenario():
        election = SimpleNamespace(role=Role.ACTIVE, current=current)
        server = HttpServer(
            service, election, now=lambda: NOW, learn=learn, keys=KEYS, journal=journal, elastic=elastic,
            open_metrics=open_metrics,
        )  # fmt: skip
        port = await server.start("127.0.0.1", 0)
        answers = [await raw(port, request) for request in requests]
        server.stop()
        return answers

    async def raw(port, request):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        data = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        head, _, body = data.partition(b"\r\n\r\n")
        return head.decode(), body

    return asyncio.run(scenario())


def get(path, header=HEADER):
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n{header}\r\n".encode()


@pytest.fixture
def service():
    clock = [0.0]
    service = Service(period_ms=1000, lease_ms=10_000, now=lambda: clock[0])
    service.set_specs({INSTANCE: spec()})
    service.won(6)
    clock[0] = NOW
    service.report(report(1, flow(300), storage=40, connections=2))
    service.report(report(2, flow(0), storage=2, connections=1))
    return service


def test_the_allocation_of_an_instance_has_every_figure_it_was_decided_from(service):
    ((status, body),) = ask(service, get(f"/v1/instances/{INSTANCE}/allocation"))
    document = json.loads(body)
    assert status == 200
    assert (document["storage_used_bytes"], document["connections"], document["epoch"]) == (42, 3, 6)
    produce = document["produce"]
    assert (produce["limit"], produce["branch"]) == (300, "headroom")
    first = {key: produce["brokers"][0][key] for key in ("broker", "leaders", "initial_share", "flow", "allocation")}
    assert first == {"broker": 1, "leaders": 2, "initial_share": 150, "flow": 300, "allocation": 300}
    assert produce["brokers"][0]["explanation"].startswith("broker 1 carries 100 %")
    assert [broker["allocation"] for broker in document["consume"]["brokers"]] == [150, 150]


def test_broker_time_is_shown_in_milliseconds_where_there_is_a_limit_of_it(service):
    def shown():
        (answer,) = ask(service, get(f"/v1/instances/{INSTANCE}/allocation"))
        return json.loads(answer[1])["broker_time"]

    assert shown() is None
    limited = spec()
    service.set_specs({INSTANCE: replace(limited, limits=replace(limited.limits, loop_ms_per_s=300))})
    row = InstanceReport(flow(212_440, leaders=1), flow(leaders=1), 0, 0)
    said = report(1, flow(300), sequence=2)
    service.report(replace(said, instances={**said.instances, Row(INSTANCE, unit=Unit.LOOP_TIME).key: row}))
    document = shown()
    assert document["limit"] == 300
    assert [(each["broker"], each["flow"]) for each in document["brokers"]] == [(1, 212.4)]
    assert 0 < document["brokers"][0]["allocation"] <= 300
    ((_, metrics),) = ask(service, get("/metrics"))
    lines = metrics.decode().splitlines()
    assert f'sluice_master_broker_time_ms_per_second{{instance="{INSTANCE}",broker="1"}} 212.4' in lines
    assert any(line.startswith("sluice_master_broker_time_allocation_ms_per_second{") for line in lines)


def test_an_instance_that_was_made_this_moment_is_looked_up(service):
    made = "ins-newmade1"

    async def learn(instance):
        service.set_specs({INSTANCE: spec(), instance: spec(instance)})

    ((status, body),) = ask(service, get(f"/v1/instances/{made}/allocation"), learn=learn)
    document = json.loads(body)
    assert (status, document["instance"], document["produce"]["brokers"]) == (200, made, [])


@pytest.mark.parametrize("nobody", ["ins-00000000", "..", "ins-a%2Fb"])
def test_an_instance_that_nobody_made_is_not_there(service, nobody):
    ((status, _),) = ask(service, get(f"/v1/instances/{nobody}/allocation"))
    assert status == 404


def test_where_zookeeper_cannot_tell_whether_there_is_an_instance_the_master_does_not_either(service):
    async def learn(_instance):
        raise ZooKeeperLost

    ((status, body),) = ask(service, get("/v1/instances/ins-00000000/allocation"), learn=learn)
    assert (status, "not known now" in json.loads(body)["error"]) == (503, True)


def test_who_is_told_503_is_told_when_to_ask_again_and_nobody_else_is(service):
    async def learn(_instance):
        raise ZooKeeperLost

    unknown, known = get("/v1/instances/ins-00000000/allocation"), get("/v1/instances")
    (refused, _), (served, _) = exchange(service, unknown, known, learn=learn)
    service.lost()
    ((standby, _),) = exchange(service, known)
    for head in (refused, standby):
        assert head.startswith("HTTP/1.1 503 ")
        assert "Retry-After: 1" in head.split("\r\n")
    assert "Retry-After" not in served


def test_only_what_could_be_an_instance_is_looked_up(service):
    asked = []

    async def learn(instance):
        asked.append(instance)

    ask(service, get("/v1/instances/../allocation"), get(f"/v1/instances/{INSTANCE}/allocation"), learn=learn)
    assert asked == []


def test_some_instances_in_short_are_asked_for_by_id(service):
    answers = ask(service, get(f"/v1/instances/{INSTANCE},ins-00000000"), get("/v1/instances/ins-00000000"))
    documents = [json.loads(body) for status, body in answers if status == 200]
    assert [[row["instance"] for row in document["instances"]] for document in documents] == [[INSTANCE], []]


def test_several_instances_in_full_are_asked_for_by_id(service):
    ((status, body),) = ask(service, get(f"/v1/instances/{INSTANCE},ins-00000000/allocations"))
    assert status == 200
    (document,) = json.loads(body)["instances"]
    assert document["instance"] == INSTANCE
    assert [broker["allocation"] for broker in document["produce"]["brokers"]] == [300, 30]


def test_throttled_intervals_are_read_by_position_from_a_standby_too(service, tmp_path):
    journal = Journal(tmp_path, clock=lambda: 1.0)
    journal.append([b'{"number":1}', b'{"number":2}'])
    service.lost()
    ((status, body),) = ask(service, get("/v1/throttled/0"), journal=journal)
    document = json.loads(body)
    assert (status, document["intervals"]) == (200, [{"number": 1}, {"number": 2}])
    ((_, again),) = ask(service, get(f"/v1/throttled/{document['next']}"), journal=journal)
    assert json.loads(again) == {"intervals": [], "next": document["next"]}
    journal.close()


def test_what_is_billed_of_elastic_bandwidth_is_read_by_position(service, tmp_path):
    journal = Journal(tmp_path, clock=lambda: 1.0, name=ELASTIC)
    journal.append([b'{"bytes":1}'])
    ((status, body),) = ask(service, get("/v1/elastic/0"), elastic=journal)
    assert (status, json.loads(body)["uses"]) == (200, [{"bytes": 1}])
    journal.close()
    ((status, _),) = ask(service, get("/v1/elastic/0"))
    assert status == 404


def test_a_master_that_keeps_none_says_so(service):
    ((status, body),) = ask(service, get("/v1/throttled/0"))
    assert (status, "data_dir" in json.loads(body)["error"]) == (404, True)


def test_brokers_are_shown_with_what_they_lead_carry_and_may_carry(service):
    ((status, body),) = ask(service, get("/v1/brokers"))
    assert status == 200
    first, second = json.loads(body)["brokers"]
    assert first == {
        "broker": 1,
        "reporting": True,
        "instances": 1,
        "leaders": 2,
        "produce": {"flow": 300, "allocation": 300},
        "consume": {"flow": 0, "allocation": 150},
    }
    assert (second["broker"], second["produce"]["flow"], second["consume"]["allocation"]) == (2, 0, 150)


def test_a_broker_that_is_away_is_shown_with_what_that_costs(service):
    service.report(
        replace(report(2, flow(0), storage=2, connections=1, sequence=2), absent={3: (6, 1, 2), 1: (1, 0, 0)})
    )
    ((_, body),) = ask(service, get("/v1/brokers"))
    rows = {row["broker"]: row for row in json.loads(body)["brokers"]}
    assert rows[3]["reporting"] is False
    assert rows[3]["missing"] == {
        "replicas_behind": 6,
        "partitions_without_leader": 1,
        "group_partitions_without_coordinator": 2,
    }
    assert rows[1]["missing"]["replicas_behind"] == 1
    assert "missing" not in rows[2]


def test_the_list_has_every_instance_in_short(service):
    ((status, body),) = ask(service, get("/v1/instances"))
    document = json.loads(body)
    assert (status, document["brokers"]) == (200, [1, 2])
    assert document["instances"] == [
        {
            "instance": INSTANCE,
            "produce": {"limit": 300, "branch": "headroom", "flow": 300},
            "consume": {"limit": 300, "branch": "initial", "flow": 0},
            "storage_used_bytes": 42,
            "storage_full": False,
            "partitions_without_leader": 0,
            "partitions_under_replicated": 0,
            "connections": 3,
        }
    ]


def test_health_and_metrics_of_an_active_master(service):
    (health, metrics) = ask(service, get("/health"), get("/metrics"))
    assert health[0] == 200
    assert json.loads(health[1]) == {"role": "active", "epoch": 6, "learning": False, "brokers": [1, 2]}
    lines = metrics[1].decode().splitlines()
    assert "sluice_master_active 1" in lines
    assert "sluice_master_reports_total 2" in lines
    label = f'instance="{INSTANCE}",direction="produce",broker="1"'
    assert f"sluice_master_allocation_bytes_per_second{{{label}}} 300" in lines
    assert f"sluice_master_flow_bytes_per_second{{{label}}} 300" in lines


def test_metrics_say_how_long_a_brokers_turns_are_for_whom_and_who_was_cut_off(service):
    load = LoopLoad(
        63_000, INSTANCE, 700, {INSTANCE: 3}, {INSTANCE: 5}, {INSTANCE: 7}, {INSTANCE: 9}, {"": 11}, {INSTANCE: 13}
    )
    service.report(replace(report(1, flow(300), sequence=2), loop=load))
    ((_, body),) = ask(service, get("/metrics"))
    lines = body.decode().splitlines()
    assert f'sluice_master_broker_longest_turn_seconds{{broker="1",instance="{INSTANCE}"}} 0.063' in lines
    assert 'sluice_master_broker_busy_seconds{broker="1"} 0.7' in lines
    assert f'sluice_master_cut_connections_total{{instance="{INSTANCE}",broker="1"}} 3' in lines
    assert f'sluice_master_forgotten_producers_total{{instance="{INSTANCE}",broker="1"}} 7' in lines
    assert f'sluice_master_refused_fetch_sessions_total{{instance="{INSTANCE}",broker="1"}} 9' in lines
    assert 'sluice_master_failed_logins_total{instance="",broker="1"} 11' in lines
    assert f'sluice_master_refused_in_transactions_total{{instance="{INSTANCE}",broker="1"}} 13' in lines
    assert f'sluice_master_too_large_requests_total{{instance="{INSTANCE}",broker="1"}} 5' in lines
    assert not any(line.startswith("sluice_master_broker_busy") and 'broker="2"' in line for line in lines)


def test_partitions_in_trouble_are_shown_as_the_controllers_broker_says_while_it_is_heard(service):
    told = replace(report(2, flow(0), storage=2, connections=1, sequence=2), trouble={INSTANCE: (1, 6)})
    service.report(told)
    ((_, body), (_, listed), (_, metrics)) = ask(
        service, get(f"/v1/instances/{INSTANCE}/allocation"), get("/v1/instances"), get("/metrics")
    )
    for document in (json.loads(body), json.loads(listed)["instances"][0]):
        assert (document["partitions_without_leader"], document["partitions_under_replicated"]) == (1, 6)
    lines = metrics.decode().splitlines()
    assert f'sluice_master_partitions_without_leader{{instance="{INSTANCE}"}} 1' in lines
    assert f'sluice_master_partitions_under_replicated{{instance="{INSTANCE}"}} 6' in lines
    service.report(report(2, flow(0), storage=2, connections=1, sequence=3))
    ((_, body),) = ask(service, get(f"/v1/instances/{INSTANCE}/allocation"))
    assert json.loads(body)["partitions_under_replicated"] == 0


def test_transactions_are_shown_as_all_brokers_have_them(service):
    service.report(replace(report(1, flow(300), sequence=2), transactions={INSTANCE: (3, 40)}))
    service.report(replace(report(2, flow(0), sequence=2), transactions={INSTANCE: (1, 2)}))
    (_, body), (_, metrics) = ask(service, get(f"/v1/instances/{INSTANCE}/allocation"), get("/metrics"))
    assert json.loads(body)["transactions"] == {"open": 4, "open_limit": None, "ids": 42, "ids_limit": None}
    lines = metrics.decode().splitlines()
    assert f'sluice_master_open_transactions{{instance="{INSTANCE}"}} 4' in lines
    assert f'sluice_master_transactional_ids{{instance="{INSTANCE}"}} 42' in lines
    service.report(report(1, flow(300), sequence=3))
    service.report(report(2, flow(0), sequence=3))
    limited = spec()
    limits = replace(limited.limits, open_transactions=5, transactional_ids=0)
    service.set_specs({INSTANCE: replace(limited, limits=limits)})
    (_, body), (_, metrics) = ask(service, get(f"/v1/instances/{INSTANCE}/allocation"), get("/metrics"))
    assert json.loads(body)["transactions"] == {"open": 0, "open_limit": 5, "ids": 0, "ids_limit": 0}
    assert not any(line.startswith("sluice_master_open_transactions{") for line in metrics.decode().splitlines())


def test_a_standby_answers_503_with_the_address_of_the_active_one(service):
    service.lost()
    current = Mastership(2, "127.0.0.1:1", "http://127.0.0.1:2", 7)
    answers = ask(service, get("/health"), get("/v1/instances"), get("/metrics"), current=current)
    for status, body in answers[:2]:
        assert status == 503
        assert json.loads(body) == {"role": "standby", "active": "http://127.0.0.1:2"}
    assert (answers[2][0], "sluice_master_active 0" in answers[2][1].decode()) == (200, True)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (get("/v1/instances/ins-aaaaaaaa/allocation"), 404),
        (get("/"), 404),
        (get("/v1/instances?short=1"), 200),
        (get("//[/"), 400),
        (b"POST /health HTTP/1.1\r\n\r\n", 405),
        (b"hello\r\n\r\n", 400),
        (b"GET /" + b"x" * 2 * MAX_HEAD_BYTES, 431),
    ],
)
def test_other_requests_get_the_status_they_deserve(service, request_bytes, status):
    ((answered, _),) = ask(service, request_bytes)
    assert answered == status


# --- who may look -----------------------------------------------------------------------------------------------------

PATHS = ("/v1/instances", f"/v1/instances/{INSTANCE}/allocation", "/v1/brokers", "/v1/throttled/0", "/nothing")
STRANGERS = {
    "nobody": "",
    "a broker": f"Authorization: {KEYS.bearer(broker(1))}\r\n",
    "another master": f"Authorization: {KEYS.bearer(master(2))}\r\n",
    "metering": f"Authorization: {KEYS.bearer(METERING)}\r\n",
    "monitoring": f"Authorization: {KEYS.bearer(MONITORING)}\r\n",
    "another cluster": f"Authorization: {Keys('another').bearer(CONTROL_PLANE)}\r\n",
    "the secret itself": "Authorization: Bearer controlplane.the secret\r\n",
    "one of several": HEADER + "Authorization: Bearer x.y\r\n",
    "another header": HEADER.replace("Authorization", "X-Authorization"),
}


@pytest.mark.parametrize("who", STRANGERS)
def test_who_does_not_prove_that_he_may_look_sees_nothing(service, monkeypatch, who):
    monkeypatch.setattr(reading, "REFUSED_AFTER_S", 0.0)
    requests = [get(path, STRANGERS[who]) for path in PATHS]
    answers = exchange(service, *requests)
    assert {head.split(" ")[1] for head, _ in answers} == {"401"}
    assert all("WWW-Authenticate: Bearer" in head for head, _ in answers)
    assert len({body for _, body in answers}) == 1  # whatever is there


def test_operators_look_as_the_control_plane_does(service):
    ((status, _),) = ask(service, get("/v1/instances", f"authorization:{KEYS.bearer(OPERATOR)}\r\n"))
    assert status == 200


def test_health_is_nobodys_secret(service):
    ((status, _),) = ask(service, get("/health", ""))
    assert status == 200


def test_metrics_are_for_monitoring_or_open_by_choice(service, monkeypatch):
    monkeypatch.setattr(reading, "REFUSED_AFTER_S", 0.0)
    assert [status for status, _ in ask(service, get("/metrics", ""), get("/metrics", STRANGERS["monitoring"]))] == [
        401,
        200,
    ]
    assert [status for status, _ in ask(service, get("/metrics", ""), open_metrics=True)] == [200]


def test_refusals_are_counted_and_come_late(service, monkeypatch):
    monkeypatch.setattr(reading, "REFUSED_AFTER_S", 0.05)
    began = time.monotonic()
    *_, (_, text) = ask(service, get("/v1/brokers", ""), get("/v1/brokers", ""), get("/metrics"))
    assert b"sluice_master_refused_total 2\n" in text
    assert time.monotonic() - began >= 0.1


def test_how_brokers_spent_a_minute_is_read_by_when_it_began(service):
    window = LoopWindow(10_000_000, 7_100_000, {INSTANCE: LoopUse(400_000, 38_000, 0)})
    load = LoopLoad(1, "", 1, {}, {}, {}, {}, {}, {}, {1_740_830_410: window})
    service.report(replace(report(1, flow(300), sequence=2), loop=load))
    service.report(report(1, flow(300), sequence=3))
    ((status, body), (_, later), (_, other)) = ask(
        service,
        get("/v1/loop-times/1/1740830400"),
        get("/v1/loop-times/1/1740830460"),
        get("/v1/loop-times/2/1740830400"),
    )
    assert status == 200
    assert json.loads(body) == {"times": {"1740830410": [10_000_000, 7_100_000, {INSTANCE: [400_000, 38_000, 0]}]}}
    assert json.loads(later) == json.loads(other) == {"times": {}}
