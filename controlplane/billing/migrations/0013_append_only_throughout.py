"""Invoices and credit notes: what passes the triggers of 0005 and 0012, which are of rows that are changed or removed.

PostgreSQL fires none of them for TRUNCATE. SQLite fires none for the row that INSERT OR REPLACE removes (unless
`recursive_triggers` is on), so it refuses an insertion that would replace one. A table without rows may be truncated: so `flush`
empties a database that has no invoice.

On SQLite a later migration that rebuilds a table has to make its triggers again, as there.
"""

from django.db import migrations

SENTENCES = {'invoice': 'invoices are append-only', 'creditnote': 'credit notes are append-only'}
# What an insertion would replace: every unique constraint of the table.
TAKEN = {
    'invoice': (
        'id = NEW.id OR (organisation_id = NEW.organisation_id AND number = NEW.number)'
        ' OR (instance_id = NEW.instance_id AND month = NEW.month)'
    ),
    'creditnote': 'id = NEW.id OR (organisation_id = NEW.organisation_id AND number = NEW.number)',
}

SQLITE = [
    f"CREATE TRIGGER billing_{name}_no_replace BEFORE INSERT ON billing_{name}"
    f" WHEN EXISTS (SELECT 1 FROM billing_{name} WHERE {TAKEN[name]})"
    f" BEGIN SELECT RAISE(ABORT, '{sentence}'); END"
    for name, sentence in SENTENCES.items()
]
SQLITE_BACK = [f'DROP TRIGGER IF EXISTS billing_{name}_no_replace' for name in SENTENCES]

POSTGRESQL = [
    statement
    for name, sentence in SENTENCES.items()
    for statement in (
        f"CREATE FUNCTION billing_{name}_refuse_truncate() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN IF EXISTS (SELECT 1 FROM billing_{name}) THEN"
        f" RAISE EXCEPTION '{sentence}' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NULL; END $$",
        f"CREATE TRIGGER billing_{name}_no_truncate BEFORE TRUNCATE ON billing_{name}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION billing_{name}_refuse_truncate()",
    )
]
POSTGRESQL_BACK = [
    statement
    for name in SENTENCES
    for statement in (
        f'DROP TRIGGER IF EXISTS billing_{name}_no_truncate ON billing_{name}',
        f'DROP FUNCTION IF EXISTS billing_{name}_refuse_truncate()',
    )
]


def run(statements):
    def operation(apps, schema_editor):
        for statement in statements[schema_editor.connection.vendor]:
            schema_editor.execute(statement)

    return operation


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0012_credit_notes'),
    ]

    operations = [
        migrations.RunPython(
            run({'sqlite': SQLITE, 'postgresql': POSTGRESQL}),
            run({'sqlite': SQLITE_BACK, 'postgresql': POSTGRESQL_BACK}),
        ),
    ]
