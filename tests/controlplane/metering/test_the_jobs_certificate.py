"""What the stream job tells Spark's Kafka source where the cluster speaks TLS."""

from __future__ import annotations

from controlplane.metering.pipeline.settings import Settings
from quota.contracts.identity import METERING
from tests.support.inside import Certificates


def settings_of(folder, security="ssl"):
    variables = {"SLUICE_STACK_DIR": str(folder), "SLUICE_BROKERS": "b1:9,b2:9"}
    return Settings.read(
        {**variables, "SLUICE_CLUSTER_SECURITY": security, "SLUICE_CLUSTER_TLS": str(folder / "tls" / "metering")}
    )


def test_java_reads_the_files_itself_and_no_option_holds_a_secret(tmp_path):
    Certificates(tmp_path / "tls").folder("metering")
    assert settings_of(tmp_path).kafka_options() == {
        "kafka.bootstrap.servers": "b1:9,b2:9",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": f"{tmp_path}/tls/metering/ca.crt",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.location": f"{tmp_path}/tls/metering/tls-combined.pem",
    }


def test_on_the_way_it_follows_the_brokers(tmp_path):
    Certificates(tmp_path / "tls").folder("metering")
    for step, protocol in [("ssl_accepted", "SASL_PLAINTEXT"), ("ssl_said", "SSL")]:
        assert settings_of(tmp_path, step).kafka_options()["kafka.security.protocol"] == protocol


def test_it_is_seen_that_files_have_changed_and_nothing_where_there_are_none(tmp_path):
    certificates = Certificates(tmp_path / "tls")
    settings = settings_of(tmp_path)
    assert settings.tls_files() is None
    certificates.folder("metering")
    before = settings.tls_files()
    assert before is not None
    assert settings.tls_files() == before
    certificates.store.issue(METERING, [])
    assert settings.tls_files() != before
    assert settings_of(tmp_path, "sasl_plaintext").tls_files() is None
