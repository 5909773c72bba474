"""What operators read of an invoice that could not be closed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from controlplane.billing import closing
from controlplane.billing.models import InvoiceFailure
from controlplane.billing.pricing.rating import Month

NOW = datetime(2026, 6, 1, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (LookupError("no version 3 of the plan 'gold' is on record"), "no version 3 of the plan 'gold' is on record"),
        (KeyError("gold"), "KeyError: 'gold'"),
    ],
)
def test_a_sentence_stands_alone_and_a_bug_has_its_name(instance, monkeypatch, error, problem):
    def refuses(**_):
        raise error

    monkeypatch.setattr(closing, "invoice_close", refuses)
    assert closing._close_guarded(instance, Month(2026, 5), NOW, None) is False
    assert InvoiceFailure.objects.unscoped("a test").get().problem == problem
