"""What a process's TLS is made with: read at the start, again when it has changed, and not given up for what cannot be used."""

from datetime import UTC, datetime, timedelta

import pytest

from quota.contracts.identity import broker
from quota.tls.current import Current
from quota.tls.material import AUTHORITIES, CERTIFICATE, KEY
from tests.support.certificates import Authority
from tests.support.inside import Certificates, put, read

NOW_MS = int(datetime.now(UTC).timestamp() * 1000)
DAY_MS = 86_400_000


@pytest.fixture
def certificates(tmp_path):
    return Certificates(tmp_path)


@pytest.fixture
def folder(certificates):
    return certificates.folder("broker-1")


def current(folder, **more):
    return Current(str(folder), broker(1), read, **more)


def test_what_has_not_changed_is_not_made_again(folder):
    one = current(folder)
    before = one.made
    assert one.look(NOW_MS) == []
    assert one.made is before


def test_what_has_changed_is_made_again_and_said(certificates, folder):
    one = current(folder)
    before = one.made
    certificates.store.issue(broker(1), ["127.0.0.1"])
    (said,) = one.look(NOW_MS)
    assert "is read again" in said
    assert one.made.material != before.material
    assert one.made.server is not before.server
    assert one.made.client is not before.client


@pytest.mark.parametrize("name", [CERTIFICATE, KEY, AUTHORITIES])
def test_half_of_what_is_being_written_changes_nothing_and_is_said_once(certificates, folder, name):
    one = current(folder)
    before = one.made
    whole = (folder / name).read_text()
    for damaged in ("", whole[: len(whole) // 2]):
        (folder / name).write_text(damaged)
        (said,) = one.look(NOW_MS)
        assert "what was read before stays in use" in said
        assert one.look(NOW_MS) == []
        assert one.made is before
        (folder / name).write_text(whole)
        assert one.look(NOW_MS) == []


def test_a_certificate_beside_anothers_key_changes_nothing(certificates, folder):
    one = current(folder)
    before = one.made
    (folder / CERTIFICATE).write_text((certificates.folder("broker-2") / CERTIFICATE).read_text())
    assert len(one.look(NOW_MS)) == 1
    assert one.made is before


def test_anothers_certificate_is_refused_at_the_start_and_later(certificates, folder):
    other = certificates.folder("broker-2")
    with pytest.raises(ValueError, match="the certificate is broker-2's, and this is broker-1"):
        current(other)
    one = current(folder)
    for name in (CERTIFICATE, KEY):
        (folder / name).write_text((other / name).read_text())
    (said,) = one.look(NOW_MS)
    assert "broker-2's" in said


def test_a_missing_file_is_told_at_the_start(folder):
    (folder / AUTHORITIES).unlink()
    with pytest.raises(OSError, match=AUTHORITIES):
        current(folder)


def test_an_end_that_is_near_is_said_once_a_day(certificates, folder):
    certificates.store.issue(broker(1), ["127.0.0.1"], timedelta(days=10))
    one = current(folder)
    (said,) = one.look(NOW_MS)
    assert said.startswith("WARNING: the certificate in")
    assert one.look(NOW_MS + DAY_MS - 1) == []
    assert len(one.look(NOW_MS + DAY_MS)) == 1


def test_an_organisations_own_pki_says_by_rules_who_its_subjects_are(tmp_path):
    authority = Authority()
    own = put(tmp_path / "own", authority.issue("kafka-b1", ["b1.example"]), authority.pem)
    with pytest.raises(ValueError, match="kafka-b1 is no identity"):
        current(own)
    made = current(own, rules=("RULE:^CN=kafka-b([0-9]+)$/broker-$1/",)).made
    assert made.own.identity == broker(1)
    assert made.own.is_quick
