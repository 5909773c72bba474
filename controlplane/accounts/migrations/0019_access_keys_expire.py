from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0018_known_browsers'),
        ('tenants', '0007_built_in_roles'),
    ]

    operations = [
        migrations.AddField(
            model_name='accesskey',
            name='expires_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='accesskey',
            name='expiry_told_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name='accesskey',
            index=models.Index(condition=models.Q(('expires_at__isnull', False)), fields=['expires_at'], name='access_key_expiry'),
        ),
    ]
