"""What topics moved over time: each byte of each window once in rows of every length, by REST, and for a tenant's Prometheus."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.clusters import master
from controlplane.core import clock as clocks
from controlplane.history import api, services
from controlplane.history.exposition import exposition
from controlplane.history.models import (
    RequestDay,
    RequestHour,
    RequestMark,
    RequestMinute,
    RequestSample,
    RequestTotal,
    RolledUp,
)
from controlplane.history.requests import sampling
from controlplane.history.requests.topics import totals_by_topic
from controlplane.history.resolutions import MINUTES, SAMPLES
from quota.contracts.requests import RequestCounts
from quota.contracts.topics_moved import TopicsMoved
from tests.controlplane.groups.conftest import hers, his  # noqa: F401  # fixtures
from tests.controlplane.test_instances_api import URL, problem

from .conftest import NOON, counts_of, keep, keep_gaps, move, sample

LONGER = (RequestMinute, RequestHour, RequestDay)
WITHOUT = counts_of(1).to_text()
"""A window of a broker of an earlier release."""


def window(topics, requests=1, most=200):
    """As a broker tells it: topics by name with bytes produced and consumed, and with records if it counts them."""
    found = counts_of(requests) if requests else RequestCounts()
    found.topics = TopicsMoved()
    for name, row in topics.items():
        found.topics.count(name, *row)
    found.topics.shorten(most)
    found.carried_windows = 1
    return found.to_text()


def row_of(*texts):
    """What is kept of one window of several brokers."""
    return sampling._row("ins-k3v9x2qa", NOON, [RequestCounts.from_text(text) for text in texts]).topics


@pytest.fixture
def told(instance, flow_master):
    """What the master says, by the beginning of a window."""
    flow_master.windows = {instance.id: {}}
    return flow_master.windows[instance.id]


def sampled(clock, at):
    move(clock, at)
    return sampling.sample(clock=clock)


def kept(model):
    """By the beginning of a row."""
    return {row.at - NOON: row.topics and json.loads(row.topics) for row in model.objects.order_by("at")}


def test_brokers_are_added_up_and_what_one_did_not_name_is_not_known():
    assert json.loads(row_of(window({"orders": (5, 1)}), window({"orders": (3, 0), "events": (0, 2)}))) == {
        "orders": [8, 1],
        "events": [0, 2],
    }
    short = window({"orders": (5, 1), "events": (1, 0)}, most=1)
    assert json.loads(row_of(short, window({"events": (4, 0)}))) == {
        "orders": [5, 1],
        "events": [4, 0, 1],
        "": [1, 0, 1],
    }


def test_without_a_word_of_any_broker_nothing_is_known_and_with_some_of_no_topic():
    assert row_of(WITHOUT, WITHOUT) is None
    assert json.loads(row_of(WITHOUT, window({"orders": (5, 1)}))) == {"orders": [5, 1, 1], "": [0, 0, 1]}
    assert row_of(window({})) == "{}"


def test_a_row_names_a_bounded_number(monkeypatch):
    monkeypatch.setattr(sampling, "MOST_TOPICS", 3)
    found = TopicsMoved.from_json(json.loads(row_of(window({f"t{number}": (number, 1) for number in range(9)}))))
    assert sorted(found.names) == ["t6", "t7", "t8"]
    assert found.total == (36, 9)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(
        st.integers(0, 100),
        st.dictionaries(st.sampled_from(["orders", "events"]), st.tuples(st.integers(0, 99), st.integers(0, 99))),
        max_size=30,
    ),
    st.lists(st.integers(1, 25), min_size=5),
)
def test_rows_of_every_length_and_totals_are_the_sums_of_all_windows(told, at_noon, instance, windows, pauses):
    for model in (RequestSample, *LONGER, RequestTotal, RequestMark):
        model.objects.all().delete()
    told.clear()
    told |= {NOON + 10 * number: window(topics) for number, topics in windows.items()}
    move(at_noon, NOON)
    for seconds in [*pauses, 1_200]:
        sampled(at_noon, int(at_noon.time.timestamp()) + seconds)
    for model, step_s in zip(LONGER, (60, 3600, 86_400), strict=True):
        wanted = {}
        for number, topics in windows.items():
            ours = wanted.setdefault((NOON + 10 * number) // step_s * step_s - NOON, {})
            for name, (produced, consumed) in topics.items():
                before = ours.get(name, [0, 0])
                ours[name] = [before[0] + produced, before[1] + consumed]
        assert kept(model) == wanted
    total = totals_by_topic(instance.id)
    for name in ("orders", "events"):
        wanted = tuple(sum(topics.get(name, (0, 0))[place] for topics in windows.values()) for place in (0, 1))
        assert tuple(total.names.get(name, (0, 0))[:2]) == wanted


def test_an_hour_of_before_this_was_kept_stays_unknown(told, at_noon, instance):
    told |= {NOON + 10 * number: WITHOUT if number < 3 else window({"orders": (6, 0)}) for number in range(12)}
    sampled(at_noon, NOON + 150)
    assert kept(RequestMinute)[0] == {"orders": [18, 0, 3], "": [0, 0, 3]}
    assert kept(RequestMinute)[60] == {"orders": [36, 0]}
    assert kept(RequestHour)[0]["orders"] == [54, 0, 3]


def test_rows_go_with_those_of_requests(told, at_noon):
    told[NOON] = window({"orders": (6, 0)})
    sampled(at_noon, NOON + 90)
    move(at_noon, NOON + SAMPLES.kept_s + SAMPLES.grace_s + 60)
    services.purge(clock=at_noon)
    assert (kept(RequestSample), kept(RequestMinute)) == ({}, {0: {"orders": [6, 0]}})
    move(at_noon, NOON + MINUTES.kept_s + MINUTES.grace_s + 60)
    services.purge(clock=at_noon)
    assert kept(RequestMinute) == {}
    assert kept(RequestHour)[0] == {"orders": [6, 0]}


# --- REST -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def here(at_noon, monkeypatch):
    """The clock of REST, too, an hour after noon."""
    monkeypatch.setattr(api, "SYSTEM_CLOCK", at_noon)
    monkeypatch.setattr(clocks.SystemClock, "now", lambda _self: at_noon.now())
    move(at_noon, NOON + 3600)
    return at_noon


def keep_topics(instance, windows, known_to):
    """As the sampler does, without rolling up."""
    RequestSample.objects.bulk_create(
        RequestSample(instance=instance.pk, at=at, windows=1, counts="{}", topics=text and row_of(text))
        for at, text in windows.items()
    )
    RequestMark.objects.update_or_create(
        name=sampling.mark_name(instance.cluster_id), defaults={"taken": known_to - 10, "rolled": known_to // 60 * 60}
    )


@pytest.fixture
def asked(alice, instance, here):
    def asked(name="orders", **query):
        query = {key.rstrip("_"): value for key, value in query.items()}
        return alice.api.get(f"{URL}/{instance.id}/topics/{name}/history", query)

    return asked


def text(at):
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def values(answer):
    """Produced and consumed by the step's beginning."""
    return [(each["produce_bytes_per_s"], each["consume_bytes_per_s"]) for each in answer.json()["items"]]


def test_the_last_hour_comes_in_steps_of_ten_seconds(asked, instance):
    keep([sample(NOON + 10 * number, instance.id) for number in range(360) if number != 4])
    keep_topics(
        instance,
        {
            NOON: window({"orders": (1000, 50), "events": (7, 7)}),
            NOON + 20: window({"events": (7, 7)}),
            NOON + 50: None,
        },
        NOON + 3570,
    )
    found = asked().json()
    assert {name: found[name] for name in ("start", "end", "step_s", "resolution_s", "next")} == {
        "start": text(NOON), "end": text(NOON + 3600), "step_s": 10, "resolution_s": 10, "next": None,
    }  # fmt: skip
    assert found["metrics"] == [
        {"name": "produce_bytes_per_s", "unit": "bytes/s", "maximum": None},
        {"name": "consume_bytes_per_s", "unit": "bytes/s", "maximum": None},
        {"name": "group_lag_messages", "unit": "records", "maximum": None},
        {"name": "group_lag_bytes", "unit": "bytes", "maximum": None},
        {"name": "group_lag_seconds", "unit": "s", "maximum": None},
        {"name": "produce_records_per_s", "unit": "records/s", "maximum": None},
        {"name": "storage_used_bytes", "unit": "bytes", "maximum": None},
    ]
    nobody_reads = {f"group_lag_{name}": None for name in ("messages", "bytes", "seconds")}
    not_counted = {"produce_records_per_s": None, "storage_used_bytes": None}
    assert found["items"][0] == {
        "time": text(NOON), "produce_bytes_per_s": 100, "consume_bytes_per_s": 5, **nobody_reads, **not_counted,
    }  # fmt: skip
    rows = values(asked())
    assert rows[1:7] == [
        (0, 0),  # nobody asked the instance anything
        (0, 0),  # nothing moved in this topic
        (0, 0),
        (None, None),  # no master was asked
        (None, None),  # brokers of an earlier release
        (0, 0),
    ]
    assert rows[-3:] == [(None, None)] * 3, "it is not known yet"


def test_records_that_were_produced_are_known_where_all_brokers_count_them(asked, instance):
    keep([sample(NOON + 10 * number, instance.id) for number in range(360)])
    counted, not_counted = {"orders": (1000, 50, 35)}, {"orders": (1000, 50)}
    keep_topics(
        instance,
        {
            NOON: window(counted),
            NOON + 10: window({"orders": (0, 50)}),
            NOON + 20: window({"events": (9, 9)}),
            NOON + 30: window(not_counted),
        },
        NOON + 3570,
    )

    def records(**query):
        return [each["produce_records_per_s"] for each in asked(**query).json()["items"]]

    assert records()[:5] == [3.5, 0, 0, None, 0]
    assert records(step=30)[:2] == [1.167, None]
    both = json.loads(row_of(window(counted), window(counted)))
    assert (both, json.loads(row_of(window(counted), window(not_counted)))) == (
        {"orders": [2000, 100, 0, 70]},
        {"orders": [2000, 100]},
    )


def test_a_gap_of_the_cluster_is_a_gap_of_its_topics(asked, instance):
    keep([sample(NOON + 10 * number, instance.id) for number in range(360)])
    keep_topics(instance, {NOON: window({"orders": (1000, 50)})}, NOON + 3600)
    keep_gaps(instance, (NOON + 10, NOON + 30))
    assert values(asked())[:4] == [(100, 5), (None, None), (None, None), (0, 0)]


def test_what_may_be_in_the_rest_is_null_and_never_zero(asked, instance):
    keep([sample(NOON + 10 * number, instance.id) for number in range(360)])
    many = window({"large": (90, 0), "orders": (10, 0)}, most=1)
    keep_topics(instance, {NOON: window({"orders": (600, 0)}), NOON + 10: many}, NOON + 3600)
    assert values(asked())[:3] == [(60, 0), (None, None), (0, 0)]
    assert values(asked("large"))[:3] == [(0, 0), (9, 0), (0, 0)]
    assert values(asked(step=60))[0] == (None, None)


def test_longer_steps_are_made_of_longer_rows(asked, instance, here, told):
    told |= {NOON + 10 * number: window({"orders": (60, 6)}) for number in range(360)}
    at = NOON + 10
    while at < NOON + 3700:
        at += 50
        sampled(here, at)
    keep([sample(NOON + 10 * number, instance.id) for number in range(360)])
    services.roll_up(clock=here)
    RolledUp.objects.update(until=NOON + 3600)
    RequestSample.objects.all().delete()
    start = text(NOON - 7200)
    assert values(asked(from_=start, to=text(NOON + 3600), step=60))[-60:] == [(6, 1)] * 60
    assert values(asked(from_=start, to=text(NOON + 3600), step=3600)) == [(None, None), (None, None), (6, 1)]


def test_a_topic_of_which_nothing_is_known_is_asked_about(alice, hers, here):  # noqa: F811
    url = f"{URL}/{hers.instance_id}/topics"
    answer = alice.api.get(f"{url}/orders/history")
    assert set(values(answer)) == {(None, None)}
    problem(alice.api.get(f"{url}/nobody/history"), 404, "topic_not_found")


def test_a_history_outlives_its_topic_and_needs_no_broker(asked, instance, admin):
    keep_topics(instance, {NOON: window({"gone": (1000, 50)})}, NOON + 3600)
    admin.away = True
    assert values(asked("gone"))[0] == (100, 5)


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        ({"step": "15"}, "step", "multiple of 10"),
        ({"from_": "2000-01-01"}, "from", "more than 400 days ago"),
        ({"from_": "9999-01-01"}, "from", "not in the future"),
    ],
)
def test_a_range_that_cannot_be_answered_is_refused_with_the_reason(asked, query, field, said):
    (error,) = problem(asked(**query), 400, "invalid")["errors"]
    assert error["field"] == field
    assert said in error["detail"]


def test_another_tenants_topic_of_the_name_is_not_in_it(alice, hers, his, charlie, here):  # noqa: F811
    RequestSample.objects.create(
        instance=his.instance_id, at=NOON, windows=1, counts="{}", topics=row_of(window({"orders": (77, 0)}))
    )
    assert set(values(alice.api.get(f"{URL}/{hers.instance_id}/topics/orders/history"))) == {(None, None)}
    foreign = charlie.api.get(f"{URL}/{hers.instance_id}/topics/orders/history")
    missing = charlie.api.get(f"{URL}/ins-nothing1/topics/orders/history")
    assert (foreign.status_code, missing.status_code) == (404, 404)
    assert foreign.content.replace(hers.instance_id.encode(), b"ID") == missing.content.replace(b"ins-nothing1", b"ID")


def test_a_viewer_reads_it(viewer, hers, here):  # noqa: F811
    assert viewer.api.get(f"{URL}/{hers.instance_id}/topics/orders/history").status_code == 200


# --- Prometheus -----------------------------------------------------------------------------------------------------------


def test_prometheus_has_counters_of_topics(told, at_noon, instance):
    told |= {NOON + 10 * number: window({"orders": (100, 3)}) for number in range(9)}
    sampled(at_noon, NOON + 110)
    said = exposition("ins-k3v9x2qa", {}, [], is_known=False, topics=totals_by_topic(instance.id))
    assert "# TYPE sluice_topic_produced_bytes_total counter\n" in said
    assert 'sluice_topic_produced_bytes_total{instance_id="ins-k3v9x2qa",topic="orders"} 900\n' in said
    assert 'sluice_topic_consumed_bytes_total{instance_id="ins-k3v9x2qa",topic="orders"} 27\n' in said
    assert "topic" not in exposition("ins-k3v9x2qa", {}, [], is_known=False, topics=TopicsMoved())


# --- the master's word ------------------------------------------------------------------------------------------------------


def test_a_text_that_nobody_understands_costs_the_others_nothing(told, at_noon, instance, monkeypatch):
    texts = ['{"_topics": {"a b": [1, 2]}}', window({"orders": (5, 0)})]
    monkeypatch.setattr(master, "requests", lambda *_asked: master.Window({1: NOON + 10}, {instance.id: texts}))
    RequestMark.objects.create(name=sampling.mark_name(instance.cluster_id), taken=NOON - 10, rolled=NOON)
    assert sampled(at_noon, NOON + 20) == 1
    assert kept(RequestSample) == {0: {"orders": [5, 0, 1], "": [0, 0, 1]}}, "what the other broker moved is not known"


def test_without_one_brokers_text_what_topics_moved_is_not_known(told, at_noon, instance, monkeypatch):
    texts = ["{", window({"orders": (5, 0)})]
    monkeypatch.setattr(master, "requests", lambda *_asked: master.Window({1: NOON + 10}, {instance.id: texts}))
    RequestMark.objects.create(name=sampling.mark_name(instance.cluster_id), taken=NOON - 10, rolled=NOON)
    assert sampled(at_noon, NOON + 20) == 1
    assert kept(RequestSample) == {0: {"orders": [5, 0, 1], "": [0, 0, 1]}}


# --- bounds -----------------------------------------------------------------------------------------------------------------


def minute_of(instance, at, topics):
    """A minute is over, in which these moved so much; it is added to the totals."""
    text = json.dumps({name: [moved, 0] for name, moved in topics.items()})
    sampling._totalled({instance.id: [RequestSample(instance=instance.id, at=at, counts="{}", topics=text)]}, at + 60)
    return TopicsMoved.from_json(json.loads(RequestTotal.objects.get().topics))


def test_totals_have_room_for_those_that_move_now_however_much_others_have_moved(instance, monkeypatch):
    monkeypatch.setattr(sampling, "MOST_TOPICS", 4)
    minute_of(instance, NOON, {f"gone{number}": 1_000 + number for number in range(4)})
    minute_of(instance, NOON + 60, {"new": 1})
    found = minute_of(instance, NOON + 120, {"new": 2, "newer": 3})
    assert sorted(found.names) == ["gone2", "gone3", "new", "newer"]
    assert (found.names["new"][0], found.names["newer"][0]) == (3, 3)
    assert found.total == (4_006 + 6, 0), "nothing is lost"


def test_a_rows_text_has_a_bound(monkeypatch):
    monkeypatch.setattr(sampling, "MOST_TOPIC_BYTES", 1_000)
    text = row_of(window({f"{'t' * 200}{number}": (number, 1) for number in range(9)}))
    assert len(text) <= 1_000
    assert TopicsMoved.from_json(json.loads(text)).total == (36, 9)
