"""The database refuses to replace invoices and credit notes, and to empty their tables."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from controlplane.billing.models import CreditNote, Invoice
from tests.support.django_process import answer_of

from .rows import note_row
from .test_invoice_chain import chained  # noqa: F401  # a fixture

TABLES = {"billing_invoice": "invoices are append-only", "billing_creditnote": "credit notes are append-only"}
UNIQUE = [
    ("billing_invoice", {"id"}),
    ("billing_invoice", {"organisation_id", "number"}),
    ("billing_invoice", {"instance_id", "month"}),
    ("billing_creditnote", {"id"}),
    ("billing_creditnote", {"organisation_id", "number"}),
]


def rows() -> list[object]:
    return [list(model.objects.unscoped("a test").order_by("pk").values()) for model in (Invoice, CreditNote)]


def kept(table: str) -> dict[str, object]:
    """The newest row, by column, as the database has it."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} ORDER BY id DESC LIMIT 1")
        return dict(zip([each[0] for each in cursor.description], cursor.fetchone(), strict=True))


def others(table: str, same: set[str]) -> dict[str, object]:
    """A row that has the same as the newest one in these columns, and is unlike it in what else is unique."""
    row = kept(table)
    unlike = {"id": row["id"] + 100, "number": row["number"] + 100} | ({"month": "2031-01"} if "month" in row else {})
    return row | {name: value for name, value in unlike.items() if name not in same} | {"hash": "f" * 64}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has no INSERT OR REPLACE")
@pytest.mark.parametrize(("table", "same"), UNIQUE)
@pytest.mark.parametrize("way", ["INSERT OR REPLACE", "REPLACE"])
def test_sqlite_replaces_none(chained, table, same, way):  # noqa: F811
    note_row(chained)
    before, row = rows(), others(table, same)
    marks = ", ".join(["%s"] * len(row))
    with (
        pytest.raises(DatabaseError, match=TABLES[table]),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(f"{way} INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    assert rows() == before


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the columns are read from SQLite's own tables")
@pytest.mark.parametrize("table", TABLES)
def test_sqlite_knows_every_unique_constraint(chained, table):  # noqa: F811
    """A constraint that comes later is to be in the trigger."""
    note_row(chained)
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, table).values()
    unique = {frozenset(each["columns"]) for each in found if each["unique"] or each["primary_key"]}
    assert unique == {frozenset(same) for name, same in UNIQUE if name == table}


@pytest.mark.django_db
def test_a_database_without_invoices_may_be_emptied():
    assert rows() == [[], []]
    call_command("flush", interactive=False, verbosity=0)


@pytest.mark.timeout(180)
def test_tables_with_rows_are_not_emptied(tmp_path, database_url):
    """By TRUNCATE of PostgreSQL, and by `flush` of both, which empties tables as long as there are none."""
    found = answer_of("tests.controlplane.billing.emptied", tmp_path, database_url)
    assert found.pop("flush of no invoice") == "done"
    assert found.pop("left") == [1, 1]
    assert set(found) >= {"flush"}
    for way, said in found.items():
        assert said in TABLES.values(), way
