"""How a process of the control plane proves to brokers and masters who it is."""

from __future__ import annotations

import json
import ssl
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from controlplane.clusters import identification, master
from controlplane.core.errors import ClusterUnavailable, MasterUnavailable
from controlplane.env import Environment, EnvironmentProblem
from quota.contracts.identity import CONTROL_PLANE, Keys
from quota.contracts.internal_security import InternalSecurity
from quota.tls.contexts import server_context
from tests.support.inside import Certificates

SAID = InternalSecurity.SSL_SAID
throttled = master.throttled  # the real one: tests have another in its place


@pytest.fixture
def certificates(tmp_path):
    return Certificates(tmp_path / "tls")


@pytest.fixture
def environment(settings, tmp_path):
    """Sets members of it."""
    secrets = tmp_path / "secrets.json"
    secrets.write_text('{"cluster_secret": "s"}')

    def change(**members):
        settings.ENVIRONMENT = replace(settings.ENVIRONMENT, secrets_file=secrets, **members)

    change()
    return change


class Master:
    """What answers there, and what it was told."""

    def __init__(self, context=None):
        told = self.told = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                told.append(self.headers.get("Authorization"))
                body = json.dumps({"intervals": [], "next": 5}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments):
                pass

        class Quiet(HTTPServer):
            def handle_error(self, *_arguments):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.thread.join(10)
        self.server.server_close()


@pytest.fixture
def serve():
    made = []

    def start(context=None):
        made.append(Master(context))
        return made[-1]

    yield start
    for one in made:
        one.stop()


def test_without_tls_it_is_the_credential(environment):
    found = identification.to_brokers()
    assert found == identification.Identification(Keys("s").own(CONTROL_PLANE))
    assert found.of_librdkafka()["security.protocol"] == "SASL_PLAINTEXT"
    assert "credential" not in repr(found)


def test_with_tls_it_is_the_certificate_and_no_credential(environment, certificates):
    folder = certificates.folder("controlplane")
    environment(cluster_security=SAID, cluster_tls=folder)
    found = identification.to_brokers()
    assert found.credential == ""
    assert found.of_librdkafka() == {
        "security.protocol": "SSL",
        "ssl.ca.location": f"{folder}/ca.crt",
        "ssl.certificate.location": f"{folder}/tls.crt",
        "ssl.key.location": f"{folder}/tls.key",
    }
    assert "PRIVATE" not in repr(found)


def test_what_has_been_renewed_makes_another_client(environment, certificates):
    environment(cluster_security=SAID, cluster_tls=certificates.folder("controlplane"))
    before = identification.to_brokers()
    assert identification.to_brokers() == before
    certificates.store.issue(CONTROL_PLANE, [])
    assert identification.to_brokers() != before


def test_a_folder_without_a_certificate_is_said(environment, tmp_path):
    environment(cluster_security=SAID, cluster_tls=tmp_path / "nothing")
    with pytest.raises(ClusterUnavailable, match="cannot be read"):
        identification.to_brokers()
    with pytest.raises(MasterUnavailable, match="cannot be read"):
        throttled("https://127.0.0.1:1", 0)


@pytest.mark.parametrize("step", list(InternalSecurity))
def test_a_master_is_told_the_credential_where_it_speaks_no_tls_and_never_by_who_speaks_nothing_else(
    environment, certificates, serve, step
):
    environment(cluster_security=step, cluster_tls=certificates.folder("controlplane"))
    plain = serve()
    if step is InternalSecurity.SSL:
        with pytest.raises(MasterUnavailable, match="speaks no TLS"):
            throttled(plain.url, 0)
        assert plain.told == []
    else:
        assert throttled(plain.url, 0) == ([], 5)
        assert plain.told == [Keys("s").bearer(CONTROL_PLANE)]
    secured = serve(server_context(certificates.material("master-1")))
    if step is InternalSecurity.SASL_PLAINTEXT:
        with pytest.raises(MasterUnavailable, match="no certificate"):
            throttled(secured.url, 0)
    else:
        assert throttled(secured.url, 0) == ([], 5)
        assert secured.told == [None]


@pytest.mark.parametrize("who", ["metering", "another authority's"])
def test_who_is_no_master_is_not_believed(environment, certificates, serve, who, tmp_path):
    environment(cluster_security=InternalSecurity.SSL, cluster_tls=certificates.folder("controlplane"))
    shows = (
        certificates.material("metering")
        if who == "metering"
        else Certificates(tmp_path / "others").material("master-1")
    )
    context = server_context(shows, requires_client=False)
    context.verify_mode = ssl.CERT_NONE
    with pytest.raises(MasterUnavailable):
        throttled(serve(context).url, 0)


def test_the_environment_says_which_and_where():
    assert Environment.read({}).cluster_security is InternalSecurity.SASL_PLAINTEXT
    with pytest.raises(EnvironmentProblem, match="SLUICE_CLUSTER_TLS has to name a folder"):
        Environment.read({"SLUICE_CLUSTER_SECURITY": "ssl"})
    with pytest.raises(EnvironmentProblem, match="SLUICE_CLUSTER_SECURITY"):
        Environment.read({"SLUICE_CLUSTER_SECURITY": "tls"})
    read = Environment.read({"SLUICE_CLUSTER_SECURITY": "ssl", "SLUICE_CLUSTER_TLS": "/etc/sluice/tls"})
    assert str(read.cluster_tls) == "/etc/sluice/tls"
