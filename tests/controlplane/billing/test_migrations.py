"""Migrations of bills keep what is there, both ways."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from controlplane.billing.models import Invoice
from controlplane.billing.pricing.documents import digest_of
from controlplane.billing.pricing.plans import PRO
from controlplane.billing.verification import _invoices_verify
from controlplane.tenants.models import Organisation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]  # of earlier releases: they change no more


INSTANCES = ("instances", "0003_operators_limits")
"""Instances as these migrations know them: rows are made that what came later would refuse."""


class Database:
    def at(self, migration: str):
        """The models as they were after this migration of billing."""
        nodes = [("billing", migration), INSTANCES]
        MigrationExecutor(connection).migrate(nodes)
        return MigrationExecutor(connection).loader.project_state(nodes).apps


@pytest.fixture
def database():
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    yield Database()
    MigrationExecutor(connection).migrate(newest)


def test_choices_by_the_month_become_choices_by_the_hour_and_back(database):
    old = database.at("0002_invoicefailure")
    organisation = old.get_model("tenants", "Organisation")(id="org-aaaaaaaa", name="a", created_at=datetime.now(UTC))
    organisation.save()
    choices = old.get_model("billing", "PlanChoice")
    choices(organisation=organisation, plan="traffic", from_month="2026-05").save()

    new = database.at("0003_plans_by_the_hour").get_model("billing", "PlanChoice")
    assert [(row.plan, row.at) for row in new._base_manager.all()] == [("traffic", datetime(2026, 5, 1, tzinfo=UTC))]
    new(organisation_id="org-aaaaaaaa", plan="pro", at=datetime(2026, 5, 20, 10, tzinfo=UTC)).save()

    database.at("0002_invoicefailure")
    assert [(row.plan, row.from_month) for row in choices._base_manager.all()] == [("pro", "2026-05")]
    choices._base_manager.all().delete()
    organisation.delete()


def test_invoices_that_exist_get_numbers_and_are_chained_and_can_be_without_again(database):
    old = database.at("0003_plans_by_the_hour")

    def made(app: str, model: str, **fields):
        row = old.get_model(app, model)(**fields)
        row.save()
        return row

    now = datetime(2026, 6, 1, 7, 0, 0, 250, tzinfo=UTC)
    organisations = [made("tenants", "Organisation", id=f"org-{name * 8}", name=name, created_at=now) for name in "ab"]
    cluster = made("clusters", "PhysicalCluster", name="migrating")
    rows = []
    for organisation in organisations:
        instance = made(
            "instances", "Instance", id=organisation.id.replace("org", "ins"), organisation=organisation, name="i",
            cluster=cluster, bandwidth_mib_per_s=1, storage_gib=1, partitions=1, created_at=now,
        )  # fmt: skip
        rows.append(instance)
        for month in ("2026-04", "2026-05"):
            inputs = {
                "version": 1, "plan": PRO.document(), "periods": [], "month": month, "now": "2026-06-01T07:00:00Z",
                "used": {"produced_bytes": 0, "consumed_bytes": 0, "stored_byte_seconds": 0},
            }  # fmt: skip
            made(
                "billing", "Invoice", organisation=organisation, instance=instance, month=month, currency="CNY",
                total=Decimal("0.00"), lines=[], inputs=inputs, input_hash=digest_of(inputs), created_at=now,
            )  # fmt: skip

    database.at("0006_settled")
    for organisation in Organisation.objects.all():
        invoices = Invoice.objects.for_organisation(organisation).order_by("number")
        assert [(invoice.number, invoice.month) for invoice in invoices] == [(1, "2026-04"), (2, "2026-05")]
        assert list(_invoices_verify(organisation)) == []  # there are no credit notes yet

    database.at("0003_plans_by_the_hour")
    assert old.get_model("billing", "Invoice")._base_manager.count() == 4
    old.get_model("billing", "Invoice")._base_manager.all().delete()
    for row in (*rows, cluster, *organisations):
        row.delete()
