"""No worker is there: pages, REST and metrics say so within ten seconds, and that what is asked for waits."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane import probes
from controlplane.alarms import rules as alarms
from controlplane.core import pulse
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import WorkerPulse
from controlplane.core.pulse import BUSY_AT_MOST_S, Busy
from controlplane.core.tasks import worker_pulse
from controlplane.health import rules, services
from controlplane.health.models import HealthReason
from controlplane.health.selectors import health_get, health_remembered
from tests.controlplane.console.conftest import at_alice, at_staff, text_of  # noqa: F401  # fixtures
from tests.controlplane.health.test_observing import codes, shown, well  # noqa: F401  # likewise
from tests.support.waiting import wait_for

from .fakes import ManualClock

SAYS = "Nothing is done in the background now."


@pytest.fixture
def heard(db):
    """A worker was heard so many seconds ago."""

    def heard(seconds: float):
        WorkerPulse.objects.all().delete()
        moment = SYSTEM_CLOCK.now() - timedelta(seconds=seconds)
        WorkerPulse.objects.create(pk=1, seen_at=moment)
        return moment

    return heard


def test_there_is_one_row_however_often_a_worker_says_that_it_is_there(db):
    clock = ManualClock()
    pulse.pulse_note(clock=clock)
    clock.advance(2)
    pulse.pulse_note(clock=clock)
    assert list(WorkerPulse.objects.values_list("seen_at", flat=True)) == [clock.now()]
    clock.advance(7)
    assert pulse.away_since(clock=clock) is None
    clock.advance(1)
    assert pulse.away_since(clock=clock) == pulse.worker_seen_at() == clock.now() - timedelta(seconds=8)
    worker_pulse()
    assert WorkerPulse.objects.count() == 1
    assert pulse.away_since() is None


def test_where_no_worker_ever_was_nothing_is_said(alice, instance, well):  # noqa: F811
    assert pulse.away_since() is None
    assert codes(alice, instance) == []


def test_instances_say_that_changes_wait_and_since_when(alice, instance, well, heard):  # noqa: F811
    heard(5)
    assert codes(alice, instance) == []
    moment = heard(12)
    (reason,) = shown(alice, instance)["reasons"]
    assert (reason["code"], reason["state"], reason["title"]) == ("work_waits", "degraded", "Changes wait")
    assert reason["detail"].startswith(SAYS)
    assert reason["since"] == moment.isoformat().replace("+00:00", "Z")
    text = alice.api.get("/api/v1/metrics").content.decode()
    assert f'sluice_instance_health_reason{{instance="{instance.id}",code="work_waits",state="degraded"}} 1' in text


def test_what_workers_wrote_down_is_not_taken_for_what_is(instance, well, heard):  # noqa: F811
    moment = heard(12)
    found = health_remembered(instance)
    assert found is not None
    assert [(reason.code, reason.since) for reason in found.reasons] == [("work_waits", moment)]


def test_a_worker_that_looks_is_there(instance, well, heard):  # noqa: F811
    """It may look before its first pulse: nothing is written down of it, and no alarm is judged by it."""
    heard(12)
    services.health_observe()
    assert not HealthReason.objects.exists()
    assert health_get([instance], by_worker=True)[instance.id].reasons == ()


def test_no_alarm_watches_what_only_an_absence_of_workers_shows():
    assert rules.UNWATCHED == ("work_waits",)
    assert "work_waits" not in alarms.WATCHED


def test_pages_say_so(at_alice, at_staff, instance, well, heard):  # noqa: F811
    heard(12)
    page = f"instances/{instance.id}"
    for path in ("", "/health", "/quota"):
        assert SAYS in text_of(at_alice.get(page + path))
    assert "Changes wait" in text_of(at_alice.get("instances"))
    assert "Degraded" in text_of(at_alice.get(f"{page}/usage"))
    assert "No worker is heard: nothing that is asked for begins" in text_of(at_staff.get("/fleet"))
    heard(1)
    assert SAYS not in text_of(at_alice.get(page))
    assert "No worker is heard" not in text_of(at_staff.get("/fleet"))


def test_fleet_says_that_redis_is_away(at_staff, monkeypatch):  # noqa: F811
    assert "Redis does not answer" not in text_of(at_staff.get("/fleet"))
    monkeypatch.setattr("controlplane.core.kept.is_away", lambda: True)
    assert "Redis does not answer: workers are not told what there is to do" in text_of(at_staff.get("/fleet"))


def test_the_probe_raises_where_none_is_heard(monkeypatch, db, heard):
    monkeypatch.setattr(type(probes.connections["default"]), "close", lambda _self: None)  # the test's own
    heard(1)
    probes._worker()
    heard(12)
    with pytest.raises(probes.WorkersAway, match="none was heard since"):
        probes._worker()


def test_prometheus_is_told_of_every_part(client, tmp_path, settings, db, monkeypatch):
    def away():
        raise OSError("away")

    monkeypatch.setattr(probes, "PROBES", (probes.Probe("database", int), probes.Probe("worker", away)))
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"metrics_token": "token"}))
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, secrets_file=secrets)
    text = client.get("/metrics", headers={"Authorization": "Bearer token"}).content.decode()
    assert 'sluice_part_up{part="database"} 1\nsluice_part_up{part="worker"} 0\n' in text


# --- A worker that is busy ------------------------------------------------------------------------------------------------


@pytest.fixture
def noted(monkeypatch):
    """Each time that somebody says that a worker is there, by the thread that says it."""
    said = []
    monkeypatch.setattr(pulse, "pulse_renew", lambda: said.append(threading.current_thread().name))
    return said


@pytest.fixture
def busy(monkeypatch):
    made = Busy()
    monkeypatch.setattr(pulse, "BUSY", made)
    yield made
    made.stop()


def test_a_process_says_that_a_worker_is_there_while_it_runs_a_task_and_not_when_it_rests(busy, noted):
    thread = busy.watch(0.02)
    busy.begun("one")
    busy.begun("two")
    wait_for(lambda: len(noted) >= 3, 10, "a pulse")
    busy.ended("one")
    assert busy.is_busy()
    busy.ended("two")
    busy.ended("two")
    assert not busy.is_busy()
    busy.stop()
    thread.join(10)
    assert not thread.is_alive()
    count = len(noted)
    assert set(noted) == {"pulse of a busy worker"}
    resting = Busy()
    thread = resting.watch(0.01)
    thread.join(0.2)
    resting.stop()
    thread.join(10)
    assert len(noted) == count


def test_a_busy_worker_is_no_news_where_no_message_of_beats_ever_came(db):
    """Beat of an earlier release sends none: nobody would renew the row between tasks."""
    pulse.pulse_renew()
    assert pulse.worker_seen_at() is None
    clock = ManualClock()
    pulse.pulse_note(clock=clock)
    clock.advance(5)
    pulse.pulse_renew(clock=clock)
    assert pulse.worker_seen_at() == clock.now()


def test_a_task_that_may_never_end_is_no_sign_of_life(busy, monkeypatch):
    now_s = [1000.0]
    monkeypatch.setattr(pulse, "monotonic", lambda: now_s[0])
    busy.begun("hangs")
    now_s[0] += BUSY_AT_MOST_S - 1
    assert busy.is_busy()
    now_s[0] += 1
    assert not busy.is_busy()
    busy.begun("another")
    assert busy.is_busy()


def test_a_database_that_is_away_is_told_again(busy, monkeypatch, caplog):
    said = []

    def refuse_once():
        said.append(1)
        if len(said) == 1:
            raise OSError("no such host")

    monkeypatch.setattr(pulse, "pulse_renew", refuse_once)
    busy.begun("one")
    with caplog.at_level(logging.WARNING):
        busy._note()
        busy._note()
    assert len(said) == 2
    assert caplog.text.count("does not take the pulse of a busy worker: no such host") == 1


WORKER = """
import os, time
import controlplane.celery
import django
django.setup()
from celery.signals import worker_ready
from controlplane.celery import app
from controlplane.core import pulse

def say(line):
    os.write(1, line.encode() + b"\\n")

pulse.pulse_renew = lambda: say("pulse")

@app.task(name="slow")
def slow():
    say("begun")
    time.sleep(6)
    say("over")

@worker_ready.connect(weak=False)
def send(**_said):
    slow.apply_async()

app.conf.broker_url = "memory://"
app.worker_main(["worker", "--pool=prefork", "--concurrency=1", "--without-mingle", "--without-gossip", "--without-heartbeat"])
"""


@pytest.mark.integration
@pytest.mark.timeout(90)
def test_the_only_process_of_a_worker_says_that_it_is_there_while_a_slow_task_runs():
    """No message reaches it meanwhile: neither beat nor Redis is there."""
    with subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE, text=True, bufsize=1) as worker:
        assert worker.stdout is not None
        told = []
        for line in worker.stdout:
            if line.strip() in ("begun", "pulse", "over"):
                told.append(line.strip())
            if told[-1:] == ["over"]:
                break
        worker.terminate()
        worker.stdout.read()
    assert told.count("pulse") >= 2
