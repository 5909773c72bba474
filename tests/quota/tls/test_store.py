"""An authority's folder: what is issued, what is renewed when, and how one authority takes the place of another."""

import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import ExtendedKeyUsageOID

from quota.contracts.identity import CONTROL_PLANE, METERING, broker
from quota.tls import __main__ as command
from quota.tls.authority import hosts_of
from quota.tls.material import AUTHORITIES, CERTIFICATE, COMBINED, KEY
from quota.tls.store import Store, StoreError

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


class Clock:
    def __init__(self):
        self.now = BEGIN

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    made = Store(tmp_path, clock)
    assert made.ensure_authority("CA")
    return made


def certificate(folder):
    return x509.load_pem_x509_certificate((folder / CERTIFICATE).read_bytes())


def authorities(folder):
    return x509.load_pem_x509_certificates((folder / AUTHORITIES).read_bytes())


def uses(folder):
    return set(certificate(folder).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def is_believed(folder):
    """Whether one of the authorities in a folder has issued the certificate in it."""
    for authority in authorities(folder):
        try:
            certificate(folder).verify_directly_issued_by(authority)
        except (InvalidSignature, ValueError):
            continue
        return True
    return False


def test_what_is_issued_names_the_identity_and_where_it_is_found(store):
    folder = store.issue(broker(3), ["10.0.0.3", "three.example"])
    assert certificate(folder).subject.rfc4514_string() == "CN=broker-3"
    assert hosts_of((folder / CERTIFICATE).read_text(), broker(3)) == ["10.0.0.3", "three.example"]
    assert is_believed(folder)
    assert (folder / COMBINED).read_text() == (folder / KEY).read_text() + (folder / CERTIFICATE).read_text()


def test_only_who_is_connected_to_may_be_shown_as_a_server(store):
    assert uses(store.issue(broker(1), [])) == {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH}
    for other in (METERING, CONTROL_PLANE):
        folder = store.issue(other, ["10.0.0.3"])
        assert uses(folder) == {ExtendedKeyUsageOID.CLIENT_AUTH}
        assert hosts_of((folder / CERTIFICATE).read_text(), other) == []


def test_files_are_their_owners_alone(store, tmp_path):
    store.issue(broker(1), [])
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert len(files) == 3 + 4


def test_an_authority_is_made_once(store, tmp_path, clock):
    before = (tmp_path / "authority" / CERTIFICATE).read_text()
    assert not Store(tmp_path, clock).ensure_authority("another")
    assert (tmp_path / "authority" / CERTIFICATE).read_text() == before


def test_what_is_good_for_a_while_stays_and_what_ends_soon_or_lacks_a_host_is_issued_anew(store, clock):
    first = certificate(store.ensure(broker(1), ["a"])).serial_number
    clock.now += 59 * DAY
    assert certificate(store.ensure(broker(1), ["a"])).serial_number == first
    more = certificate(store.ensure(broker(1), ["a", "b"])).serial_number
    assert more != first
    clock.now += 61 * DAY
    assert certificate(store.ensure(broker(1), ["a", "b"])).serial_number != more


def test_renewing_keeps_hosts_and_leaves_what_lasts(store, clock):
    store.issue(broker(1), ["a"])
    clock.now += 61 * DAY
    store.issue(broker(2), ["b"])
    assert store.renew() == [broker(1)]
    assert hosts_of((store.folder_of(broker(1)) / CERTIFICATE).read_text(), broker(1)) == ["a"]
    assert store.renew(everything=True) == [broker(1), broker(2)]


def test_at_each_step_of_replacing_the_authority_everybody_believes_everybody(store):
    folders = [store.issue(each, ["a"]) for each in (broker(1), METERING)]
    old = certificate(folders[0]).issuer
    store.replace("the next CA")
    assert [len(authorities(folder)) for folder in folders] == [2, 2]
    assert all(is_believed(folder) and certificate(folder).issuer == old for folder in folders)
    assert store.renew() == [broker(1), METERING]
    assert [len(authorities(folder)) for folder in folders] == [2, 2]
    assert all(is_believed(folder) and certificate(folder).issuer != old for folder in folders)
    store.forget()
    assert [len(authorities(folder)) for folder in folders] == [1, 1]
    assert all(is_believed(folder) for folder in folders)


def test_steps_are_refused_out_of_order(store):
    store.issue(broker(1), ["a"])
    store.replace("the next CA")
    with pytest.raises(StoreError, match="on its way"):
        store.replace("a third")
    with pytest.raises(StoreError, match="renew first"):
        store.forget()


def test_nobody_is_forgotten_who_still_shows_what_the_old_authority_has_issued(store, tmp_path):
    folder = store.issue(broker(1), ["a"])
    old = (folder / CERTIFICATE).read_text()
    store.replace("the next CA")
    store.renew()
    (folder / CERTIFICATE).write_text(old)
    with pytest.raises(StoreError, match="broker-1"):
        store.forget()


def test_without_an_authority_nothing_is_issued(tmp_path, clock):
    with pytest.raises(StoreError, match="no authority"):
        Store(tmp_path, clock).issue(broker(1), [])


def test_the_command_goes_the_whole_way(tmp_path, capsys):
    folder = str(tmp_path)

    def run(*arguments):
        return command.main([folder, *arguments])

    assert run("issue", "broker-1", "--host", "a") == 1
    assert "no authority" in capsys.readouterr().err
    assert run("authority", "CA of production") == 0
    assert run("issue", "broker-1", "--host", "10.0.0.1", "--host", "one.example", "--days", "7") == 0
    assert run("issue", "somebody") == 1
    assert run("replace", "the next CA") == 0
    assert run("renew") == 0
    assert "broker-1 is renewed" in capsys.readouterr().out
    assert run("forget") == 0
    found = certificate(tmp_path / "broker-1")
    assert found.issuer.rfc4514_string() == "CN=the next CA"
    assert hosts_of((tmp_path / "broker-1" / CERTIFICATE).read_text(), broker(1)) == ["10.0.0.1", "one.example"]
