from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('alarms', '0002_budget_messages'),
    ]

    operations = [
        migrations.AddField(
            model_name='alarm',
            name='group',
            field=models.CharField(max_length=1000, null=True),
        ),
        migrations.AddField(
            model_name='alarm',
            name='missing',
            field=models.CharField(blank=True, default='', max_length=16),
        ),
        migrations.CreateModel(
            name='ThrottledMark',
            fields=[
                ('id', models.SmallIntegerField(primary_key=True, serialize=False)),
                ('at', models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='ThrottledSpell',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('instance', models.CharField(max_length=32)),
                ('direction', models.CharField(max_length=8)),
                ('began_at', models.DateTimeField()),
                ('until_at', models.DateTimeField(db_index=True)),
            ],
            options={
                'indexes': [models.Index(fields=['instance', 'began_at'], name='throttled_spells_by_beginning'), models.Index(fields=['instance', 'until_at'], name='throttled_spells_by_end')],
                'constraints': [models.UniqueConstraint(fields=('instance', 'direction', 'began_at'), name='one_throttled_spell')],
            },
        ),
    ]
