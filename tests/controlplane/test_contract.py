"""The fixed table of the REST API, one test a row: paths, members, types and statuses that outside checks rely on.

Each goes through the real API over the fakes of the other tests. Members beside those of the table may come and go; those of the
table stay. `shaped` fails where one of them is missing or is of another type.
"""

from __future__ import annotations

import base64
import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from controlplane.billing import closing
from controlplane.billing.pricing.rating import Month
from controlplane.core import audit, durations, operations
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.dry_runs import Begun
from controlplane.core.models import Operation
from controlplane.instances.models import Instance
from controlplane.kafka.group_door import Member
from controlplane.loads.models import LoadRun, RunState
from controlplane.loads.ranges import Asked
from controlplane.rebalancing.models import MoveState, Rebalance, RebalanceMove, RebalanceState

from .conftest import WANTED, run_to_the_end
from .fakes import FakeGroup, ManualClock
from .history.conftest import keep, sample
from .metering.conftest import usage  # noqa: F401  # a fixture
from .rebalancing.rows import MIB, rebalance_row
from .test_instances_api import problem

V1 = "/api/v1"
TEXT, WHOLE, NUMBER, FLAG, LIST, OBJECT = (str,), (int,), (int, float), (bool,), (list,), (dict,)
NULL = (type(None),)
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
ACL = {
    "principal": "User:ann", "host": "*", "operation": "READ", "permission": "ALLOW", "resource_type": "TOPIC",
    "resource_name": "orders", "pattern_type": "LITERAL",
}  # fmt: skip
OUTLOOK = {"plan": LIST, "price_change": TEXT + NULL, "bytes_to_move": WHOLE, "seconds": WHOLE}


def shaped(found, **members):
    """It has these members, of these types. `from` is written `from_`."""
    for name, types in members.items():
        name = name.rstrip("_")  # noqa: PLW2901  # a keyword of Python's
        assert name in found, f"{name} is missing in {sorted(found)}"
        is_right = isinstance(found[name], types) and (not isinstance(found[name], bool) or bool in types)
        assert is_right, f"{name} is {found[name]!r}, not of {types}"
    return found


def answered(answer, status=200):
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/json"
    return answer.json()


def listed(answer):
    """A page, and what is in it."""
    found = shaped(answered(answer), items=LIST, next=TEXT + NULL)
    return found["items"]


@pytest.fixture
def url(instance):
    return f"{V1}/instances/{instance.id}"


@pytest.fixture
def orders(alice, url):
    """A topic of two partitions."""
    made = answered(alice.api.post(f"{url}/topics", {"name": "orders", "partitions": 2, "replication_factor": 1}), 201)
    return f"{url}/topics/{made['name']}"


def key_of(instance):
    return instance.id.removeprefix("ins-")


# --- everywhere -------------------------------------------------------------------------------------------------------------


def test_an_error_is_a_problem_with_a_stable_code(alice):
    found = problem(alice.api.get(f"{V1}/instances/ins-00000000"), 404, "not_found")
    shaped(found, type=TEXT, title=TEXT, status=WHOLE, detail=TEXT, code=TEXT)


def test_a_list_has_items_and_where_it_goes_on(alice, instance):
    assert [each["id"] for each in listed(alice.api.get(f"{V1}/instances"))] == [instance.id]
    assert answered(alice.api.get(f"{V1}/instances"))["next"] is None


def test_nobody_gets_in_without_a_key(client, instance, url):
    problem(client.get(url), 401, "unauthenticated")


# --- instances --------------------------------------------------------------------------------------------------------------


def test_an_instance_is_bought(alice, brokers):
    body = {
        "name": "events", "bandwidth_mib_per_s": 5, "storage_gib": 10, "partitions": 60, "whitelist": ["10.0.0.0/8"],
    }  # fmt: skip
    made = shaped(answered(alice.api.post(f"{V1}/instances", body), 202), id=TEXT, operation_id=TEXT)
    assert run_to_the_end(made["operation_id"]).target == made["id"]


def test_an_operation_says_how_far_it_is(alice, brokers):
    made = alice.api.post(f"{V1}/instances", WANTED).json()
    members = {"state": TEXT, "steps": LIST, "progress": NUMBER, "error": TEXT + NULL}
    found = shaped(answered(alice.api.get(f"{V1}/operations/{made['operation_id']}")), **members)
    assert (found["state"], found["error"]) == ("running", None)
    for step in found["steps"]:
        shaped(step, name=TEXT, state=TEXT)
    run_to_the_end(made["operation_id"])
    ended = shaped(answered(alice.api.get(f"{V1}/operations/{made['operation_id']}")), **members)
    assert (ended["state"], ended["progress"]) == ("succeeded", 100)


def test_an_operation_that_failed_says_why(alice, instance, url):
    operation = alice.api.patch(url, {"name": "other"}).json()["operation_id"]
    Operation.objects.unscoped("a test").filter(pk=operation).update(state="failed", error="the cluster is away")
    found = answered(alice.api.get(f"{V1}/operations/{operation}"))
    assert (found["state"], found["error"]) == ("failed", "the cluster is away")


def test_an_instance_is_shown(alice, instance, url, flow_master):
    flow_master.answers[instance.id] = {"storage_used_bytes": 123, "storage_full": False}
    found = shaped(
        answered(alice.api.get(url)), id=TEXT, name=TEXT, state=TEXT, bootstrap=TEXT, bandwidth_mib_per_s=NUMBER,
        storage_gib=NUMBER, storage_used_bytes=WHOLE, whitelist=LIST, health=OBJECT, config=OBJECT,
    )  # fmt: skip
    assert (found["id"], found["storage_used_bytes"], found["whitelist"]) == (instance.id, 123, WANTED["whitelist"])


def test_an_instance_has_its_health_and_its_config(alice, url):
    found = answered(alice.api.get(url))
    health = shaped(found["health"], state=TEXT, reasons=LIST)
    assert health["state"] in ("healthy", "degraded", "critical")
    assert health["reasons"], "no flow master answers here"
    for reason in health["reasons"]:
        shaped(reason, code=TEXT, detail=TEXT, since=TEXT)
        assert MOMENT.fullmatch(reason["since"])
    shaped(
        found["config"], auto_create_topics=FLAG, default_partitions=WHOLE, default_replication_factor=WHOLE,
        max_message_bytes=WHOLE,
    )  # fmt: skip
    operation = shaped(answered(alice.api.patch(url, {"config": {"default_partitions": 7}}), 202), operation_id=TEXT)
    run_to_the_end(operation["operation_id"])
    assert answered(alice.api.get(url))["config"]["default_partitions"] == 7


def test_an_instance_is_changed_and_deleted(alice, url):
    changed = shaped(answered(alice.api.patch(url, {"storage_gib": 20}), 202), operation_id=TEXT)
    run_to_the_end(changed["operation_id"])
    assert answered(alice.api.get(url))["storage_gib"] == 20
    gone = shaped(answered(alice.api.delete(url), 202), operation_id=TEXT)
    assert run_to_the_end(gone["operation_id"]).state == "succeeded"


def test_the_whitelist_of_an_instance_is_replaced(alice, url):
    assert answered(alice.api.put(f"{url}/whitelist", {"cidrs": ["10.0.0.0/8"]}))["whitelist"] == ["10.0.0.0/8"]
    assert answered(alice.api.get(url))["whitelist"] == ["10.0.0.0/8"]


# --- topics -----------------------------------------------------------------------------------------------------------------


def test_topics_are_made_and_listed(alice, url):
    body = {"name": "orders", "partitions": 3, "replication_factor": 2, "config": {"retention.ms": "60000"}}
    made = answered(alice.api.post(f"{url}/topics", body), 201)
    shaped(made, name=TEXT, partitions=WHOLE, replication_factor=WHOLE, config=OBJECT)
    (found,) = (each for each in listed(alice.api.get(f"{url}/topics")) if each["name"] == "orders")
    assert (found["partitions"], found["replication_factor"]) == (3, 2)


def test_a_topic_is_shown_changed_and_deleted(alice, orders):
    shaped(answered(alice.api.get(orders)), name=TEXT, partitions=WHOLE, replication_factor=WHOLE, config=OBJECT)
    assert answered(alice.api.patch(orders, {"partitions": 4}))["partitions"] == 4
    assert alice.api.delete(orders).status_code == 204
    problem(alice.api.get(orders), 404, "topic_not_found")


def test_the_whitelist_of_a_topic_is_replaced(alice, orders):
    assert answered(alice.api.put(f"{orders}/whitelist", {"cidrs": ["10.0.0.0/8"]}))["whitelist"] == ["10.0.0.0/8"]


def test_messages_are_written_and_read(alice, instance, orders):
    body = {
        "partition": 1, "timestamp_ms": 1767225600000, "key": None, "value": base64.b64encode(b"\0\xff").decode(),
        "headers": [["trace", base64.b64encode(b"1").decode()], ["none", None]],
    }  # fmt: skip
    made = answered(alice.api.post(f"{orders}/messages", body), 201)
    shape = {
        "partition": WHOLE, "offset": WHOLE, "timestamp_ms": WHOLE, "key": TEXT + NULL, "value": TEXT + NULL,
        "headers": LIST,
    }  # fmt: skip
    shaped(made, **shape)
    query = f"?partition=1&offset={made['offset']}&limit=5"
    (read,) = listed(alice.api.get(f"{orders}/messages{query}"))
    assert {name: shaped(read, **shape)[name] for name in body} == body
    (by_time,) = listed(alice.api.get(f"{orders}/messages?partition=1&timestamp_ms=1767225600000"))
    assert by_time["offset"] == read["offset"]


# --- who may ----------------------------------------------------------------------------------------------------------------


def test_acls_are_made_listed_and_deleted_by_a_filter_in_the_body(alice, url):
    assert alice.api.post(f"{url}/acls", ACL).status_code == 201
    shape = dict.fromkeys(ACL, TEXT)
    assert [shaped(each, **shape) for each in listed(alice.api.get(f"{url}/acls"))] == [ACL]
    assert answered(alice.api.delete(f"{url}/acls", {"principal": "User:ann", "operation": "READ"}))["items"] == [ACL]
    assert listed(alice.api.get(f"{url}/acls")) == []


def test_users_are_made_listed_and_deleted(alice, url):
    body = {"name": "ann", "password": "correct horse battery", "mechanisms": ["SCRAM-SHA-512"]}
    shape = {"name": TEXT, "mechanisms": LIST}
    shaped(answered(alice.api.post(f"{url}/users", body), 201), **shape)
    (found,) = listed(alice.api.get(f"{url}/users"))
    assert (shaped(found, **shape)["name"], found["mechanisms"]) == ("ann", ["SCRAM-SHA-512"])
    assert "correct horse" not in alice.api.get(f"{url}/users").content.decode()
    assert alice.api.delete(f"{url}/users", {"name": "ann"}).status_code in (200, 204)
    assert listed(alice.api.get(f"{url}/users")) == []


def test_routes_are_opened_listed_and_closed(alice, url):
    for security in ("plaintext", "ssl"):
        opened = answered(alice.api.post(f"{url}/routes", {"security": security}), 202)
        run_to_the_end(shaped(opened, operation_id=TEXT)["operation_id"])
    shape = {"id": TEXT, "security": TEXT, "mechanisms": LIST, "bootstrap": TEXT, "state": TEXT}
    found = {each["id"]: shaped(each, **shape) for each in listed(alice.api.get(f"{url}/routes"))}
    assert found[opened["id"]]["security"] == "ssl"
    assert shaped(answered(alice.api.get(f"{url}/routes/{opened['id']}")), **shape) == found[opened["id"]]
    closed = answered(alice.api.delete(f"{url}/routes/{opened['id']}"), 202)
    run_to_the_end(shaped(closed, operation_id=TEXT)["operation_id"])
    assert opened["id"] not in {each["id"] for each in listed(alice.api.get(f"{url}/routes"))}


def test_whether_somebody_may_is_said_with_the_rule(alice, orders, url):
    body = {
        "source": "127.0.0.1", "principal": "User:ann", "route": "default", "operation": "READ", "resource_type": "TOPIC",
        "resource_name": "orders",
    }  # fmt: skip
    shaped(answered(alice.api.post(f"{url}/access-check", body)), allowed=FLAG, rule=OBJECT, reason=TEXT)


# --- figures ----------------------------------------------------------------------------------------------------------------


def test_the_allocation_of_each_direction_is_told(alice, instance, url, flow_master):
    share = {"broker": 1, "leaders": 2, "initial_share": 10, "flow": 3, "allocation": 10}
    direction = {"limit": 30, "branch": "initial", "brokers": [share]}
    flow_master.answers[instance.id] = {
        "instance": instance.id, "produce": direction, "consume": direction, "storage_used_bytes": 0,
        "storage_full": False, "connections": 0,
    }  # fmt: skip
    found = answered(alice.api.get(f"{url}/allocation"))
    for name in ("produce", "consume"):
        told = shaped(found[name], limit=WHOLE + NULL, branch=TEXT, brokers=LIST)
        (broker,) = told["brokers"]
        shaped(broker, broker=WHOLE, leaders=WHOLE, initial_share=NUMBER, flow=NUMBER, allocation=NUMBER + NULL)


def test_usage_comes_by_the_hour(alice, usage):  # noqa: F811
    rows = listed(alice.api.get(f"{V1}/instances/{usage.id}/usage?from=2026-05-01&to=2026-05-02"))
    assert len(rows) == 2
    for row in rows:
        shaped(row, hour=TEXT, produced_bytes=WHOLE, consumed_bytes=WHOLE, stored_byte_hours=NUMBER)


def test_a_bill_has_lines_with_decimals_as_text(alice, instance, url):
    month = f"{datetime.now(UTC):%Y-%m}"
    found = shaped(answered(alice.api.get(f"{url}/bill?month={month}")), currency=TEXT, total=TEXT, lines=LIST)
    Decimal(found["total"])
    for line in found["lines"]:
        shaped(line, item=TEXT, quantity=TEXT, unit=TEXT, unit_price=TEXT, amount=TEXT)
        assert Decimal(line["quantity"]) >= 0


def test_invoices_are_listed_and_verified(alice, instance):
    closing.invoice_close(instance=instance, month=Month(2026, 5), now=datetime(2026, 6, 2, tzinfo=UTC))
    (found,) = listed(alice.api.get(f"{V1}/invoices"))
    number = shaped(found, number=TEXT, total=TEXT, currency=TEXT)["number"]
    verified = shaped(answered(alice.api.post(f"{V1}/invoices/{number}/verify")), equal=FLAG, differences=LIST)
    assert (verified["equal"], verified["differences"]) == (True, [])


def test_a_metric_comes_in_steps(alice, instance, url):
    now = int(time.time()) // 60 * 60
    keep([sample(now - 600 + 10 * number, instance.id) for number in range(60)])
    name = "produce_bytes_per_s"
    query = f"name={name}&from={_text(now - 600)}&to={_text(now)}&step_s=60"
    found = shaped(answered(alice.api.get(f"{url}/metrics?{query}")), name=TEXT, unit=TEXT, items=LIST)
    assert found["name"] == name
    for item in found["items"]:
        shaped(item, time=TEXT, value=NUMBER + NULL)
    assert any(item["value"] == MIB for item in found["items"])


def _text(at):
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


# --- groups -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def billing(instance, orders, url, admin):
    """A group that is behind in the topic, with a member."""
    topic, stamps = f"{key_of(instance)}.orders", [int(time.time() * 1000) - 60_000] * 4
    admin.groups.logs[topic, 0] = (100, stamps)
    group = FakeGroup({(topic, 0): 102})
    admin.groups.found[f"{key_of(instance)}.billing"] = group
    group.members.append(Member("reader-1", "reader", "10.0.0.7", (("orders", 0),)))
    return group


MEMBERS = {"id": TEXT, "client_id": TEXT, "host": TEXT, "partitions": LIST}


def test_groups_are_listed(alice, billing, url):
    (found,) = listed(alice.api.get(f"{url}/groups"))
    shaped(found, name=TEXT, state=TEXT, protocol=TEXT, members=LIST, lag_messages=WHOLE + NULL)
    (member,) = found["members"]
    shaped(member, **MEMBERS)


def test_a_group_is_shown_with_its_lag(alice, billing, url):
    found = shaped(
        answered(alice.api.get(f"{url}/groups/billing")), name=TEXT, state=TEXT, protocol=TEXT, members=LIST,
        lag_messages=WHOLE + NULL, lag_seconds=NUMBER + NULL, partitions=LIST,
    )  # fmt: skip
    (member,) = found["members"]
    shaped(member, **MEMBERS)
    (partition,) = (each for each in found["partitions"] if each["partition"] == 0)
    shaped(
        partition, topic=TEXT, partition=WHOLE, offset=WHOLE + NULL, end_offset=WHOLE + NULL, lag_messages=WHOLE + NULL,
        lag_seconds=NUMBER + NULL,
    )  # fmt: skip
    assert (partition["offset"], partition["end_offset"], partition["lag_messages"]) == (102, 104, 2)


@pytest.mark.parametrize(
    ("strategy", "value", "to"),
    [("earliest", None, 100), ("latest", None, 104), ("timestamp", 1, 100), ("shift", 1, 103), ("offset", 101, 101)],
)
def test_offsets_of_a_group_are_moved(alice, billing, url, strategy, value, to):
    billing.members.clear()
    body = {"topic": "orders", "strategy": strategy, "value": value, "partitions": [0]}
    for is_dry in (True, False):
        found = answered(alice.api.post(f"{url}/groups/billing/offsets", {**body, "dry_run": is_dry}))
        (moved,) = shaped(found, partitions=LIST)["partitions"]
        shaped(moved, partition=WHOLE, from_=WHOLE + NULL, to=WHOLE)
        assert (moved["from"], moved["to"]) == (102, to), "the body's dry run has moved nothing"


# --- lake loads -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def loads(settings, orders, url):
    settings.ENVIRONMENT = replace(
        settings.ENVIRONMENT, lake_folders="file:/lake", lake_buckets="aws", metering_absent=""
    )
    return f"{url}/lake-loads"


BUCKET = {"destination": "s3://events-1/lake/orders", "access_key": "AK1", "secret_key": "very-secret"}
LOADED = {
    "state": RunState.SUCCEEDED, "row_count": 38, "byte_count": 9120, "says": "38 rows",
    "partitions": {
        "10": {"first": 0, "end": 5, "rows": 5, "checksum": "0" * 15 + "1"},
        "2": {"first": 3, "end": 40, "rows": 33, "checksum": "00ab00ab00ab00ab"},
    },
}  # fmt: skip


def runs():
    return LoadRun.objects.unscoped("a test")


@pytest.mark.parametrize("form", ["delta", "parquet"])
@pytest.mark.parametrize("place", [BUCKET, {"destination": "folder:"}, {"destination": "file:/lake"}])
def test_a_load_begins_and_shows_what_it_has_loaded(alice, loads, place, form):
    body = {"topic": "orders", "format": form, "from": None, "to": None, **place}
    made = shaped(answered(alice.api.post(loads, body), 202), id=TEXT, operation_id=TEXT)
    one = f"{loads}/{made['id']}"
    shape = {"state": TEXT, "rows": WHOLE, "bytes": WHOLE, "partitions": LIST}
    assert shaped(answered(alice.api.get(one)), **shape)["state"] == "waiting"
    clock = ManualClock()
    clock.time = SYSTEM_CLOCK.now() + timedelta(seconds=1)
    assert operations.run(made["operation_id"], clock=clock)
    assert answered(alice.api.get(f"{V1}/operations/{made['operation_id']}"))["state"] == "running"

    runs().update(**LOADED)
    found = shaped(answered(alice.api.get(one)), **shape)
    assert (found["state"], found["rows"], found["bytes"], found["format"]) == ("succeeded", 38, 9120, form)
    for each in found["partitions"]:
        shaped(each, partition=WHOLE, first_offset=WHOLE, last_offset=WHOLE, count=WHOLE, checksum=TEXT)
    assert [tuple(each.values()) for each in found["partitions"]] == [
        (2, 3, 39, 33, "00ab00ab00ab00ab"),
        (10, 0, 4, 5, "0000000000000001"),
    ]
    (item,) = listed(alice.api.get(loads))
    assert item == found
    ended = run_to_the_end(made["operation_id"])
    assert (ended.state, ended.result) == ("succeeded", {"load_id": made["id"], "rows": 38, "bytes": 9120})


# --- the trail ----------------------------------------------------------------------------------------------------------------


def test_the_audit_trail_says_who_did_what_to_which_thing(alice, url):
    answered(alice.api.patch(url, {"storage_gib": 20}), 202)
    items = listed(alice.api.get(f"{V1}/audit"))
    for item in items:
        shaped(
            item, time=TEXT, actor=TEXT, action=TEXT, object=TEXT, before=OBJECT + NULL, after=OBJECT + NULL, source=TEXT,
            request_id=TEXT,
        )  # fmt: skip
        assert MOMENT.fullmatch(item["time"])
    newest = items[0]
    assert (newest["actor"], newest["action"], newest["object"]) == (
        "alice@example.com", "instance.update", url.rpartition("/")[2],
    )  # fmt: skip
    assert (newest["before"], newest["after"]) == ({"storage_gib": 10}, {"storage_gib": 20})
    assert newest["source"] == "127.0.0.1"
    assert newest["request_id"]


def test_the_trail_has_what_was_there_before_and_what_is_afterwards(alice):
    def sides(action, **detail):
        audit.record(organisation=alice.organisation, actor="a", action=action, target="t", detail=detail)
        item = listed(alice.api.get(f"{V1}/audit"))[0]
        return item["before"], item["after"]

    assert sides("topic.create", partitions=3) == (None, {"partitions": 3})
    assert sides("topic.delete") == (None, None)
    assert sides("budget.delete", name="all") == ({"name": "all"}, None)
    config = {"retention.ms": {"from": None, "to": "5"}}
    assert sides("topic.update", config=config, partitions={"from": 1, "to": 2}) == (
        {"config": {"retention.ms": None}, "partitions": 1},
        {"config": {"retention.ms": "5"}, "partitions": 2},
    )
    assert sides("member.remove", role={"from": "member", "to": None}, name="ann") == (
        {"role": "member", "name": "ann"},
        None,
    )


# --- what a call would do -------------------------------------------------------------------------------------------------------


def outlook(answer):
    found = shaped(answered(answer), **OUTLOOK)
    for step in found["plan"]:
        shaped(step, name=TEXT, detail=TEXT)
    return found


def names(found):
    return [step["name"] for step in found["plan"]]


def unmeasured(answer):
    """An instance without what is found out when it is asked for."""
    return {name: value for name, value in answered(answer).items() if name != "health"}


UPDATE = ["write specification", "wait for brokers"]


def test_what_begins_an_operation_has_its_steps_for_a_plan_and_nothing_is_changed(alice, brokers, instance, url):
    before = unmeasured(alice.api.get(url))
    bought = outlook(alice.api.post(f"{V1}/instances?dry_run=true", WANTED))
    assert names(bought) == ["allocate addresses", "write specification", "wait for brokers", "open for use"]
    assert Decimal(bought["price_change"]) == Decimal(bought["price"]["per_month_after"]) > 0
    for call, where, body in (
        (alice.api.patch, url, {"storage_gib": 20}),
        (alice.api.post, f"{url}/routes", {"security": "ssl"}),
        (alice.api.delete, url, None),
    ):
        found = outlook(call(f"{where}?dry_run=true", body))
        assert set(UPDATE[:1]) & set(names(found)) or "close listeners" in names(found), found["plan"]
        assert found["bytes_to_move"] == 0
        assert found["seconds"] > 0
    assert unmeasured(alice.api.get(url)) == before
    assert len(answered(alice.api.get(f"{V1}/instances"))["items"]) == 1


def test_a_smaller_instance_costs_less_and_a_larger_one_more(alice, url):
    Instance.objects.unscoped("a test").update(bandwidth_mib_per_s=120)
    for bandwidth, sign in ((5, -1), (120, 0), (240, 1)):
        body = {"bandwidth_mib_per_s": bandwidth, "confirm_price": True}
        found = outlook(alice.api.patch(f"{url}?dry_run=true", body))
        change, price = Decimal(found["price_change"]), found["price"]
        assert change == Decimal(price["per_month_after"]) - Decimal(price["per_month_before"])
        assert (change > 0) - (change < 0) == sign
        assert names(found) == UPDATE


def test_what_is_done_at_once_has_a_step_for_each_thing_that_changes(alice, orders, url):
    changed = outlook(alice.api.put(f"{url}/whitelist?dry_run=true", {"cidrs": ["10.0.0.0/8"]}))
    assert changed["plan"] == [
        {"name": "whitelist", "detail": 'change whitelist from ["127.0.0.0/8"] to ["10.0.0.0/8"]'}
    ]
    assert (changed["price_change"], changed["bytes_to_move"], changed["seconds"]) == (None, 0, 0)
    grown = outlook(alice.api.patch(f"{orders}?dry_run=true", {"partitions": 5}))
    assert grown["plan"] == [{"name": "partitions", "detail": "change partitions from 2 to 5"}]
    assert names(outlook(alice.api.post(f"{url}/users?dry_run=true", {"name": "ann"}))) == ["create"]
    assert names(outlook(alice.api.delete(f"{orders}?dry_run=true"))) == ["delete"]
    assert outlook(alice.api.put(f"{url}/whitelist?dry_run=true", {"cidrs": ["127.0.0.0/8"]}))["plan"] == []


def test_secrets_are_in_no_plan(alice, url):
    body = {"name": "ann", "password": "correct horse battery"}
    answer = alice.api.post(f"{url}/users?dry_run=true", body)
    assert outlook(answer)["plan"]
    assert "correct horse" not in answer.content.decode()


def test_offsets_that_would_move_are_a_plan(alice, billing, url):
    billing.members.clear()
    body = {"topic": "orders", "strategy": "earliest"}
    found = outlook(alice.api.post(f"{url}/groups/billing/offsets?dry_run=true", body))
    assert found["plan"]
    assert (found["bytes_to_move"], found["seconds"]) == (0, 0)


def test_a_load_that_would_begin_has_the_steps_of_its_operation(alice, loads):
    found = outlook(alice.api.post(f"{loads}?dry_run=true", {"topic": "orders", "destination": "folder:"}))
    assert names(found) == ["wait for a runner", "load"]
    assert listed(alice.api.get(loads)) == []
    assert not runs().exists()


def test_a_rebalance_that_would_begin_says_what_brokers_copy_and_how_long_that_takes(alice, instance):
    alice.user.is_staff = True
    alice.user.save()
    row = rebalance_row(instance.cluster)
    url = f"{V1}/rebalances/{row.pk}/actions?dry_run=true"
    moves = RebalanceMove.objects.filter(rebalance=row)
    moves.update(state=MoveState.WAITING, copied_bytes=0)
    whole = sum(moves.values_list("bytes_to_copy", flat=True))
    assert whole > 0
    Rebalance.objects.update(
        expires_at=SYSTEM_CLOCK.now() + timedelta(hours=1), approved_by="otto@example.com", throttle_bytes_per_s=MIB,
        summary={**row.summary, "bytes_to_copy": whole, "busiest_bytes": 70 * MIB},
    )  # fmt: skip
    found = outlook(alice.api.post(url, {"action": "carry_out"}))
    assert names(found) == ["move partitions", "take the throttle away"]
    assert (found["bytes_to_move"], found["seconds"]) == (whole, 70)

    last = moves.order_by("number").last()
    moves.exclude(pk=last.pk).update(state=MoveState.DONE)
    Rebalance.objects.update(state=RebalanceState.PAUSED)
    left = outlook(alice.api.post(url, {"action": "resume"}))
    assert left["bytes_to_move"] == last.bytes_to_copy > 0
    assert left["seconds"] == -(-70 * last.bytes_to_copy // whole)
    Rebalance.objects.update(state=RebalanceState.RUNNING)
    assert outlook(alice.api.post(url, {"action": "pause"}))["bytes_to_move"] == 0


def test_it_takes_as_long_as_it_has_taken_here(alice, instance, url):
    began = SYSTEM_CLOCK.now()
    for taken_s in (7.2, 40.0, 1.0):
        made = alice.api.patch(url, {"name": f"took {taken_s:g}"}).json()["operation_id"]
        Operation.objects.unscoped("a test").filter(pk=made).update(
            state="succeeded", created_at=began, finished_at=began + timedelta(seconds=taken_s)
        )
    assert outlook(alice.api.patch(f"{url}?dry_run=true", {"name": "next"}))["seconds"] == 8, "the median, rounded up"
    assert durations.usual_s([Begun("never.seen", ("one", "two", "three"))]) == 3, "a second a step"
    assert durations.usual_s([]) == 0


def test_asked_is_what_a_range_of_time_comes_to(alice, instance, loads, admin):
    """`from` and `to` of a load are moments of records: offsets of each partition now."""
    topic = f"{key_of(instance)}.orders"
    admin.groups.logs[topic, 0] = (100, [1000, 2000, 3000, 4000])
    admin.groups.logs[topic, 1] = (0, [9000])
    body = {"topic": "orders", "destination": "folder:", "from": "1970-01-01T00:00:02Z", "to": 4000}
    answered(alice.api.post(loads, body), 202)
    assert Asked.from_json(runs().get().asked) == Asked(offsets={0: (101, 103)})
