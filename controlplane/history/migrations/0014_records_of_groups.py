from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('history', '0013_totals_of_brokers'),
    ]

    operations = [
        migrations.AddField(
            model_name='laghours',
            name='consumed_sum',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='laghours',
            name='moved',
            field=models.SmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='laghours',
            name='produced_sum',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='lagminutes',
            name='consumed',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='lagminutes',
            name='produced',
            field=models.BigIntegerField(null=True),
        ),
    ]
