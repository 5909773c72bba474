"""What is observed of instances: by REST, in metrics, and since when."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.alarms.readings import readings_get
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.health import services
from controlplane.health.models import HealthReason
from controlplane.health.selectors import health_get, health_remembered
from controlplane.instances.models import Instance
from controlplane.metering.models import PipelineStatus, Progress
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.quotas.conftest import interval, record  # noqa: F401  # a fixture
from tests.controlplane.test_instances_api import URL

GIB = 2**30
GOOD = {
    "storage_used_bytes": GIB,
    "storage_full": False,
    "partitions_without_leader": 0,
    "partitions_under_replicated": 0,
}


@pytest.fixture
def well(instance, flow_master):
    flow_master.answers[instance.id] = dict(GOOD)
    return flow_master.answers[instance.id]


def shown(person, instance) -> dict:
    return person.api.get(f"{URL}/{instance.id}").json()["health"]


def codes(person, instance) -> list[str]:
    return [reason["code"] for reason in shown(person, instance)["reasons"]]


def test_an_instance_that_is_well_says_so(alice, instance, well):
    assert shown(alice, instance) == {"state": "healthy", "reasons": []}


def test_an_instance_that_does_not_run_yet_has_no_health(alice, brokers):
    made = alice.api.post(
        URL, {"name": "a", "bandwidth_mib_per_s": 1, "storage_gib": 1, "partitions": 6, "whitelist": []}
    ).json()
    assert alice.api.get(f"{URL}/{made['id']}").json()["health"] is None


def test_full_storage_is_critical_on_the_instance_and_in_the_list(alice, instance, well):
    well |= {"storage_used_bytes": 10 * GIB, "storage_full": True}
    health = shown(alice, instance)
    assert health["state"] == "critical"
    assert [reason["code"] for reason in health["reasons"]] == ["storage_full"]
    assert set(health["reasons"][0]) == {"code", "state", "title", "detail", "since"}
    (row,) = alice.api.get(URL).json()["items"]
    assert row["health"]["state"] == "critical"


def test_a_broker_that_went_away_leaves_its_route_and_replicas_behind(alice, instance, well, brokers):
    well["partitions_under_replicated"] = 6
    brokers.kill(2)
    health = shown(alice, instance)
    assert [reason["code"] for reason in health["reasons"]] == ["route_down", "partitions_under_replicated"]
    assert "broker 2: the broker is away" in health["reasons"][0]["detail"]


def test_a_port_that_another_process_holds_is_a_route_that_is_down(alice, instance, well, brokers, tree):
    brokers.taken_ports.add(tree.spec(instance.id).routes[0].endpoints[3].bind[1])
    brokers.apply()
    assert codes(alice, instance) == ["route_down"]
    assert "address in use" in shown(alice, instance)["reasons"][0]["detail"]


def test_waiting_below_the_limit_lately_is_a_reason_and_last_weeks_is_not(alice, instance, well, record):  # noqa: F811
    now_ms = int(SYSTEM_CLOCK.now().timestamp() * 1000)
    record(interval(instance.id, start=now_ms - 600_000, under_limit_ms=9000))
    assert codes(alice, instance) == []
    record(interval(instance.id, start=now_ms - 30_000, under_limit_ms=9000))
    assert codes(alice, instance) == ["throttled_under_limit"]


def test_waiting_for_a_limit_that_is_used_is_not_waiting_below_it(alice, instance, well, record):  # noqa: F811
    """Who always wants twice the limit is below it for moments, while it is divided anew: the limit is the cause."""
    now_ms = int(SYSTEM_CLOCK.now().timestamp() * 1000)
    for ago_ms in (110_000, 50_000):
        record(interval(instance.id, start=now_ms - ago_ms, throttled_ms=45_000, under_limit_ms=5_500))
    assert codes(alice, instance) == ["limit_used_up"]
    watched = readings_get([instance])[instance.id].values
    assert (watched["limit_used_up", None], watched["throttled_under_limit", None]) == (1.0, 0.0), "alarms see it too"
    assert "waited 90 s" in shown(alice, instance)["reasons"][0]["detail"]
    record(interval(instance.id, start=now_ms - 40_000, direction="consume", throttled_ms=4_000, under_limit_ms=4_000))
    assert codes(alice, instance) == ["throttled_under_limit", "limit_used_up"], "each direction has a cause of its own"


def test_what_full_storage_refused_did_not_wait_for_the_limit(alice, instance, well, record):  # noqa: F811
    now_ms = int(SYSTEM_CLOCK.now().timestamp() * 1000)
    record(interval(instance.id, start=now_ms - 60_000, throttled_ms=50_000, blocked="storage"))
    assert codes(alice, instance) == []


def test_waiting_for_a_rule_of_its_own_tenant_is_no_reason(alice, instance, well, record):  # noqa: F811
    now_ms = int(SYSTEM_CLOCK.now().timestamp() * 1000)
    record(interval(instance.id, start=now_ms - 30_000, under_limit_ms=9000, rule="rule-1"))
    assert codes(alice, instance) == []


def test_no_master_no_zookeeper_and_a_silent_meter_are_said(alice, instance, flow_master, tree):
    PipelineStatus.objects.create(
        id=1, query="q", batch=1, records=1, bad_records=0, started_at_ms=0, seen_at_ms=0, problem=""
    )
    tree.away = True
    assert codes(alice, instance) == ["flow_unknown", "cluster_unknown", "metering_behind"]


@pytest.mark.parametrize(("age_s", "is_watched"), [(20, 0.0), (70, 1.0)])
def test_a_meter_that_is_begun_anew_is_said_at_once_and_wakes_nobody(instance, well, age_s, is_watched):
    seen_at_ms = int(SYSTEM_CLOCK.now().timestamp() * 1000) - age_s * 1000
    PipelineStatus.objects.create(
        id=1, query="q", batch=1, records=1, bad_records=0, started_at_ms=seen_at_ms, seen_at_ms=seen_at_ms, problem=""
    )
    assert [reason.code for reason in health_get([instance])[instance.id].reasons] == ["metering_behind"]
    assert readings_get([instance])[instance.id].values["metering_behind", None] == is_watched


def meter(now_ms: int, **members: object) -> None:
    """One that gives signs of life, and whose batches end."""
    PipelineStatus.objects.create(
        id=1, query="q", batch=1, records=1, bad_records=0, problem="",
        **{"started_at_ms": now_ms - 3_600_000, "seen_at_ms": now_ms, "moved_at_ms": now_ms, **members},
    )  # fmt: skip


def read_to(cluster: str, ago_ms: int, now_ms: int) -> None:
    Progress.objects.create(
        cluster=cluster, partition=0, topic_id="AAAAAAAAAAAAAAAAAAAAAA", next_offset=1, end_offset=2, looked_at_ms=now_ms,
        complete_to_ms=now_ms - ago_ms,
    )  # fmt: skip


@pytest.fixture
def now_ms() -> int:
    return int(SYSTEM_CLOCK.now().timestamp() * 1000)


def test_a_meter_that_lives_while_no_batch_ends_is_behind(alice, instance, well, now_ms):
    meter(now_ms, moved_at_ms=now_ms - 180_000)
    (reason,) = shown(alice, instance)["reasons"]
    assert reason["code"] == "metering_behind"
    assert reason["detail"].startswith("No batch has ended for 3 minutes. Nothing is lost")


@pytest.mark.parametrize(("ago_s", "expected"), [(500, []), (1500, ["metering_behind"])])
def test_a_meter_that_works_and_is_more_than_ten_minutes_behind_is(alice, instance, well, now_ms, ago_s, expected):
    meter(now_ms)
    read_to(instance.cluster.name, ago_s * 1000, now_ms)
    assert codes(alice, instance) == expected
    if expected:
        assert shown(alice, instance)["reasons"][0]["detail"].startswith(
            "The meter is 25 minutes behind. Nothing is lost"
        )


def test_a_meter_of_another_cluster_that_is_behind_is_not_ours(alice, instance, well, now_ms):
    meter(now_ms)
    read_to("another", 1_500_000, now_ms)
    assert codes(alice, instance) == []


@pytest.mark.parametrize(("minutes", "expected"), [(9, []), (11, ["metering_behind"])])
def test_a_meter_that_never_came_up_is_said_when_it_should_have(alice, instance, well, minutes, expected):
    created = SYSTEM_CLOCK.now() - timedelta(minutes=minutes)
    Instance.objects.unscoped("a test").filter(pk=instance.pk).update(created_at=created)
    assert codes(alice, instance) == expected


def test_where_there_is_no_metering_nobody_waits_for_it(alice, instance, well, settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, metering_absent="there is no Java here")
    created = SYSTEM_CLOCK.now() - timedelta(days=1)
    Instance.objects.unscoped("a test").filter(pk=instance.pk).update(created_at=created)
    assert codes(alice, instance) == []


def test_a_change_that_is_not_in_force_is_said(alice, instance, well):
    Instance.objects.unscoped("a test").filter(pk=instance.pk).update(problem="the specification is too large")
    assert codes(alice, instance) == ["change_not_in_force"]


def test_since_is_when_it_was_first_seen_and_is_forgotten_with_the_reason(alice, instance, well, clock):
    well["storage_full"] = True
    services.health_observe(clock=clock)
    first = clock.now()
    clock.advance(60)
    services.health_observe(clock=clock)
    (reason,) = health_get([instance], clock=clock)[instance.id].reasons
    assert reason.since == first
    remembered = health_remembered(instance)
    assert remembered is not None
    assert (remembered.state, remembered.reasons[0].since) == ("critical", first)
    well["storage_full"] = False
    services.health_observe(clock=clock)
    assert not HealthReason.objects.exists()
    well["storage_full"] = True
    clock.advance(60)
    services.health_observe(clock=clock)
    assert HealthReason.objects.get().since == clock.now()


def test_a_new_master_that_has_not_heard_of_every_broker_ends_nothing(alice, instance, well, clock):
    """It says 0 of what it does not know yet: a disk that is full does not become well for some seconds."""
    well |= {"storage_full": True, "storage_used_bytes": 10 * GIB, "partitions_without_leader": 2}
    services.health_observe(clock=clock)
    first = clock.now()
    clock.advance(10)
    well |= {"storage_full": False, "storage_used_bytes": 0, "partitions_without_leader": 0, "learning": True}
    services.health_observe(clock=clock)
    (health,) = health_get([instance], clock=clock).values()
    assert [reason.code for reason in health.reasons] == ["storage_full", "partitions_without_leader"]
    assert {row.since for row in HealthReason.objects.all()} == {first}
    assert codes(alice, instance) == ["storage_full", "partitions_without_leader"]
    well["learning"] = False
    services.health_observe(clock=clock)
    assert not HealthReason.objects.exists()


def test_what_was_the_matter_with_an_instance_that_is_gone_is_forgotten(alice, instance, well):
    well["storage_full"] = True
    services.health_observe()
    run_to_the_end(alice.api.delete(f"{URL}/{instance.id}").json()["operation_id"])
    services.health_observe()
    assert not HealthReason.objects.exists()


def test_metrics_are_of_the_callers_instances_alone(alice, charlie, instance, well):
    well["storage_full"] = True
    answer = alice.api.get("/api/v1/metrics")
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    assert f'sluice_instance_health{{instance="{instance.id}"}} 2' in answer.content.decode()
    assert instance.id not in charlie.api.get("/api/v1/metrics").content.decode()
