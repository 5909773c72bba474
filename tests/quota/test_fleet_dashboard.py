"""Grafana's dashboard of the fleet asks for what the masters tell Prometheus."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quota.contracts.report import InstanceReport, LoopLoad
from quota.contracts.rows import Row, Unit
from quota.master.service import Service
from quota.master.views import metrics_text
from tests.quota.samples import INSTANCE, flow, report, spec
from tests.support.dashboards import dashboard, overlaps, problems, shape_problems, told

BOARD = dashboard("fleet")


@pytest.fixture
def text():
    """What an active master tells that has heard of everything."""
    clock = [0.0]
    service = Service(period_ms=1000, lease_ms=10_000, now=lambda: clock[0])
    limited = spec()
    service.set_specs({INSTANCE: replace(limited, limits=replace(limited.limits, loop_ms_per_s=300))})
    service.won(6)
    clock[0] = 100.0
    counts = {INSTANCE: 1}
    load = LoopLoad(63_000, INSTANCE, 700, counts, counts, counts, counts, counts, counts)
    said = report(1, flow(300), storage=40, connections=2)
    row = InstanceReport(flow(212_440, leaders=1), flow(leaders=1), 0, 0)
    rows = {**said.instances, Row(INSTANCE, unit=Unit.LOOP_TIME).key: row}
    service.report(replace(said, instances=rows, loop=load, trouble={INSTANCE: (1, 6)}))
    return metrics_text(service.ledger, reports_total=1, now=clock[0])


def test_every_query_names_a_series_that_is_told_with_its_labels(text):
    assert problems(BOARD, text) == []


def test_what_this_master_tells_is_more_than_nothing(text):
    assert len(told(text)) >= 15


def test_panels_have_units_descriptions_and_places_of_their_own():
    assert shape_problems(BOARD) == []
    assert overlaps(BOARD) == []
