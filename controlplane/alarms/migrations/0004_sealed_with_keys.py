"""Secrets of webhooks are sealed with the keys of the installation; so are their addresses and codes, which stood in clear."""

from urllib.parse import urlsplit

from django.db import migrations
from django.db.models import Q

from controlplane.sealing import installed
from controlplane.sealing.fields import SealedField
from controlplane.sealing.migrating import sealing_anew

PORTION = 500
CODE_PLACE = '(the code)'


def public_part(url):
    parts = urlsplit(url)
    host = f'[{parts.hostname}]' if ':' in (parts.hostname or '') else parts.hostname
    return f'{parts.scheme}://{host}' + (f':{parts.port}' if parts.port else '')


def seal_addresses(apps, editor):
    """Of receivers; what messages of before repeat of them is cut down to where it is."""
    using = editor.connection.alias
    receivers = apps.get_model('alarms', 'Receiver')
    rows = receivers._base_manager.using(using).filter(kind='webhook', sealed_address=b'')
    field = receivers._meta.get_field('sealed_address')
    for key, address in list(rows.values_list('pk', 'address')):
        sealed = field.sealed(address.encode(), {'id': key}, installed.keyring())
        rows.filter(pk=key, address=address).update(sealed_address=sealed, address=public_part(address))
    is_url = Q(address__istartswith='http://') | Q(address__istartswith='https://')  # as typed: PostgreSQL tells HTTPS from https
    messages = apps.get_model('alarms', 'Delivery')._base_manager.using(using).filter(is_url)
    portion, last = messages.order_by('pk'), ''
    while found := list(portion.filter(pk__gt=last).values_list('pk', 'address')[:PORTION]):
        for key, address in found:
            if public_part(address) != address:
                messages.filter(pk=key).update(address=public_part(address))
        last = found[-1][0]


def seal_codes(apps, editor):
    """Of addresses that are not confirmed yet; the mails that hold one have its place instead, which is filled when they are sent."""
    using = editor.connection.alias
    receivers = apps.get_model('alarms', 'Receiver')
    field = receivers._meta.get_field('sealed_code')
    messages = apps.get_model('alarms', 'Delivery')._base_manager.using(using).filter(kind='confirm')
    for row in receivers._base_manager.using(using).exclude(code=''):
        for message in messages.filter(receiver_id=row.pk):
            message.document['data']['text'] = message.document['data']['text'].replace(row.code, CODE_PLACE)
            message.save(update_fields=['document'])
        sealed = field.sealed(row.code.encode(), {'id': row.pk}, installed.keyring())
        receivers._base_manager.using(using).filter(pk=row.pk).update(sealed_code=sealed, code='')


class Migration(migrations.Migration):

    dependencies = [
        ('alarms', '0003_groups_and_throttled_spells'),
    ]

    operations = [
        migrations.AddField(
            model_name='receiver',
            name='sealed_address',
            field=SealedField(before='', default=b'', owner=('id',)),
        ),
        migrations.AddField(
            model_name='receiver',
            name='sealed_code',
            field=SealedField(before='', default=b'', owner=('id',)),
        ),
        migrations.AlterField(
            model_name='receiver',
            name='secret',
            field=SealedField(before='sluice webhook {id}', default=b'', owner=('id',)),
        ),
        migrations.AlterField(
            model_name='receiver',
            name='previous_secret',
            field=SealedField(before='sluice webhook {id}', default=b'', owner=('id',)),
        ),
        # Back: nothing. The release before cannot open what is sealed now.
        migrations.RunPython(sealing_anew('alarms', 'Receiver'), migrations.RunPython.noop),
        migrations.RunPython(seal_addresses, migrations.RunPython.noop),
        migrations.RunPython(seal_codes, migrations.RunPython.noop),
    ]
