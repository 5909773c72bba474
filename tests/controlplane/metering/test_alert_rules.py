"""The Prometheus rules for metering ask for what /metrics tells, and each names a runbook that is there."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from controlplane.billing.metrics import billing_text
from controlplane.billing.pricing.rating import Month
from controlplane.billing.waiting import Waiting
from controlplane.metering.folding import FoldShown
from controlplane.metering.jobs import job_list
from controlplane.metering.metrics import jobs_text, metrics_text
from controlplane.metering.selectors import status

ROOT = Path(__file__).parents[3]
RULES = yaml.safe_load((ROOT / "deploy/prometheus/metering.rules.yaml").read_text())["groups"][0]["rules"]
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
pytestmark = pytest.mark.django_db


@pytest.fixture
def told() -> dict[str, set[str]]:
    """Name -> labels of everything that can be told."""
    fold = FoldShown(NOW, "a reason", NOW, 1, NOW, is_sweeping=False)
    shown = replace(status(), complete_to=NOW, final_to=NOW, moved_at=NOW, seen_at=NOW)
    text = metrics_text(shown, (), open_losses=1, now=NOW, differences=1, fold=fold)
    text += billing_text([Waiting(Month(2026, 5), "why", 3)], ["2026-05"])
    text += jobs_text(job_list(), now=NOW)
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(sluice_\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_asks_for_a_series_that_is_told_with_its_labels(rule, told):
    (name,) = set(re.findall(r"sluice_\w+", rule["expr"]))
    assert name in told
    used = {*re.findall(r"by \((\w+)\)", rule["expr"]), *re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])}
    assert used <= told[name]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_names_its_runbook(rule):
    assert (ROOT / rule["annotations"]["runbook"]).exists()


def test_a_month_that_waits_has_an_alert():
    assert "InvoicesWait" in {rule["alert"] for rule in RULES}
