from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('history', '0012_samples_of_lag'),
    ]

    operations = [
        migrations.AddField(
            model_name='requesttotal',
            name='brokers',
            field=models.TextField(db_default='{}', default='{}'),
        ),
    ]
