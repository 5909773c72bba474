"""Rows of the release before: what Django's secret key sealed, and addresses of webhooks that stood in clear."""

from __future__ import annotations

import logging
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connection

from controlplane.accounts.identity import second_factor
from controlplane.accounts.models import SecondFactor
from controlplane.alarms.delivery import secrets
from controlplane.alarms.delivery.words import CODE_PLACE
from controlplane.alarms.models import Delivery, Receiver
from controlplane.sealing import rotation
from controlplane.sealing.keyring import KeysProblem
from controlplane.sealing.migrating import sealing_anew
from quota.contracts.sealing import sealed as sealed_with
from tests.controlplane.alarms.rows import LONG_AGO
from tests.support.django_process import answer_of

from . import upgrade
from .conftest import everything

EDITOR = SimpleNamespace(connection=connection)
HOOK = "https://hooks.example.com:8443/services/T0/B0/a-password?token=x"
BEFORE = "the secret key of before"


def sealed_before(text, purpose):
    return sealed_with(text, secret=BEFORE, purpose=purpose, nonce=b"n" * 12)


@pytest.fixture
def receiver(instance, keys, settings):
    """As the release before has written it."""
    settings.SECRET_KEY = BEFORE
    row = Receiver(
        id="rcv-000000000001", organisation=instance.organisation, instance=instance, name="pager", kind="webhook",
        address=HOOK, secret=sealed_before(b"k" * 32, "sluice webhook rcv-000000000001"),
        previous_secret=sealed_before(b"p" * 32, "sluice webhook rcv-000000000001"), created_at=LONG_AGO,
    )  # fmt: skip
    row.save(force_insert=True)
    return row


def migrate() -> None:
    sealing_anew("alarms", "Receiver")(apps, EDITOR)
    import_module("controlplane.alarms.migrations.0004_sealed_with_keys").seal_addresses(apps, EDITOR)


def message(receiver, key, address, to):
    Delivery(
        id=key, organisation=receiver.organisation, instance=receiver.instance, receiver=to, address=address, kind="test",
        document={}, next_attempt_at=LONG_AGO, created_at=LONG_AGO,
    ).save(force_insert=True)  # fmt: skip


def test_secrets_and_addresses_of_webhooks_are_sealed_with_the_keys(receiver, settings):
    message(receiver, "dlv-000000000001", HOOK, receiver)
    message(receiver, "dlv-000000000002", HOOK, None)  # its receiver was deleted
    message(receiver, "dlv-000000000003", "http.ann@example.com", None)
    assert "a-password" in everything()
    assert receiver.full_address == HOOK, "it is read before it is migrated"
    for _ in range(2):  # one that was cut off is done again
        migrate()
        settings.SECRET_KEY = "another one"
        row = Receiver.objects.unscoped("a test").get()
        assert secrets.keys_at(row, LONG_AGO) == (b"k" * 32,)
        row.previous_until = LONG_AGO.replace(year=2100)
        assert secrets.keys_at(row, LONG_AGO) == (b"k" * 32, b"p" * 32)
        assert (row.address, row.full_address) == ("https://hooks.example.com:8443", HOOK)
        assert "a-password" not in everything()
    addresses = Delivery.objects.unscoped("a test").order_by("pk").values_list("address", flat=True)
    assert list(addresses) == [*["https://hooks.example.com:8443"] * 2, "http.ann@example.com"]


def test_an_address_of_mail_stays_as_it_is(receiver):
    Receiver.objects.unscoped("a test").update(kind="email", address="ann@example.com", secret=b"", previous_secret=b"")
    migrate()
    row = Receiver.objects.unscoped("a test").get()
    assert (row.address, bytes(row.sealed_address), row.full_address) == ("ann@example.com", b"", "ann@example.com")


def test_what_cannot_be_opened_is_left_and_told(receiver, settings, caplog):
    settings.SECRET_KEY = "lost"
    before = bytes(receiver.secret)
    with caplog.at_level(logging.WARNING):
        migrate()
    assert "alarms.Receiver.secret: 1 of 1 rows cannot be opened" in caplog.text
    row = Receiver.objects.unscoped("a test").get()
    assert bytes(row.secret) == before
    settings.SECRET_KEY_FALLBACKS = [BEFORE]  # named again
    migrate()
    assert secrets.keys_at(Receiver.objects.unscoped("a test").get(), LONG_AGO) == (b"k" * 32,)


def test_without_keys_rows_are_not_migrated_and_a_database_without_rows_is(receiver, keys):
    keys.path.unlink()
    with pytest.raises(KeysProblem, match="is not there"):
        migrate()
    sealing_anew("mail", "Mail")(apps, EDITOR)  # there is none


def test_a_second_factor_of_before_goes_on(alice, keys, settings):
    settings.SECRET_KEY = BEFORE
    data = sealed_before(b"GEZDGNBVGY3TQOJQ", f"sluice second factor {alice.user.pk}")
    SecondFactor.objects.create(user=alice.user, secret=data)
    sealing_anew("accounts", "SecondFactor")(apps, EDITOR)
    settings.SECRET_KEY = "another one"
    assert second_factor.secret_of(alice.user) == "GEZDGNBVGY3TQOJQ"


@pytest.mark.timeout(200)
def test_a_database_of_the_release_before_is_sealed_as_a_whole(tmp_path, database_url):
    found = answer_of("tests.controlplane.sealing.upgrade", tmp_path, database_url, within_s=170)
    assert found == {
        "webhook": ["https://hooks.example.com", upgrade.HOOK, True],
        "signs": ["k" * 32, "p" * 32],
        "mailbox": ["ann@example.com", upgrade.CODE, False],
        "messages": [
            ["https://hooks.example.com", "a test"],
            ["ann@example.com", f"confirm:\n\n    {CODE_PLACE}\n\nor not"],
        ],
        "second factor": "GEZDGNBVGY3TQOJQ",
        "session": True,
        "authority": upgrade.PRIVATE.decode(),
        "routes": [upgrade.PRIVATE.decode(), ""],
        "mail": "secret-link",
        "in clear before": [True, True, True],
        "in clear after": [False, False, False],
    }


def test_every_sealed_column_has_a_migration_that_seals_its_rows():
    names = ("accounts.0011", "alarms.0004", "certificates.0002", "mail.0002")
    modules = [
        import_module("controlplane.{}.migrations.{}_sealed_with_keys".format(*name.split("."))) for name in names
    ]
    sealed = {
        f"{name.split('.')[0]}.{operation.model_name}.{operation.name}"
        for name, module in zip(names, modules, strict=True)
        for operation in module.Migration.operations
        if hasattr(operation, "field")
    }
    # Their tables were made when there were keys already.
    younger = {"loads.load.secret_key", "sso.ssoprovider.client_secret"}
    assert sealed | younger == {
        column.label.replace(column.model.__name__, column.model._meta.model_name) for column in rotation.columns()
    }
