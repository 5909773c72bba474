"""Looking at alarms: what is read becomes states, events and messages, in few queries, whatever one of them is like."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.alarms import evaluation, readings
from controlplane.alarms.delivery.limits import MOST_OF_ALARM
from controlplane.alarms.evaluation import evaluate
from controlplane.alarms.models import Alarm, AlarmEvent, Delivery, Receiver
from controlplane.instances.models import Instance
from tests.controlplane.console.test_cost_of_pages import populate
from tests.controlplane.history.conftest import keep_waits
from tests.controlplane.history.test_lag_api import lag_of

from .rows import STORAGE, alarm_row, receiver_row

ROWS = "a test"


@pytest.fixture
def look(clock, sampled):
    """Looks at every alarm, 30 s later each time, of what was sampled just before."""

    def look(times: int = 1):
        for _ in range(times):
            clock.advance(30)
            sampled(clock)
            found = evaluate(clock=clock)
        return found

    return look


@pytest.fixture
def alarm(instance, clock):
    receiver_row(instance)
    moments = dict.fromkeys(("created_at", "since", "seen_at"), clock.now())
    return alarm_row(instance, receivers=["rcv-000000000001"], **moments)


def now(alarm) -> Alarm:
    return Alarm.objects.unscoped(ROWS).get(pk=alarm.pk)


def kinds(**of) -> list[str]:
    return list(AlarmEvent.objects.unscoped(ROWS).filter(**of).order_by("at", "pk").values_list("kind", flat=True))


def told() -> list[str]:
    rows = Delivery.objects.unscoped(ROWS).order_by("created_at", "pk")
    return [row.document["type"].removeprefix("alarm.") for row in rows]


def test_it_fires_and_is_resolved_and_each_is_told_once(look, storage, alarm):
    look(2)
    assert (now(alarm).phase, now(alarm).value, kinds(), told()) == ("ok", 10.0, [], [])
    storage.percent = 93
    look(3)
    assert (now(alarm).phase, now(alarm).value, kinds(), told()) == ("firing", 93.0, ["fired"], ["firing"])
    storage.percent = 50
    look(3)
    assert (now(alarm).phase, kinds(), told()) == ("ok", ["fired", "resolved"], ["firing", "resolved"])
    assert list(AlarmEvent.objects.unscoped(ROWS).order_by("at").values_list("value", flat=True)) == [93.0, 50.0]


def test_a_message_says_what_is_the_matter_and_where(look, storage, alarm, instance, clock):
    storage.percent = 93.125
    look()
    document = Delivery.objects.unscoped(ROWS).get().document
    assert document["type"] == "alarm.firing"
    assert document["timestamp"] == f"{clock.now():%Y-%m-%dT%H:%M:%SZ}"
    data = document["data"]
    assert data["organisation"] == {"id": instance.organisation_id, "name": "alice's"}
    assert data["instance"] == {"id": instance.id, "name": "events"}
    assert data["alarm"] == {"id": alarm.id, "name": "storage", "unit": "%", "group": None, "duration_s": 0, **STORAGE}
    assert (data["value"], data["is_repeated"]) == (93.12, False)
    assert data["text"] == "Storage used is 93.12 %. The alarm fires at: storage used at least 90 %."


def test_a_health_reason_says_what_health_says(look, storage, alarm):
    Alarm.objects.unscoped(ROWS).update(watch="storage_full", comparison=None, threshold=None)
    storage.percent = 100
    look()
    text = Delivery.objects.unscoped(ROWS).get().document["data"]["text"]
    assert text.startswith("Storage is full. Producing is refused: 10 GiB of 10 GiB is used")
    storage.percent = 10
    look()
    assert "No longer: storage is full." in [row.document["data"]["text"] for row in Delivery.objects.unscoped(ROWS)]


def test_a_master_that_is_away_is_no_data_and_resolves_nothing(look, storage, alarm):
    storage.percent = 95
    look()
    storage.percent = None
    look(5)
    assert (now(alarm).phase, now(alarm).value) == ("no_data", None)
    assert now(alarm).firing_since is not None
    storage.percent = 95
    look()
    assert (now(alarm).phase, kinds(), told()) == ("firing", ["fired", "no_data", "data"], ["firing"])


def test_that_a_master_is_away_can_be_watched_itself(look, storage, alarm):
    Alarm.objects.unscoped(ROWS).update(watch="flow_unknown", comparison=None, threshold=None)
    storage.percent = None
    look()
    assert now(alarm).phase == "firing"


def test_a_duration_is_waited_for(look, storage, alarm):
    Alarm.objects.unscoped(ROWS).update(duration_s=60)
    storage.percent = 95
    look(2)
    assert (now(alarm).phase, told()) == ("pending", [])
    look()
    assert (now(alarm).phase, told(), kinds()) == ("firing", ["firing"], ["pending", "fired"])


def test_a_silence_holds_messages_back_until_it_ends(look, storage, alarm, clock):
    Alarm.objects.unscoped(ROWS).update(silenced_until=clock.now() + timedelta(seconds=100))
    storage.percent = 95
    look(3)
    assert (now(alarm).phase, told(), kinds()) == ("firing", [], ["fired"])
    look()
    assert (told(), kinds()) == (["firing"], ["fired", "told"])


def test_a_clock_that_was_wrong_does_not_keep_alarms_from_being_looked_at(look, storage, alarm, clock):
    """It was an hour ahead, and is set right."""
    Alarm.objects.unscoped(ROWS).update(duration_s=60, repeat_s=300)
    clock.advance(3600)
    storage.percent = 95
    look(3)
    assert (now(alarm).phase, told()) == ("firing", ["firing"])
    clock.advance(-3600)
    storage.percent = 50
    look()
    assert (now(alarm).phase, now(alarm).looked_at, now(alarm).seen_at) == ("ok", clock.now(), clock.now())
    storage.percent = 95
    look(2)
    assert now(alarm).phase == "pending"
    look()
    assert now(alarm).phase == "firing"
    look(10)
    assert told()[::-1].count("firing") == 3, "and it is told again when its time is over"


def test_an_alarm_that_flaps_is_told_a_few_times_and_keeps_no_other_from_being_told(
    look, storage, instance, alarm, clock
):
    moments = dict.fromkeys(("created_at", "since", "seen_at"), clock.now())
    other = alarm_row(
        instance, "alm-000000000002", watch="storage_full", comparison=None, threshold=None, name="full",
        receivers=alarm.receivers, **moments,
    )  # fmt: skip
    for _ in range(50):
        for percent in (95, 50):
            storage.percent = percent
            look()
    of_alarm = Delivery.objects.unscoped(ROWS).filter(event__alarm=alarm)
    assert of_alarm.count() == MOST_OF_ALARM
    assert not of_alarm.exclude(state="waiting").exists()
    storage.percent = 100
    look()
    assert Delivery.objects.unscoped(ROWS).filter(event__alarm=other, state="waiting").count() == 1
    assert (now(alarm).phase, now(alarm).told) == ("firing", False)
    look(120)
    assert now(alarm).told, "what is different from what was told last is told when it flaps no more"
    assert of_alarm.order_by("created_at").last().document["type"] == "alarm.firing"


def test_what_is_off_or_deleted_or_of_an_instance_that_does_not_run_is_not_looked_at(look, storage, alarm, clock):
    storage.percent = 95
    for changes in ({"enabled": False}, {"enabled": True, "deleted_at": clock.now()}):
        Alarm.objects.unscoped(ROWS).update(**changes)
        assert not look()
    Alarm.objects.unscoped(ROWS).update(deleted_at=None)
    Instance.objects.unscoped(ROWS).update(state="deleting")
    assert not look()
    assert kinds() == []


def test_an_alarm_without_receivers_has_its_states_all_the_same(look, storage, instance):
    alarm = alarm_row(instance)
    storage.percent = 95
    look()
    assert (now(alarm).phase, kinds(), told()) == ("firing", ["fired"], [])


def test_an_address_that_is_not_confirmed_and_a_receiver_of_another_instance_are_not_told(
    look, storage, instance, alarm, charlie, brokers
):
    receiver_row(instance, "rcv-000000000002", kind="email", address="bob@example.com", code="abc")
    other = Instance.objects.unscoped(ROWS).get()
    other.pk, other.organisation = "ins-00000001", charlie.organisation
    other.save(force_insert=True)
    receiver_row(other, "rcv-000000000003")
    Alarm.objects.unscoped(ROWS).update(receivers=[f"rcv-{n:012}" for n in (1, 2, 3, 4)])
    storage.percent = 95
    look()
    assert [row.receiver_id for row in Delivery.objects.unscoped(ROWS)] == ["rcv-000000000001"]


# --- what is wrong with one ---------------------------------------------------------------------------------------------


def firing(instance, name, clock, **members):
    """An alarm that has to fire at the next look."""
    moments = dict.fromkeys(("created_at", "since", "seen_at"), clock.now())
    watched = {"watch": "connections", "comparison": "at_least", "threshold": 1}
    return alarm_row(instance, name, **moments, **watched, **members)


def clear():
    for model in (Delivery, AlarmEvent, Alarm, Receiver):
        model.objects.unscoped(ROWS).all().delete()


@pytest.fixture
def crowd(alice, admin, flow_master, clock):
    """Instances with an alarm each that has to fire."""

    def make(count: int, each: int = 1) -> list[str]:
        names = populate(alice.organisation, admin, flow_master, instances=count, hours=1)
        for number, instance in enumerate(Instance.objects.unscoped(ROWS).filter(pk__in=names)):
            receiver = receiver_row(instance, f"rcv-{number:012}")
            for one in range(each):
                firing(instance, f"alm-{number:08}{one:04}", clock, receivers=[receiver.pk])
        return names

    return make


def test_an_instance_that_cannot_be_read_keeps_no_other_from_being_looked_at(crowd, look, monkeypatch):
    names = crowd(9)
    real = readings.health_get

    def broken(instances, **options):
        if any(instance.pk == names[4] for instance in instances):
            raise ValueError("its document is broken")
        return real(instances, **options)

    monkeypatch.setattr(readings, "health_get", broken)
    assert look() == {"firing": 8, "ok": 1}
    assert Delivery.objects.unscoped(ROWS).count() == 8
    assert look(3) == {"firing": 8, "no_data": 1}


def test_a_document_with_nonsense_is_no_value(crowd, look, flow_master):
    names = crowd(3)
    flow_master.answers[names[1]] = {**flow_master.answers[names[1]], "connections": "many", "produce": {"flow": "x"}}
    assert look() == {"firing": 2, "ok": 1}


def test_an_alarm_that_cannot_be_looked_at_keeps_no_other_from_it(crowd, look):
    crowd(2, each=4)
    broken = Alarm.objects.unscoped(ROWS).filter(pk="alm-000000010002")
    broken.update(comparison="sideways")
    assert look() == {"firing": 7}
    assert Delivery.objects.unscoped(ROWS).count() == 7


def test_the_number_of_queries_does_not_depend_on_the_number_of_alarms(crowd, look, clock):
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            look()
        return len(queries)

    crowd(2)
    changing, quiet = asked(), asked()
    clear()
    for instance in Instance.objects.unscoped(ROWS):
        for one in range(20):
            firing(instance, f"alm-{instance.pk.removeprefix('ins-')}{one:04}", clock)
    assert asked() <= changing
    assert asked() <= quiet
    assert changing < 40


def test_two_workers_at_once_make_the_same_of_it_once(look, storage, alarm, clock, monkeypatch):
    """The second has read before the first has written, and writes after it."""
    storage.percent = 95
    real = evaluation._written
    first = []

    def interrupted(*given):
        if not first:
            first.append(True)
            clock.advance(1)
            evaluate(clock=clock)  # somebody else, who began later and is done before
        return real(*given)

    monkeypatch.setattr(evaluation, "_written", interrupted)
    look()
    assert (kinds(), told()) == (["fired"], ["firing"])


# --- figures of the history, and why there is no value --------------------------------------------------------------------


def watch(alarm, name, threshold=1.0, **members) -> None:
    Alarm.objects.unscoped(ROWS).filter(pk=alarm.pk).update(watch=name, threshold=threshold, **members)


def test_a_group_that_falls_behind_fires_and_is_named(look, storage, alarm, instance, clock):
    watch(alarm, "group_lag_messages", 1000.0, group="billing")
    lag_of(instance.id, "billing", minute(clock), 1204, 30)
    lag_of(instance.id, "other", minute(clock), 1, 1)
    look()
    assert (now(alarm).phase, now(alarm).value) == ("firing", 1204.0)
    data = Delivery.objects.unscoped(ROWS).get().document["data"]
    assert (data["alarm"]["group"], data["alarm"]["unit"]) == ("billing", "records")
    assert (
        data["text"]
        == "Lag of group billing is 1204 records. The alarm fires at: lag of group billing at least 1000 records."
    )


def test_a_group_that_is_gone_is_no_data_neither_ok_nor_firing(look, storage, alarm, instance, clock):
    watch(alarm, "group_lag_seconds", 60.0, group="billing")
    lag_of(instance.id, "billing", minute(clock), 5, 90)
    look()
    assert now(alarm).phase == "firing"
    look(12)
    assert (now(alarm).phase, now(alarm).value, now(alarm).missing) == ("no_data", None, "no_group")
    assert now(alarm).firing_since is not None
    assert told() == ["firing"]


def test_a_group_whose_oldest_record_has_no_time_has_no_age(look, storage, alarm, instance, clock):
    watch(alarm, "group_lag_seconds", 60.0, group="billing")
    lag_of(instance.id, "billing", minute(clock), 5, None)
    look()
    assert (now(alarm).value, now(alarm).missing) == (None, "no_age")


def test_bytes_that_a_group_has_not_read_fire_and_are_no_value_where_nobody_knows(
    look, storage, alarm, instance, clock
):
    watch(alarm, "group_lag_bytes", float(2**30), group="billing")
    lag_of(instance.id, "billing", minute(clock), 5, 90, 3 * 2**30)
    look()
    assert (now(alarm).phase, now(alarm).value) == ("firing", 3.0 * 2**30)
    text = Delivery.objects.unscoped(ROWS).get().document["data"]["text"]
    assert text.startswith("Lag in bytes of group billing is 3 GiB.")


def test_bytes_that_no_leader_says_are_no_value(look, storage, alarm, instance, clock):
    watch(alarm, "group_lag_bytes", 1.0, group="billing")
    lag_of(instance.id, "billing", minute(clock), 5, 90)
    look()
    assert (now(alarm).value, now(alarm).missing) == (None, "no_size")


def test_a_group_of_the_same_name_of_another_instance_is_not_seen(look, storage, alarm, clock):
    watch(alarm, "group_lag_messages", 1.0, group="billing")
    lag_of("ins-another1", "billing", minute(clock), 5, 90)
    look(5)
    assert (now(alarm).phase, now(alarm).missing) == ("no_data", "no_group")


def test_throttled_time_fires_by_the_last_minute_that_is_known(look, storage, alarm, instance, clock):
    watch(alarm, "produce_throttled_ms_per_s", 100.0)
    look(4)
    assert (now(alarm).phase, now(alarm).value) == ("ok", 0.0)
    ended_ms = int(clock.now().timestamp()) * 1000
    keep_waits([(instance.id, "produce", ended_ms - 30_000, ended_ms, 20_000)])
    look(2)
    assert (now(alarm).phase, now(alarm).missing) == ("firing", "")
    assert now(alarm).value >= 100


def test_a_sampler_that_stands_still_is_no_data_though_the_master_answers(storage, alarm, clock, sampled):
    watch(alarm, "connections", 1.0)
    sampled(clock)
    evaluate(clock=clock)
    assert (now(alarm).phase, now(alarm).value) == ("firing", 3.0)
    for _ in range(5):
        clock.advance(30)
        evaluate(clock=clock)
    assert (now(alarm).phase, now(alarm).value, now(alarm).missing) == ("no_data", None, "no_sample")


def test_partitions_are_what_the_master_counts(look, storage, alarm, flow_master, instance):
    watch(alarm, "under_replicated_partitions", 1.0)
    look()
    assert (now(alarm).phase, now(alarm).value) == ("ok", 0.0)
    flow_master.answers[instance.id]["partitions_under_replicated"] = 4
    look()
    assert (now(alarm).phase, now(alarm).value) == ("firing", 4.0)


def test_a_value_that_is_there_again_has_no_reason_why_it_is_not(look, storage, alarm, flow_master):
    storage.percent = None
    look()
    assert now(alarm).missing == "no_sample"
    storage.percent = 10
    look()
    assert (now(alarm).value, now(alarm).missing) == (10.0, "")


def minute(clock) -> int:
    """The beginning of the present one."""
    return int(clock.now().timestamp()) // 60 * 60
