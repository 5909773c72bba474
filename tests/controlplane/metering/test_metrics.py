"""/metrics: what a Prometheus that has the token reads of metering."""

from __future__ import annotations

import json
import time

import pytest
from django.conf import settings

from controlplane.metering.models import Loss, PipelineStatus, Progress

TOKEN = "t" * 32


@pytest.fixture
def secrets(tmp_path, monkeypatch):
    import dataclasses

    path = tmp_path / "secrets.json"
    monkeypatch.setattr(settings, "ENVIRONMENT", dataclasses.replace(settings.ENVIRONMENT, secrets_file=path))
    return lambda **members: path.write_text(json.dumps(members))


def scraped(client, token: str = TOKEN) -> dict[str, float]:
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = answer.content.decode().splitlines()
    assert answer.content.endswith(b"\n")
    typed = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert {name.partition("{")[0] for name in samples} <= typed
    return {name: float(value) for name, value in samples.items()}


def test_lag_movement_problems_and_losses_are_metrics(client, db, secrets):
    secrets(metrics_token=TOKEN)
    now_ms = int(time.time() * 1000)
    PipelineStatus.objects.create(
        id=1, query="q", batch=3, records=7000, bad_records=2, early_records=4, last_record_at_ms=now_ms,
        started_at_ms=now_ms, seen_at_ms=now_ms, problem="", moved_at_ms=now_ms - 30_000, batch_ms=450,
        batch_records=120,
    )  # fmt: skip
    for partition, read in ((0, 900), (1, 400)):
        Progress.objects.create(
            partition=partition, topic_id="t", next_offset=read, end_offset=900, looked_at_ms=now_ms,
            complete_to_ms=now_ms - 60_000 * (partition + 1),
        )  # fmt: skip
    Loss.objects.create(
        kind="cut", partition=3, start_offset=5, end_offset=9, topic_id="t", sentence="s", found_at_ms=now_ms
    )
    found = scraped(client)
    assert found['sluice_metering_state{state="running"}'] == 1
    assert sum(value for name, value in found.items() if name.startswith("sluice_metering_state")) == 1
    assert found['sluice_metering_lag_records{partition="1"}'] == 500
    assert found['sluice_metering_lag_records{partition="0"}'] == 0
    assert found["sluice_metering_complete_age_seconds"] == pytest.approx(120, abs=10)
    assert found["sluice_metering_moved_age_seconds"] == pytest.approx(30, abs=10)
    assert found["sluice_metering_batch_seconds"] == 0.45
    assert found["sluice_metering_records_total"] == 7000
    assert found["sluice_metering_refused_records_total"] == 2
    assert found["sluice_metering_early_records_total"] == 4
    assert found["sluice_metering_open_losses"] == 1


def test_before_the_first_start_there_is_a_state_and_no_ages(client, db, secrets):
    secrets(metrics_token=TOKEN)
    found = scraped(client)
    assert found['sluice_metering_state{state="starting"}'] == 1
    names = {name.partition("{")[0] for name in found}
    assert not [name for name in names if "age" in name or "lag" in name]


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer x"}, {"Authorization": "Bearer "}, {"Authorization": TOKEN}]
)
def test_who_has_not_the_token_learns_nothing(client, db, secrets, headers):
    secrets(metrics_token=TOKEN)
    assert client.get("/metrics", headers=headers).status_code == 404


@pytest.mark.parametrize("members", [{}, {"metrics_token": ""}])
def test_without_a_token_in_the_secrets_there_are_no_metrics(client, db, secrets, members):
    secrets(**members)
    for token in ("", "None"):
        assert client.get("/metrics", headers={"Authorization": f"Bearer {token}"}).status_code == 404


def test_a_token_of_any_characters_is_compared_and_refused(client, db, secrets):
    secrets(metrics_token=TOKEN)
    assert client.get("/metrics", headers={"Authorization": "Bearer \xe9"}).status_code == 404
