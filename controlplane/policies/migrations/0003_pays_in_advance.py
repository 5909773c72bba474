from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('policies', '0002_topic_id'),
    ]

    operations = [
        migrations.AddField(
            model_name='diskpolicy',
            name='pays_in_advance',
            field=models.BooleanField(db_default=True, default=True),
        ),
    ]
