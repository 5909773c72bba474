"""Requests by broker: what an instance asked of each, and what all asked of one, in rows of every length and by REST."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.clusters import master
from controlplane.clusters.master import requests as requests_of_master
from controlplane.clusters.models import Broker
from controlplane.core import clock as clocks
from controlplane.history import api, services
from controlplane.history.exposition import exposition
from controlplane.history.models import RequestHour, RequestMark, RequestMinute, RequestSample, RequestTotal
from controlplane.history.requests import sampling
from controlplane.history.requests.brokers import totals_by_broker
from controlplane.history.requests.by_broker import Asked, added, text_of
from controlplane.history.requests.sampling import broker_name
from controlplane.history.resolutions import SAMPLES
from quota.contracts.requests import RequestCounts
from tests.controlplane.admission.conftest import operator  # noqa: F401  # a fixture
from tests.controlplane.test_instances_api import URL, problem

from .conftest import NOON, counts_of, keep, move, sample


def asked_of(requests=1, produced=0, *, took_us=1_000, errors=None):
    """What a broker tells of a window."""
    found = counts_of(requests, took_us=took_us, errors=errors)
    found.produced_bytes, found.carried_windows = produced, 1
    return found


@pytest.fixture
def told(instance, monkeypatch):
    """What the master says: counts by the window's beginning and broker. Three brokers are registered."""
    windows = {}

    def requests(_cluster, _names, at):
        ours = windows.get(at, {})
        until = dict.fromkeys((1, 2, 3), max(at + 20, NOON + 30))
        texts = {instance.id: [counts.to_text() for counts in ours.values()]} if ours else {}
        return master.Window(until, texts, {name: list(ours) for name in texts})

    monkeypatch.setattr(master, "requests", requests)
    RequestMark.objects.create(name=sampling.mark_name(instance.cluster_id), taken=NOON - 10, rolled=NOON)
    return windows


def sampled(clock, at):
    move(clock, at)
    return sampling.sample(clock=clock)


def of_broker(instance, broker, model=RequestSample):
    """Requests by the beginning of a row."""
    rows = model.objects.filter(instance=broker_name(instance.cluster_id, broker)).order_by("at")
    return {row.at - NOON: RequestCounts.from_text(row.counts).requests for row in rows}


def test_windows_are_kept_by_broker_and_added_up(told, at_noon, instance):
    told |= {NOON: {1: asked_of(3, 1000), 2: asked_of(1, 50, errors={"CODE_1": 2})}, NOON + 10: {1: asked_of(4, 10)}}
    sampled(at_noon, NOON + 90)
    rows = json.loads(RequestSample.objects.get(instance=instance.id, at=NOON).brokers)
    assert {broker: row[:6] for broker, row in rows.items()} == {"1": [3, 0, 1, 1000, 0, 1], "2": [1, 2, 1, 50, 0, 1]}
    rows = json.loads(RequestMinute.objects.get(instance=instance.id).brokers)
    assert {broker: row[:6] for broker, row in rows.items()} == {"1": [7, 0, 2, 1010, 0, 2], "2": [1, 2, 1, 50, 0, 1]}


def test_totals_forget_a_broker_that_has_been_away_for_a_day(told, at_noon, instance):
    def totals(at, *brokers):
        told[at] = {broker: asked_of(1, 10) for broker in brokers}
        sampled(at_noon, at + 90)
        return {broker: asked.requests for broker, asked in totals_by_broker(instance.id).items()}

    third = Broker.objects.create(cluster=instance.cluster, broker_id=33, host="b", port=1)
    assert totals(NOON, 1, 33) == {1: 1, 33: 1}
    third.away_since = datetime.fromtimestamp(NOON + 100, UTC)
    third.save()
    assert totals(NOON + 120, 1) == {1: 2, 33: 1}, "it may come back at any time"
    Broker.objects.filter(pk=third.pk).update(away_since=third.away_since - timedelta(days=1))
    assert totals(NOON + 240, 1) == {1: 3}
    assert totals(NOON + 360, 1, 33) == {1: 4, 33: 1}, "one that is there again counts from 0"


def test_brokers_have_rows_of_their_own_also_those_that_nobody_asked(told, at_noon, instance):
    told |= {NOON: {1: asked_of(3, 1000), 2: asked_of(1)}, NOON + 10: {1: asked_of(4)}}
    sampled(at_noon, NOON + 90)
    assert [of_broker(instance, broker) for broker in (1, 2, 3)] == [{0: 3, 10: 4}, {0: 1, 10: 0}, {0: 0, 10: 0}]
    assert [of_broker(instance, broker, RequestMinute) for broker in (1, 2, 3)] == [{0: 7}, {0: 1}, {0: 0}]
    assert of_broker(instance, 1, RequestHour) == {0: 7}
    assert RequestTotal.objects.get(instance=instance.id).until == NOON + 60
    first = RequestMinute.objects.get(instance=broker_name(instance.cluster_id, 1))
    found = RequestCounts.from_text(first.counts)
    assert (found.produced_bytes, found.carried_windows, first.windows) == (1000, 2, 2)


def test_a_text_that_nobody_understands_costs_other_brokers_nothing(told, at_noon, instance, monkeypatch):
    texts = [asked_of(3).to_text(), "{"]
    until = dict.fromkeys((1, 2), NOON + 10)
    monkeypatch.setattr(
        master, "requests", lambda *_: master.Window(until, {instance.id: texts}, {instance.id: [1, 2]})
    )
    sampled(at_noon, NOON + 20)
    assert of_broker(instance, 1) == {0: 3}
    assert RequestSample.objects.get(instance=instance.id).brokers is None, "of the instance one is not known"


def test_rows_of_brokers_go_with_the_others(told, at_noon, instance):
    told[NOON] = {1: asked_of(3)}
    sampled(at_noon, NOON + 90)
    move(at_noon, NOON + SAMPLES.kept_s + SAMPLES.grace_s + 60)
    services.purge(clock=at_noon)
    assert (of_broker(instance, 1), of_broker(instance, 1, RequestMinute)) == ({}, {0: 3})


def test_of_a_master_of_an_earlier_release_no_broker_is_known(flow_master, at_noon, instance):
    flow_master.windows = {instance.id: {NOON: asked_of(3).to_text()}}
    sampled(at_noon, NOON + 20)
    assert RequestSample.objects.get().brokers is None
    assert added([None, text_of({1: asked_of(1)})]) is None


def test_the_master_names_them_in_the_order_of_their_texts(monkeypatch):
    document = {
        "learning": False,
        "until": {"1": NOON, "2": NOON},
        "instances": [{"instance": "a", "texts": ["{}", "{}"], "brokers": [1, 2]}, {"instance": "b", "texts": ["{}"]}],
    }
    monkeypatch.setattr(master, "_ask", lambda _cluster, _path: document)
    assert requests_of_master(None, ["a", "b"], NOON).brokers == {"a": [1, 2]}


def test_a_row_is_read_back_as_it_was():
    found = Asked()
    row = Asked.of(asked_of(3, 7, took_us=5_000)).to_row()
    found.add_row(row)
    assert found.to_row() == row
    assert found.produce.percentile_us(0.99) == pytest.approx(5_000, rel=0.3)


# --- Prometheus -----------------------------------------------------------------------------------------------------------


def said_of(instance):
    """What a tenant's Prometheus reads of brokers, by what stands before the value."""
    text = exposition(instance.id, {}, [], is_known=False, brokers=totals_by_broker(instance.id))
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name.replace(f'instance_id="{instance.id}",', ""): float(value) for name, value in map(str.split, lines)}


def test_prometheus_counts_what_each_broker_was_asked_also_in_the_minute_that_is_not_over(told, at_noon, instance):
    told |= {
        NOON: {1: asked_of(3, 1000), 2: asked_of(1, took_us=800_000, errors={"CODE_1": 2})},
        NOON + 60: {1: asked_of(4, 10)},
    }
    sampled(at_noon, NOON + 30)
    first = said_of(instance)
    sampled(at_noon, NOON + 90)
    assert json.loads(RequestTotal.objects.get(instance=instance.id).brokers)["1"][0] == 3, "of minutes that are over"
    found = said_of(instance)
    assert all(found[name] >= value for name, value in first.items()), "a counter only grows"
    assert {name: value for name, value in found.items() if "duration" not in name} == {
        'sluice_broker_requests_total{broker="1"}': 7,
        'sluice_broker_requests_total{broker="2"}': 1,
        'sluice_broker_request_errors_total{broker="1"}': 0,
        'sluice_broker_request_errors_total{broker="2"}': 2,
        'sluice_broker_produced_bytes_total{broker="1"}': 1010,
        'sluice_broker_produced_bytes_total{broker="2"}': 0,
        'sluice_broker_consumed_bytes_total{broker="1"}': 0,
        'sluice_broker_consumed_bytes_total{broker="2"}': 0,
    }
    name = "sluice_broker_request_duration_seconds"
    of_second = 'broker="2",api="Produce",phase="total"'
    assert [found[f'{name}_bucket{{{of_second},le="{le}"}}'] for le in ("0.5", "1", "+Inf")] == [0, 1, 1]
    assert found[f"{name}_sum{{{of_second}}}"] == 0.8
    assert found[f'{name}_count{{broker="1",api="Fetch",phase="local"}}'] == 0


def test_a_window_whose_brokers_are_not_known_leaves_the_counters_where_they_were(told, at_noon, instance):
    told |= {NOON: {1: asked_of(3)}, NOON + 60: {1: asked_of(4)}}
    sampled(at_noon, NOON + 90)
    RequestSample.objects.filter(at=NOON + 60).update(brokers=None)
    assert said_of(instance)['sluice_broker_requests_total{broker="1"}'] == 3


def test_bytes_of_a_broker_that_does_not_tell_them_are_absent_and_not_0(told, at_noon, instance):
    told |= {NOON: {1: counts_of(3)}}
    sampled(at_noon, NOON + 30)
    assert [name for name in said_of(instance) if "bytes" in name] == []
    assert said_of(instance)['sluice_broker_requests_total{broker="1"}'] == 3


def test_where_nothing_was_asked_there_is_no_family_of_brokers(instance):
    assert said_of(instance) == {}


# --- REST -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def here(at_noon, monkeypatch):
    """The clock of REST, too, an hour after noon."""
    monkeypatch.setattr(api, "SYSTEM_CLOCK", at_noon)
    monkeypatch.setattr(clocks.SystemClock, "now", lambda _self: at_noon.now())
    move(at_noon, NOON + 3600)
    return at_noon


@pytest.fixture
def slow(told, at_noon, instance):
    """A minute in which the second broker was slow."""
    told |= {NOON: {1: asked_of(30, 5000), 2: asked_of(10, took_us=800_000, errors={"CODE_1": 5})}}
    keep([sample(NOON + 10 * number, instance.id) for number in range(6)])
    sampled(at_noon, NOON + 70)


def item(answer, at):
    wanted = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
    (found,) = [each for each in answer.json()["items"] if each["time"] == wanted]
    return found


def test_a_tenant_sees_which_of_its_brokers_was_slow(alice, instance, slow, brokers, here):
    url = f"{URL}/{instance.id}/brokers"
    first, second, third = (item(alice.api.get(f"{url}/{each}/history"), NOON) for each in (1, 2, 3))
    assert (first["requests_per_s"], first["produce_bytes_per_s"], first["errors_per_s"]) == (3, 500, 0)
    assert first["produce_p99_ms"] < 2
    assert (second["requests_per_s"], second["errors_per_s"]) == (1, 0.5)
    assert second["produce_p99_ms"] > 500
    assert second["fetch_p99_ms"] is None
    assert (third["requests_per_s"], third["produce_p99_ms"]) == (0, None)
    assert item(alice.api.get(f"{url}/1/history"), NOON + 1800)["requests_per_s"] is None, "a gap"


def test_operators_see_what_all_asked_of_a_broker(operator, instance, slow, brokers, here):  # noqa: F811
    url = f"/api/v1/clusters/{instance.cluster.name}/brokers"
    found = item(operator.api.get(f"{url}/2/history"), NOON)
    assert (found["requests_per_s"], found["errors_per_s"], found["produce_bytes_per_s"]) == (1, 0.5, 0)
    assert found["produce_p99_ms"] > 500
    assert item(operator.api.get(f"{url}/2/history"), NOON + 60)["requests_per_s"] is None
    problem(operator.api.get(f"{url}/99/history"), 404, "not_found")
    problem(operator.api.get("/api/v1/clusters/other/brokers/1/history"), 404, "not_found")


def test_who_is_no_operator_is_refused(alice, instance, brokers):
    problem(alice.api.get(f"/api/v1/clusters/{instance.cluster.name}/brokers/1/history"), 403, "forbidden")


def test_another_tenants_broker_is_not_found(alice, charlie, instance, brokers, here):
    problem(alice.api.get(f"{URL}/{instance.id}/brokers/99/history"), 404, "not_found")
    problem(alice.api.get(f"{URL}/{instance.id}/brokers/{10**30}/history"), 404, "not_found")
    foreign = charlie.api.get(f"{URL}/{instance.id}/brokers/1/history")
    missing = charlie.api.get(f"{URL}/ins-nothing1/brokers/1/history")
    assert (foreign.status_code, missing.status_code) == (404, 404)
    assert foreign.content.replace(instance.id.encode(), b"ID") == missing.content.replace(b"ins-nothing1", b"ID")
