"""The page of elastic bandwidth."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.instances.models import Instance
from controlplane.metering.models import ElasticJournal

from .conftest import problem_beside, text_of


@pytest.fixture
def path(instance):
    return f"instances/{instance.id}/elastic-bandwidth"


def row():
    return Instance.objects.unscoped("a test").get()


def test_settings_lead_there_and_it_is_off(at_alice, instance, path):
    assert f"/{path}" in at_alice.get(f"instances/{instance.id}/settings").content.decode()
    page = text_of(at_alice.get(path))
    assert "off" in page
    assert "A GB above it" in page
    assert '<span class="unit">CNY</span>' in at_alice.get(path).content.decode()


def test_a_cap_and_a_budget_are_set_and_taken_away(at_alice, instance, path):
    assert at_alice.post(path, {"cap_mib_per_s": "8", "budget_per_month": "20.50"}).status_code == 302
    assert (row().elastic_mib_per_s, str(row().elastic_budget)) == (8, "20.50")
    assert "up to 8 MiB/s" in text_of(at_alice.get(f"instances/{instance.id}")).replace(
        "\N{NARROW NO-BREAK SPACE}", " "
    )
    assert at_alice.post(path, {"cap_mib_per_s": "", "budget_per_month": ""}).status_code == 302
    assert row().elastic_mib_per_s is None


@pytest.mark.parametrize(
    ("field", "value"),
    [("cap_mib_per_s", "5"), ("cap_mib_per_s", "11"), ("cap_mib_per_s", "x"), ("budget_per_month", "0")],
)
def test_what_cannot_be_stands_beside_its_field(at_alice, path, field, value):
    page = at_alice.post(path, {"cap_mib_per_s": "8", "budget_per_month": "", field: value})
    assert page.status_code == 422
    assert problem_beside(page, field)
    assert row().elastic_mib_per_s is None


def test_viewers_look(at_viewer, path):
    assert "You may look, but not change anything here" in text_of(at_viewer.get(path))
    assert at_viewer.post(path, {"cap_mib_per_s": "8"}).status_code == 403


def test_operators_see_which_master_is_not_read_and_since_when(at_staff, instance):
    ElasticJournal.objects.create(
        cluster=instance.cluster,
        master=7,
        http="http://127.0.0.1:7",
        active_at=SYSTEM_CLOCK.now() - timedelta(hours=1),
        read_at=SYSTEM_CLOCK.now() - timedelta(hours=3),
    )
    page = text_of(at_staff.get("/fleet"))
    assert "Elastic bandwidth of master 7: Its master does not answer." in page
    assert "on no bill and in no budget yet. Read last: 3 hours ago" in page
    ElasticJournal.objects.update(read_at=SYSTEM_CLOCK.now())
    assert "Elastic bandwidth of master" not in text_of(at_staff.get("/fleet"))
