"""Since when it is required. Where it is already, since now: owners who have a second factor today go on getting in by it."""

from datetime import UTC, datetime

from django.db import migrations, models


def note(apps, _editor):
    """Rows of before."""
    rows = apps.get_model('sso', 'SsoProvider')._base_manager
    rows.filter(is_required=True, required_at=None).update(required_at=datetime.now(UTC))


class Migration(migrations.Migration):

    dependencies = [
        ('sso', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='ssoprovider',
            name='required_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.RunPython(note, migrations.RunPython.noop),
    ]
