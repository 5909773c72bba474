"""When owners were written to what has become of a scheduled change. Of changes of earlier releases nobody is written to."""

from django.db import migrations, models
from django.db.models import F


def told(apps, _schema_editor):
    """Those that have ended count as told."""
    changes = apps.get_model('admission', 'ScheduledChange')._base_manager  # noqa: SLF001  # the scope is not here
    changes.filter(ended_at__isnull=False).update(told_at=F('ended_at'))


class Migration(migrations.Migration):

    dependencies = [
        ('admission', '0002_scheduled_changes'),
    ]

    operations = [
        migrations.AddField(
            model_name='scheduledchange',
            name='told_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name='scheduledchange',
            index=models.Index(
                condition=models.Q(('state', 'begun'), ('told_at__isnull', True)),
                fields=['ended_at'],
                name='changes_untold',
            ),
        ),
        migrations.RunPython(told, migrations.RunPython.noop),
    ]
