"""An instance's history as its tenant sees it: charts with a table behind each."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest
from django.contrib.staticfiles import finders

from controlplane.console.over_time import BYTES_PER_S, levels
from controlplane.console.times import RANGES, range_times
from controlplane.console.views import history
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.history.models import (
    Hour,
    Minute,
    RequestDay,
    RequestHour,
    RequestMark,
    RequestMinute,
    RequestSample,
    Sample,
)
from controlplane.history.requests import by_broker
from controlplane.instances.models import Instance
from tests.controlplane.alarms.rows import absence, alarm_row, event_row, resized, throttled
from tests.controlplane.history.conftest import MIB, counts_of, keep, keep_requests, rolled, sample

from .conftest import text_of


@pytest.fixture
def last():
    """The beginning of the present ten seconds."""
    return int(SYSTEM_CLOCK.now().timestamp()) // 10 * 10


@pytest.fixture
def page(at_alice, instance):
    def page(more=""):
        return at_alice.get(f"instances/{instance.id}/history{more}")

    return page


def pictures(response):
    """What the script is told of each chart, by its name, with what a screen reader is told of it as `summary`."""
    body = response.content.decode()
    found = {}
    for part in re.findall(r'<section class="card plot-card".*?</section>', body, flags=re.DOTALL):
        (name,) = re.findall(r'data-plot="(\w+)-data"', part)
        (data,) = re.findall(rf'<script id="{name}-data" type="application/json">(.*?)</script>', part, flags=re.DOTALL)
        (summary,) = re.findall(r'role="application"[^>]*? aria-label="([^"]*)"', part)
        found[name] = {**json.loads(data), "summary": summary}
    return found


def line_of(picture, title):
    (line,) = [each for each in picture["lines"] if each["title"] == title]
    return line


def moments_of(picture):
    return [picture["start"] + number * picture["step_s"] for number in range(picture["count"])]


def test_there_is_a_chart_of_each_figure_and_a_table_behind_it(page, instance, last):
    keep([sample(last - 60, instance.id), sample(last - 20, instance.id, produce_bytes_per_s=3 * MIB)])
    answer = page()
    assert list(pictures(answer)) == ["produce", "consume", "throttled", "storage", "connections"]
    text = text_of(answer)
    for title in ("Produced", "Consumed", "Throttled, share of the time", "Storage", "Connections"):
        assert f"{title} as a table" in text
    assert "5 MiB/s 4 MiB/s 3 MiB/s 3 MiB/s" in text  # limit, allocated, maximum, average


def test_a_limit_that_there_is_not_is_unlimited_and_one_that_nobody_knows_is_a_dash(page, instance, last):
    """Requests, and the bytes that they carried, are known of a step in which no master was asked."""
    nothing = dict.fromkeys(f"produce_{name}_bytes_per_s" for name in ("limit", "allocated"))
    keep([sample(last - 120, instance.id, produce_bytes_per_s=3 * MIB, **nothing)])
    carried = {}
    for at, size in ((last - 120, 30 * MIB), (last - 60, 40 * MIB)):
        carried[at] = counts_of(3)
        carried[at].produced_bytes, carried[at].carried_windows = size, 1
    keep_requests(instance, carried, known_to=last - 30)
    text = text_of(page())
    assert "unlimited unlimited 3 MiB/s 3 MiB/s" in text
    assert "\N{EN DASH} \N{EN DASH} 4 MiB/s 4 MiB/s" in text


def test_the_script_is_told_values_by_step_with_their_unit_and_a_screen_reader_what_they_are(page, instance, last):
    keep([sample(last - 60, instance.id, produce_bytes_per_s=3 * MIB)])
    picture = pictures(page())["produce"]
    assert (picture["unit"], picture["step_s"]) == ("rate", 10)
    assert picture["levels"][0] == 0
    assert picture["levels"][-1] >= 5 * MIB
    step = moments_of(picture).index(last - 60)
    told = {line["title"]: (line["kind"], line["is_set"], line["values"][step]) for line in picture["lines"]}
    assert told == {
        "limit": ("limit", True, 5 * MIB),
        "allocated": ("allocation", True, 4 * MIB),
        "maximum": ("most", False, 3 * MIB),
        "average": ("flow", False, 3 * MIB),
    }
    assert {len(line["values"]) for line in picture["lines"]} == {picture["count"]}
    assert "limit 5 MiB/s at the end" in picture["summary"]


def test_chart_js_is_a_file_of_our_own_and_drawn_by_a_script_of_ours(page, instance, last):
    keep([sample(last - 60, instance.id)])
    files = re.findall(r'<script src="/static/([^"]+)" defer></script>', page().content.decode())
    assert [name for name in files if "chart" in name] == ["chartjs/chart.js", "console/charts.js"]
    assert [name for name in files if finders.find(name) is None] == []
    assert finders.find("chartjs/LICENSE"), "who hands it on has to hand on its licence"


def test_nothing_of_the_package_that_has_chart_js_is_an_app(settings):
    assert [app for app in settings.INSTALLED_APPS if "unfold" in app] == []
    assert finders.find("unfold/css/styles.css") is None


def test_what_a_page_may_not_have_is_not_in_it(page, instance, last):
    """Data for a script is none: a browser does not run it, so the policy does not refuse it."""
    keep([sample(last - 60, instance.id)])
    body = page().content.decode()
    (main,) = re.findall(r"<main.*</main>", body, flags=re.DOTALL)
    main, _, _ = main.partition('id="scraping-title"')  # which has the address of metrics
    main = re.sub(r'<script id="[\w-]+" type="application/json">', "", main)
    assert re.findall(r"<style|<script|\sstyle=|\son\w+=|<!--|https?://(?!www\.w3\.org/)", main) == []


def test_the_configuration_with_a_client_certificate_is_shown_where_the_service_takes_them(page, instance, settings):
    heading = "With a client certificate in place of a key"
    assert heading not in page().content.decode()
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, client_certificates_from=(ip_network("10.3.0.0/24"),))
    body = page().content.decode()
    assert heading in body
    assert "cert_file: /etc/prometheus/sluice-client.pem" in body
    assert f"sluice://{instance.id}/prometheus" in body


def test_without_scripts_the_tables_stand_open_and_there_is_no_empty_picture(page, instance, last):
    keep([sample(last - 60, instance.id)])
    body = page().content.decode()
    assert body.count("<details open><summary>") == 5
    assert len(re.findall(r'<div class="plot" [^>]* hidden><canvas aria-hidden="true">', body)) == 5
    assert '<p class="help" id="plots-keys" hidden>' in body


def test_a_gap_is_no_value_and_no_zero(page, instance, last):
    keep([sample(last - seconds, instance.id) for seconds in (600, 590, 300)])
    picture = pictures(page())["produce"]
    values = dict(zip(moments_of(picture), line_of(picture, "average")["values"], strict=True))
    assert [at for at, value in values.items() if value is not None] == [last - 600, last - 590, last - 300]
    assert 0 not in values.values()


def test_without_a_limit_there_is_no_line_of_it_and_it_is_said_why(page, instance, last):
    keep([sample(last - seconds, instance.id, produce_limit_bytes_per_s=None) for seconds in (60, 40, 20)])
    picture = pictures(page())["produce"]
    limit = line_of(picture, "limit")
    assert set(limit["values"]) == {None}
    assert limit["words"] == {str(moments_of(picture).index(last - ago_s)): "unlimited" for ago_s in (60, 40, 20)}


@pytest.mark.parametrize("each", RANGES, ids=lambda each: each.name)
def test_each_range_is_a_link_and_a_page(page, instance, last, each):
    answer = page(f"?range={each.name}")
    assert f"The last {each.words.removeprefix('1 ')}" in text_of(answer)
    assert f'<a href="?range={each.name}" aria-current="true">' in answer.content.decode()
    assert "Nothing recorded" in text_of(answer)


@pytest.mark.parametrize(
    ("name", "step_s"), [("1h", 10), ("6h", 60), ("24h", 120), ("7d", 900), ("15d", 1800), ("400d", 43_200)]
)
def test_steps_are_as_short_as_rows_and_a_thousand_points_allow(page, instance, last, name, step_s):
    keep([sample(last - 60, instance.id)])
    Minute.objects.bulk_create(rolled(Minute, last // 60 * 60 - 60 * number, instance.id) for number in range(2, 60))
    Hour.objects.bulk_create([rolled(Hour, last // 3600 * 3600 - 7200, instance.id)])
    for picture in pictures(page(f"?range={name}")).values():
        assert picture["step_s"] == step_s
        assert picture["count"] <= 1000


@pytest.mark.parametrize(
    ("name", "step_s", "words"), [("24h", 120, "2 min"), ("7d", 3600, "1 h"), ("400d", 86_400, "1 day")]
)
def test_what_was_asked_is_added_up_from_longer_rows_where_the_time_is_long(
    page, instance, last, eventful, name, step_s, words
):
    at = last // 3600 * 3600 - 3600
    Hour.objects.bulk_create([rolled(Hour, at, instance.id)])
    Minute.objects.bulk_create([rolled(Minute, at, instance.id)])
    text = counts_of(200).to_text()
    for model, row_at in ((RequestMinute, at), (RequestHour, at), (RequestDay, at // 86_400 * 86_400)):
        model.objects.create(instance=instance.id, at=row_at, windows=1, counts=text)
    keep_requests(instance, {}, known_to=last)
    RequestMark.objects.update(rolled=last)
    answer = page(f"?range={name}")
    assert f"The charts of requests have steps of {words}." in text_of(answer)
    found = pictures(answer)
    assert found["requests"]["step_s"] == step_s
    assert found["produce"]["step_s"] <= step_s
    for picture in (found["requests"], found["produce"]):
        assert picture["marks"], "of its own steps"
        assert {mark["at"] for mark in picture["marks"]} <= set(moments_of(picture))


def test_what_is_added_up_over_all_of_the_time_is_read_from_rows_as_long():
    """Days for 400 days: 9,600 rows of hours take a second."""
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    found = {each.name: history._longest_step_s(60, range_times(each, now)) for each in RANGES}
    assert found == {"1h": 60, "6h": 60, "24h": 3600, "7d": 3600, "15d": 3600, "400d": 86_400}


def test_all_charts_show_the_time_that_the_address_says_whatever_its_zone(page, instance, last):
    Minute.objects.bulk_create(rolled(Minute, last // 60 * 60 - 60 * number, instance.id) for number in range(60, 300))
    start = datetime.fromtimestamp(last // 60 * 60 - 4 * 3600, UTC)
    end = start + timedelta(hours=2)
    in_zone = (start + timedelta(hours=8)).strftime("%Y-%m-%dT%H:%M") + "%2B08:00"
    for since in (f"{start:%Y-%m-%dT%H:%M}", f"{start:%Y-%m-%dT%H:%M}Z", in_zone):
        answer = page(f"?since={since}&until={end:%Y-%m-%dT%H:%M}Z")
        found = pictures(answer)
        assert len(found) == 5
        for picture in found.values():
            assert picture["start"] == start.timestamp()
            assert moments_of(picture)[-1] + picture["step_s"] == end.timestamp()
            assert picture["step_s"] == 60
        body = answer.content.decode()
        assert f'name="since" value="{start:%Y-%m-%dT%H:%M}"' in body
        assert f'name="until" value="{end:%Y-%m-%dT%H:%M}"' in body
        assert 'aria-current="true">1 hour' not in body
        assert f"{start:%Y-%m-%d %H:%M} \N{EN DASH} {end:%Y-%m-%d %H:%M}, UTC" in text_of(answer)


def test_without_an_end_it_is_up_to_now(page, instance, last):
    keep([sample(last - 60, instance.id)])
    start = datetime.fromtimestamp(last - 1800, UTC)
    for until in ("", "&until=", "&until=2999-01-01T00:00"):
        picture = pictures(page(f"?since={start:%Y-%m-%dT%H:%M}{until}"))["produce"]
        assert last - 20 <= moments_of(picture)[-1] <= last + 300


@pytest.mark.parametrize(
    ("since_s", "until_s", "said"),
    [
        (3600, 7200, "This must be later than the beginning."),
        (3600, 3600, "This must be later than the beginning."),
        (-3600, None, "This is in the future."),
        (402 * 86_400, None, "This is too long ago: figures are kept for 400 days."),
        (500 * 86_400, 450 * 86_400, "This is too long ago: figures are kept for 400 days."),
    ],
)
def test_a_time_that_no_chart_can_show_is_refused_beside_its_field(page, instance, last, since_s, until_s, said):
    keep([sample(last - 60, instance.id)])
    since = f"{ago(last, since_s):%Y-%m-%dT%H:%MZ}"
    until = "" if until_s is None else f"&until={ago(last, until_s):%Y-%m-%dT%H:%MZ}"
    answer = page(f"?since={since}{until}")
    assert answer.status_code == 422
    assert said in text_of(answer)
    assert pictures(answer) == {}
    assert "Nothing recorded" not in text_of(answer)


@pytest.mark.parametrize(
    "text", ["yesterday", "", "2026-13-01T00:00", "0001-01-01T00:00%2B14:00", "9999-12-31T23:59-14:00", "%00", "<b>"]
)
def test_what_is_no_moment_is_refused_and_not_an_error(page, text):
    answer = page(f"?since={text}&until=2026-01-01T00:00")
    assert answer.status_code == 422
    assert "<b>" not in answer.content.decode()
    if not text.startswith("9999"):  # which is up to now
        assert page(f"?since=2026-01-01T00:00&until={text or 'x'}").status_code == 422


def test_a_long_table_begins_with_its_newest_rows_and_is_whole_one_link_further(page, instance, last, monkeypatch):
    monkeypatch.setattr(history, "MOST_ROWS", 5)
    keep([sample(last - 10 * number, instance.id) for number in range(1, 12)])

    def rows(answer, name):
        (part,) = re.findall(rf'data-plot="{name}-data">.*?</section>', answer.content.decode(), flags=re.DOTALL)
        return part.count("<tr>") - 1, part

    number, part = rows(page("?range=1h"), "produce")
    assert number == 5
    assert "The newest 5 of 11 rows." in part
    (link,) = re.findall(r'href="(\?[^"]*)#produce-title"', part)
    whole = page(link.replace("&amp;", "&"))
    number, part = rows(whole, "produce")
    assert number == 11
    assert "<details open data-whole>" in part
    assert "The newest" not in part
    assert rows(whole, "consume")[0] == 5


def test_another_range_is_not_found(page):
    assert page("?range=2h").status_code == 404


def test_it_is_linked_beside_the_others_and_outlives_the_instance(at_alice, page, instance):
    assert f'/instances/{instance.id}/history"' in at_alice.get(f"instances/{instance.id}").content.decode()
    Instance.objects.unscoped("a test").filter(pk=instance.id).update(state="deleted")
    assert page().status_code == 200


def test_one_page_is_a_few_questions(page, instance, last, django_assert_max_num_queries):
    keep([sample(last - 10 * number, instance.id) for number in range(360)])
    assert Sample.objects.count() == 360
    with django_assert_max_num_queries(20):  # five of them of events, three of requests
        assert page().status_code == 200


def test_requests_are_charts_and_a_table_by_api(page, instance, last):
    keep([sample(last - 60, instance.id), sample(last - 50, instance.id)])
    made = counts_of(200, took_us=2_000, errors={"NOT_LEADER_OR_FOLLOWER": 3})
    for number, api in enumerate(("Fetch", "Metadata", "ListOffsets", "Heartbeat", "OffsetCommit")):
        made.add(counts_of(10 - number, api=api, took_us=400))
    keep_requests(instance, {last - 60: made}, known_to=last)
    answer = page()
    assert list(pictures(answer))[5:] == ["requests", "errors", "produce_latency", "fetch_latency"]
    text = text_of(answer)
    assert "Produce 200" in text
    assert "NOT_LEADER_OR_FOLLOWER 3" in text
    assert "all others" in text
    said = pictures(answer)["produce_latency"]["summary"]
    assert "p99 " in said
    assert " ms at the end" in said


def test_what_belongs_to_every_join_is_no_error_of_the_chart(page, instance, last):
    keep([sample(last - 60, instance.id)])
    joins = counts_of(9, api="JoinGroup", errors={"MEMBER_ID_REQUIRED": 7})
    keep_requests(instance, {last - 60: joins}, known_to=last)
    answer = page()
    assert "errors" not in pictures(answer)
    assert "MEMBER_ID_REQUIRED 7 part of a first join" in text_of(answer)
    keep_requests(
        instance, {last - 50: counts_of(1, api="JoinGroup", errors={"REBALANCE_IN_PROGRESS": 1})}, known_to=last
    )
    assert [line["title"] for line in pictures(page())["errors"]["lines"]] == ["REBALANCE_IN_PROGRESS"]


def test_error_codes_of_an_api_are_one_list_that_may_break(page, instance, last):
    """Each code as a column of its own printed them over each other on a phone."""
    keep([sample(last - 60, instance.id)])
    made = counts_of(9, errors={"UNKNOWN_TOPIC_OR_PARTITION": 7, "TOPIC_AUTHORIZATION_FAILED": 2})
    keep_requests(instance, {last - 60: made}, known_to=last)
    (cell,) = re.findall(r'<td data-label="Errors">(.*?)</td>', page().content.decode(), flags=re.DOTALL)
    assert cell.count('class="how') == 1
    assert cell.count("<li>") == 2


def test_a_prometheus_is_told_the_one_address_and_a_configuration(page, instance, settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, scrape_url="https://metrics.example.com")
    text = text_of(page())
    assert f"https://metrics.example.com/api/v1/instances/{instance.id}/prometheus" in text
    assert "job_name: sluice-" in text
    assert "metrics.example.com" in text.partition("targets:")[2]


def test_where_nothing_was_asked_there_is_nothing_of_requests(page, instance, last):
    keep([sample(last - 60, instance.id)])
    keep_requests(instance, {}, known_to=last)
    answer = page()
    assert list(pictures(answer))[5:] == []
    assert "Requests by API" not in text_of(answer)


@pytest.mark.parametrize("top", [0, 1, 3, 5 * MIB, 5 * MIB + 1, 1023, 1024, 700 * MIB, 2**45])
def test_an_axis_reaches_as_far_as_its_values_in_a_few_round_steps(top):
    found = levels(top, BYTES_PER_S.base, BYTES_PER_S.parts)
    assert found[0] == 0
    assert found[-1] >= top
    assert 2 <= len(found) <= 6
    assert found[-2] < max(top, 1)


# --- marks of events ------------------------------------------------------------------------------------------------------


def ago(last, seconds):
    return datetime.fromtimestamp(last - seconds, UTC)


@pytest.fixture
def eventful(instance, last):
    """An hour with a sample a minute, in which something happened."""
    Instance.objects.unscoped("a test").update(created_at=ago(last, 86_400))
    keep([sample(last - seconds, instance.id) for seconds in range(60, 3600, 60) if seconds != 1800])
    resized(instance, ago(last, 86_000), 5.0, kind="restored")
    resized(instance, ago(last, 3000), 10.0)
    throttled(instance, ago(last, 2400), ago(last, 1200))
    absence(instance, ago(last, 1800), ago(last, 1700))
    event_row(alarm_row(instance, name="Full <soon>"), "fired", ago(last, 600))


def test_what_happened_is_marked_in_every_chart_with_a_name_and_a_text(page, eventful):
    for picture in pictures(page()).values():
        assert [(mark["kind"], mark["title"]) for mark in picture["marks"]] == [
            ("resized", "Resized"),
            ("throttling", "Throttled"),
            ("failover", "A broker of the cluster went away"),
            ("throttling", "Throttled"),
            ("fired", "Alarm fired"),
        ]
        assert [mark["texts"] for mark in picture["marks"]] == [
            ["Resized: bandwidth 5 → 10 MiB/s"],
            ["Producers throttled"],
            ["Broker 2 of the cluster went away"],
            ["Producers no longer throttled: it lasted 20 min"],
            ["Alarm fired: Full <soon>"],
        ]
        assert {mark["at"] for mark in picture["marks"]} <= set(moments_of(picture))
        assert picture["summary"].endswith(" It has 5 marks of events.")


def test_one_mark_is_one(page, instance, last):
    keep([sample(last - seconds, instance.id) for seconds in (60, 70)])
    event_row(alarm_row(instance, name="Full"), "fired", ago(last, 65))
    for picture in pictures(page()).values():
        assert picture["summary"].endswith(" It has 1 mark of an event.")


def test_what_happened_stands_in_the_table_behind_each_chart_also_where_no_figure_is_known(page, eventful):
    body = page().content.decode()
    tables = re.findall(r'<table class="table stack">.*?</table>', body, flags=re.DOTALL)
    assert len(tables) == 5
    for table in tables:
        assert '<th scope="col" class="events">Events</th>' in table
        (row,) = [
            each
            for each in re.findall(r"<tr>.*?</tr>", table, flags=re.DOTALL)
            if "Broker 2 of the cluster went away" in each
        ]
        assert "\N{EN DASH}" in row, "there was no sample just then"
        assert "Alarm fired: Full &lt;soon&gt;" in table


def test_without_events_there_is_no_column_of_them(page, instance, last):
    keep([sample(last - 60, instance.id)])
    assert 'class="events"' not in page().content.decode()


def test_events_of_one_step_are_one_mark_as_serious_as_the_worst(page, instance, last, eventful):
    for number in range(6):
        event_row(alarm_row(instance, f"alm-9{number:011}", name=f"alarm {number}"), "fired", ago(last, 1000))
    Minute.objects.bulk_create(rolled(Minute, last // 60 * 60 - 60 * number, instance.id) for number in range(2, 60))
    marks = pictures(page("?range=24h"))["produce"]["marks"]
    assert "failover" in [mark["kind"] for mark in marks]
    assert len(marks) == len({mark["at"] for mark in marks}) <= 8
    assert [mark["texts"][-1] for mark in marks if len(mark["texts"]) > 4] == ["2 more"]


def test_events_of_another_instance_are_not_marked(page, eventful, charlie):
    other = Instance.objects.unscoped("a test").get()
    other.pk, other.organisation = "ins-00000001", charlie.organisation
    other.save(force_insert=True)
    event_row(alarm_row(other, "alm-000000000009", name="secret"), "fired", datetime.now(UTC) - timedelta(minutes=5))
    throttled(other, datetime.now(UTC) - timedelta(minutes=5), datetime.now(UTC), direction="consume")
    body = page().content.decode()
    assert "secret" not in body
    assert "Consumers throttled" not in body


def test_requests_are_shown_by_broker(page, instance, last):
    keep([sample(last - 60, instance.id), sample(last - 50, instance.id)])
    keep_requests(instance, {last - 60: counts_of(200)}, known_to=last)
    assert "Requests by broker" not in text_of(page())
    parts = by_broker.text_of({1: counts_of(10), 2: counts_of(10, took_us=700_000, errors={"CODE_1": 4})})
    RequestSample.objects.update(brokers=parts)
    text = text_of(page())
    assert "Requests by broker" in text
    assert re.search(r"2 10 4 \d{3}", text), "the second was slow"


@pytest.fixture
def asked(instance, brokers, last):
    """Ten seconds a minute ago, in which the second broker was slow; three are registered."""
    keep([sample(last - 60, instance.id), sample(last - 50, instance.id)])
    keep_requests(instance, {last - 60: counts_of(20)}, known_to=last)
    quick, slow = counts_of(30), counts_of(10, took_us=700_000, errors={"CODE_1": 5})
    quick.produced_bytes = 5_000
    quick.carried_windows = slow.carried_windows = 1
    RequestSample.objects.update(brokers=by_broker.text_of({1: quick, 2: slow}))


@pytest.fixture
def page_of(at_alice, instance):
    def page_of(broker, more=""):
        return at_alice.get(f"instances/{instance.id}/brokers/{broker}/history{more}")

    return page_of


def test_a_broker_has_charts_of_what_was_asked_of_it_with_a_table_behind_each(page_of, asked, last):
    answers = {broker: page_of(broker) for broker in (1, 2, 3)}
    found = {broker: pictures(answer) for broker, answer in answers.items()}
    assert list(found[1]) == ["broker_flow", "broker_requests", "produce_latency", "fetch_latency"]
    step = moments_of(found[1]["broker_flow"]).index(last - 60)

    def value(broker, chart, line):
        return line_of(found[broker][chart], line)["values"][step]

    assert value(1, "broker_flow", "produce") == 500, "bytes a second"
    assert [value(broker, "broker_requests", "requests") for broker in (1, 2, 3)] == [3_000, 1_000, 0], "thousandths"
    assert value(2, "broker_requests", "errors") == 500
    for percentile in ("p50", "p99"):
        assert value(1, "produce_latency", percentile) < 2_000
        assert value(2, "produce_latency", percentile) > 500_000
    for title in ("Produced and consumed", "Requests and errors", "Produce latency", "Fetch latency"):
        assert f"{title} as a table" in text_of(answers[2])


def test_a_broker_is_reached_from_the_table_over_the_same_time(page, page_of, asked, last, instance):
    assert f'/instances/{instance.id}/brokers/2/history?range=1h">2</a>' in page("?range=1h").content.decode()
    back = page_of(2, "?range=1h&whole=broker_flow").content.decode()
    assert f'/instances/{instance.id}/history?range=1h">History</a>' in back


@pytest.mark.parametrize("each", RANGES, ids=lambda each: each.name)
def test_a_broker_has_the_ranges_of_the_history(page_of, brokers, instance, each):
    answer = page_of(1, f"?range={each.name}")
    assert f'<a href="?range={each.name}" aria-current="true">' in answer.content.decode()
    assert "Nothing is recorded of this time." in text_of(answer)


def test_what_happened_to_the_instance_is_marked_and_of_brokers_that_this_one_went_away(page_of, asked, instance, last):
    Instance.objects.unscoped("a test").update(created_at=ago(last, 86_400))
    resized(instance, ago(last, 86_000), 5.0, kind="restored")
    resized(instance, ago(last, 360), 10.0)
    absence(instance, ago(last, 240), broker=3)
    absence(instance, ago(last, 120), broker=2)
    told = {mark["at"]: mark["kind"] for mark in pictures(page_of(2))["broker_flow"]["marks"]}
    assert list(told.values()) == ["resized", "failover"]
    assert "Broker 3 of the cluster went away" not in text_of(page_of(2))


def test_a_broker_between_two_moments_that_make_no_sense_is_refused_with_the_reason(page_of, asked):
    answer = page_of(1, "?since=2026-01-02T00:00&until=2026-01-01T00:00")
    assert answer.status_code == 422
    assert pictures(answer) == {}


def test_a_broker_of_an_instance_that_is_gone_still_has_its_history(page_of, asked, instance):
    Instance.objects.unscoped("a test").update(state="deleted", deleted_at=SYSTEM_CLOCK.now())
    assert list(pictures(page_of(1))) == ["broker_flow", "broker_requests", "produce_latency", "fetch_latency"]


@pytest.mark.parametrize("broker", [0, 4, 10**30])
def test_a_broker_that_the_cluster_does_not_have_is_not_found(page_of, asked, broker):
    assert page_of(broker).status_code == 404


def test_the_page_of_a_broker_asks_the_database_few_questions(page_of, asked, django_assert_max_num_queries):
    with django_assert_max_num_queries(29):
        assert page_of(1).status_code == 200
