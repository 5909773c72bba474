from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0017_built_in_roles'),
    ]

    operations = [
        migrations.AlterField(
            model_name='doornote',
            name='kind',
            field=models.CharField(choices=[('reset', 'Reset'), ('browser', 'Browser'), ('failed', 'Failed')], max_length=8),
        ),
        migrations.AlterField(
            model_name='mailedlink',
            name='purpose',
            field=models.CharField(choices=[('verify', 'Verify'), ('change', 'Change'), ('reset', 'Reset'), ('browser', 'Browser')], max_length=8),
        ),
    ]
