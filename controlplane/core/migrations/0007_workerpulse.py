from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('core', '0006_chain_audit_entries'),
    ]

    operations = [
        migrations.CreateModel(
            name='WorkerPulse',
            fields=[
                ('id', models.PositiveSmallIntegerField(primary_key=True, serialize=False)),
                ('seen_at', models.DateTimeField()),
            ],
        ),
    ]
