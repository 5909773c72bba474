"""Credit notes, which the database itself refuses to change or remove, as it does invoices (0005).

On SQLite a later migration that rebuilds the table has to make the triggers again, as there.
"""

import django.db.models.deletion
from django.db import migrations, models


SENTENCE = 'credit notes are append-only'

SQLITE = [
    f"CREATE TRIGGER billing_creditnote_no_{event.lower()} BEFORE {event} ON billing_creditnote"
    f" BEGIN SELECT RAISE(ABORT, '{SENTENCE}'); END"
    for event in ('UPDATE', 'DELETE')
]
SQLITE_BACK = [f'DROP TRIGGER IF EXISTS billing_creditnote_no_{event}' for event in ('update', 'delete')]

POSTGRESQL = [
    "CREATE FUNCTION billing_creditnote_refuse() RETURNS trigger LANGUAGE plpgsql AS"
    f" $$ BEGIN RAISE EXCEPTION '{SENTENCE}' USING ERRCODE = 'integrity_constraint_violation'; END $$",
    "CREATE TRIGGER billing_creditnote_append_only BEFORE UPDATE OR DELETE ON billing_creditnote"
    " FOR EACH ROW EXECUTE FUNCTION billing_creditnote_refuse()",
]
POSTGRESQL_BACK = [
    'DROP TRIGGER IF EXISTS billing_creditnote_append_only ON billing_creditnote',
    'DROP FUNCTION IF EXISTS billing_creditnote_refuse()',
]


def run(statements):
    def operation(apps, schema_editor):
        for statement in statements[schema_editor.connection.vendor]:
            schema_editor.execute(statement)

    return operation


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0011_taxes'),
        ('tenants', '0004_second_factor'),
    ]

    operations = [
        migrations.CreateModel(
            name='CreditNote',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('currency', models.CharField(max_length=3)),
                ('amount', models.DecimalField(decimal_places=2, max_digits=24)),
                ('reason', models.TextField()),
                ('actor', models.CharField(max_length=254)),
                ('created_at', models.DateTimeField()),
                ('previous_hash', models.CharField(max_length=64)),
                ('hash', models.CharField(max_length=64)),
                ('invoice', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.invoice')),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.organisation')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('organisation', 'number'), name='one_credit_note_per_number'), models.CheckConstraint(condition=models.Q(('number__gte', 1)), name='credit_notes_begin_with_1'), models.CheckConstraint(condition=models.Q(('amount__gt', 0)), name='credit_notes_give_something_back')],
            },
        ),
        migrations.RunPython(
            run({'sqlite': SQLITE, 'postgresql': POSTGRESQL}),
            run({'sqlite': SQLITE_BACK, 'postgresql': POSTGRESQL_BACK}),
        ),
    ]
