"""Second factors are sealed with the keys of the installation; sessions are found by a digest of what their cookie says."""

from django.db import migrations

from controlplane.accounts.identity.engine import KEY_DIGITS, stored_key
from controlplane.sealing.fields import SealedField
from controlplane.sealing.migrating import sealing_anew


def digest(apps, editor):
    """Whoever is signed in stays so. Keys of cookies have 32 letters, digests 40 digits."""
    rows = apps.get_model('accounts', 'Session')._base_manager.using(editor.connection.alias)
    for key in list(rows.values_list('pk', flat=True)):
        if len(key) < KEY_DIGITS:
            rows.filter(pk=key).update(session_key=stored_key(key))


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0010_keys_of_former_members'),
    ]

    operations = [
        migrations.AlterField(
            model_name='secondfactor',
            name='secret',
            field=SealedField(before='sluice second factor {user_id}', owner=('user_id',)),
        ),
        # Back: nothing. The release before cannot open what is sealed now, and everybody signs in again.
        migrations.RunPython(sealing_anew('accounts', 'SecondFactor'), migrations.RunPython.noop),
        migrations.RunPython(digest, migrations.RunPython.noop),
    ]
