"""An instance's quota as its tenant sees it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.console.advice import said
from controlplane.console.views import quota
from controlplane.console.waits import waited_days
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import BandwidthUsedUp
from controlplane.kafka.connection_bytes import TalkerRow
from controlplane.quotas.models import QuotaDay
from controlplane.remedies import witnesses
from controlplane.remedies.models import NeighbourMinute
from controlplane.throttle_rules.services import throttle_rule_create
from tests.controlplane.quotas.conftest import interval, record  # noqa: F401  # a fixture

from .conftest import text_of
from .test_instance_pages import MIB, flowing


@pytest.fixture
def ago():
    """Milliseconds since 1970 of a moment that many minutes ago."""
    return lambda minutes: int((SYSTEM_CLOCK.now() - timedelta(minutes=minutes)).timestamp() * 1000)


def test_it_shows_limit_use_and_each_brokers_part(at_alice, instance, flow_master):
    flow_master.answers[instance.id] = flowing(produce=4 * MIB)
    text = text_of(at_alice.get(f"instances/{instance.id}/quota"))
    assert "4 MiB/s of 5 MiB/s" in text
    assert "Broker 1 1 partition 4 MiB/s 5 MiB/s" in text
    part = text_of(at_alice.get(f"instances/{instance.id}/quota/now"))
    assert "Broker 1 1 partition 4 MiB/s 5 MiB/s" in part
    assert "Throttled" not in part


def test_it_says_why_somebody_had_to_wait_newest_first(at_alice, instance, record, ago):  # noqa: F811
    record(
        interval(instance.id, start=ago(90)), interval(instance.id, start=ago(30), direction="consume", limit=3 * MIB)
    )
    text = text_of(at_alice.get(f"instances/{instance.id}/quota"))
    assert text.index("Consuming waited 12.0 s: the instance used 100 % of the 3.00 MiB/s") < text.index(
        "Producing waited 12.0 s on broker 2 while the instance used only 60 % of its 5.00 MiB/s"
    )
    assert "The latest 2 reasons." in text


def test_a_night_of_throttling_is_one_reason(at_alice, instance, record, ago):  # noqa: F811
    record(*(interval(instance.id, start=ago(90 - number), throttled_ms=1_000 * number) for number in range(1, 61)))
    text = text_of(at_alice.get(f"instances/{instance.id}/quota"))
    assert "60 times until" in text
    assert "· waited 1 830 s in all At its worst: Producing waited 60.0 s on broker 2" in text
    assert "The latest reason." in text
    assert "may have begun earlier" not in text


def test_the_details_of_a_reason_have_the_rules_own_name_in_a_tooltip(at_alice, instance, record, ago):  # noqa: F811
    record(interval(instance.id, start=ago(30)))
    page = at_alice.get(f"instances/{instance.id}/quota").content.decode()
    assert re.search(r'<td data-label="Rule"><span title="Rule: \w+">[A-Z][\w ]+</span></td>', page)


def test_whoever_has_used_the_bandwidth_up_is_sent_to_what_the_page_shows(at_alice, instance, flow_master):
    flow_master.answers[instance.id] = flowing(produce=4 * MIB)
    advice = said(BandwidthUsedUp(3))
    text = text_of(at_alice.get(f"instances/{instance.id}/quota"))
    assert advice.endswith("its quota page shows each broker's part and why clients waited.")
    assert "Broker Leads Carries" in text
    assert " Why " in text


def test_where_not_all_is_read_the_page_says_so(at_alice, instance, record, ago, monkeypatch):  # noqa: F811
    monkeypatch.setattr(quota, "INTERVALS", 20)
    record(*(interval(instance.id, start=ago(90 - number)) for number in range(60)))
    text = text_of(at_alice.get(f"instances/{instance.id}/quota"))
    assert "20 times until" in text
    assert "They come from the latest 20 intervals: the oldest may have begun earlier." in text


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"limit": 3 * MIB}, "More bandwidth would have helped: change the limits"),
        ({}, "The limit was not used up. Partitions whose leaders are on other brokers"),
        ({"rule": "requests", "limit": 500_000}, "Larger batches need fewer requests"),
        ({"rule": "loop-time", "limit": 500_000}, "Larger batches need fewer requests"),
        ({"blocked": "storage"}, "more storage. Enlarge the storage"),
        ({"rule": "rule-gone", "limit": 3 * MIB}, "It is a limit of your own."),
    ],
)
def test_it_says_what_would_help(at_alice, instance, record, ago, members, said):  # noqa: F811
    record(interval(instance.id, start=ago(30), **members))
    assert said in text_of(at_alice.get(f"instances/{instance.id}/quota"))


def test_what_a_rule_of_ones_own_held_back_leads_to_the_rule(at_alice, alice, instance, record, ago):  # noqa: F811
    rule = throttle_rule_create(
        organisation=alice.organisation, actor="a", instance_id=instance.id,
        kind="client", clients=[None], produce_mib_per_s=3,
    )  # fmt: skip
    record(interval(instance.id, start=ago(30), rule=f"{rule.id}/ann", limit=3 * MIB))
    page = at_alice.get(f"instances/{instance.id}/quota").content.decode()
    assert f'/throttle-rules/{rule.id}">the rule</a>' in page


def test_a_viewer_is_not_sent_where_nothing_can_be_changed(at_viewer, instance, record, ago):  # noqa: F811
    record(interval(instance.id, start=ago(30), limit=3 * MIB), interval(instance.id, start=ago(9), blocked="storage"))
    text = text_of(at_viewer.get(f"instances/{instance.id}/quota"))
    assert "More bandwidth would have helped." in text
    assert "Enlarge the storage" not in text


def test_requests_are_shown_as_such(at_alice, instance, record, ago):  # noqa: F811
    record(interval(instance.id, start=ago(30), rule="requests", limit=500_000))
    text = text_of(at_alice.get(f"instances/{instance.id}/quota"))
    assert "Requests waited 12.0 s" in text
    reason = text[text.index("Requests waited") : text.index("Bandwidth guarantee")]
    assert reason.count("requests/s") > 4
    assert "iB/s" not in reason


def test_broker_time_is_shown_as_such(at_alice, instance, record, ago):  # noqa: F811
    record(interval(instance.id, start=ago(30), rule="loop-time", limit=500_000))
    text = text_of(at_alice.get(f"instances/{instance.id}/quota"))
    reason = text[text.index("Requests waited 12.0 s") : text.index("Bandwidth guarantee")]
    assert "broker time" in reason
    assert reason.count("ms/s") > 4
    assert "iB/s" not in reason


def test_minutes_are_those_of_the_last_day_and_of_the_instances_own_limit(at_alice, instance, record, ago):  # noqa: F811
    record(
        interval(instance.id, start=ago(30), throttled_ms=45_000),
        interval(instance.id, start=ago(29), throttled_ms=45_000),
        interval(instance.id, start=ago(28), throttled_ms=45_000, rule="rule-1"),
        interval(instance.id, start=ago(25 * 60), throttled_ms=45_000),
    )
    assert "Produce 1.5 minutes" in text_of(at_alice.get(f"instances/{instance.id}/quota"))


def test_the_guarantee_is_shown_by_day(at_alice, instance, record, ago):  # noqa: F811
    record(interval(instance.id, start=ago(10)))
    text = text_of(at_alice.get(f"instances/{instance.id}/quota"))
    assert "produce 0.0 % 17.0 % 3.1 % 0.4 %" in text


def test_throttle_rules_are_shown_with_whom_they_hold_and_how_far(at_alice, alice, instance):
    page = f"instances/{instance.id}/quota"
    assert "No throttle rule" in text_of(at_alice.get(page))
    url = f"/api/v1/instances/{instance.id}/throttle-rules"
    for rule in (
        {"kind": "topic", "topics": ["orders", "payments"], "produce_mib_per_s": 1},
        {"kind": "client", "users": ["ann"], "clients": [None], "produce_mib_per_s": 2, "consume_mib_per_s": 3},
        {"kind": "group", "groups": ["billing"], "consume_mib_per_s": 0.5},
    ):
        assert alice.api.post(url, rule).status_code == 201
    text = text_of(at_alice.get(page))
    assert "Topics orders, payments" in text
    assert "1 MiB/s no limit" in text
    assert "user ann, each client" in text
    assert "2 MiB/s 3 MiB/s" in text
    assert "Groups billing" in text
    assert "512 KiB/s" in text


def test_without_zookeeper_the_quota_page_stands_and_says_that_rules_are_not_known(at_alice, instance, tree):
    tree.away = True
    page = at_alice.get(f"instances/{instance.id}/quota")
    assert page.status_code == 200
    assert "does not answer" in text_of(page)


def test_where_nobody_waited_it_says_so(at_alice, instance):
    text = text_of(at_alice.get(f"instances/{instance.id}/quota"))
    assert "Nobody had to wait in the last 24 hours." in text
    assert "In the last 7 days nobody had to wait" in text


def test_a_master_that_is_away_leaves_the_history_standing(at_alice, instance, record, ago):  # noqa: F811
    record(interval(instance.id, start=ago(30)))
    page = at_alice.get(f"instances/{instance.id}/quota")
    assert page.status_code == 200
    assert "no flow master is active" in text_of(page).lower()
    assert "The limit is 5 MiB/s" in text_of(page)
    assert "Producing waited 12.0 s" in text_of(page)


def test_another_instances_waiting_is_not_shown(at_alice, instance, record, ago):  # noqa: F811
    record(interval("ins-00000000", start=ago(30)))
    assert "Nobody had to wait" in text_of(at_alice.get(f"instances/{instance.id}/quota"))


def test_every_hour_has_its_bar_and_a_second_of_waiting_is_seen(clock):
    now = clock.now().replace(hour=12, minute=30)
    produce, consume = waited_days({("produce", f"{now:%Y-%m-%dT%H}"): 1000}, now)
    assert [bar.left for bar in produce.hours] == list(range(0, 240, 10))
    assert (produce.hours[0].text, produce.hours[-1].text) == ("13:00", "12:00")
    assert (produce.hours[-1].percent, produce.hours[-1].top) == (2.0, 98.0)
    assert {bar.percent for bar in consume.hours} == {0.0}


def test_transactions_are_shown_against_their_limits(at_alice, instance, flow_master):
    counts = {"open": 3, "open_limit": 250, "ids": 40, "ids_limit": None}
    flow_master.answers[instance.id] = {"transactions": counts}
    text = text_of(at_alice.get(f"instances/{instance.id}/quota/now"))
    assert "Open transactions 3 of 250 Transactional ids 40 · unlimited" in text
    flow_master.answers[instance.id] = {}
    assert "Open transactions" not in text_of(at_alice.get(f"instances/{instance.id}/quota/now"))


def test_broker_time_is_shown_with_what_each_broker_works_and_may_work(at_alice, instance, flow_master):
    shares = [{"broker": 1, "flow": 212.4, "allocation": 380.0}, {"broker": 2, "flow": 7.1, "allocation": None}]
    flow_master.answers[instance.id] = {"broker_time": {"limit": 600, "branch": "headroom", "brokers": shares}}
    text = text_of(at_alice.get(f"instances/{instance.id}/quota/now"))
    assert "Broker time Burst 219.5 of 600 ms/s" in text
    assert "Broker 1 212.4 ms/s 380 ms/s Broker 2 7.1 ms/s any time" in text
    flow_master.answers[instance.id] = {}
    assert "Broker time" not in text_of(at_alice.get(f"instances/{instance.id}/quota/now"))


def test_the_report_begins_with_the_newest_days_and_leads_to_all(at_alice, instance):
    today = datetime.now(UTC).date()
    days = [f"{today - timedelta(days=ago)}" for ago in range(1, 13)]
    QuotaDay.objects.bulk_create(
        QuotaDay(
            instance=instance.id, day=day, resource=resource, limit_in_force=1000, p50=1, p95=2, p99=3, most=4,
            used_permille=2, minutes=1440, throttled_minutes=0, throttled_ms=0, under_limit_ms=0, guarantee="kept",
        )
        for day in days
        for resource in ("produce", "consume")
    )  # fmt: skip
    page = at_alice.get(f"instances/{instance.id}/quota-report")
    assert [text_of(page).count(f" {day} ") for day in days] == [2] * 7 + [0] * 5
    assert 'href="?days=30"' in page.content.decode()
    page = at_alice.get(f"instances/{instance.id}/quota-report?days=30")
    assert [text_of(page).count(f" {day} ") for day in days] == [2] * 12
    assert "All 30 days" not in text_of(page)


def test_a_reason_names_client_and_topic_and_offers_a_size_with_its_price(
    at_alice, instance, record, ago, admin  # noqa: F811
):  # fmt: skip
    key = instance.id.removeprefix("ins-")
    row = TalkerRow("orders-loader", "10.0.0.5", f"{key}.orders", 60_000, 60 * 9 * MIB, 0)
    admin.connections.say(instance.id, 2, talkers=(row,))
    full = interval(instance.id, start=ago(1), limit=3 * MIB)
    record(replace(full, limit=8 * MIB, moment=full.moment._replace(brokers=[
        each._replace(flow=4 * MIB) for each in full.moment.brokers
    ])))  # fmt: skip
    assert witnesses.witnesses_take() == 1
    page = at_alice.get(f"instances/{instance.id}/quota")
    text = text_of(page)
    assert (
        "Client orders-loader (10.0.0.5) wrote 9.00 of 9.00 MiB/s that were written on broker 2, into orders." in text
    )
    assert "More bandwidth would have helped: change the limits" in text
    assert "12 MiB/s costs the same, CNY 1 160.70 a month." in text.replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert f'instances/{instance.id}/settings?bandwidth_mib_per_s=12"' in page.content.decode()


def test_a_client_id_that_is_markup_stays_text(at_alice, instance, record, ago, admin):  # noqa: F811
    key = instance.id.removeprefix("ins-")
    row = TalkerRow("<script>x</script>", "10.0.0.5", f"{key}.orders", 60_000, 60 * MIB, 0)
    admin.connections.say(instance.id, 2, talkers=(row,))
    record(interval(instance.id, start=ago(1)))
    witnesses.witnesses_take()
    page = at_alice.get(f"instances/{instance.id}/quota").content.decode()
    assert "&lt;script&gt;x" in page
    assert "<script>x" not in page


def test_the_link_fills_the_form_and_buys_nothing(at_alice, instance):
    page = at_alice.get(f"instances/{instance.id}/settings?bandwidth_mib_per_s=40&storage_gib=nan&partitions=7").content
    form = page.decode()
    assert re.search(r'name="bandwidth_mib_per_s"[^>]*value="40"|value="40"[^>]*name="bandwidth_mib_per_s"', form)
    assert re.search(r'name="storage_gib"[^>]*value="10"|value="10"[^>]*name="storage_gib"', form)
    assert re.search(r'name="partitions"[^>]*value="60"|value="60"[^>]*name="partitions"', form)
    assert "Now: CNY" in text_of(at_alice.get(f"instances/{instance.id}/settings?bandwidth_mib_per_s=40"))
    instance.refresh_from_db()
    assert instance.bandwidth_mib_per_s == 5


def test_what_leaders_are_behind_offers_to_spread_them_to_whoever_may(at_alice, at_viewer, instance, record, ago):  # noqa: F811
    record(interval(instance.id, start=ago(30)))
    assert "Spread the leaders…" in text_of(at_alice.get(f"instances/{instance.id}/quota"))
    assert "Spread the leaders…" not in text_of(at_viewer.get(f"instances/{instance.id}/quota"))


def test_slow_requests_beside_busy_neighbours_are_told_with_a_score_and_no_name(at_alice, instance):
    at = int(SYSTEM_CLOCK.now().timestamp()) // 60 * 60 - 600
    figures = {
        "produce_p99_us": 0,
        "fetch_p99_us": 38_000,
        "own_us": 1,
        "others_us": 7_100_000,
        "elapsed_us": 10_000_000,
    }
    rows = [(instance.id, 64), ("ins-l0udl0ud", 0)]
    for name, score in rows:
        NeighbourMinute.objects.create(
            cluster=instance.cluster_id, instance=name, broker=2, at=at, **figures,
            minute_us=9_000_000, score=score, kind="fetch", usual_us=4_000,
        )  # fmt: skip
    text = text_of(at_alice.get(f"instances/{instance.id}/quota"))
    assert "score 64 of 100" in text
    assert "fetches took 38 ms instead of 4 ms; 71 % of the broker's time went to other instances." in text
    assert "ins-l0udl0ud" not in text


def test_operators_see_on_the_fleets_page_who_the_neighbours_were(at_staff, instance):
    at = int(SYSTEM_CLOCK.now().timestamp()) // 60 * 60 - 600
    figures = {
        "produce_p99_us": 0,
        "fetch_p99_us": 38_000,
        "own_us": 1,
        "others_us": 7_100_000,
        "elapsed_us": 10_000_000,
    }
    for name, score in ((instance.id, 64), ("ins-l0udl0ud", 0)):
        NeighbourMinute.objects.create(
            cluster=instance.cluster_id, instance=name, broker=2, at=at, **figures,
            minute_us=9_000_000, score=score, kind="fetch", usual_us=4_000,
        )  # fmt: skip
    text = text_of(at_staff.get(f"/fleet/instances/{instance.id}"))
    assert "score 64 of 100" in text
    assert "Who had most of the broker: ins-l0udl0ud 15 %" in text
