"""An instance's history as its tenant sees it: charts with a table behind each."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest

from controlplane.console.over_time import BYTES_PER_S, RANGES, levels, ticks
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.history.models import Minute, RequestSample, Sample
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
    """Each drawing, by the title of its section."""
    body = response.content.decode()
    found = re.findall(r'<h3 id="(\w+)-title">.*?(<svg xmlns.*?</svg>)', body, flags=re.DOTALL)
    return {name: ET.fromstring(text) for name, text in found}


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


def test_a_drawing_has_units_at_its_axes_and_says_its_values(page, instance, last):
    keep([sample(last - 60, instance.id)])
    drawing = pictures(page())["produce"]
    texts = [each.text for each in drawing.iter() if each.tag.endswith("text")]
    assert {"0 B/s", "5 MiB/s"} <= set(texts)
    assert any(re.fullmatch(r"\d\d:\d0", text) for text in texts)
    assert drawing.get("role") == "img"
    assert "limit 5 MiB/s at the end" in drawing.get("aria-label")
    (said,) = [each.text for each in drawing.iter() if each.tag.endswith("title")]
    assert said.endswith(": limit 5 MiB/s, allocated 4 MiB/s, maximum 1 MiB/s, average 1 MiB/s")


def test_what_a_page_may_not_have_is_not_in_a_drawing(page, instance, last):
    keep([sample(last - 60, instance.id)])
    body = page().content.decode()
    (main,) = re.findall(r"<main.*</main>", body, flags=re.DOTALL)
    main, _, _ = main.partition('id="scraping-title"')  # which has the address of metrics
    assert re.findall(r"<style|<script|\sstyle=|\son\w+=|<!--|pygal|https?://(?!www\.w3\.org/)", main) == []


def test_a_gap_is_a_gap(page, instance, last):
    keep([sample(last - seconds, instance.id) for seconds in (600, 580, 560, 300, 280, 260)])
    (flow,) = [each for each in pictures(page())["produce"].iter() if each.get("class") == "series flow"]
    parts = "".join(each.get("d", "") for each in flow.iter())
    assert parts.count("M") == 2


def test_a_moment_between_two_gaps_is_seen(page, instance, last):
    keep([sample(last - seconds, instance.id) for seconds in (600, 300, 280)])
    (flow,) = [each for each in pictures(page())["produce"].iter() if each.get("class") == "series flow"]
    assert "".join(each.get("d", "") for each in flow.iter()).count("M") == 2


def test_without_a_limit_there_is_no_line_of_it(page, instance, last):
    keep([sample(last - seconds, instance.id, produce_limit_bytes_per_s=None) for seconds in (60, 40, 20)])
    (limit,) = [each for each in pictures(page())["produce"].iter() if each.get("class") == "series limit"]
    assert not [each for each in limit.iter() if each.get("d")]


@pytest.mark.parametrize("each", RANGES, ids=lambda each: each.name)
def test_each_range_is_a_link_and_a_page(page, instance, last, each):
    answer = page(f"?range={each.name}")
    assert f"The last {each.words.removeprefix('1 ')}" in text_of(answer)
    assert f'<a href="?range={each.name}" aria-current="true">' in answer.content.decode()
    assert "Nothing recorded" in text_of(answer)


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
    said = pictures(answer)["produce_latency"].get("aria-label")
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
    drawing = pictures(page())["errors"]
    assert "MEMBER_ID_REQUIRED" not in ET.tostring(drawing, encoding="unicode")


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


def test_moments_of_an_axis_are_round():
    noon = 1_740_830_400
    by_name = {each.name: each for each in RANGES}
    assert ticks(by_name["1h"], noon + 1, noon + 3601) == [noon + 600 * number for number in range(1, 7)]
    assert all(at % 86_400 == 0 for at in ticks(by_name["7d"], noon, noon + 7 * 86_400))
    months = ticks(by_name["400d"], noon - 400 * 86_400, noon)
    assert [f"{SYSTEM_CLOCK.now().fromtimestamp(at, SYSTEM_CLOCK.now().tzinfo):%m-%d}" for at in months] == [
        "04-01", "07-01", "10-01", "01-01",
    ]  # fmt: skip


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


def test_what_happened_is_marked_in_every_chart_with_a_text_for_the_pointer(page, eventful):
    for drawing in pictures(page()).values():
        marks = [each.get("class") for each in drawing.iter() if (each.get("class") or "").startswith("event-mark ")]
        assert marks == [
            "event-mark resized",
            "event-mark throttling",
            "event-mark failover",
            "event-mark throttling",
            "event-mark fired",
        ]
        titles = " ".join(each.text for each in drawing.iter() if each.tag.endswith("title"))
        for said in (
            " · Resized: bandwidth 5 → 10 MiB/s",
            " · Producers throttled",
            " · Broker 2 of the cluster went away",
            " · Producers no longer throttled: it lasted 20 min",
            " · Alarm fired: Full <soon>",
        ):
            assert said in titles
        assert "5 marks of events." in drawing.get("aria-label")


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
    drawing = pictures(page("?range=24h"))["produce"]
    kinds = [each.get("class") for each in drawing.iter() if (each.get("class") or "").startswith("event-mark ")]
    assert "event-mark failover" in kinds
    assert len(kinds) <= 8
    titles = " ".join(each.text for each in drawing.iter() if each.tag.endswith("title"))
    assert re.search(r"\d more", titles)


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
