"""A database of its own with an invoice and a credit note, which somebody tries to empty. Run by test_append_only.py.

Prints what each way came to, as JSON.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from tests.support.django_process import set_up

TRUNCATED = (
    "billing_invoice CASCADE",
    "billing_creditnote",
    "billing_invoice, billing_creditnote",
    "tenants_organisation CASCADE",
)


def main(directory: Path, database_url: str) -> None:
    set_up(str(directory), database_url)
    from django.core.management import call_command
    from django.core.management.base import CommandError
    from django.db import DatabaseError, connection

    from controlplane.accounts import services as accounts
    from controlplane.billing.models import CreditNote, Invoice
    from controlplane.tenants import services as tenants
    from tests.controlplane.rows import instance_row

    from .rows import note_row

    def flush() -> str:
        try:
            call_command("flush", interactive=False, verbosity=0)
        except CommandError as error:
            return sentence(error.__cause__)
        return "done"

    def truncate(tables: str) -> str:
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"TRUNCATE {tables}")
        except DatabaseError as error:
            return sentence(error)
        return "done"

    found = {"flush of no invoice": flush()}
    user, _ = accounts.user_ensure(email="alice@example.com", password=None)
    organisation = tenants.organisation_create(name="alice's", owner=user)
    Invoice(
        number=1, organisation=organisation, instance=instance_row(organisation, "ins-aaaaaaaa"), month="2026-05",
        currency="CNY", total=Decimal(10), lines=[], inputs={}, input_hash="a" * 64, created_at=datetime(2026, 6, 1, tzinfo=UTC),
        previous_hash="0" * 64, hash="b" * 64,
    ).save(force_insert=True)  # fmt: skip
    note_row(organisation)
    if connection.vendor == "postgresql":
        found |= {tables: truncate(tables) for tables in TRUNCATED}
    found["flush"] = flush()
    left = [model.objects.unscoped("a test").count() for model in (Invoice, CreditNote)]
    print(json.dumps({**found, "left": left}))


def sentence(error: BaseException | None) -> str:
    return str(error).splitlines()[0]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
