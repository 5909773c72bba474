"""A client certificate from a real handshake on to the figures: Python's TLS in the place of HAProxy or nginx.

The proxy ends TLS, asks for a certificate, takes away what the caller has written into the header, and tells what it was shown.
"""

from __future__ import annotations

import http.client
import socket
import socketserver
import ssl
import threading
from base64 import b64encode
from dataclasses import replace
from ipaddress import ip_network
from urllib.parse import urlsplit

import pytest

from tests.controlplane.history.test_by_certificate import OURS, THEIRS, foreign, of, told, trusting  # noqa: F401
from tests.controlplane.test_instances_api import URL
from tests.support.certificates import Authority

WITHIN_S = 30
PUBLIC = Authority("of the service's own certificate")


class Passing(socketserver.BaseRequestHandler):
    """One request of one connection."""

    def handle(self):
        try:
            connection = self.server.context.wrap_socket(self.request, server_side=True)
        except (ssl.SSLError, OSError):
            return
        with connection:
            first, *headers = self._head(connection)
            headers = [
                line for line in headers if line.partition(b":")[0].lower().replace(b"_", b"-") not in self.server.own
            ]
            shown = connection.getpeercert(binary_form=True)
            if shown:
                headers.append(b"Client-Cert: :" + b64encode(shown) + b":")
            headers += [b"X-Forwarded-Proto: https", b"X-Forwarded-For: 203.0.113.9", b"Connection: close"]
            with socket.create_connection(self.server.behind, timeout=WITHIN_S) as onward:
                onward.sendall(b"\r\n".join([first, *headers, b"", b""]))
                while piece := onward.recv(65536):
                    connection.sendall(piece)

    @staticmethod
    def _head(connection):
        read = b""
        while not read.endswith(b"\r\n\r\n"):
            piece = connection.recv(65536)
            if not piece:
                raise ConnectionError("no whole request came")
            read += piece
        return read.removesuffix(b"\r\n\r\n").split(b"\r\n")


class Proxy(socketserver.ThreadingTCPServer):
    """In front of one service."""

    daemon_threads = True
    own = (b"client-cert", b"x-forwarded-proto", b"x-forwarded-for", b"connection")

    def __init__(self, behind, context):
        super().__init__(("127.0.0.1", 0), Passing)
        self.behind, self.context = behind, context


@pytest.fixture
def files(tmp_path):
    """Of a certificate with its key, as programs of TLS take them."""

    def files(issued, name):
        certificate, key = tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
        certificate.write_text(issued.pem)
        key.write_text(issued.key_pem)
        return certificate, key

    return files


@pytest.fixture
def proxy(live_server, files, settings):
    """Its port. It stands where the service believes what certificate it tells."""
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, client_certificates_from=(ip_network("127.0.0.0/8"),))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files(PUBLIC.issue("127.0.0.1", ["127.0.0.1"]), "server"))
    context.verify_mode = ssl.CERT_OPTIONAL  # Python asks for a certificate only of authorities that it knows
    context.load_verify_locations(cadata=OURS.pem + THEIRS.pem)
    url = urlsplit(live_server.url)
    server = Proxy((url.hostname, url.port), context)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join(WITHIN_S)


@pytest.fixture
def scrape(proxy, files):
    """As Prometheus does with `tls_config`: what is answered."""

    def scrape(instance, certificate=None, **headers):
        context = ssl.create_default_context(cadata=PUBLIC.pem)
        if certificate is not None:
            context.load_cert_chain(*files(certificate, "client"))
        connection = http.client.HTTPSConnection("127.0.0.1", proxy, context=context, timeout=WITHIN_S)
        try:
            connection.request("GET", f"{URL}/{instance.id}/prometheus", headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    return scrape


def test_the_certificate_of_the_handshake_reads_the_figures(trusting, scrape):  # noqa: F811
    status, text = scrape(trusting, of(trusting))
    assert status == 200
    assert f'sluice_connections{{instance_id="{trusting.id}"}} 7' in text


def test_who_shows_none_and_who_only_writes_one_are_nobody(trusting, scrape):  # noqa: F811
    stolen = told(of(trusting))  # certificates are no secrets: the key is
    for headers in ({}, {"Client-Cert": stolen}, {"Client_Cert": stolen}, {"CLIENT-CERT": stolen}):
        status, text = scrape(trusting, **headers)
        assert status == 401, headers
        assert "Authorization: Bearer" in text


def test_what_was_shown_counts_and_not_what_was_written(trusting, foreign, scrape):  # noqa: F811
    status, _ = scrape(trusting, of(foreign, THEIRS), **{"Client-Cert": told(of(trusting))})
    assert status == 404
    status, _ = scrape(foreign, of(foreign, THEIRS))
    assert status == 200
