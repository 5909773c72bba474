"""Keys know whether they were made in a session that an organisation's provider had begun. Of those of before nobody knows it.

Backwards such keys are revoked: as they would know it no more, they would be everybody's ordinary keys from then on, for good.
"""

from datetime import UTC, datetime

from django.db import migrations, models


def revoke(apps, _editor):
    """Those that know it."""
    for name in ('ApiKey', 'AccessKey'):
        rows = apps.get_model('accounts', name)._base_manager
        rows.filter(sso_until__isnull=False, revoked_at=None).update(revoked_at=datetime.now(UTC))


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
        migrations.RunPython(migrations.RunPython.noop, revoke),
    ]
