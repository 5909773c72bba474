import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('instances', '0005_route'),
        ('tenants', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='TokenIssuer',
            fields=[
                ('id', models.CharField(max_length=20, primary_key=True, serialize=False)),
                ('issuer', models.CharField(max_length=255)),
                ('jwks_url', models.CharField(max_length=500)),
                ('audiences', models.JSONField()),
                ('principal_claim', models.CharField(max_length=255)),
                ('scope', models.CharField(blank=True, default='', max_length=255)),
                ('keys', models.JSONField(default=list)),
                ('keys_fetched_at', models.DateTimeField()),
                ('keys_tried_at', models.DateTimeField()),
                ('keys_error', models.TextField(blank=True, default='')),
                ('next_fetch_at', models.DateTimeField(db_index=True)),
                ('created_at', models.DateTimeField()),
                ('instance', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='instances.instance')),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.organisation')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('instance', 'issuer'), name='one_trust_in_an_issuer')],
            },
        ),
    ]
