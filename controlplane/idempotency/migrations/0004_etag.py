from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('idempotency', '0003_role'),
    ]

    operations = [
        migrations.AddField(
            model_name='repeatablecall',
            name='etag',
            field=models.CharField(db_default='', default='', max_length=128),
        ),
    ]
