from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0019_access_keys_expire'),
    ]

    operations = [
        migrations.AddField(
            model_name='signup',
            name='language',
            field=models.CharField(db_default='en', default='en', max_length=10),
        ),
        migrations.AddField(
            model_name='user',
            name='language',
            field=models.CharField(db_default='en', default='en', max_length=10),
        ),
    ]
