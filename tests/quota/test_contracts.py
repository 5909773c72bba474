"""The contracts between the planes, pinned by golden JSON: a change of bytes is a change of contract."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from quota.contracts.applied import Applied, AppliedInstance, applied_in_steps
from quota.contracts.change import Change
from quota.contracts.grant import Grant, Grants, InstanceGrant
from quota.contracts.instance import (
    ContractError,
    Endpoint,
    InstanceSpec,
    InstanceState,
    Limits,
    Route,
    address_text,
    parse_address,
)
from quota.contracts.mastership import Mastership
from quota.contracts.report import Flow, FlowReport, InstanceReport, LoopLoad
from quota.contracts.throttled import BrokerInputs, Moment, ThrottledInterval

GOLDEN = Path(__file__).parents[1] / "golden" / "contracts"
INSTANCE = "ins-k3v9x2qa"

SPEC = InstanceSpec(
    id=INSTANCE,
    generation=7,
    state=InstanceState.RUNNING,
    limits=Limits(
        *(5_242_880, None, 10_737_418_240, 60, 0, 500, 200),
        topics=20,
        requests_per_s=1000,
        loop_ms_per_s=600,
        open_transactions=250,
        transactional_ids=10_000,
        transaction_timeout_ms=900_000,
    ),
    whitelist=("10.0.0.0/8", "fd00::/8"),
    routes=(
        Route(
            "default",
            {1: Endpoint(("127.0.0.1", 20100), ("kafka.example.com", 9092)), 10: Endpoint(("::1", 1), ("::1", 65535))},
        ),
        Route("public", {}, security="sasl_plaintext", proxy_protocol=True),
    ),
    topic_whitelists={"orders": ("10.1.2.3/32",), "nobody": ()},
    brokers=(1, 2, 3),
    strategy="bounded",
    auto_create_topics=True,
)
REPORT = FlowReport(
    broker=2,
    boot="6f1c",
    sequence=41,
    period_ms=1000,
    instances={
        INSTANCE: InstanceReport(
            produce=Flow(812_345, 120, 4096, 2, 1_747_626, "storage"),
            consume=Flow(0, 0, 0, 2, None),
            storage_bytes=123_456_789,
            connections=12,
        )
    },
    loop=LoopLoad(1_830, INSTANCE, 412, {INSTANCE: 3}, {INSTANCE: 1}, {INSTANCE: 500}, {}, {"": 2}, {INSTANCE: 4}),
    trouble={INSTANCE: (1, 6)},
    absent={3: (6, 1, 0)},
    transactions={INSTANCE: (3, 40)},
    requests={
        INSTANCE: {1_740_830_400: '{"Produce":[0,[812,21,3,1],[],[],[],[],{"NOT_LEADER_OR_FOLLOWER":2}]}'},
    },
    requests_until=1_740_830_410,
)
GRANTS = Grants(
    epoch=3,
    sequence=41,
    lease_ms=10_000,
    instances={
        INSTANCE: InstanceGrant(
            produce=Grant(1_747_626, "headroom", "storage"), consume=Grant(None, "unlimited"), storage_used_bytes=987
        )
    },
    transactions={INSTANCE: (3, 40)},
)
APPLIED = Applied("6f1c", {INSTANCE: AppliedInstance(7), "ins-aaaaaaaa": AppliedInstance(1, "port 20100 is taken")})
THROTTLED = ThrottledInterval(
    instance=INSTANCE,
    rule="rule-8zk2m4x0",
    direction="produce",
    epoch=3,
    strategy="ckafka",
    started_at_ms=1_763_712_063_000,
    ended_at_ms=1_763_712_119_000,
    limit=5_242_880,
    throttled_ms=41_000,
    under_limit_ms=0,
    over_percent=(17.0, 3.1, 0.4),
    waits_ms={1: 41_000},
    moment=Moment(
        1_763_712_070_000,
        (
            BrokerInputs(1, 4, 3_495_253, 3_670_016, 3_670_016, 3_670_016, "headroom", 1000, 40_960),
            BrokerInputs(2, 2, 1_747_626, 0, None, 524_288, "headroom", 0, 0),
        ),
    ),
)

NODES = {  # without a version
    "change": (Change(INSTANCE), Change.from_json),
    "master": (Mastership(1, "127.0.0.1:20021", "http://127.0.0.1:20031", 3), Mastership.from_json),
}
CASES = {
    "instance": (SPEC, InstanceSpec.from_json),
    "report": (REPORT, lambda data: FlowReport.from_document(json.loads(data))),
    "grants": (GRANTS, lambda data: Grants.from_document(json.loads(data))),
    "applied": (APPLIED, Applied.from_json),
    "throttled": (THROTTLED, lambda data: ThrottledInterval.from_document(json.loads(data))),
}


@pytest.mark.parametrize("name", [*CASES, *NODES])
def test_a_value_is_written_as_the_golden_bytes_and_read_back_equal(name):
    value, parse = {**CASES, **NODES}[name]
    golden = (GOLDEN / f"{name}.json").read_bytes().rstrip(b"\n")
    assert value.to_json() == golden
    assert parse(golden) == value


@pytest.mark.parametrize("name", CASES)
def test_a_newer_version_and_a_missing_member_are_refused_and_a_new_member_is_ignored(name):
    value, parse = CASES[name]
    document = json.loads(value.to_json())
    assert parse(json.dumps({**document, "tomorrow": 1})) == value
    with pytest.raises(ContractError, match="newer"):
        parse(json.dumps({**document, "version": 99}))
    for member in ("version", {"instance": "limits", "throttled": "moment"}.get(name, "instances")):
        with pytest.raises(ContractError, match=member):
            parse(json.dumps({key: document[key] for key in document if key != member}))


@pytest.mark.parametrize(
    ("name", "member", "value"),
    [
        ("change", "instance", ""),
        ("change", "instance", 7),
        ("master", "id", "1"),
        ("master", "report", None),
        ("master", "http", 7),
        ("master", "epoch", True),
    ],
)
def test_a_node_says_what_it_has_to_say_and_a_new_member_is_ignored(name, member, value):
    said, parse = NODES[name]
    document = json.loads(said.to_json())
    assert parse(json.dumps({**document, "tomorrow": 1}).encode()) == said
    with pytest.raises(ContractError, match=member):
        parse(json.dumps({**document, member: value}).encode())
    with pytest.raises(ContractError, match=member):
        parse(json.dumps({key: document[key] for key in document if key != member}).encode())


def test_where_reports_go_is_an_address():
    assert Mastership(1, "[::1]:20021", "http://x", 3).report_address == ("::1", 20021)
    with pytest.raises(ContractError, match="host:port"):
        _ = Mastership(1, "x", "http://x", 3).report_address


def test_an_instance_that_is_not_audited_is_written_as_before_there_was_an_audit():
    spec = replace(SPEC, audit=True)
    assert InstanceSpec.from_json(spec.to_json()) == spec
    assert json.loads(spec.to_json()) == {**json.loads(SPEC.to_json()), "audit": True}
    with pytest.raises(ContractError, match="audit"):
        InstanceSpec.from_json(json.dumps({**json.loads(spec.to_json()), "audit": "yes"}).encode())


def test_a_report_of_an_older_broker_does_not_say_how_busy_its_loop_was():
    document = json.loads(REPORT.to_json())
    del document["loop"]
    assert FlowReport.from_document(document).loop is None


def test_a_report_of_an_older_broker_says_nothing_of_requests():
    document = json.loads(REPORT.to_json())
    del document["requests"], document["requests_until"]
    read = FlowReport.from_document(document)
    assert (read.requests, read.requests_until) == ({}, None)


@pytest.mark.parametrize("until", [-1, None, "1740830410", 1.5, True])
def test_up_to_where_requests_are_told_is_a_moment(until):
    document = json.loads(REPORT.to_json()) | {"requests_until": until}
    with pytest.raises(ContractError, match="requests_until"):
        FlowReport.from_document(document)


@pytest.mark.parametrize(
    "requests", [[], {INSTANCE: []}, {INSTANCE: {"noon": "{}"}}, {INSTANCE: {"-10": "{}"}}, {INSTANCE: {"10": {}}}]
)
def test_requests_are_texts_by_moments(requests):
    document = json.loads(REPORT.to_json()) | {"requests": requests}
    with pytest.raises(ContractError, match="flow report"):
        FlowReport.from_document(document)


def test_a_report_of_an_older_broker_counts_no_more_than_what_it_cut_off():
    document = json.loads(REPORT.to_json())
    for name in ("too_large", "forgotten_producers", "refused_sessions", "failed_logins", "refused_in_transactions"):
        del document["loop"][name]
    assert FlowReport.from_document(document).loop == LoopLoad(1_830, INSTANCE, 412, {INSTANCE: 3}, {}, {}, {}, {}, {})


@pytest.mark.parametrize("name", ["report", "grants"])
def test_who_knows_nothing_of_transactions_leaves_them_out(name):
    value, parse = CASES[name]
    document = json.loads(value.to_json())
    assert document.pop("transactions") == {INSTANCE: [3, 40]}
    assert parse(json.dumps(document)).transactions == {}
    assert "transactions" not in json.loads(replace(value, transactions={}).to_json())


@pytest.mark.parametrize("name", ["report", "grants"])
@pytest.mark.parametrize("counts", [[], [1], [1, 2, 3], [-1, 0], [1.5, 0], ["1", 0], [True, 0], 7, None])
def test_transactions_are_counted_in_two_whole_numbers(name, counts):
    value, parse = CASES[name]
    document = {**json.loads(value.to_json()), "transactions": {INSTANCE: counts}}
    with pytest.raises(ContractError):
        parse(json.dumps(document))


@pytest.mark.parametrize("name", ["report", "grants"])
def test_rows_of_an_earlier_version_are_refused(name):
    value, parse = CASES[name]
    with pytest.raises(ContractError, match="older"):
        parse(json.dumps({**json.loads(value.to_json()), "version": 1}))


@pytest.mark.parametrize("value", [-1, 1.5, "7", None, True])
@pytest.mark.parametrize(("place", "name"), [*enumerate(["bytes", "throttled_ms", "queued_bytes", "leaders"])])
def test_a_report_holds_whole_numbers_only(place, name, value):
    document = json.loads(REPORT.to_json())
    document["instances"][INSTANCE][1][place] = value
    with pytest.raises(ContractError, match=name):
        FlowReport.from_document(document)


@pytest.mark.parametrize("value", [-1, 1.5, "7", True])
@pytest.mark.parametrize("place", [(0, 4), (1, 4), (2,), (3,)])
def test_allocations_storage_and_connections_are_whole_numbers_too(place, value):
    document = json.loads(REPORT.to_json())
    row = document["instances"][INSTANCE]
    for index in place[:-1]:
        row = row[index]
    row[place[-1]] = value
    with pytest.raises(ContractError, match="whole number"):
        FlowReport.from_document(document)


@pytest.mark.parametrize("row", [[], {}, 7, [[], [], 0, 0], [[0] * 6, [0] * 5, 0, 0], [[0] * 6, [0] * 6, 0]])
def test_a_row_of_another_length_is_refused(row):
    document = json.loads(REPORT.to_json())
    document["instances"][INSTANCE] = row
    with pytest.raises(ContractError):
        FlowReport.from_document(document)


@pytest.mark.parametrize("value", [-1, 1.5, "7", True])
def test_a_limit_is_null_or_a_whole_number(value):
    document = json.loads(SPEC.to_json())
    document["limits"]["storage_bytes"] = value
    with pytest.raises(ContractError, match="storage_bytes"):
        InstanceSpec.from_json(json.dumps(document).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"{}", b"\xff"])
def test_what_is_no_document_is_a_contract_error(data):
    for parse in (InstanceSpec.from_json, Applied.from_json, Change.from_json, Mastership.from_json):
        with pytest.raises(ContractError):
            parse(data)


@pytest.mark.parametrize("address", [("127.0.0.1", 1), ("::1", 65535), ("a.example", 9092)])
def test_an_address_comes_back_as_it_was(address):
    assert parse_address(address_text(address)) == address


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "host:0", "host:65536", "host:x", "host:-1"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ContractError):
        parse_address(text)


def test_a_limit_that_an_older_writer_did_not_know_is_unlimited():
    document = json.loads(SPEC.to_json())
    names = ("topics", "requests_per_s", "loop_ms_per_s")
    names += ("open_transactions", "transactional_ids", "transaction_timeout_ms")
    for name in names:
        del document["limits"][name]
    limits = InstanceSpec.from_json(json.dumps(document).encode()).limits
    assert [getattr(limits, name) for name in names] == [None] * len(names)
    assert limits.partitions == 60


@pytest.mark.parametrize(
    ("problem", "of_r2", "of_default"),
    [
        (None, None, None),
        ("who may connect is not legible", "who may connect is not legible", "who may connect is not legible"),
        ("route r2: cannot listen on h:1: taken; route r20: not served", "cannot listen on h:1: taken", None),
        ("route default: not served", None, "not served"),
    ],
)
def test_what_is_the_matter_with_one_route_is_no_matter_of_another(problem, of_r2, of_default):
    applied = AppliedInstance(3, problem)
    assert (applied.problem_of("r2"), applied.problem_of("default")) == (of_r2, of_default)


def test_what_is_applied_of_thousands_of_instances_is_written_with_pauses_and_as_at_once():
    instances = {
        f"ins-{number:08x}": AppliedInstance(number, None if number % 7 else "a port") for number in range(2_000)
    }
    steps, pauses = applied_in_steps("6f1c", reversed(instances.items())), 0
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            written = stop.value
            break
        pauses += 1
    assert pauses >= 50
    assert written == Applied("6f1c", instances).to_json()
    assert Applied.from_json(written) == Applied("6f1c", instances)
