"""What mails say is sealed with the keys of the installation, and no more with Django's secret key."""

from django.db import migrations

from controlplane.sealing.fields import SealedField
from controlplane.sealing.migrating import sealing_anew


class Migration(migrations.Migration):

    dependencies = [
        ('mail', '0001_initial'),
    ]

    operations = [
        migrations.AlterField(
            model_name='mail',
            name='sealed',
            field=SealedField(before='sluice mail {id}', default=bytes, owner=('id',)),
        ),
        # Back: nothing. The release before cannot open what is sealed now.
        migrations.RunPython(sealing_anew('mail', 'Mail'), migrations.RunPython.noop),
    ]
