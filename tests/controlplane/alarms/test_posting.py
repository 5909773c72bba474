"""Handing a message to a real server: bounded in time, no redirects, no address that was not judged, names that change."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from dataclasses import replace

import pytest

from controlplane.alarms.delivery import posting
from controlplane.alarms.delivery.posting import PostProblem
from controlplane.alarms.delivery.targets import networks_of, target_of
from tests.support.certificates import Authority

LOOPBACK = networks_of("127.0.0.0/8")


def post(url, networks=LOOPBACK, **options):
    posting.posted(target_of(url, networks), b'{"a": 1}', {"webhook-id": "dlv-1"}, **options)


def answers(*addresses):
    """A resolver that answers with one set of addresses after the other; `asked` counts."""

    def resolve(host, port, **_options):
        found = addresses[min(resolve.asked, len(addresses) - 1)]
        resolve.asked += 1
        return [(socket.AF_INET6 if ":" in each else socket.AF_INET, 1, 6, "", (each, port)) for each in found]

    resolve.asked = 0
    return resolve


def test_the_receiver_has_it(hook, inside):
    post(hook.url)
    (taken,) = hook.taken
    assert (taken.path, taken.document) == ("/alarms?to=me", {"a": 1})
    assert taken.headers["content-type"] == "application/json"
    assert taken.headers["webhook-id"] == "dlv-1"
    assert taken.headers["host"] == f"127.0.0.1:{hook.port}"


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 404, 410, 429, 500, 503])
def test_any_answer_but_2xx_is_a_problem_and_no_redirect_is_followed(hook, inside, status):
    hook.status, hook.headers = status, {"Location": f"http://127.0.0.1:{hook.port}/elsewhere"}
    with pytest.raises(PostProblem, match=f"answers {status}"):
        post(hook.url)
    assert len(hook.taken) == 1


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "::1", "fe80::1%eth0",
                                     "fec0::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "224.0.0.1", "0.0.0.0"])  # fmt: skip
def test_a_name_that_points_inside_is_never_connected_to(monkeypatch, address):
    monkeypatch.setattr(socket, "create_connection", lambda *_a, **_o: pytest.fail("it was connected to"))
    with pytest.raises(PostProblem, match=r"hooks\.example\.com has no public address"):
        post("https://hooks.example.com/", (), resolve=answers([address]))


def test_a_name_that_nobody_has_looks_like_one_that_points_inside():
    def nobody(*_arguments, **_options):
        raise socket.gaierror(-2, "no")

    with pytest.raises(PostProblem, match=r"^hooks\.example\.com has no public address$"):
        post("https://hooks.example.com/", (), resolve=nobody)


@pytest.fixture
def connected(monkeypatch):
    """Where connections would have gone; none is made."""
    found = []

    def refused(address, _timeout):
        found.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", refused)
    return found


def test_a_name_is_looked_up_once_and_the_address_that_was_judged_is_connected_to(connected):
    """It answers with a public address first and with a private one ever after."""
    resolve = answers(["93.184.216.34"], ["127.0.0.1"])
    with pytest.raises(PostProblem, match="cannot be reached"):
        post("https://hooks.example.com/", (), resolve=resolve)
    assert (resolve.asked, connected) == (1, [("93.184.216.34", 443)])


def test_of_a_mixed_answer_only_what_is_public_is_tried(connected):
    resolve = answers(["10.0.0.1", "93.184.216.34", "::1", "127.0.0.1"])
    with pytest.raises(PostProblem):
        post("https://hooks.example.com/", (), resolve=resolve)
    assert connected == [("93.184.216.34", 443)]


def test_of_very_many_addresses_a_few_are_tried(connected):
    many = [f"93.184.216.{number}" for number in range(1, 200)]
    with pytest.raises(PostProblem):
        post("https://hooks.example.com/", (), resolve=answers(many))
    assert [address for address, _ in connected] == many[: posting.MOST_ADDRESSES]


def test_http_goes_to_networks_of_the_installation_only(connected, inside):
    """A name over http that has a public address: what is sent in clear stays inside."""
    with pytest.raises(PostProblem, match="no public address"):
        post("http://hooks.example.com:9000/", resolve=answers(["93.184.216.34"]))
    assert connected == []


def test_a_server_that_sends_a_header_now_and_then_holds_nobody(hook, inside):
    hook.drips.set()
    began = time.monotonic()
    with pytest.raises(PostProblem, match=r"not answered within 0\.3 s|cannot be reached"):
        post(hook.url, within_s=0.3)
    assert time.monotonic() - began < 5


def test_a_look_up_that_takes_too_long_holds_nobody():
    goes_on = threading.Event()

    def slow(*_arguments, **_options):
        goes_on.wait(10)
        return []

    with pytest.raises(PostProblem, match="not answered within"):
        post("https://hooks.example.com/", (), resolve=slow, within_s=0.05)
    goes_on.set()
    for thread in threading.enumerate():
        if thread.name == "webhook to hooks.example.com":
            thread.join(10)


def test_nobody_there_is_said(inside):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(PostProblem, match="cannot be reached: ConnectionRefusedError"):
        post(f"http://127.0.0.1:{port}/")


def test_no_proxy_of_the_environment_is_asked(hook, inside, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    post(hook.url)
    assert len(hook.taken) == 1


@pytest.fixture
def tls(tmp_path):
    """One answer inside TLS, by a certificate for hooks.example.com of an authority in ca.pem."""
    authority = Authority()
    own = authority.issue("hooks", ["hooks.example.com"])
    (tmp_path / "chain.pem").write_text(own.pem)
    (tmp_path / "key.pem").write_text(own.key_pem)
    (tmp_path / "ca.pem").write_text(authority.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "chain.pem", tmp_path / "key.pem")
    listener, heard = socket.create_server(("127.0.0.1", 0)), []

    def serve():
        connection, _ = listener.accept()
        with connection:
            try:
                with context.wrap_socket(connection, server_side=True) as inside:
                    data = b""
                    while not data.endswith(b"}"):  # the body ends so
                        data += inside.recv(4096)
                    heard.append(data)
                    inside.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            except OSError:
                return

    thread = threading.Thread(target=serve)
    thread.start()
    yield listener.getsockname()[1], tmp_path / "ca.pem", heard
    listener.close()
    thread.join(5)


def test_the_certificate_has_to_be_the_hosts_though_the_connection_goes_to_an_address(tls, inside, monkeypatch):
    port, authorities, heard = tls
    monkeypatch.setenv("SSL_CERT_FILE", str(authorities))
    post(f"https://hooks.example.com:{port}/x", resolve=answers(["127.0.0.1"]))
    assert heard[0].startswith(b"POST /x HTTP/1.1\r\n")
    assert f"Host: hooks.example.com:{port}".encode() in heard[0]


def test_anothers_certificate_is_refused(tls, inside, monkeypatch):
    port, authorities, heard = tls
    monkeypatch.setenv("SSL_CERT_FILE", str(authorities))
    with pytest.raises(PostProblem, match="not trusted"):
        post(f"https://other.example.com:{port}/", resolve=answers(["127.0.0.1"]))
    assert heard == []


def test_a_certificate_of_nobody_is_refused(tls, inside):
    port, _, heard = tls
    with pytest.raises(PostProblem, match="not trusted"):
        post(f"https://hooks.example.com:{port}/", resolve=answers(["127.0.0.1"]))
    assert heard == []


def test_networks_that_cannot_be_read_stop_the_start(settings):
    from controlplane.env import EnvironmentProblem

    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, webhook_networks="10.0.0.1/8")
    with pytest.raises(EnvironmentProblem, match="SLUICE_WEBHOOK_NETWORKS"):
        posting.networks()
