"""Metering as operators see it: whether it moves, how far it is behind, and what it could never read."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.clusters.models import Broker
from controlplane.clusters.services import cluster_ensure
from controlplane.metering.models import BrokerWaiver, Difference, Loss, PipelineStatus, Progress, Reconciliation
from tests.support.usage import hours_told

from .conftest import text_of


def now_ms():
    """When it is asked: a whole run takes longer than a meter may be silent."""
    return int(time.time() * 1000)


@pytest.fixture
def job(db):
    """A job that moves; the second partition is behind."""
    PipelineStatus.objects.create(
        id=1, query="q", batch=3, records=7000, bad_records=2, early_records=4, last_record_at_ms=now_ms(),
        started_at_ms=now_ms() - 3_600_000, seen_at_ms=now_ms(), problem="", moved_at_ms=now_ms() - 2_000, batch_ms=450,
        batch_records=120,
    )  # fmt: skip
    for partition, read, complete in ((0, 900, now_ms() - 5_000), (1, 400, now_ms() - 7_200_000)):
        Progress.objects.create(
            partition=partition, topic_id="t", next_offset=read, end_offset=900, looked_at_ms=now_ms(),
            complete_to_ms=complete,
        )  # fmt: skip


@pytest.fixture
def loss(db):
    return Loss.objects.create(
        kind="expired", partition=3, start_offset=5, end_offset=9, topic_id="t",
        sentence="records 5 to 8 of partition 3 of __usage expired before they were read", found_at_ms=now_ms(),
    )  # fmt: skip


def test_it_says_how_far_each_partition_has_been_read_and_up_to_when_usage_is_complete(at_staff, job):
    text = text_of(at_staff.get("/fleet/metering"))
    assert re.search("State Behind since [0-9-]{10} [0-9:]{5} UTC", text)
    assert "Running" not in text
    assert "Partition 0 900 900 0 just now" in text
    assert "Partition 1 400 900 500 2 hours ago" in text
    assert "Records behind 500" in text
    assert "120 records in 0.45 s" in text
    assert "7 000 read, 2 refused, 4 told under an hour that had not come" in text


def test_a_stream_that_keeps_up_is_running(at_staff, job):
    Progress.objects.update(complete_to_ms=now_ms() - 5_000)
    assert "State Running" in text_of(at_staff.get("/fleet/metering"))


def test_one_that_has_just_begun_to_catch_up_does_not_know_how_much_there_is(at_staff, job):
    Progress.objects.update(complete_to_ms=now_ms() - 48 * 3_600_000, next_offset=900)
    text = text_of(at_staff.get("/fleet/metering"))
    assert "Partition 1 900 900 \N{EN DASH} 2 days" in text.replace("\xa0", " ")
    assert "Records behind \N{EN DASH}" in text


def test_metering_that_was_there_and_is_absent_is_told_on_the_fleets_page_too(at_staff, job, settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, metering_absent="there is no Java here")
    assert "Records behind \N{EN DASH}" in text_of(at_staff.get("/fleet/metering"))
    assert "Metering : There is no Java here" in text_of(at_staff.get("/fleet"))
    PipelineStatus.objects.all().delete()
    assert "There is no Java here" not in text_of(at_staff.get("/fleet"))


def test_numbers_that_differ_have_their_thousands_apart_to_the_last_digit(at_staff, db):
    run = Reconciliation.objects.create(
        at_ms=now_ms(),
        start_hour="2026-11-21T00:00:00Z",
        end_hour="2026-11-22T00:00:00Z",
        compared=1,
        different=1,
        raised=0,
    )
    Difference.objects.create(
        reconciliation=run, instance="ins-abcdefgh", hour="2026-11-21T09:00:00Z", against="database", counter="produced_bytes",
        recomputed="9007199254740993", known="0",
    )  # fmt: skip
    text = text_of(at_staff.get("/fleet/metering"))
    assert "9 007 199 254 740 993" in text.replace("\N{NARROW NO-BREAK SPACE}", " ")


def test_a_batch_that_hangs_is_told_although_signs_of_life_go_on(at_staff, job):
    PipelineStatus.objects.update(moved_at_ms=now_ms() - 10 * 60_000)
    for path in ("/fleet/metering", "/fleet"):
        assert "No batch has ended for 10 minutes" in text_of(at_staff.get(path))


def test_a_job_that_fails_is_told_on_the_fleets_page_too(at_staff, job):
    PipelineStatus.objects.update(problem="the topic is not there")
    for path in ("/fleet/metering", "/fleet"):
        assert "The topic is not there" in text_of(at_staff.get(path))


def test_a_loss_is_shown_until_an_operator_has_settled_it_and_who_did_stays(at_staff, job, loss):
    sentence = "Records 5 to 8 of partition 3 of __usage expired before they were read"
    for path in ("/fleet/metering", "/fleet"):
        assert sentence in text_of(at_staff.get(path))
    answer = at_staff.post("/fleet/metering", {"loss": loss.pk})
    assert (answer.status_code, answer["Location"]) == (302, "/fleet/metering")
    assert sentence not in text_of(at_staff.get("/fleet"))
    loss.refresh_from_db()
    assert loss.settled_at is not None
    assert f"Settled by {loss.settled_by}" in text_of(at_staff.get("/fleet/metering"))
    assert "@" in loss.settled_by


@pytest.mark.parametrize("sent", [{}, {"loss": "x"}, {"loss": "999"}])
def test_a_loss_that_is_none_is_not_found(at_staff, job, loss, sent):
    assert at_staff.post("/fleet/metering", sent).status_code == 404
    loss.refresh_from_db()
    assert loss.settled_at is None


def test_a_tenant_settles_nothing(at_alice, loss):
    assert at_alice.client.post("/fleet/metering", {"loss": loss.pk}).status_code == 404
    loss.refresh_from_db()
    assert loss.settled_at is None


def test_before_the_first_start_the_page_says_so(at_staff, db):
    text = text_of(at_staff.get("/fleet/metering"))
    assert "The meter has not come up yet" in text
    assert "No partition has been looked at" in text


def test_a_meter_that_moves_and_has_lost_nothing_is_no_notice_on_the_fleets_page(at_staff, job):
    assert "meter" not in text_of(at_staff.get("/fleet")).lower().replace("metering", "")


@pytest.mark.usefixtures("two_brokers")
class TestBrokers:
    @pytest.fixture
    def two_brokers(self, job):
        """The first has told all, the second is away."""
        now = datetime.now(UTC)
        for number, hours in ((1, 1), (2, 30)):
            away = now - timedelta(hours=29) if number == 2 else None
            Broker.objects.create(
                cluster=cluster_ensure(), broker_id=number, host="10.0.0.1", port=9000 + number, away_since=away
            )
            hours_told(number, f"{now - timedelta(hours=hours):%Y-%m-%dT%H}", now - timedelta(hours=hours - 1))

    def test_it_says_what_each_has_told_and_whom_usage_waits_for(self, at_staff):
        text = text_of(at_staff.get("/fleet/metering"))
        assert re.search("Broker 1 .*? Up to date Broker 2 .*? Usage waits for it Away since", text)

    def test_one_that_is_up_is_not_to_be_let_go_while_its_records_have_not_been_read(self, at_staff):
        PipelineStatus.objects.update(last_record_at_ms=now_ms() - 48 * 3_600_000)
        Broker.objects.update(away_since=None)
        text = text_of(at_staff.get("/fleet/metering"))
        assert re.search("Broker 2 .*? Not read yet", text)
        assert "Do not wait" not in text

    def test_one_that_is_away_may_be_let_go_although_records_have_not_been_read(self, at_staff):
        PipelineStatus.objects.update(last_record_at_ms=now_ms() - 48 * 3_600_000)
        assert "Do not wait" in text_of(at_staff.get("/fleet/metering"))

    def test_one_that_will_not_come_back_is_waived_with_a_reason(self, at_staff):
        answer = at_staff.post("/fleet/metering", {"broker": "2", "reason": " "}, follow=True)
        assert "Say why usage shall not wait" in text_of(answer)
        answer = at_staff.post("/fleet/metering", {"broker": "2", "reason": "its disk burned"}, follow=True)
        text = text_of(answer)
        assert "Usage no longer waits for broker 2." in text
        assert re.search("Broker 2 .*? Away since .*?, and not waited for", text)
        assert re.search("Not waited for .*? Broker 2 has told all up to .*? Its disk burned", text)
        assert "admin@example.com" in text
        again = at_staff.post("/fleet/metering", {"broker": "2", "reason": "x"}, follow=True)
        assert "usage does not wait for broker 2" in text_of(again)

    @pytest.mark.parametrize("named", ["x", "9", "99999999999"])
    def test_a_broker_that_is_none_is_not_found(self, at_staff, named):
        assert at_staff.post("/fleet/metering", {"broker": named, "reason": "x"}).status_code == 404

    def test_a_tenant_waives_nobody(self, at_alice):
        assert at_alice.client.post("/fleet/metering", {"broker": "2", "reason": "x"}).status_code == 404
        assert not BrokerWaiver.objects.exists()
