"""Keys know whether they were made in a session that an organisation's provider had begun. Of those of before nobody knows it."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0015_custom_roles'),
    ]

    operations = [
        migrations.AddField(
            model_name='apikey',
            name='sso_until',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='accesskey',
            name='sso_until',
            field=models.DateTimeField(null=True),
        ),
    ]
