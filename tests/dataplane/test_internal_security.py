"""What broker.toml may say of TLS on the internal listener."""

from __future__ import annotations

import json

import pytest

from dataplane.cluster.paths import BrokerAddress, broker_json, parse_broker
from dataplane.config import ConfigError, load
from quota.contracts.internal_security import InternalSecurity
from tests.support.certificates import Authority
from tests.support.inside import Certificates, put


@pytest.fixture
def loaded(tmp_path):
    """The configuration of broker 1 with these members."""
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"cluster_secret": "s"}))

    def make(**members):
        table = {"id": 1, "data_dirs": [], "internal": "127.0.0.1:9", "zookeeper": "z:1", "secrets_file": str(secrets)}
        path = tmp_path / "broker.toml"
        rows = [f"{name} = {json.dumps(value)}" for name, value in (table | members).items()]
        path.write_text("[broker]\n" + "\n".join(rows) + "\n")
        return load(str(path))

    return make


@pytest.fixture
def folder(tmp_path):
    return str(Certificates(tmp_path / "tls").folder("broker-1"))


def test_without_a_word_of_it_there_is_no_tls(loaded):
    assert loaded().internal_security is InternalSecurity.SASL_PLAINTEXT


@pytest.mark.parametrize("step", [InternalSecurity.SSL_ACCEPTED, InternalSecurity.SSL_SAID, InternalSecurity.SSL])
def test_each_step_wants_a_certificate_of_this_broker(loaded, folder, step, tmp_path):
    assert loaded(internal_security=step, tls_folder=folder).internal_security is step
    other = str(Certificates(tmp_path / "others").folder("broker-2"))
    for wrong, said in [({}, "needs a tls_folder"), ({"tls_folder": other}, "broker-2's, and this is broker-1")]:
        with pytest.raises(ConfigError, match=said):
            loaded(internal_security=step, **wrong)
    with pytest.raises(ConfigError, match=r"tls\.crt"):
        loaded(internal_security=step, tls_folder=str(tmp_path))


def test_what_is_no_step_or_contradicts_is_refused(loaded, folder):
    with pytest.raises(ConfigError, match="must be one of"):
        loaded(internal_security="tls", tls_folder=folder)
    with pytest.raises(ConfigError, match="tests without TLS"):
        loaded(internal_security="ssl", tls_folder=folder, internal_authentication="none")


def test_rules_say_how_subjects_of_another_pki_are_read(loaded, tmp_path):
    authority = Authority()
    own = put(tmp_path / "own", authority.issue("kafka-1.example"), authority.pem)
    rules = [r"RULE:^CN=kafka-([0-9]+)\.example$/broker-$1/"]
    assert loaded(internal_security="ssl", tls_folder=str(own), tls_identities=rules).tls_identities == tuple(rules)


def test_a_registration_says_what_the_listener_speaks():
    for is_plaintext, said in [(True, "SASL_PLAINTEXT"), (False, "SSL")]:
        node = broker_json(BrokerAddress(1, "10.0.0.1", 9, is_plaintext=is_plaintext), 0)
        assert json.loads(node)["listener_security_protocol_map"] == {"INTERNAL": said}
        assert parse_broker(1, node) == BrokerAddress(1, "10.0.0.1", 9)
