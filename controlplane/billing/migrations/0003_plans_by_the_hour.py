"""A plan counts from an hour on, where it counted from the beginning of a month.

Backwards, of several choices within a month the last one stands for all of it, which is what such a month was then.
"""

from datetime import UTC, datetime

from django.db import migrations, models


def hours_from_months(apps, schema_editor):
    choices = apps.get_model('billing', 'PlanChoice')._base_manager
    for choice in choices.all():
        year, month = map(int, choice.from_month.split('-'))
        choices.filter(pk=choice.pk).update(at=datetime(year, month, 1, tzinfo=UTC))


def months_from_hours(apps, schema_editor):
    choices = apps.get_model('billing', 'PlanChoice')._base_manager
    last = {}
    for choice in choices.order_by('at'):
        last[choice.organisation_id, choice.at.astimezone(UTC).strftime('%Y-%m')] = choice.pk
    choices.exclude(pk__in=last.values()).delete()
    for (_, month), key in last.items():
        choices.filter(pk=key).update(from_month=month)


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0002_invoicefailure'),
    ]

    operations = [
        migrations.AddField(
            model_name='planchoice',
            name='at',
            field=models.DateTimeField(null=True),
        ),
        migrations.RemoveConstraint(
            model_name='planchoice',
            name='one_plan_per_month',
        ),
        migrations.AlterField(
            model_name='planchoice',
            name='from_month',
            field=models.CharField(max_length=7, default=''),
        ),
        migrations.RunPython(hours_from_months, months_from_hours),
        migrations.RemoveField(
            model_name='planchoice',
            name='from_month',
        ),
        migrations.AlterField(
            model_name='planchoice',
            name='at',
            field=models.DateTimeField(),
        ),
        migrations.AddConstraint(
            model_name='planchoice',
            constraint=models.UniqueConstraint(fields=('organisation', 'at'), name='one_plan_per_hour'),
        ),
    ]
