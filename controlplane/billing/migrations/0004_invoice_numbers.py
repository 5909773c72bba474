"""Invoices get numbers without gaps within their organisation and are chained by their hashes, those that exist too."""

from django.db import migrations, models

from controlplane.billing.chain import FIRST, Sealed


def chained(apps, schema_editor):
    invoices = apps.get_model('billing', 'Invoice')._base_manager
    heads = {}
    for invoice in invoices.order_by('organisation_id', 'created_at', 'pk').iterator():
        number, previous = heads.get(invoice.organisation_id, (0, FIRST))
        sealed = Sealed(
            number=number + 1,
            organisation=invoice.organisation_id,
            instance=invoice.instance_id,
            month=invoice.month,
            currency=invoice.currency,
            total=invoice.total,
            created_at=invoice.created_at,
            lines=invoice.lines,
            input_hash=invoice.input_hash,
            previous_hash=previous,
        )
        heads[invoice.organisation_id] = (sealed.number, sealed.hash())
        invoices.filter(pk=invoice.pk).update(number=sealed.number, previous_hash=previous, hash=sealed.hash())


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0003_plans_by_the_hour'),
    ]

    operations = [
        migrations.AddField(
            model_name='invoice',
            name='number',
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='invoice',
            name='previous_hash',
            field=models.CharField(max_length=64, default=''),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='invoice',
            name='hash',
            field=models.CharField(max_length=64, default=''),
            preserve_default=False,
        ),
        migrations.RunPython(chained, migrations.RunPython.noop),
        migrations.AlterField(
            model_name='invoice',
            name='number',
            field=models.PositiveIntegerField(),
        ),
        migrations.AddConstraint(
            model_name='invoice',
            constraint=models.UniqueConstraint(fields=('organisation', 'number'), name='one_invoice_per_number'),
        ),
        migrations.AddConstraint(
            model_name='invoice',
            constraint=models.CheckConstraint(condition=models.Q(number__gte=1), name='numbers_begin_with_1'),
        ),
    ]
