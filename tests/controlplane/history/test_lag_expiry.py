"""What a group has not read and is about to expire is noticed once, as far as its age and the topic's retention are known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import cache

from controlplane.clusters.services import cluster_list
from controlplane.core.errors import ClusterUnavailable
from controlplane.groups.rounds import Lag, Part, Round
from controlplane.history.lag import expiry, sampling
from controlplane.history.lag.expiry import expiry_keep, expiry_purge, horizon_ms
from controlplane.history.models import ExpiringUnread
from controlplane.kafka.client import Setting, retention_of
from tests.controlplane.fakes import FakeGroup

from .test_lag_sampling import hers, present  # noqa: F401  # fixtures

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
ONE = "ins-00000001"
ORDERS, REFUNDS, BOUNDED = "00000001.orders", "00000001.refunds", "00000001.bounded"
LIMIT = 100_000_000


@pytest.fixture
def retentions(admin, monkeypatch, db):
    """By topic, in ms; None: for ever. Kept for no longer than a round."""
    found = {ORDERS: 7 * DAY_MS, REFUNDS: None, BOUNDED: None}

    def sizes(name):
        return {"retention.bytes": Setting(str(LIMIT), is_own=True)} if name == BOUNDED else {}

    def settings_in_force(names):
        return {
            name: {"retention.ms": Setting(str(-1 if found[name] is None else found[name]), is_own=True)} | sizes(name)
            for name in names
            if name in found
        }

    monkeypatch.setattr(admin, "settings_in_force", settings_in_force)
    monkeypatch.setattr(expiry, "RETENTION_S", 0)
    return found


@pytest.fixture
def round_(clock, retentions):
    """A round in which group `billing` has left unread what is so old; None: of unknown age."""

    def round_(age_ms, *, topic=ORDERS, group="billing", messages=1204, after_s=60, is_whole=True):
        clock.advance(after_s)
        now_ms = int(clock.now().timestamp() * 1000)
        lag = Lag(messages, None if age_ms is None else now_ms - age_ms, is_whole)
        found = Round({ONE: {group: lag}}, {}, {ONE: {group: {topic: lag}}})
        expiry_keep(cluster_list()[0].address, found, clock.now())

    return round_


def spells():
    rows = ExpiringUnread.objects.order_by("began_at", "topic")
    return [(row.group, row.topic, row.ended_at is not None) for row in rows]


def test_an_hour_before_it_expires_it_is_noticed_once_with_how_much_and_when(round_, clock):
    round_(7 * DAY_MS - HOUR_MS - 60_000)
    assert spells() == []
    for _ in range(3):
        round_(7 * DAY_MS - 43 * 60_000)
    (row,) = ExpiringUnread.objects.all()
    assert (row.instance, row.group, row.topic, row.messages) == (ONE, "billing", "orders", 1204)
    assert row.expires_at == row.began_at + timedelta(minutes=43)
    assert (row.seen_at, row.ended_at) == (clock.now(), None)


@pytest.mark.parametrize("oldest_ms", [-3, -(2**63), 1])
def test_a_record_of_before_there_was_time_expires_now_and_spoils_no_round(clock, retentions, oldest_ms):
    lag = Lag(1, oldest_ms)
    found = Round({ONE: {"billing": lag}}, {}, {ONE: {"billing": {ORDERS: lag}}})
    expiry_keep(cluster_list()[0].address, found, clock.now())
    assert ExpiringUnread.objects.get().expires_at == clock.now()


def test_a_group_that_reads_on_ends_it_when_there_is_time_enough_again(round_, clock):
    round_(7 * DAY_MS)
    round_(7 * DAY_MS - HOUR_MS - 60_000)
    assert spells() == [("billing", "orders", False)], "about an hour is not time enough"
    round_(7 * DAY_MS - 2 * HOUR_MS - 60_000)
    assert spells() == [("billing", "orders", True)]
    assert ExpiringUnread.objects.get().ended_at == clock.now()
    round_(7 * DAY_MS)
    assert spells() == [("billing", "orders", True), ("billing", "orders", False)]


def test_a_group_that_has_read_everything_ends_it(round_, clock, retentions):
    round_(7 * DAY_MS)
    clock.advance(60)
    expiry_keep(
        cluster_list()[0].address, Round({ONE: {"billing": Lag(0, -1)}}, {}, {ONE: {"billing": {}}}), clock.now()
    )
    assert spells() == [("billing", "orders", True)]


def test_what_expired_already_is_about_to_at_any_moment(round_):
    round_(9 * DAY_MS)
    row = ExpiringUnread.objects.get()
    assert row.expires_at == row.began_at


def test_what_is_kept_for_ever_does_not_expire_and_of_what_is_not_known_nothing_is_said(round_):
    round_(900 * DAY_MS, topic=REFUNDS)
    round_(None)
    round_(900 * DAY_MS, topic="00000001.gone")
    assert spells() == []


@pytest.mark.parametrize("unknown", ["age", "group", "retention", "cluster"])
def test_what_is_not_known_any_more_changes_nothing(round_, retentions, admin, monkeypatch, unknown):
    round_(7 * DAY_MS)
    if unknown == "age":
        round_(None)
    elif unknown == "group":
        round_(0, group="another")
    elif unknown == "retention":
        del retentions[ORDERS]
        round_(0)
    else:

        def away(_names):
            raise ClusterUnavailable("the cluster does not answer")

        monkeypatch.setattr(admin, "settings_in_force", away)
        round_(0)
    assert spells() == [("billing", "orders", False)]


def test_what_no_round_has_seen_for_a_day_has_ended_and_what_ended_long_ago_goes(round_, clock):
    round_(7 * DAY_MS)
    seen_at = clock.now()
    expiry_purge(clock=clock)
    assert spells() == [("billing", "orders", False)]
    clock.advance(86_400 + 60)
    expiry_purge(clock=clock)
    assert ExpiringUnread.objects.get().ended_at == seen_at
    clock.advance(90 * 86_400)
    expiry_purge(clock=clock)
    assert spells() == []


def test_a_topic_of_which_not_every_partition_is_dated_begins_a_spell_and_ends_none(round_):
    round_(DAY_MS, is_whole=False)
    assert spells() == []
    round_(7 * DAY_MS, is_whole=False)
    assert spells() == [("billing", "orders", False)], "what is dated is about to expire"
    round_(DAY_MS, is_whole=False)
    assert spells() == [("billing", "orders", False)], "an older record may be where nobody has looked"
    round_(DAY_MS)
    assert spells() == [("billing", "orders", True)]


@pytest.fixture
def many(clock, retentions):
    """Groups of an instance with so many records that are about to expire; those with none are up to date."""

    def many(instance=ONE, after_s=60, **unread):
        clock.advance(after_s)
        oldest_ms = int(clock.now().timestamp() * 1000) - 7 * DAY_MS
        lags = {group: Lag(number, oldest_ms if number else -1) for group, number in unread.items()}
        by_topic = {group: {ORDERS: lag} for group, lag in lags.items()}
        expiry_keep(cluster_list()[0].address, Round({instance: lags}, {}, {instance: by_topic}), clock.now())

    return many


def open_of(instance=ONE):
    rows = ExpiringUnread.objects.filter(instance=instance, ended_at=None)
    return set(rows.values_list("group", flat=True))


def test_an_instance_begins_so_many_spells_and_those_with_most_unread_first(many, monkeypatch):
    monkeypatch.setattr(expiry, "MOST_SPELLS", 2)
    many(few=1, most=30, more=20)
    assert open_of() == {"most", "more"}
    many(few=1, most=30, more=20, later=99)
    assert open_of() == {"most", "more"}
    many("ins-00000002", few=1)
    assert open_of("ins-00000002") == {"few"}, "each has room of its own"


def test_groups_that_are_behind_by_turns_begin_no_more_than_that_in_an_hour(many, monkeypatch):
    monkeypatch.setattr(expiry, "MOST_SPELLS", 3)
    for _ in range(5):
        many(one=1, two=2)
        many(one=0, two=0)
    assert ExpiringUnread.objects.count() == 3
    many(after_s=3600, one=1, two=2)
    assert ExpiringUnread.objects.count() == 5
    assert open_of() == {"one", "two"}


def test_all_that_is_old_goes_at_once_in_portions(many, clock, monkeypatch):
    monkeypatch.setattr(expiry, "PORTION", 2)
    many(one=1, two=2, three=3, four=4, five=5)
    many(one=0, two=0, three=0, four=0, five=0)
    clock.advance(91 * 86_400)
    expiry_purge(clock=clock)
    assert ExpiringUnread.objects.count() == 0


def test_of_a_short_retention_a_tenth_is_soon():
    assert [horizon_ms(each) for each in (600_000, 36_000_000, 7 * DAY_MS)] == [60_000, HOUR_MS, HOUR_MS]


def test_retention_is_asked_for_once_in_ten_minutes_for_the_oldest_first(clock, admin, monkeypatch, db):
    cache.clear()
    asked = []
    of_a_day = {"retention.ms": Setting(str(DAY_MS), is_own=True)}
    monkeypatch.setattr(admin, "settings_in_force", lambda names: asked.append(names) or dict.fromkeys(names, of_a_day))
    monkeypatch.setattr(expiry, "MOST_TOPICS", 2)
    now_ms = int(clock.now().timestamp() * 1000)
    lags = {f"00000001.t{number}": Lag(1, now_ms - number * 1000) for number in range(3)}
    found = Round({ONE: {"billing": Lag(3, now_ms)}}, {}, {ONE: {"billing": lags}})
    for _ in range(3):
        expiry_keep(cluster_list()[0].address, found, clock.now())
    assert asked == [["00000001.t2", "00000001.t1"], ["00000001.t0"]]
    clock.advance(601)
    expiry_keep(cluster_list()[0].address, found, clock.now())
    assert asked[2:] == [["00000001.t2", "00000001.t1"]]
    cache.clear()


@pytest.mark.parametrize(
    ("config", "retention"),
    [
        ({"retention.ms": "1000", "cleanup.policy": "delete"}, 1000),
        ({"retention.ms": "1000", "cleanup.policy": "compact,delete"}, 1000),
        ({"retention.ms": "1000", "cleanup.policy": "compact"}, None),
        ({"retention.ms": "-1", "cleanup.policy": "delete"}, None),
        ({"retention.ms": "0"}, 0),
        ({}, None),
    ],
)
def test_how_long_a_topic_keeps_records(config, retention):
    assert retention_of({key: Setting(value, is_own=True) for key, value in config.items()}) == retention


def test_a_round_of_a_whole_cluster_notices_it_by_topic(hers, admin, present):  # noqa: F811
    cache.clear()
    topic = f"{hers.key}.orders"
    admin.configs[topic]["retention.ms"] = str(DAY_MS)
    stamps = [int(present.time.timestamp() * 1000) - DAY_MS + 60_000 * number for number in range(4)]
    admin.groups.logs[topic, 0] = (100, stamps)
    admin.groups.found[f"{hers.key}.up-to-date"] = FakeGroup({(topic, 0): 104})
    sampling.sample(clock=present)
    (row,) = ExpiringUnread.objects.all()
    assert (row.instance, row.group, row.topic) == (hers.instance_id, "billing", "orders")
    assert row.messages == 2
    assert row.expires_at == datetime.fromtimestamp((stamps[2] + DAY_MS) / 1000, UTC)
    cache.clear()


# --- by size ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def written(clock, retentions):
    """A round a minute later, in which a group has so many bytes unread of a partition that so many records came to."""
    end = 1_000_000

    def written(unread_bytes, *, records=6_000, topic=BOUNDED, number=0):
        nonlocal end
        clock.advance(60)
        end += records
        left = 10_000  # of 1,000 bytes, where ten million are unread
        lag = Lag(left, int(clock.now().timestamp() * 1000) - HOUR_MS, parts=(Part(number, left, unread_bytes, end),))
        found = Round({ONE: {"billing": lag}}, {}, {ONE: {"billing": {topic: lag}}})
        expiry_keep(cluster_list()[0].address, found, clock.now())

    return written


def test_what_newer_records_push_out_in_a_tenth_of_the_time_is_noticed_as_an_estimate(written, clock):
    """100 records a second of 9,500 bytes each: the whole partition in 105 s, the last twentieth in 5 s."""
    for _ in range(2):
        written(95_000_000)
    (row,) = ExpiringUnread.objects.all()
    assert (row.topic, row.messages, row.is_by_size) == ("bounded", 10_000, True)
    assert row.expires_at - clock.now() == timedelta(seconds=5.263)


def test_of_one_look_nobody_knows_how_fast_it_is(written):
    written(99_000_000)
    assert spells() == []


def test_a_group_that_is_not_far_behind_is_not_warned_of_a_topic_that_keeps_little(written):
    """All of it is pushed out in minutes, as it is meant to be."""
    for _ in range(3):
        written(50_000_000)
    assert spells() == []


def test_slowly_it_is_an_hour_before(written):
    """One record a second of 8,000 bytes, which push out the whole partition in 3.5 h; then of 9,900 bytes."""
    for _ in range(3):
        written(80_000_000, records=60)
    assert spells() == [], "20 MB take 42 min, and a tenth of the whole takes 21"
    for _ in range(3):
        written(99_000_000, records=60)
    assert spells() == [("billing", "bounded", False)]


def test_where_nothing_is_written_nothing_is_pushed_out(written):
    for _ in range(3):
        written(99_000_000, records=0)
    assert spells() == []


def test_it_ends_when_the_group_has_read_on_and_not_where_bytes_are_not_known(written):
    for _ in range(2):
        written(95_000_000)
    written(None)
    assert spells() == [("billing", "bounded", False)]
    written(10_000_000)
    assert spells() == [("billing", "bounded", True)]


def test_a_partition_that_is_read_up_in_between_and_one_of_unknown_bytes_hide_no_estimate(written):
    written(95_000_000)
    written(10_000_000, number=1)  # of partition 0 the group has read everything
    written(95_000_000)
    assert spells() == [("billing", "bounded", False)]


def test_what_began_by_its_age_ends_by_its_age_whatever_is_not_known_of_bytes(written, retentions):
    retentions[BOUNDED] = HOUR_MS
    written(None)
    assert ExpiringUnread.objects.get().is_by_size is False
    retentions[BOUNDED] = 7 * DAY_MS
    written(None)
    assert spells() == [("billing", "bounded", True)]


def test_a_topic_without_such_a_limit_is_left_alone(written):
    for _ in range(3):
        written(10**12, topic=REFUNDS)
    assert spells() == []


def test_rounds_know_what_is_pushed_out_by_size(hers, present, admin):  # noqa: F811
    cache.clear()
    topic = f"{hers.key}.orders"
    admin.configs[topic] |= {"retention.ms": "-1", "retention.bytes": "1000"}
    stamp = int(present.time.timestamp() * 1000)
    hers.billing.offsets[topic, 0] = 0
    for records in (9, 12):
        admin.groups.logs[topic, 0] = (0, [stamp] * records)
        sampling.sample(clock=present)
        present.advance(60)
    (row,) = ExpiringUnread.objects.all()
    assert (row.group, row.messages, row.is_by_size) == ("billing", 12, True)
    assert row.expires_at == row.began_at, "1,200 bytes are unread, and 1,000 are kept"
    cache.clear()
