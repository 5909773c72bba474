"""The page on which an instance is paid in advance."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest

from controlplane.admission import prepaid
from controlplane.billing.models import Prepaid, PrepaidEvent
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.instances.models import Instance, InstanceState
from tests.controlplane.test_custom_roles import built_in_given

from .conftest import problem_beside, text_of

REASON = "a test"
BUY = {"months": "1", "at_end": "expire", "ends_at": "", "buy": "1"}


@pytest.fixture
def path(instance):
    return f"instances/{instance.id}/prepaid"


@pytest.fixture
def paid(at_alice, path):
    assert at_alice.post(path, BUY).status_code == 302
    return path


def kinds():
    return list(PrepaidEvent.objects.unscoped(REASON).order_by("pk").values_list("kind", flat=True))


def shown_end(instance):
    end = prepaid.prepaid_of(instance, SYSTEM_CLOCK.now()).ends_text
    assert end is not None
    return end


def test_settings_lead_there_and_it_says_how_it_is_paid(at_alice, instance, path):
    assert f"/{path}" in at_alice.get(f"instances/{instance.id}/settings").content.decode()
    page = text_of(at_alice.get(path))
    assert "by the hour" in page
    assert "A month in advance" in page


def test_a_preview_says_what_it_costs_and_pays_nothing(at_alice, path):
    page = at_alice.post(path, BUY | {"preview": "1"})
    assert page.status_code == 200
    assert "is added to the bill of this month" in text_of(page)
    assert kinds() == []


def test_it_is_paid_and_renewed_once_for_each_end(at_alice, instance, paid):
    page = text_of(at_alice.get(paid))
    assert "in advance" in page
    assert "Paid back if it is deleted now" in page
    renew = {"months": "2", "ends_at": shown_end(instance), "buy": "1"}
    for _ in range(2):
        assert at_alice.post(paid, renew).status_code == 302
    assert kinds() == ["bought", "renewed"]
    assert "Paid in advance until" in text_of(at_alice.get(f"instances/{instance.id}"))


def test_a_form_that_is_older_than_what_it_is_about_does_nothing(at_alice, instance, paid):
    page = at_alice.post(paid, BUY)  # as it was before it was bought
    assert page.status_code == 422
    assert "has changed meanwhile" in text_of(page)
    assert kinds() == ["bought"]


@pytest.mark.parametrize("months", ["0", "37", "x", ""])
def test_months_are_from_1_to_36(at_alice, path, months):
    page = at_alice.post(path, BUY | {"months": months})
    assert page.status_code == 422
    assert problem_beside(page, "months")
    assert kinds() == []


def test_what_becomes_of_it_at_the_end_is_decided_there(at_alice, paid):
    assert at_alice.post(paid, {"at_end": "renew", "renew_months": "3", "set": "1"}).status_code == 302
    row = Prepaid.objects.unscoped(REASON).get()
    assert (row.at_end, row.renew_months) == ("renew", 3)


def test_viewers_look(at_viewer, at_alice, paid):
    page = text_of(at_viewer.get(paid))
    assert "You may look, but not change anything here" in page
    assert at_viewer.post(paid, BUY).status_code == 403


def test_bought_in_advance_from_the_first_page(at_alice, brokers):
    form = {
        "name": "ahead", "bandwidth_mib_per_s": "5", "storage_gib": "10", "partitions": "60", "whitelist": "",
        "prepaid_months": "1", "prepaid_at_end": "postpaid",
    }  # fmt: skip
    assert at_alice.post("instances/new", form).status_code == 302
    row = Prepaid.objects.unscoped(REASON).get()
    assert (row.is_waiting, row.at_end) == (True, "postpaid")


def test_without_months_it_is_paid_by_the_hour(at_alice, brokers):
    form = {
        "name": "by the hour", "bandwidth_mib_per_s": "5", "storage_gib": "10", "partitions": "60", "whitelist": "",
        "prepaid_months": "", "prepaid_at_end": "expire",
    }  # fmt: skip
    assert at_alice.post("instances/new", form).status_code == 302
    assert kinds() == []


def test_the_price_slip_says_what_a_month_in_advance_costs(at_alice):
    page = text_of(at_alice.get("instances/new"))
    assert "a month, where months are paid in advance" in page


def test_the_bill_says_why_it_was_charged(at_alice, instance, paid):
    page = text_of(at_alice.get(f"instances/{instance.id}/bill"))
    assert "Bandwidth, in advance" in page
    assert "Paid in advance" in page


def test_an_operator_is_led_to_no_page_of_paying(at_alice, at_bob, alice, bob, instance, monkeypatch):
    now = SYSTEM_CLOCK.now()
    rows = Instance.objects.unscoped(REASON).filter(pk=instance.pk)
    rows.update(state=InstanceState.ISOLATED, isolated_at=now, destroys_at=now + timedelta(days=1))
    monkeypatch.setattr(prepaid, "prepaid_of", lambda *_: SimpleNamespace(has_expired=True))
    address = f"instances/{instance.id}"
    assert f"/{address}/prepaid" in at_bob.get(address).content.decode()
    built_in_given(alice, bob, "operator")
    page = at_bob.get(address)
    assert "What was paid in advance ended at" in text_of(page)
    assert f"/{address}/prepaid" not in page.content.decode()
