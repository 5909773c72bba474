from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('history', '0008_rebalances_of_groups'),
    ]

    operations = [
        migrations.AddField(
            model_name='expiringunread',
            name='is_by_size',
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
