from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('policies', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='diskpolicy',
            name='to_put_back',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='shortenedtopic',
            name='topic_id',
            field=models.CharField(default='', max_length=32),
        ),
        migrations.AddField(
            model_name='shortenedtopic',
            name='set_by',
            field=models.CharField(default='', max_length=32),
        ),
    ]
