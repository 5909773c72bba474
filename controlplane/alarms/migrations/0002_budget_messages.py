from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('alarms', '0001_initial'),
    ]

    operations = [
        migrations.AlterField(
            model_name='delivery',
            name='kind',
            field=models.CharField(choices=[('alarm', 'Alarm'), ('budget', 'Budget'), ('test', 'Test'), ('confirm', 'Confirm')], max_length=8),
        ),
    ]
