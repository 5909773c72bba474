import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('alarms', '0002_budget_messages'),
        ('instances', '0005_route'),
        ('tenants', '0004_second_factor'),
    ]

    operations = [
        migrations.CreateModel(
            name='Budget',
            fields=[
                ('id', models.CharField(max_length=20, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=128)),
                ('amount', models.DecimalField(decimal_places=2, max_digits=24)),
                ('currency', models.CharField(max_length=3)),
                ('actual_percents', models.JSONField(default=list)),
                ('forecast_percents', models.JSONField(default=list)),
                ('created_at', models.DateTimeField()),
                ('decided_at', models.DateTimeField()),
                ('instance', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='instances.instance')),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.organisation')),
            ],
            options={
                'indexes': [models.Index(fields=['organisation', 'created_at'], name='budgets_of_organisation')],
            },
        ),
        migrations.CreateModel(
            name='BudgetAlert',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('month', models.CharField(max_length=7)),
                ('kind', models.CharField(max_length=8)),
                ('percent', models.PositiveIntegerField()),
                ('amount', models.DecimalField(decimal_places=2, max_digits=24)),
                ('so_far', models.DecimalField(decimal_places=2, max_digits=24)),
                ('forecast', models.DecimalField(decimal_places=2, max_digits=24)),
                ('counted_until', models.DateTimeField()),
                ('at', models.DateTimeField()),
                ('messages', models.PositiveIntegerField()),
                ('budget', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='budgets.budget')),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.organisation')),
            ],
            options={
                'indexes': [models.Index(fields=['budget', 'at'], name='alerts_of_a_budget')],
                'constraints': [models.UniqueConstraint(fields=('budget', 'month', 'kind', 'percent', 'amount'), name='one_alert_a_month')],
            },
        ),
        migrations.CreateModel(
            name='BudgetReceiver',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('budget', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='budgets.budget')),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.organisation')),
                ('receiver', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='alarms.receiver')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('budget', 'receiver'), name='one_receiver_of_a_budget')],
            },
        ),
    ]
