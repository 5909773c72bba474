"""`sluice instance history`: how long ago is typed, and what comes back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest

from controlplane.cli.values import cell, since
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.history.metrics import EVERY, OF_GROUPS
from controlplane.history.models import RequestSample, StoredSpan
from controlplane.history.requests.by_broker import text_of
from tests.controlplane.alarms.rows import alarm_row, event_row, throttled
from tests.controlplane.history.conftest import MIB, counts_of, keep, keep_requests, sample
from tests.controlplane.history.test_lag_api import lag_of
from tests.controlplane.history.test_topics import keep_topics, window

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def last(instance):
    """The beginning of the ten seconds before the last."""
    at = int(SYSTEM_CLOCK.now().timestamp()) // 10 * 10 - 10
    keep([sample(at, instance.id, produce_bytes_per_s=3 * MIB)])
    return at


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("-90s", "2026-03-01T11:58:30+00:00"),
        ("-30m", "2026-03-01T11:30:00+00:00"),
        ("-1h", "2026-03-01T11:00:00+00:00"),
        ("-15d", "2026-02-14T12:00:00+00:00"),
        ("2026-02-01", "2026-02-01"),
        ("-1y", "-1y"),
        ("1h", "1h"),
        ("-999999999d", "-999999999d"),
    ],
)
def test_how_long_ago_becomes_a_moment_and_the_rest_is_for_rest_to_judge(typed, asked):
    assert since(typed, NOW) == asked


def test_rates_have_units():
    assert cell("produce_bytes_per_s", 3 * MIB) == "3 MiB/s"
    assert cell("produce_bytes_per_s_max", 3 * MIB) == "3 MiB/s"
    assert cell("storage_used_bytes_max", 3 * MIB) == "3 MiB"
    assert cell("produce_limit_bytes_per_s", None) == "-"


def test_json_is_what_rest_answers(ok, alice, instance, last):
    start, end = (datetime.fromtimestamp(last + moved, UTC).isoformat() for moved in (-600, 10))
    said = ok(
        "instance", "history", instance.id, "--from", start, "--to", end, "--metrics", "connections", "-o", "json"
    ).json
    answered = alice.api.get(
        f"/api/v1/instances/{instance.id}/history", {"from": start, "to": end, "metrics": "connections"}
    )
    assert said == answered.json()
    assert said["items"][-1]["connections"] == 7


def test_a_table_has_a_line_for_each_step_and_says_how_long_it_is(ok, instance, last):
    said = ok("instance", "history", instance.name, "--from", "-20m", "--step", 60, "--metrics", "produce_bytes_per_s")
    head, *lines = said.out.splitlines()
    assert head.split() == ["time", "produce_bytes_per_s"]
    assert len(lines) in (20, 21)  # minutes that 20 minutes touch
    assert [line for line in lines if "3 MiB/s" in line]
    assert lines[0].endswith(" -")
    assert "Steps of 60 s, of rows of 10 s" in said.err


def test_a_limit_that_there_is_not_is_unlimited_and_one_that_nobody_knows_is_a_dash(ok, instance, last):
    nothing = {"produce_limit_bytes_per_s": None, "produce_allocated_bytes_per_s": None}
    keep([sample(last - 30, instance.id, **nothing)])
    said = ok(
        "instance", "history", instance.name, "--from", datetime.fromtimestamp(last - 30, UTC).isoformat(),
        "--metrics", "produce_limit_bytes_per_s,produce_allocated_bytes_per_s",
    )  # fmt: skip
    _, *lines = said.out.splitlines()
    assert lines[0].split()[-2:] == ["unlimited", "unlimited"]
    assert lines[1].split()[-2:] == lines[2].split()[-2:] == ["-", "-"]
    assert lines[3].split()[-2:] != ["-", "-"]
    assert "a dash is not known" in said.err


def test_the_last_hour_with_everything_is_what_comes_unasked(ok, instance, last):
    found = ok("instance", "history", instance.id, "-o", "json").json
    assert len(found["metrics"]) == len(EVERY)
    length = datetime.fromisoformat(found["end"]) - datetime.fromisoformat(found["start"])
    assert timedelta(hours=1) <= length <= timedelta(hours=1, seconds=20)


def test_requests_are_a_line_for_each_api_with_the_time_that_is_asked_for(ok, alice, instance, last):
    both = counts_of(3, took_us=5_000, waited_us=4_000, errors={"REQUEST_TIMED_OUT": 2})
    both.add(counts_of(1, api="Metadata"))
    keep_requests(instance, {last - 30: both}, known_to=last)
    said = ok("instance", "requests", instance.name)
    head, first, second = said.out.splitlines()
    assert head.split() == ["api", "requests", "requests_per_s", "errors", "error_codes", "p50_ms", "p99_ms", "p999_ms"]
    assert first.split()[:2] == ["Produce", "3"]
    assert "REQUEST_TIMED_OUT=2" in first
    assert second.split()[:2] == ["Metadata", "1"]
    remote = ok("instance", "requests", instance.name, "--phase", "remote", "-o", "json").json
    assert remote["items"][0]["latency_ms"]["remote"]["p99"] == pytest.approx(4.0, rel=0.3)


def test_a_configuration_of_prometheus_is_printed_as_it_is(ok, instance):
    said = ok("instance", "scrape-config", instance.name).out
    assert said.startswith("scrape_configs:\n")
    assert f"metrics_path: /api/v1/instances/{instance.id}/prometheus" in said


def test_and_one_with_a_client_certificate_where_the_service_takes_them(ok, as_alice, instance, settings):
    assert ok("instance", "scrape-config", instance.name, "--by", "key").out.startswith("scrape_configs:\n")
    ran = as_alice("instance", "scrape-config", instance.name, "--by", "certificate")
    assert (ran.status, "takes no client certificates" in ran.err) == (1, True)
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, client_certificates_from=(ip_network("10.3.0.0/24"),))
    assert "cert_file" in ok("instance", "scrape-config", instance.name, "--by", "certificate").out


def test_a_refusal_names_what_is_wrong(as_alice, instance):
    ran = as_alice("instance", "history", instance.id, "--metrics", "lag")
    assert ran.status == 1
    assert "there is no metric 'lag'" in ran.err


def test_the_lag_of_a_group_is_a_table(ok, instance):
    lag_of(instance.id, "billing", int(SYSTEM_CLOCK.now().timestamp()) // 60 * 60 - 120, 1200, 90, 5000, (90, 90))
    said = ok("group", "history", instance.name, "billing", "--from", "-20m")
    head, *lines = said.out.splitlines()
    assert head.split() == [
        "time", "lag_messages", "lag_messages_max", "lag_bytes", "lag_bytes_max", "lag_seconds", "lag_seconds_max",
        "consume_records_per_s", "produce_records_per_s",
    ]  # fmt: skip
    (line,) = [line for line in lines if "1200" in line]
    assert line.split()[-10:] == ["1200", "1200", "4.88", "KiB", "4.88", "KiB", "90", "90", "1.5", "1.5"]
    assert "Steps of 60 s, of rows of 60 s" in said.err


def test_what_a_topic_moved_is_a_table(ok, instance, last):
    keep_topics(instance, {last - 50: window({"orders": (10 * 3 * MIB, 10 * MIB, 25)})}, last - 40)
    said = ok("topic", "history", instance.name, "orders", "--from", "-20m")
    head, *lines = said.out.splitlines()
    assert head.split() == [
        "time",
        "produce_bytes_per_s",
        "consume_bytes_per_s",
        *OF_GROUPS,
        "produce_records_per_s",
        "storage_used_bytes",
    ]
    (line,) = [line for line in lines if "3 MiB/s" in line]
    assert line.split()[-9:] == ["3", "MiB/s", "1", "MiB/s", "-", "-", "-", "2.5", "-"], (
        "nobody reads it, nor meters it"
    )
    assert "Steps of 10 s, of rows of 10 s" in said.err


def test_what_was_asked_of_a_broker_is_a_table(ok, as_alice, instance, last):
    keep_requests(instance, {last - 50: counts_of(30)}, known_to=last - 40)
    RequestSample.objects.update(brokers=text_of({1: counts_of(30)}))
    said = ok("instance", "broker-history", instance.name, "1", "--from", "-20m", "-o", "json").json
    assert [each["requests_per_s"] for each in said["items"] if each["requests_per_s"]] == [3]
    head, *_ = ok("instance", "broker-history", instance.name, "1").out.splitlines()
    assert head.split()[:4] == ["time", "produce_bytes_per_s", "consume_bytes_per_s", "requests_per_s"]
    assert as_alice("instance", "broker-history", instance.name, "77").status == 4


def test_what_the_metrics_store_alone_has_is_said_to_be_missing(ok, instance, last):
    keep_requests(instance, {last - 50: counts_of(30)}, known_to=last - 40)
    hour = 3600
    StoredSpan.objects.create(
        store="gone", name="request minutes", at=last - 9 * hour, until=last - 2 * hour, purged=last - 2 * hour
    )
    for command in (
        ("instance", "history"),
        ("instance", "requests"),
        ("instance", "broker-history"),
        ("topic", "history"),
    ):
        subject = {"broker-history": ["1"]}.get(command[1], ["orders"] if command[0] == "topic" else [])
        said = ok(*command, instance.name, *subject, "--from", "-5h")
        assert "figures that only the store has are missing" in " ".join(said.err.split()), command
        if command[0] == "instance":  # a topic that nobody knows is refused where all is known
            assert "are missing" not in ok(*command, instance.name, *subject, "--from", "-90m").err


def test_what_a_topic_moved_that_nobody_knows_is_refused(as_alice, instance):
    ran = as_alice("topic", "history", instance.id, "nobody")
    assert ran.status == 4
    assert "nobody" in ran.err


def test_the_lag_of_a_group_that_nobody_knows_is_refused(as_alice, instance):
    ran = as_alice("group", "history", instance.id, "nobody")
    assert ran.status == 4
    assert "no group nobody" in ran.err


def test_events_of_a_range_and_of_some_kinds_are_listed(ok, instance):
    now = SYSTEM_CLOCK.now()
    throttled(instance, now - timedelta(hours=2), now - timedelta(hours=1))
    event_row(alarm_row(instance), "fired", now - timedelta(minutes=5))
    kinds = ("--kinds", "throttling.began,throttling.ended,alarm.fired")
    said = ok("instance", "events", instance.id, *kinds, "-o", "json").json
    assert [each["kind"] for each in said["items"]] == ["alarm.fired", "throttling.ended", "throttling.began"]
    said = ok("instance", "events", instance.id, "--from", "-90m", "--to", "-10m", *kinds, "-o", "json").json
    assert [each["kind"] for each in said["items"]] == ["throttling.ended"]
    assert "it lasted 1 h" in ok("instance", "events", instance.id, *kinds).out


def test_an_alarm_about_a_group(ok, instance):
    typed = ("lag", "group_lag_messages", "--comparison", "above", "--threshold", 1000)
    made = ok("alarm", "create", instance.id, *typed, "--group", "billing", "-o", "json").json
    assert (made["group"], made["unit"]) == ("billing", "records")
    changed = ok("alarm", "alter", instance.id, made["id"], "--group", "shipping", "-o", "json").json
    assert changed["group"] == "shipping"
    assert "shipping" in ok("alarm", "list", instance.id).out
