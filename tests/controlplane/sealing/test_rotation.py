"""`manage.py secrets`: the first key seals everything, whatever stops it, whoever writes meanwhile; what is lost is told."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from controlplane.accounts.identity import second_factor
from controlplane.accounts.models import SecondFactor
from controlplane.mail.models import Mail
from controlplane.sealing import fields, installed, rotation
from controlplane.sealing.keyring import Key, drawn, key_name
from quota.contracts.sealing import sealed as sealed_with


def said(*arguments: str) -> str:
    out = io.StringIO()
    call_command("secrets", *arguments, stdout=out, stderr=out)
    return out.getvalue()


def column(label):
    return next(each for each in rotation.columns() if each.label == label)


MAILS = "mail.Mail.sealed"


def sealed_by() -> list[str]:
    return [(key_name(bytes(row.sealed)) or b"").hex() for row in Mail.objects.order_by("pk")]


def texts() -> set[bytes]:
    field = fields.field_of(Mail, "sealed")
    return {field.opened(row) for row in Mail.objects.all()}


def name_of(text: str) -> str:
    return Key.of(text).name.hex()


def test_everything_is_sealed_with_the_first_key_and_the_old_one_can_go(mails, keys, alice):
    second_factor.enrol_begin(user=alice.user)
    secret, before = second_factor.secret_of(alice.user), texts()
    new = drawn()
    keys.say(new, keys.first)
    shown = said("rotate", "--portion", "3")
    assert f"{MAILS}: 7 sealed with key {name_of(new)}, 7 in all" in shown
    assert [line for line in shown.splitlines() if line.startswith(f"{MAILS}: 3 looked at")] == [
        f"{MAILS}: 3 looked at, 3 sealed"
    ]
    keys.say(new)
    assert sealed_by() == [name_of(new)] * 7
    assert texts() == before
    assert second_factor.secret_of(alice.user) == secret
    stored = [bytes(row.sealed) for row in Mail.objects.order_by("pk")]
    assert f"{MAILS}: 0 sealed" in said("rotate")
    assert [bytes(row.sealed) for row in Mail.objects.order_by("pk")] == stored, "a second time nothing is written"


def test_one_that_is_stopped_goes_on_and_everything_is_readable_in_between(mails, keys, monkeypatch):
    before, new = texts(), drawn()
    keys.say(new, keys.first)
    real, done = fields.SealedField.sealed, []

    def killed(self, *args, **named):
        done.append(1)
        if len(done) == 4:
            raise KeyboardInterrupt
        return real(self, *args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(fields.SealedField, "sealed", killed)
        with pytest.raises(KeyboardInterrupt):
            said("rotate", "--portion", "2")
    assert sorted(sealed_by()).count(name_of(new)) == 3
    assert texts() == before
    assert f"{MAILS}: 4 sealed with key {name_of(new)}, 7 in all" in said("rotate", "--portion", "2")
    assert sealed_by() == [name_of(new)] * 7
    assert texts() == before


def test_what_somebody_writes_meanwhile_is_kept(mails, keys, monkeypatch):
    new = drawn()
    keys.say(new, keys.first)
    real, written = fields.SealedField.opened, []

    def slow(self, row, ring=None):
        text = real(self, row, ring)
        if not written:  # a web process that has not read the new file
            written.append(row.pk)
            keys.say(keys.first)
            data = self.sealed(b"another text", {"id": row.pk})
            keys.say(new, keys.first)
            Mail.objects.filter(pk=row.pk).update(sealed=data)
        return text

    with monkeypatch.context() as patch:
        patch.setattr(fields.SealedField, "opened", slow)
        done = rotation.rotate(column(MAILS), installed.keyring())
    assert (done.seen, done.sealed, done.lost) == (7, 7, 0)
    assert sealed_by() == [name_of(new)] * 7
    assert fields.field_of(Mail, "sealed").opened(Mail.objects.get(pk=written[0])) == b"another text"


def test_a_row_that_goes_meanwhile_is_no_matter(mails, keys, monkeypatch):
    keys.say(drawn(), keys.first)
    real = fields.SealedField.opened

    def slow(self, row, ring=None):
        text = real(self, row, ring)
        Mail.objects.filter(pk=row.pk).delete()
        return text

    monkeypatch.setattr(fields.SealedField, "opened", slow)
    done = rotation.rotate(column(MAILS), installed.keyring())
    assert (done.seen, done.sealed, done.lost) == (7, 0, 0)


def test_check_counts_by_key_and_says_which_can_go(mails, keys):
    new, unused = drawn(), drawn()
    Mail.objects.filter(pk=mails[0].pk).update(sealed=b"")
    keys.say(new, keys.first, unused)
    shown = said("check")
    assert f"{MAILS}: 6 by {name_of(keys.first)}" in shown
    assert f"key {name_of(new)}: 0 secrets, seals" in shown
    assert f"key {name_of(keys.first)}: 6 secrets, opens only" in shown
    assert f"key {name_of(unused)}: 0 secrets, opens nothing: it can be taken out" in shown
    assert not any(key in shown for key in (new, keys.first, unused))
    assert "secret text" not in shown


def test_what_no_key_opens_is_told_left_as_it_is_and_found_again(mails, keys):
    new = drawn()
    keys.say(new)
    before = [bytes(row.sealed) for row in Mail.objects.order_by("pk")]
    for action in ("check", "rotate"):
        with pytest.raises(CommandError, match="7 secrets cannot be opened with any key of the file") as problem:
            said(action)
        assert problem.value.returncode == 1
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("secrets", "check", stdout=out, stderr=out)
    assert f"{mails[0].pk}: sealed with the key {name_of(keys.first)}, which is not among the keys" in out.getvalue()
    assert [bytes(row.sealed) for row in Mail.objects.order_by("pk")] == before
    keys.say(new, keys.first)
    assert f"{MAILS}: 7 sealed" in said("rotate")


def test_of_many_that_are_lost_the_first_are_named(mails, keys, monkeypatch):
    monkeypatch.setattr(rotation, "MOST_NAMED", 2)
    keys.say(drawn())
    found = rotation.look(column(MAILS), installed.keyring())
    assert (len(found.lost), found.lost_count) == (2, 7)


def test_one_row_that_was_changed_does_not_keep_the_others(mails, keys):
    data = bytearray(bytes(mails[3].sealed))
    data[-1] ^= 1
    Mail.objects.filter(pk=mails[3].pk).update(sealed=bytes(data))
    keys.say(drawn(), keys.first)
    with pytest.raises(CommandError, match="1 secrets cannot be opened"):
        said("rotate")
    assert len(set(sealed_by())) == 2


def test_what_djangos_secret_key_has_sealed_is_counted_and_sealed_anew(keys, alice, settings):
    settings.SECRET_KEY = "the one of before"
    purpose = f"sluice second factor {alice.user.pk}"
    data = sealed_with(b"GEZDGNBVGY3TQOJQ", secret=settings.SECRET_KEY, purpose=purpose, nonce=b"n" * 12)
    SecondFactor.objects.create(user=alice.user, secret=data)
    assert "accounts.SecondFactor.secret: 1 by Django's secret key" in said("check")
    said("rotate")
    settings.SECRET_KEY = "another"
    assert second_factor.secret_of(alice.user) == "GEZDGNBVGY3TQOJQ"


def test_without_keys_it_says_so(db, keys):
    keys.path.unlink()
    for action in ("check", "rotate"):
        with pytest.raises(CommandError, match="is not there"):
            said(action)
    keys.say(keys.first)
    with pytest.raises(CommandError, match="--portion"):
        said("rotate", "--portion", "0")


def test_a_new_key_is_drawn_where_there_is_none_yet(keys):
    keys.path.unlink()
    keys.say(said("draw").strip())
    assert len(installed.keyring().keys) == 1
