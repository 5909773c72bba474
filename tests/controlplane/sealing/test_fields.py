"""A sealed text is for one row and column, and a field takes nothing else."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db.models import BinaryField

from controlplane.alarms.models import Receiver
from controlplane.certificates.models import Authority, RouteCertificate
from controlplane.core import sealed
from controlplane.core.errors import Unavailable
from controlplane.mail.models import Mail
from controlplane.sealing import fields, rotation
from controlplane.sealing.keyring import Unreadable, drawn
from quota.contracts.sealing import sealed as sealed_with

NONCE = b"n" * 12


def opened(row, name):
    return fields.field_of(type(row), name).opened(row)


def test_what_is_sealed_for_a_row_opens_there(keys):
    row = Receiver(id="rcv-1", secret=sealed.sealed(Receiver, "secret", b"s", id="rcv-1"))
    assert opened(row, "secret") == b"s"
    assert opened(Receiver(id="rcv-1"), "secret") == b"", "nothing is nothing"


def test_in_another_row_column_or_table_it_does_not_open(keys):
    """Whoever writes to the database, and has a secret of their own, makes nobody else use it."""
    data = sealed.sealed(Receiver, "secret", b"s", id="rcv-1")
    key = sealed.sealed(Authority, "key", b"k", instance_id="ins-1")
    for row, name in (
        (Receiver(id="rcv-2", secret=data), "secret"),
        (Receiver(id="rcv-1", previous_secret=data), "previous_secret"),
        (Receiver(id="rcv-1", sealed_address=data), "sealed_address"),
        (Mail(id="rcv-1", sealed=data), "sealed"),
        (Authority(instance_id="ins-2", key=key), "key"),
        (RouteCertificate(instance_id="ins-1", route="r7", key=key), "key"),
    ):
        with pytest.raises(Unreadable, match="another row, or changed"):
            opened(row, name)


def test_names_that_run_together_are_two_owners(keys):
    data = sealed.sealed(RouteCertificate, "key", b"k", instance_id="ins-1", route='r", "7')
    with pytest.raises(Unreadable):
        opened(RouteCertificate(instance_id='ins-1", "r', route="7", key=data), "key")


def test_it_is_sealed_for_somebody(keys):
    for owner in ({}, {"id": None}, {"id": ""}, {"pk": "rcv-1"}, {"id": "rcv-1", "name": "x"}):
        with pytest.raises(TypeError, match="is sealed for one id"):
            sealed.sealed(Receiver, "secret", b"s", **owner)
    with pytest.raises(TypeError, match=r"Receiver\.name is not sealed"):
        sealed.sealed(Receiver, "name", b"s", id="rcv-1")


@pytest.mark.parametrize("plain", [b"in clear", b"\x01short", b"\x02" + b"x" * 36, "text"])
def test_a_field_takes_no_text_in_clear(keys, plain, mails):
    with pytest.raises((ValueError, TypeError)):
        Mail.objects.filter(pk=mails[0].pk).update(sealed=plain)


def test_what_djangos_secret_key_has_sealed_is_opened_by_it_and_by_earlier_ones(keys, settings):
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "present", ["before"]
    for secret in ("present", "before"):
        data = sealed_with(b"s", secret=secret, purpose="sluice webhook rcv-1", nonce=NONCE)
        assert opened(Receiver(id="rcv-1", secret=data), "secret") == b"s"
        with pytest.raises(Unreadable, match="Django secret key that is not known"):
            opened(Receiver(id="rcv-2", secret=data), "secret")
        with pytest.raises(Unreadable, match="not sealed"):  # there was no such column
            opened(Receiver(id="rcv-1", sealed_address=data), "sealed_address")


def test_every_sealed_field_says_whose_it_is():
    labels = {column.label: column.field.owner for column in rotation.columns()}
    assert all(labels.values())
    assert set(labels) == {
        "accounts.SecondFactor.secret",
        "alarms.Receiver.previous_secret",
        "alarms.Receiver.sealed_address",
        "alarms.Receiver.sealed_code",
        "alarms.Receiver.secret",
        "certificates.Authority.key",
        "certificates.RouteCertificate.key",
        "loads.Load.secret_key",
        "mail.Mail.sealed",
        "sso.SsoProvider.client_secret",
    }


def test_no_other_field_holds_bytes_that_nobody_has_sealed():
    """A secret in a new `BinaryField` would be one in clear: it belongs in a `SealedField`."""
    plain = {
        f"{model._meta.label}.{field.name}"
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, BinaryField) and not isinstance(field, fields.SealedField)
    }
    assert plain == set()


def test_a_tenant_is_not_told_which_file_it_is(keys, caplog):
    data = sealed.sealed(Receiver, "secret", b"s", id="rcv-1")
    keys.say(drawn())
    with pytest.raises(Unavailable) as problem:
        sealed.opened(Receiver(id="rcv-1", secret=data), "secret", Unavailable("it cannot be read"))
    assert str(problem.value) == "it cannot be read"
    assert "alarms.Receiver.secret of rcv-1 cannot be opened: sealed with the key" in caplog.text
    keys.path.unlink()
    with pytest.raises(Unavailable, match="tell the operators of the service") as problem:
        sealed.sealed(Receiver, "secret", b"s", id="rcv-1")
    assert str(keys.path) not in str(problem.value)
    assert f"{keys.path} is not there" in caplog.text
