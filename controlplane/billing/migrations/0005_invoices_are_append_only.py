"""The database itself refuses to change or remove an invoice.

On SQLite a later migration that rebuilds the table (AlterField, AddConstraint) takes the triggers with it, and has to make
them again; tests/controlplane/billing/test_invoice_chain.py notices where it has not.
"""

from django.db import migrations

SENTENCE = 'invoices are append-only'

SQLITE = [
    f"CREATE TRIGGER billing_invoice_no_{event.lower()} BEFORE {event} ON billing_invoice"
    f" BEGIN SELECT RAISE(ABORT, '{SENTENCE}'); END"
    for event in ('UPDATE', 'DELETE')
]
SQLITE_BACK = [f'DROP TRIGGER IF EXISTS billing_invoice_no_{event}' for event in ('update', 'delete')]

POSTGRESQL = [
    "CREATE FUNCTION billing_invoice_refuse() RETURNS trigger LANGUAGE plpgsql AS"
    f" $$ BEGIN RAISE EXCEPTION '{SENTENCE}' USING ERRCODE = 'integrity_constraint_violation'; END $$",
    "CREATE TRIGGER billing_invoice_append_only BEFORE UPDATE OR DELETE ON billing_invoice"
    " FOR EACH ROW EXECUTE FUNCTION billing_invoice_refuse()",
]
POSTGRESQL_BACK = [
    'DROP TRIGGER IF EXISTS billing_invoice_append_only ON billing_invoice',
    'DROP FUNCTION IF EXISTS billing_invoice_refuse()',
]


def run(statements):
    def operation(apps, schema_editor):
        for statement in statements[schema_editor.connection.vendor]:
            schema_editor.execute(statement)

    return operation


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0004_invoice_numbers'),
    ]

    operations = [
        migrations.RunPython(
            run({'sqlite': SQLITE, 'postgresql': POSTGRESQL}),
            run({'sqlite': SQLITE_BACK, 'postgresql': POSTGRESQL_BACK}),
        ),
    ]
