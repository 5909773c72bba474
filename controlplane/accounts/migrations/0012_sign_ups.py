from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0011_sealed_with_keys'),
    ]

    operations = [
        migrations.CreateModel(
            name='SignUp',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('email', models.EmailField(max_length=254)),
                ('name', models.CharField(blank=True, max_length=128)),
                ('organisation_name', models.CharField(blank=True, max_length=128)),
                ('at', models.DateTimeField(db_index=True)),
                ('request_id', models.CharField(blank=True, default='', max_length=36)),
                ('address', models.CharField(blank=True, default='', max_length=64)),
                ('answered_at', models.DateTimeField(null=True)),
                ('mailed_at', models.DateTimeField(null=True)),
                ('digest', models.CharField(blank=True, default='', max_length=64)),
                ('used_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [
                    models.Index(fields=['email', 'mailed_at'], name='sign_ups_of_an_address'),
                    models.Index(
                        condition=models.Q(('answered_at__isnull', True)), fields=['id'], name='sign_ups_that_wait'
                    ),
                ],
                'constraints': [
                    models.UniqueConstraint(
                        condition=models.Q(('digest', ''), _negated=True), fields=('digest',), name='one_sign_up_of_a_link'
                    ),
                ],
            },
        ),
    ]
