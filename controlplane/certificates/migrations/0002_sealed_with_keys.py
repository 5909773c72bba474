"""Private keys are sealed with the keys of the installation, and no more with Django's secret key."""

from django.db import migrations

from controlplane.sealing.fields import SealedField
from controlplane.sealing.migrating import sealing_anew


class Migration(migrations.Migration):

    dependencies = [
        ('certificates', '0001_initial'),
    ]

    operations = [
        migrations.AlterField(
            model_name='authority',
            name='key',
            field=SealedField(before='sluice control plane {instance_id}/', owner=('instance_id',)),
        ),
        migrations.AlterField(
            model_name='routecertificate',
            name='key',
            field=SealedField(before='sluice control plane {instance_id}/{route}', default=b'', owner=('instance_id', 'route')),
        ),
        # Back: nothing. The release before cannot open what is sealed now.
        migrations.RunPython(sealing_anew('certificates', 'Authority', 'RouteCertificate'), migrations.RunPython.noop),
    ]
