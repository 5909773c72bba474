import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('core', '0004_alter_operation_organisation'),
        ('tenants', '0004_second_factor'),
    ]

    operations = [
        migrations.CreateModel(
            name='AuditChain',
            fields=[
                ('organisation', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to='tenants.organisation')),
                ('number', models.BigIntegerField()),
                ('hash', models.CharField(max_length=64)),
            ],
        ),
        migrations.AddField(
            model_name='auditentry',
            name='hash',
            field=models.CharField(blank=True, db_default='', default='', max_length=64),
        ),
        migrations.AddField(
            model_name='auditentry',
            name='number',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddIndex(
            model_name='auditentry',
            index=models.Index(condition=models.Q(('number__isnull', True)), fields=['organisation', 'id'], name='audit_not_chained'),
        ),
        migrations.AddConstraint(
            model_name='auditentry',
            constraint=models.UniqueConstraint(fields=('organisation', 'number'), name='one_audit_entry_of_a_number'),
        ),
    ]
