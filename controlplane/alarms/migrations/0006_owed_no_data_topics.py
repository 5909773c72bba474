from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('alarms', '0005_no_codes_in_clear'),
    ]

    operations = [
        migrations.AddField(
            model_name='alarm',
            name='owed',
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name='alarm',
            name='tell_no_data',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='alarm',
            name='told_no_data',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='alarm',
            name='topic',
            field=models.CharField(max_length=249, null=True),
        ),
        migrations.AddField(
            model_name='alarm',
            name='value_of',
            field=models.CharField(blank=True, db_default='', default='', max_length=1000),
        ),
    ]
