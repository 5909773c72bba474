"""Alarms about any group or broker, about what a topic moves, and about records that expire before they are read."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.alarms.delivery.words import rule_text
from controlplane.alarms.evaluation import evaluate
from controlplane.alarms.models import Alarm, Delivery
from controlplane.alarms.rules import OF_ANY_BROKER, OF_ANY_GROUP, OF_GROUPS, Comparison, Rule
from controlplane.history.lag.known import group_deleted, groups_back
from controlplane.history.models import ExpiringUnread, LagGroup, RequestSample
from controlplane.history.requests.by_broker import text_of
from quota.contracts.namespace import MAX_TENANT_TOPIC_LENGTH
from quota.contracts.requests import RequestCounts
from tests.controlplane.history.conftest import counts_of, keep_gaps, keep_requests
from tests.controlplane.history.test_lag_api import lag_of
from tests.controlplane.history.test_topics import keep_topics, window
from tests.controlplane.test_instances_api import URL, problem

from .rows import alarm_row, expiring, receiver_row
from .test_rules import fields

ROWS = "a test"
MIB = 2**20


@pytest.fixture
def watching(instance, storage, clock, sampled):
    """`watching("any_group_lag_messages", 1000)`: an alarm; and a look 30 s later."""

    def watching(watch: str, threshold: float, **members: object) -> Alarm:
        receiver_row(instance)
        moments = dict.fromkeys(("created_at", "since", "seen_at"), clock.now())
        rule = {"watch": watch, "comparison": "at_least", "threshold": threshold, **members}
        return alarm_row(instance, receivers=["rcv-000000000001"], **moments, **rule)

    def look() -> Alarm:
        clock.advance(30)
        sampled(clock)
        evaluate(clock=clock)
        return Alarm.objects.unscoped(ROWS).get()

    watching.look = look
    return watching


def minute(clock) -> int:
    return int(clock.now().timestamp()) // 60 * 60


def deleted(instance, group, clock) -> None:
    """As who deletes it says."""
    group_deleted(instance.id, group, int(clock.now().timestamp()))


def data() -> dict:
    return Delivery.objects.unscoped(ROWS).order_by("created_at").last().document["data"]


# --- any group ------------------------------------------------------------------------------------------------------------


def test_the_group_that_is_furthest_behind_fires_and_is_named(watching, instance, clock):
    watching("any_group_lag_messages", 1000)
    lag_of(instance.id, "calm", minute(clock), 3, 30)
    lag_of(instance.id, "billing", minute(clock), 1204, 30)
    lag_of("ins-another1", "theirs", minute(clock), 9999, 30)
    alarm = watching.look()
    assert (alarm.phase, alarm.value, alarm.value_of) == ("firing", 1204.0, "billing")
    assert (data()["alarm"]["group"], data()["value_of"]) == (None, "billing")
    assert data()["text"] == (
        "Lag of group billing is 1204 records. The alarm fires at: lag of any group at least 1000 records."
    )


def types() -> list[str]:
    return [row.document["type"] for row in Delivery.objects.unscoped(ROWS).order_by("created_at", "pk")]


@pytest.mark.parametrize("watch", ["any_group_lag_messages", "any_group_lag_seconds"])
def test_it_is_not_over_because_the_group_that_is_furthest_behind_cannot_be_read(watching, instance, clock, watch):
    """A partition of its topic is without a leader, so rounds leave the group out; those that are well are seen."""
    watching(watch, 1000)
    lag_of(instance.id, "billing", minute(clock), 1204, 2000)
    lag_of(instance.id, "calm", minute(clock), 3, 30)
    assert watching.look().phase == "firing"
    for _ in range(16):
        lag_of(instance.id, "calm", minute(clock), 3, 30)
        alarm = watching.look()
    assert (alarm.phase, alarm.missing, alarm.firing_since is None) == ("no_data", "no_group", False)
    assert types() == ["alarm.firing"]
    lag_of(instance.id, "billing", minute(clock), 2, 0)
    alarm = watching.look()
    assert (alarm.phase, alarm.value_of, types()) == ("ok", "calm", ["alarm.firing", "alarm.resolved"])


def test_the_group_that_is_not_seen_is_named(watching, instance, clock):
    watching("any_group_lag_messages", 1000, tell_no_data=True)
    for group, messages in (("audit", 1100), ("billing", 1204), ("calm", 3)):
        lag_of(instance.id, group, minute(clock), messages, 30)
    watching.look()
    for _ in range(16):
        lag_of(instance.id, "calm", minute(clock), 3, 30)
        alarm = watching.look()
    assert (alarm.phase, alarm.value, alarm.value_of, types()[-1]) == ("no_data", None, "billing", "alarm.no_data")
    assert "The group billing was not seen in the last three minutes. It was firing, and is not over." in data()["text"]


def test_a_group_with_unread_records_that_is_not_seen_is_named(watching, instance, clock):
    watching("expiring_unread_messages", 1000)
    lag_of(instance.id, "billing", minute(clock), 5000, 30)
    expiring(instance, clock.now())
    group = watching.look().value_of
    clock.advance(300)
    lag_of(instance.id, "calm", minute(clock), 3, 30)
    alarm = watching.look()
    assert (alarm.missing, alarm.value_of) == ("no_group", group)
    assert group


def test_another_group_that_is_as_far_behind_keeps_it_firing_with_its_own_value(watching, instance, clock):
    watching("any_group_lag_messages", 1000)
    lag_of(instance.id, "billing", minute(clock), 1204, 30)
    watching.look()
    clock.advance(300)
    lag_of(instance.id, "audit", minute(clock), 1100, 30)
    alarm = watching.look()
    assert (alarm.phase, alarm.value, alarm.value_of) == ("firing", 1100.0, "audit")


def test_of_a_group_that_nobody_has_seen_for_an_hour_it_is_over(watching, instance, clock):
    watching("any_group_lag_messages", 1000)
    lag_of(instance.id, "billing", minute(clock), 1204, 30)
    watching.look()
    for passed_s, phase in ((3300, "no_data"), (400, "ok")):
        clock.advance(passed_s)
        lag_of(instance.id, "calm", minute(clock), 3, 30)
        assert watching.look().phase == phase
    assert types() == ["alarm.firing", "alarm.resolved"]


@pytest.mark.parametrize("later_s", [0, 300], ids=["at once", "while it cannot be read"])
def test_of_a_group_that_its_tenant_deletes_it_is_over_at_the_next_look(watching, instance, clock, later_s):
    watching("any_group_lag_messages", 1000)
    lag_of(instance.id, "billing", minute(clock), 1204, 30)
    lag_of(instance.id, "calm", minute(clock), 3, 30)
    assert watching.look().phase == "firing"
    clock.advance(later_s)
    lag_of(instance.id, "calm", minute(clock), 3, 30)
    assert watching.look().value_of == "billing"
    deleted(instance, "billing", clock)
    alarm = watching.look()
    assert (alarm.phase, alarm.value, alarm.value_of) == ("ok", 3.0, "calm")
    assert types() == ["alarm.firing", "alarm.resolved"]


@pytest.mark.parametrize("later_s", [0, 7200], ids=["at once", "after hours without a value"])
def test_of_the_only_group_likewise_since_there_is_none_that_could_lag(watching, instance, clock, later_s):
    watching("any_group_lag_messages", 1000)
    lag_of(instance.id, "billing", minute(clock), 1204, 30)
    assert watching.look().phase == "firing"
    clock.advance(later_s)
    watching.look()
    deleted(instance, "billing", clock)
    alarm = watching.look()
    assert (alarm.phase, alarm.value, alarm.value_of) == ("ok", 0.0, "")
    assert data()["text"].startswith("Lag of any group is 0 records. The alarm is over;")


def test_where_another_group_cannot_be_read_that_one_was_deleted_ends_nothing(watching, instance, clock):
    watching("any_group_lag_messages", 1000)
    lag_of(instance.id, "billing", minute(clock), 1204, 30)
    lag_of(instance.id, "audit", minute(clock), 1100, 30)
    watching.look()
    clock.advance(300)
    deleted(instance, "billing", clock)
    alarm = watching.look()
    assert (alarm.phase, alarm.missing, alarm.firing_since is None) == ("no_data", "no_group", False)


def test_a_group_that_is_made_again_under_its_name_counts(watching, instance, clock):
    watching("any_group_lag_messages", 1000)
    lag_of(instance.id, "billing", minute(clock), 1204, 30)
    lag_of(instance.id, "calm", minute(clock), 3, 30)
    deleted(instance, "billing", clock)
    assert watching.look().value_of == "calm"
    clock.advance(60)
    lag_of(instance.id, "billing", minute(clock), 2000, 30)
    groups_back(list(LagGroup.objects.values_list("pk", flat=True)), int(clock.now().timestamp()))
    alarm = watching.look()
    assert (alarm.phase, alarm.value, alarm.value_of) == ("firing", 2000.0, "billing")


# --- a group of which a figure is not known -------------------------------------------------------------------------------


FIGURES = [("any_group_lag_bytes", "no_size"), ("any_group_lag_seconds", "no_age")]


def figure_of(instance, group, clock, watch, value):
    """A minute with so many unread bytes, or so old: the other one is of no interest."""
    size, age_s = (value, 30) if watch == "any_group_lag_bytes" else (7, value)
    lag_of(instance.id, group, minute(clock), 1204, age_s, size)


@pytest.mark.parametrize(("watch", "missing"), FIGURES)
@pytest.mark.parametrize("passed_s", [60, 7200])
def test_it_is_not_over_while_what_the_group_that_fired_it_has_is_not_known(
    watching, instance, clock, watch, missing, passed_s
):
    watching(watch, 1000, tell_no_data=True)
    figure_of(instance, "billing", clock, watch, 2000)
    assert watching.look().phase == "firing"
    for step_s in (60, 60, passed_s):
        clock.advance(step_s)
        figure_of(instance, "billing", clock, watch, None)
        figure_of(instance, "calm", clock, watch, 3)
        alarm = watching.look()
    assert (alarm.phase, alarm.value, alarm.value_of, alarm.missing) == ("no_data", None, "billing", missing)
    assert alarm.firing_since is not None
    assert types() == ["alarm.firing", "alarm.no_data"]
    assert "billing" in data()["text"]
    assert data()["text"].count("It was firing, and is not over.") == 1
    clock.advance(60)
    figure_of(instance, "billing", clock, watch, 4)
    alarm = watching.look()
    assert (alarm.phase, alarm.value, alarm.value_of) == ("ok", 4.0, "billing")


@pytest.mark.parametrize(("watch", "missing"), FIGURES)
def test_nor_when_that_group_then_cannot_be_read_at_all(watching, instance, clock, watch, missing):
    watching(watch, 1000)
    figure_of(instance, "billing", clock, watch, 2000)
    watching.look()
    clock.advance(60)
    figure_of(instance, "billing", clock, watch, None)
    watching.look()
    clock.advance(600)
    figure_of(instance, "calm", clock, watch, 3)
    alarm = watching.look()
    assert (alarm.phase, alarm.value_of, alarm.missing) == ("no_data", "billing", missing)


@pytest.mark.parametrize(("watch", "missing"), FIGURES)
def test_nor_where_another_one_had_as_much_meanwhile(watching, instance, clock, watch, missing):
    watching(watch, 1000)
    figure_of(instance, "billing", clock, watch, 2000)
    watching.look()
    clock.advance(60)
    figure_of(instance, "billing", clock, watch, None)
    figure_of(instance, "audit", clock, watch, 1500)
    alarm = watching.look()
    assert (alarm.phase, alarm.value, alarm.value_of) == ("firing", 1500.0, "audit")
    clock.advance(30)
    figure_of(instance, "billing", clock, watch, None)
    figure_of(instance, "audit", clock, watch, 5)
    alarm = watching.look()
    assert (alarm.phase, alarm.value_of, alarm.missing) == ("firing", "billing", missing)


@pytest.mark.parametrize(("watch", "_missing"), FIGURES)
def test_a_group_that_never_had_so_much_holds_up_nothing(watching, instance, clock, watch, _missing):
    watching(watch, 1000)
    figure_of(instance, "billing", clock, watch, 2000)
    figure_of(instance, "small", clock, watch, 7)
    figure_of(instance, "undated", clock, watch, None)
    watching.look()
    clock.advance(60)
    figure_of(instance, "billing", clock, watch, 3)
    figure_of(instance, "small", clock, watch, None)
    figure_of(instance, "undated", clock, watch, None)
    assert watching.look().phase == "ok"


@pytest.mark.parametrize(("watch", "_missing"), FIGURES)
def test_what_a_group_has_that_nobody_knows_makes_no_alarm_fire(watching, instance, clock, watch, _missing):
    figure_of(instance, "billing", clock, watch, 2000)
    clock.advance(60)
    watching(watch, 1000)
    figure_of(instance, "billing", clock, watch, None)
    figure_of(instance, "calm", clock, watch, 3)
    alarm = watching.look()
    assert (alarm.phase, alarm.value, alarm.value_of) == ("ok", 3.0, "calm")


@pytest.mark.parametrize(("watch", "_missing"), FIGURES)
def test_of_a_group_whose_figure_is_not_known_it_is_over_when_it_is_deleted(watching, instance, clock, watch, _missing):
    watching(watch, 1000)
    figure_of(instance, "billing", clock, watch, 2000)
    watching.look()
    clock.advance(60)
    figure_of(instance, "billing", clock, watch, None)
    figure_of(instance, "calm", clock, watch, 3)
    watching.look()
    deleted(instance, "billing", clock)
    alarm = watching.look()
    assert (alarm.phase, alarm.value_of) == ("ok", "calm")


def test_a_group_that_was_well_when_it_was_seen_last_holds_up_nothing(watching, instance, clock):
    watching("any_group_lag_messages", 1000)
    lag_of(instance.id, "billing", minute(clock), 1204, 30)
    lag_of(instance.id, "gone", minute(clock), 7, 30)
    watching.look()
    clock.advance(300)
    lag_of(instance.id, "billing", minute(clock), 3, 30)
    assert watching.look().phase == "ok"


def test_each_figure_has_a_group_of_its_own_and_those_that_nobody_knows_are_no_value(watching, instance, clock):
    watching("any_group_lag_seconds", 60)
    lag_of(instance.id, "many", minute(clock), 5000, None)
    alarm = watching.look()
    assert (alarm.value, alarm.missing, alarm.value_of) == (None, "no_age", "")
    lag_of(instance.id, "old", minute(clock), 1, 90)
    alarm = watching.look()
    assert (alarm.phase, alarm.value_of) == ("firing", "old")


def test_without_any_group_there_is_no_value(watching):
    watching("any_group_lag_messages", 1)
    assert watching.look().missing == "no_group"


def test_the_largest_is_compared_upwards_alone():
    for watch in OF_ANY_GROUP:
        assert fields(watch=watch, comparison="above") == fields(watch=watch, comparison="at_least") == []
        assert fields(watch=watch, comparison="below") == fields(watch=watch, comparison="at_most") == ["comparison"]
        assert fields(watch=watch, group="billing") == ["group"]
    # That some group reads very much is no trouble: of records that are read and written there is no largest.
    rates = {"group_consume_records_per_s", "group_produce_records_per_s"}
    assert set(OF_ANY_GROUP.values()) == set(OF_GROUPS) - rates


# --- any broker -----------------------------------------------------------------------------------------------------------


def keep_brokers(instance, clock, *windows: dict[int, RequestCounts] | None) -> None:
    """The last windows that are known, with what each broker was asked; None: brokers are not told apart."""
    moments = {ten(clock) - 10 * number: asked for number, asked in enumerate(windows, 1)}
    keep_requests(instance, dict.fromkeys(moments, counts_of(1)))
    for at, asked in moments.items():
        text = None if asked is None else text_of(asked)
        RequestSample.objects.filter(instance=instance.id, at=at).update(brokers=text)


@pytest.mark.parametrize(
    ("watch", "threshold", "value", "said"),
    [
        ("any_broker_produce_p99_ms", 250, 400,
         "Produce latency of broker 3, 99 % of the requests is 399.15 ms. The alarm fires at: produce latency of any"),
        ("any_broker_errors_per_s", 0.5, 1.0, "Errors answered by broker 3 are 1 errors/s. The alarm fires at: errors"),
    ],
)  # fmt: skip
def test_the_broker_that_is_in_trouble_fires_and_is_named(watching, instance, clock, watch, threshold, value, said):
    watching(watch, threshold)
    fine, slow = counts_of(6, took_us=2_000), counts_of(6, took_us=400_000, errors={"NOT_LEADER_OR_FOLLOWER": 60})
    keep_brokers(instance, clock, {1: fine, 2: fine, 3: slow}, {1: fine})
    alarm = watching.look()
    assert (alarm.phase, alarm.value_of) == ("firing", "3")
    assert alarm.value == pytest.approx(value, rel=0.15)
    assert (data()["alarm"]["group"], data()["value_of"]) == (None, "3")
    assert data()["text"].startswith(said)


def test_where_brokers_are_not_told_apart_there_is_no_value(watching, instance, clock):
    watching("any_broker_errors_per_s", 1)
    keep_brokers(instance, clock, {1: counts_of(1)}, None)
    assert watching.look().missing == "no_brokers"


@pytest.mark.parametrize(
    ("watch", "expected"), [("any_broker_errors_per_s", (0.0, "")), ("any_broker_fetch_p99_ms", (None, "no_requests"))]
)
def test_of_brokers_that_were_not_asked_there_is_no_latency_and_no_error(watching, instance, clock, watch, expected):
    watching(watch, 1)
    keep_brokers(instance, clock, {1: counts_of(1)})
    alarm = watching.look()
    assert (alarm.value, alarm.missing) == expected


def test_the_largest_of_all_brokers_is_compared_upwards_alone():
    for watch in OF_ANY_BROKER:
        assert fields(watch=watch, comparison="above") == fields(watch=watch, comparison="at_least") == []
        assert fields(watch=watch, comparison="below") == fields(watch=watch, comparison="at_most") == ["comparison"]
        assert fields(watch=watch, group="billing") == ["group"]


# --- unread records that are about to expire ------------------------------------------------------------------------------


def test_unread_records_that_are_about_to_expire_are_counted_and_their_group_named(watching, instance, clock):
    watching("expiring_unread_messages", 1000)
    lag_of(instance.id, "billing", minute(clock), 5000, 30)
    assert (watching.look().phase, watching.look().value) == ("ok", 0.0)
    lag_of(instance.id, "billing", minute(clock), 5000, 30)
    expiring(instance, clock.now(), expires=clock.now() + timedelta(minutes=43))
    ExpiringUnread.objects.create(
        instance=instance.pk, digest="another", group="audit", topic="orders", messages=7,
        expires_at=clock.now(), began_at=clock.now(), seen_at=clock.now(),
    )  # fmt: skip
    alarm = watching.look()
    assert (alarm.phase, alarm.value, alarm.value_of) == ("firing", 1211.0, "billing")
    assert data()["text"].startswith(
        "1211 unread records are about to expire, most of them in group billing. The alarm fires at: "
    )


def test_what_was_read_in_time_and_what_is_of_a_group_that_is_gone_is_not(watching, instance, clock):
    watching("expiring_unread_messages", 1)
    expiring(instance, clock.now() - timedelta(hours=1), ended=clock.now())
    expiring(instance, clock.now() - timedelta(hours=1), group="gone")
    lag_of(instance.id, "billing", minute(clock), 5, 30)
    assert (watching.look().phase, watching.look().value) == ("ok", 0.0)


def test_it_is_not_over_because_a_group_with_unread_records_cannot_be_read(watching, instance, clock):
    watching("expiring_unread_messages", 1000)
    lag_of(instance.id, "billing", minute(clock), 5000, 30)
    expiring(instance, clock.now())
    assert watching.look().phase == "firing"
    for passed_s, expected in ((300, ("no_data", "no_group")), (3600, ("ok", ""))):
        clock.advance(passed_s)
        lag_of(instance.id, "calm", minute(clock), 3, 30)
        alarm = watching.look()
        assert (alarm.phase, alarm.missing) == expected
    assert types() == ["alarm.firing", "alarm.resolved"]


@pytest.mark.parametrize("others", [True, False])
def test_unread_records_of_a_group_that_its_tenant_deletes_expire_for_nobody(watching, instance, clock, others):
    watching("expiring_unread_messages", 1000)
    lag_of(instance.id, "billing", minute(clock), 5000, 30)
    if others:
        lag_of(instance.id, "calm", minute(clock), 3, 30)
    expiring(instance, clock.now())
    assert watching.look().phase == "firing"
    deleted(instance, "billing", clock)
    alarm = watching.look()
    assert (alarm.phase, alarm.value) == ("ok", 0.0)


def test_where_no_round_sees_any_group_it_is_no_value(watching, instance, clock):
    watching("expiring_unread_messages", 1)
    expiring(instance, clock.now() - timedelta(hours=1))
    assert watching.look().missing == "no_group"


# --- topics ---------------------------------------------------------------------------------------------------------------


def ten(clock) -> int:
    return int(clock.now().timestamp()) // 10 * 10


def test_a_topic_fires_by_its_last_minute_and_is_named(watching, instance, clock):
    watching("topic_produce_bytes_per_s", 4 * MIB, topic="orders")
    at = ten(clock)
    moved = window({"orders": (60 * MIB, 5), "other": (999 * MIB, 0)})
    keep_topics(instance, {at - 10 * number: moved for number in range(1, 7)}, at)
    alarm = watching.look()
    assert (alarm.phase, alarm.value) == ("firing", 6.0 * MIB)
    assert (data()["alarm"]["watch"], data()["alarm"]["topic"]) == ("topic_produce_bytes_per_s", "orders")
    assert data()["text"] == (
        "Produce flow of topic orders is 6 MiB/s. The alarm fires at: produce flow of topic orders at least 4 MiB/s."
    )


def test_a_topic_that_moved_nothing_has_zero(watching, instance, clock):
    watching("topic_consume_bytes_per_s", 1, topic="orders", comparison="below")
    at = ten(clock)
    keep_topics(instance, {at - 10: window({"other": (5, 5)})}, at)
    alarm = watching.look()
    assert (alarm.phase, alarm.value) == ("firing", 0.0)


@pytest.mark.parametrize("what", ["rest", "gap", "earlier release", "old"])
def test_what_a_topic_moved_is_no_value_where_nobody_knows(watching, instance, clock, what):
    watching("topic_produce_bytes_per_s", 1, topic="orders")
    at = ten(clock)
    text = window({"big": (9, 9), "orders": (5, 5)}, most=1 if what == "rest" else 200)
    keep_topics(instance, {at - 10: text}, at - 300 if what == "old" else at)
    if what == "earlier release":
        RequestSample.objects.update(topics=None)
    if what == "gap":
        keep_gaps(instance, (at - 30, at - 20))
    alarm = watching.look()
    assert (alarm.phase, alarm.value, alarm.missing) == ("ok", None, "no_topic")


@pytest.mark.parametrize(
    ("watch", "topic", "expected"),
    [
        ("topic_produce_bytes_per_s", "orders", []),
        ("topic_consume_bytes_per_s", "x" * MAX_TENANT_TOPIC_LENGTH, []),
        ("topic_consume_bytes_per_s", "x" * (MAX_TENANT_TOPIC_LENGTH + 1), ["topic"]),
        ("topic_produce_bytes_per_s", None, ["topic"]),
        ("topic_produce_bytes_per_s", "", ["topic"]),
        ("topic_produce_bytes_per_s", "no/topic", ["topic"]),
        ("topic_produce_bytes_per_s", "..", ["topic"]),
        ("connections", "orders", ["topic"]),
        ("group_lag_messages", "orders", ["group", "topic"]),
    ],
)
def test_a_figure_of_a_topic_names_it_and_no_other_does(watch, topic, expected):
    assert fields(watch=watch, topic=topic) == expected


def test_a_rule_in_words_names_the_topic():
    rule = Rule("topic_consume_bytes_per_s", Comparison.ABOVE, 4.5 * MIB, topic="orders")
    assert rule_text(rule) == "Consume flow of topic orders above 4.5 MiB/s"


# --- by REST --------------------------------------------------------------------------------------------------------------


def test_a_rule_about_a_topic_is_made_and_becomes_one_about_the_instance(alice, instance):
    url = f"{URL}/{instance.id}/alarms"
    rule = {
        "name": "hot",
        "watch": "topic_produce_bytes_per_s",
        "comparison": "above",
        "threshold": 5,
        "topic": "orders",
    }
    made = alice.api.post(url, rule)
    assert made.status_code == 201, made.content
    found = made.json()
    assert (found["topic"], found["group"], found["tell_no_data"], found["value_of"]) == ("orders", None, False, None)
    path = f"{url}/{found['id']}"
    problem(alice.api.patch(path, {"watch": "produce_bytes_per_s"}), 400, "invalid")
    changed = alice.api.patch(path, {"watch": "produce_bytes_per_s", "threshold": 7})
    assert (changed.json()["topic"], changed.json()["threshold"]) == (None, 7)


def test_that_no_data_are_told_is_changed_without_beginning_anew(alice, instance):
    url = f"{URL}/{instance.id}/alarms"
    rule = {
        "name": "lag",
        "watch": "any_group_lag_messages",
        "comparison": "above",
        "threshold": 5,
        "tell_no_data": True,
    }
    made = alice.api.post(url, rule).json()
    assert made["tell_no_data"] is True
    Alarm.objects.unscoped(ROWS).update(phase="firing")
    changed = alice.api.patch(f"{url}/{made['id']}", {"tell_no_data": False}).json()
    assert (changed["tell_no_data"], changed["state"]) == (False, "firing")
