"""Events of an instance in one order, over pages; and when health came and went."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.alarms import sources
from controlplane.alarms.events import KINDS
from controlplane.alarms.timeline import events_get
from controlplane.clusters import coordination
from controlplane.clusters.models import Broker, BrokerAbsence
from controlplane.clusters.services import brokers_sync, brokers_watch
from controlplane.core.models import Operation
from controlplane.health import services as health
from controlplane.health.models import HealthReason, HealthSpell
from controlplane.history.models import ExpiringUnread
from controlplane.instances import services as instances
from controlplane.instances.models import Instance, SpecChange
from controlplane.quotas.figures import figures_keep, led_lately
from controlplane.rebalancing.models import RebalanceMove
from tests.controlplane.console.test_instance_pages import flowing, share
from tests.controlplane.test_instances_api import problem

from .rows import absence, alarm_row, event_row, expiring, moved, rebalanced, resized, throttled

ROWS = "a test"


@pytest.fixture
def url(instance):
    return f"/api/v1/instances/{instance.id}/events"


def spell(instance, began, ended=None, code="storage_full"):
    HealthSpell.objects.create(instance=instance.pk, code=code, title="Storage is full", began_at=began, ended_at=ended)


def operation(instance, key, created, finished=None, state="succeeded", **members):
    Operation(
        id=key, organisation=instance.organisation, kind="instance.update", target=instance.pk, state=state,
        runnable_at=created, created_at=created, finished_at=finished, **members,
    ).save(force_insert=True)  # fmt: skip


def test_what_happened_is_listed_the_newest_first(alice, instance, url):
    now = datetime.now(UTC)
    Operation.objects.unscoped(ROWS).all().delete()
    ago = lambda minutes: now - timedelta(minutes=minutes)  # noqa: E731
    spell(instance, ago(50), ago(20))
    operation(instance, "op-000000000001", ago(40), ago(39), actor="bob@example.com")
    operation(instance, "op-000000000002", ago(10), ago(9), state="failed", error="it gave up")
    operation(instance, "op-000000000003", ago(5), state="running")
    alarm = alarm_row(instance)
    event_row(alarm, "fired", ago(45), value=93)
    event_row(alarm, "told", ago(30))
    event_row(alarm, "resolved", ago(15))
    found = alice.api.get(url).json()["items"]
    assert [(each["kind"], each["subject"], each["object"]) for each in found] == [
        ("operation.began", "instance.update", "op-000000000003"),
        ("operation.failed", "instance.update", "op-000000000002"),
        ("operation.began", "instance.update", "op-000000000002"),
        ("alarm.resolved", "storage", alarm.id),
        ("health.ended", "Storage is full", "storage_full"),
        ("operation.succeeded", "instance.update", "op-000000000001"),
        ("operation.began", "instance.update", "op-000000000001"),
        ("alarm.fired", "storage", alarm.id),
        ("health.began", "Storage is full", "storage_full"),
    ]
    assert (found[1]["detail"], found[5]["actor"]) == ("it gave up", "bob@example.com")


def test_what_is_of_another_instance_or_older_than_90_days_is_not(alice, instance, url):
    now = datetime.now(UTC)
    Operation.objects.unscoped(ROWS).all().delete()
    other = Instance.objects.unscoped(ROWS).get()
    other.pk = "ins-00000001"
    other.save(force_insert=True)
    spell(other, now)
    spell(instance, now - timedelta(days=91), now - timedelta(days=90, hours=1))
    assert alice.api.get(url).json() == {"items": [], "next": None}


def told(alice, url, **query):
    """Kind, subject, detail of each."""
    query = {key.rstrip("_"): value for key, value in query.items()}
    found = alice.api.get(url, query).json()["items"]
    return [(each["kind"], each["subject"], each["detail"]) for each in found]


@pytest.fixture
def hour(instance):
    """`hour(3)`: three hours ago; the instance is a day old, and nothing has happened to it."""
    now = datetime.now(UTC).replace(microsecond=0)
    Operation.objects.unscoped(ROWS).all().delete()
    Instance.objects.unscoped(ROWS).update(created_at=now - timedelta(days=1))
    return lambda hours: now - timedelta(hours=hours)


def test_a_resize_has_what_was_and_what_is(alice, instance, url, hour):
    SpecChange.objects.unscoped(ROWS).all().delete()
    resized(instance, hour(6), 5.0, kind="opened")
    resized(instance, hour(4), 10.0, storage_gib=20.5)
    resized(instance, hour(3), 10.0, storage_gib=20.5)
    resized(instance, hour(2), 10.0, storage_gib=20.5, partitions=90)
    assert told(alice, url) == [
        ("instance.resized", "events", "partitions 60 → 90"),
        ("instance.resized", "events", "bandwidth 5 → 10 MiB/s; storage 10 → 20.5 GiB"),
    ]
    found = alice.api.get(url).json()["items"][1]
    assert found["before"] == {"bandwidth_mib_per_s": 5, "storage_gib": 10, "partitions": 60}
    assert found["after"] == {"bandwidth_mib_per_s": 10, "storage_gib": 20.5, "partitions": 60}


def test_a_resize_of_which_nobody_knows_what_was_says_what_is(alice, instance, url, hour):
    SpecChange.objects.unscoped(ROWS).all().delete()
    resized(instance, hour(4), 10.0)
    (found,) = alice.api.get(url).json()["items"]
    assert (found["before"], found["detail"]) == (None, "bandwidth 10 MiB/s; storage 10 GiB; partitions 60")


def test_throttling_began_and_ended_once_and_has_not_ended_while_it_may_go_on(alice, instance, url, hour):
    SpecChange.objects.unscoped(ROWS).all().delete()
    throttled(instance, hour(3), hour(2))
    throttled(instance, hour(1), hour(0) - timedelta(seconds=30), direction="consume")
    throttled(Instance(pk="ins-another1"), hour(5), hour(4))
    assert told(alice, url) == [
        ("throttling.began", "Consumers", ""),
        ("throttling.ended", "Producers", "it lasted 1 h"),
        ("throttling.began", "Producers", ""),
    ]


def test_a_broker_of_the_cluster_that_went_away_is_told_of_and_one_of_before_the_instance_or_of_another_cluster_is_not(
    alice, instance, url, hour
):
    SpecChange.objects.unscoped(ROWS).all().delete()
    absence(instance, hour(3), hour(2))
    absence(instance, hour(1), broker=3)
    absence(instance, hour(48), hour(1), broker=4)
    other = type(instance.cluster).objects.create(name="another", zookeeper_hosts="zk:2181")
    BrokerAbsence.objects.create(cluster=other, broker_id=9, began_at=hour(1))
    assert told(alice, url) == [("broker.away", "3", ""), ("broker.back", "2", ""), ("broker.away", "2", "")]


def test_a_broker_that_led_nothing_of_an_instance_went_away_for_others_alone(alice, instance, url, hour):
    SpecChange.objects.unscoped(ROWS).all().delete()
    longer = f"{instance.id}x"
    for broker, led in ((2, [instance.id, "ins-another1"]), (3, ["ins-another1", longer]), (4, [])):
        absence(instance, hour(3), hour(2), broker=broker, led=led)
    said = "it led partitions of the instance"
    assert told(alice, url) == [("broker.back", "2", ""), ("broker.away", "2", said)]


def test_moved_partitions_are_counted_and_neither_brokers_nor_the_rebalance_are_named(alice, instance, url, hour):
    SpecChange.objects.unscoped(ROWS).all().delete()
    moved(instance, "reb-000000000007", hour(3), hour(2))
    moved(instance, "reb-000000000008", hour(1))
    moved(Instance(pk="ins-another1", cluster=instance.cluster), "reb-000000000009", hour(1), hour(1))
    answer = alice.api.get(url)
    assert told(alice, url) == [
        ("rebalance.began", "", ""),
        ("rebalance.ended", "", "1 copied to other brokers, 1 led by another replica"),
        ("rebalance.began", "", ""),
    ]
    assert b"reb-" not in answer.content
    assert b"orders" not in answer.content


@pytest.mark.parametrize("state", ["failed", "cancelled", "skipped"])
def test_moves_that_come_to_nothing_end_too(alice, instance, url, hour, state):
    SpecChange.objects.unscoped(ROWS).all().delete()
    moved(instance, "reb-000000000007", hour(3), hour(2))
    RebalanceMove.objects.update(state=state)
    said = "0 copied to other brokers, 0 led by another replica"
    assert told(alice, url) == [("rebalance.ended", "", said), ("rebalance.began", "", "")]
    RebalanceMove.objects.update(begun_at=None)
    assert told(alice, url) == [], "nothing had begun"


def test_unread_records_that_are_about_to_expire_are_told_with_group_and_topic(alice, instance, url, hour):
    SpecChange.objects.unscoped(ROWS).all().delete()
    expiring(instance, hour(3), hour(2), expires=hour(1))
    expiring(Instance(pk="ins-another1"), hour(3))
    said = f"1204 records of topic orders may expire unread from {hour(1):%Y-%m-%d %H:%M} UTC on"
    assert told(alice, url) == [("unread.safe", "billing", ""), ("unread.expiring", "billing", said)]


@pytest.mark.parametrize(
    ("minutes", "ended", "expected"),
    [(43, False, ", in 43 min"), (60, False, ", in 1 h"), (0, False, ""), (-5, False, ""), (43, True, "")],
)
def test_how_long_it_still_is_is_said_while_it_is_to_come(instance, hour, minutes, ended, expected):
    """At a moment of the test's own, however long the machine takes."""
    now = datetime.now(UTC)
    expires = now + timedelta(minutes=minutes, seconds=30)
    expiring(instance, hour(3), hour(2) if ended else None, expires=expires)
    said = f"1204 records of topic orders may expire unread from {expires:%Y-%m-%d %H:%M} UTC on{expected}"
    assert _said(instance, now) == said


def test_of_one_record_it_is_said_in_the_singular(instance, hour):
    now = datetime.now(UTC)
    expires = now + timedelta(minutes=43, seconds=30)
    expiring(instance, hour(3), expires=expires)
    ExpiringUnread.objects.update(messages=1)
    moment = f"1 record of topic orders may expire unread from {expires:%Y-%m-%d %H:%M} UTC on"
    assert _said(instance, now) == f"{moment}, in 43 min"
    assert _said(instance, expires) == moment


def _said(instance, now):
    _, began = sources._of_unread(instance, now)
    return began.told(ExpiringUnread.objects.get()).detail


@pytest.mark.parametrize(
    ("minutes", "expected"), [(43, "in about 43 min at the rate seen then"), (-5, "at the rate seen then")]
)
def test_what_may_be_pushed_out_by_size_is_said_to_be_an_estimate(alice, instance, url, hour, minutes, expected):
    expires = datetime.now(UTC) + timedelta(minutes=minutes, seconds=30)
    expiring(instance, hour(3), expires=expires, is_by_size=True)
    said = (
        "1204 records of topic orders may be pushed out unread by newer ones from about "
        f"{expires:%Y-%m-%d %H:%M} UTC on, {expected}: an estimate by retention.bytes"
    )
    assert told(alice, url, kinds="unread.expiring") == [("unread.expiring", "billing", said)]


@pytest.mark.parametrize("later", [0, 60])
def test_of_a_time_that_ends_after_the_oldest_could_expire_it_is_said_that_some_may_be_lost(
    alice, instance, url, hour, later
):
    expiring(instance, hour(3), hour(2) + timedelta(seconds=later), expires=hour(2))
    said = "records of topic orders may have expired unread"
    assert told(alice, url, kinds="unread.safe") == [("unread.safe", "billing", said)]


def test_a_group_that_rebalanced_is_one_event_an_hour_which_says_how_often(alice, instance, url, hour):
    SpecChange.objects.unscoped(ROWS).all().delete()
    at = hour(5).replace(minute=3)
    rebalanced(instance, at)
    rebalanced(instance, at + timedelta(hours=1), times=12, seen=at + timedelta(minutes=100))
    rebalanced(Instance(pk="ins-another1"), at)
    later = at + timedelta(hours=1)
    said = f"12 times in the hour from {later:%H}:00 UTC on, last at {later:%H}:43 UTC"
    assert told(alice, url) == [("group.rebalanced", "billing", said), ("group.rebalanced", "billing", "")]
    assert told(alice, url, kinds="rebalance.began,rebalance.ended") == []


def test_a_range_and_kinds_are_chosen(alice, instance, url, hour):
    SpecChange.objects.unscoped(ROWS).all().delete()
    alarm = alarm_row(instance)
    for hours in (1, 2, 3):
        event_row(alarm, "fired", hour(hours))
        event_row(alarm, "resolved", hour(hours) + timedelta(minutes=5))
        absence(instance, hour(hours), hour(hours) + timedelta(minutes=1), broker=hours)
    found = told(alice, url, kinds="alarm.fired, broker.away", from_=hour(2).isoformat(), to=hour(1).isoformat())
    assert [kind for kind, _, _ in found] == ["alarm.fired", "broker.away"]
    assert len(told(alice, url, kinds="alarm.resolved")) == 3
    assert len(told(alice, url, to=hour(3).isoformat())) == 0
    problem(alice.api.get(url, {"kinds": "alarm.fired,weather"}), 400, "invalid")
    problem(alice.api.get(url, {"from": "yesterday"}), 400, "invalid")


def test_what_happened_outlives_the_instance_and_stays_its_organisations(alice, bob, charlie, instance, url, hour):
    SpecChange.objects.unscoped(ROWS).all().delete()
    event_row(alarm_row(instance), "fired", hour(1))
    Instance.objects.unscoped(ROWS).filter(pk=instance.pk).update(state="deleted", deleted_at=hour(0))
    assert ("alarm.fired", "storage", "") in told(alice, url)
    problem(charlie.api.get(url), 404, "not_found")


def test_every_kind_is_told_of(alice, instance, url, hour):
    alarm = alarm_row(instance)
    event_row(alarm, "fired", hour(9))
    event_row(alarm, "resolved", hour(8))
    spell(instance, hour(9), hour(8))
    operation(instance, "op-000000000001", hour(9), hour(8))
    operation(instance, "op-000000000002", hour(9), hour(8), state="failed", error="it gave up")
    resized(instance, hour(8))
    throttled(instance, hour(9), hour(8))
    absence(instance, hour(9), hour(8))
    moved(instance, "reb-000000000007", hour(9), hour(8))
    expiring(instance, hour(9), hour(8))
    rebalanced(instance, hour(9))
    assert {kind for kind, _, _ in told(alice, url, limit=100)} == set(KINDS)


@pytest.mark.parametrize("limit", [1, 2, 7, 50])
def test_over_pages_nothing_comes_twice_and_nothing_is_left_out(alice, instance, url, limit):
    source = random.Random(7)
    moments = [datetime.now(UTC) - timedelta(hours=each) for each in range(1, 5)]  # few: many events at one moment
    alarms = [alarm_row(instance, f"alm-{number:012}") for number in range(4)]
    for number, alarm in enumerate(alarms):
        for at in moments:
            event_row(alarm, source.choice(["fired", "resolved"]), at)
            spell(instance, at, source.choice([*moments, None]), code=f"code_{number}")
    for number, at in enumerate(moments):
        throttled(instance, at, source.choice(moments), direction=source.choice(["produce", "consume"]))
        absence(instance, at, source.choice([*moments, None]), broker=10 + number)
        resized(instance, at, bandwidth=number + 1)
        moved(instance, f"reb-{number:012}", at, source.choice(moments))
        expiring(instance, at, source.choice(moments), group=f"group {number}")
    for number in range(10):
        began = source.choice(moments)
        operation(instance, f"op-{number:012}", began, source.choice(moments))
    Instance.objects.unscoped(ROWS).update(created_at=datetime.now(UTC) - timedelta(days=1))
    whole = events_get(organisation=alice.organisation, instance_id=instance.id, most=1_000)
    assert len({(each.kind, each.place) for each in whole}) == len(whole) > 40
    assert [each.time for each in whole] == sorted((each.time for each in whole), reverse=True)
    found, cursor = [], ""
    while cursor is not None:
        page = alice.api.get(f"{url}?limit={limit}{cursor and '&cursor='}{cursor}").json()
        assert len(page["items"]) <= limit
        found += [(each["time"], each["kind"], each["object"]) for each in page["items"]]
        cursor = page["next"]
    assert [(kind, key) for _, kind, key in found] == [(each.kind, each.told.object) for each in whole]


@pytest.mark.parametrize(
    "cursor", ["x", "W10", "WyIyMDI2IiwgIjkiLCAiMSJd", "WyIyMDI2IiwgIjAiLCAiYSJd", "WyJub3ciLCAiMCIsICIxIl0"]
)
def test_a_cursor_that_was_not_given_out_is_refused(alice, url, cursor):
    problem(alice.api.get(f"{url}?cursor={cursor}"), 400, "invalid")


# --- health that comes and goes -------------------------------------------------------------------------------------------


def test_a_reason_that_comes_begins_a_spell_and_ends_it_when_it_goes(instance, storage, clock):
    health.health_observe(clock=clock)
    assert not HealthSpell.objects.exists()
    storage.percent = 100
    for _ in range(3):
        clock.advance(5)
        health.health_observe(clock=clock)
    (row,) = HealthSpell.objects.all()
    assert (row.code, row.ended_at) == ("storage_full", None)
    assert row.began_at == HealthReason.objects.get().since
    storage.percent = 10
    clock.advance(5)
    health.health_observe(clock=clock)
    assert HealthSpell.objects.get().ended_at == clock.now()
    storage.percent = 100
    clock.advance(5)
    health.health_observe(clock=clock)
    assert HealthSpell.objects.count() == 2


def test_of_two_workers_that_see_it_first_one_begins_the_spell(instance, storage, clock, monkeypatch):
    storage.percent = 100
    real = health.health_get

    def interrupted(instances, **options):
        found = real(instances, **options)
        if not HealthReason.objects.exists():
            clock.advance(1)
            monkeypatch.setattr(health, "health_get", real)
            health.health_observe(clock=clock)
        return found

    monkeypatch.setattr(health, "health_get", interrupted)
    health.health_observe(clock=clock)
    assert HealthSpell.objects.count() == 1
    assert HealthSpell.objects.get().began_at == HealthReason.objects.get().since


def test_an_instance_that_runs_no_more_ends_its_spells(instance, storage, clock):
    storage.percent = 100
    health.health_observe(clock=clock)
    Instance.objects.unscoped(ROWS).update(state="deleting")
    clock.advance(5)
    health.health_observe(clock=clock)
    assert HealthSpell.objects.get().ended_at == clock.now()


# --- brokers that go away -------------------------------------------------------------------------------------------------


def test_a_broker_that_goes_away_and_comes_back_leaves_a_row(instance, tree, clock):
    cluster, live = instance.cluster, coordination.live_brokers(tree)
    brokers_sync(cluster=cluster, live=live)
    for _ in range(3):
        clock.advance(5)
        brokers_watch(cluster=cluster, live=live[1:], clock=clock)
    (row,) = BrokerAbsence.objects.all()
    assert (row.broker_id, row.ended_at) == (live[0].id, None)
    assert row.began_at == Broker.objects.get(broker_id=live[0].id).away_since
    clock.advance(5)
    brokers_watch(cluster=cluster, live=live, clock=clock)
    brokers_watch(cluster=cluster, live=live, clock=clock)
    assert BrokerAbsence.objects.get().ended_at == clock.now()
    brokers_watch(cluster=cluster, live=live[1:], clock=clock)
    assert BrokerAbsence.objects.count() == 2


def test_with_an_absence_there_is_of_whom_the_broker_led_anything_within_the_half_minute_before(
    instance, tree, clock, flow_master
):
    """The look that sees it may come after one by which others lead the partitions already."""
    cluster, live = instance.cluster, coordination.live_brokers(tree)

    def said_by_master(broker: int) -> None:
        flow_master.answers[instance.id] = {**flowing(), "instance": instance.id}
        for direction in ("produce", "consume"):
            flow_master.answers[instance.id][direction]["brokers"] = [{**share(broker, 0, 1), "leaders": 2}]
        figures_keep(clock=clock)

    def watched(brokers) -> list[str | None]:
        brokers_watch(
            cluster=cluster,
            live=brokers,
            led_by=lambda each: led_lately(cluster.address, each, clock.now()),
            clock=clock,
        )
        return list(BrokerAbsence.objects.order_by("pk").values_list("led", flat=True))

    watched(live)
    said_by_master(live[0].id)
    clock.advance(10)
    said_by_master(live[1].id)
    ours = f" {instance.id.removeprefix('ins-')} "
    assert watched(live[1:]) == [ours]
    assert watched(live[1:2]) == [ours, "  "], "another one that led nothing"
    clock.advance(60)
    assert watched([]) == [ours, "  ", None], "no master was heard for a minute"


def test_one_look_does_not_say_that_a_broker_which_is_away_led_nothing(instance, clock, flow_master):
    """A worker that begins while a broker is away sees only who leads since: the absence is then shown to everyone."""
    flow_master.answers[instance.id] = {**flowing(), "instance": instance.id}
    for direction in ("produce", "consume"):
        flow_master.answers[instance.id][direction]["brokers"] = [{**share(2, 0, 1), "leaders": 2}]
    figures_keep(clock=clock)
    assert led_lately(instance.cluster.address, 1, clock.now()) is None
    clock.advance(10)
    figures_keep(clock=clock)
    assert led_lately(instance.cluster.address, 1, clock.now()) == set()


def test_while_all_are_there_a_look_writes_nothing(instance, tree, clock, django_assert_max_num_queries):
    cluster, live = instance.cluster, coordination.live_brokers(tree)
    brokers_watch(cluster=cluster, live=live, clock=clock)
    with django_assert_max_num_queries(2):
        brokers_watch(cluster=cluster, live=live, clock=clock)
    assert not BrokerAbsence.objects.exists()


def test_what_became_worse_is_not_told_as_over(alice, instance, url):
    now = datetime.now(UTC)
    spell(instance, now - timedelta(minutes=50), now - timedelta(minutes=20), code="storage_nearly_full")
    spell(instance, now - timedelta(minutes=20) + timedelta(milliseconds=40))
    kinds = [each["kind"] for each in alice.api.get(url).json()["items"] if each["kind"].startswith("health.")]
    assert kinds == ["health.began", "health.began"], "storage that is full is no longer nearly full: nothing is over"


def test_what_has_ended_long_before_a_worse_one_began_is_told(alice, instance, url):
    now = datetime.now(UTC)
    spell(instance, now - timedelta(minutes=50), now - timedelta(minutes=30), code="storage_nearly_full")
    spell(instance, now - timedelta(minutes=20))
    kinds = [each["kind"] for each in alice.api.get(url).json()["items"] if each["kind"].startswith("health.")]
    assert kinds == ["health.began", "health.ended", "health.began"]


def test_a_resize_says_who_it_was(alice, instance, url):
    instances.instance_update(
        organisation=alice.organisation, actor="bob@example.com", instance_id=instance.id, changes={"partitions": 90}
    )
    (found,) = [each for each in alice.api.get(url).json()["items"] if each["kind"] == "instance.resized"]
    assert found["actor"] == "bob@example.com"
