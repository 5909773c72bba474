"""HAProxy in front of a route: its own `send-proxy` and `send-proxy-v2`, and its health checks."""

import shutil
import subprocess
import time
from contextlib import contextmanager

import pytest

from tests.dataplane.network.proxied import BALANCER, CLIENT, STRANGER, answer, connected, framed, serving
from tests.support.ports import free_port

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")

pytestmark = pytest.mark.skipif(HAPROXY is None, reason="haproxy is not installed (apt-get install haproxy)")

CONFIG = """
defaults
    mode tcp
    timeout connect 5s
    timeout client 20s
    timeout server 20s
listen one
    bind 127.0.0.1:{one}
    server broker 127.0.0.1:{broker} source {balancer} send-proxy
listen two
    bind 127.0.0.1:{two}
    server broker 127.0.0.1:{broker} source {balancer} send-proxy-v2
listen two_with_tlvs
    bind 127.0.0.1:{tlvs}
    server broker 127.0.0.1:{broker} source {balancer} send-proxy-v2 proxy-v2-options crc32c,unique-id
    unique-id-format %ci:%cp
listen checked
    bind 127.0.0.1:{checked}
    server broker 127.0.0.1:{broker} source {balancer} send-proxy-v2 check check-send-proxy inter 100
listen not_configured
    bind 127.0.0.1:{stranger}
    server broker 127.0.0.1:{broker} source {other} send-proxy-v2
"""
NAMES = ("one", "two", "tlvs", "checked", "stranger")


@pytest.fixture
def server():
    with serving() as made:
        yield made


@pytest.fixture
def ports_of(tmp_path):
    """HAProxy in front of a server: its ports, by name."""

    @contextmanager
    def run(server):
        found = {name: free_port() for name in NAMES}
        config = tmp_path / "haproxy.cfg"
        config.write_text(CONFIG.format(broker=server.port, balancer=BALANCER, other=STRANGER, **found))
        with subprocess.Popen([HAPROXY, "-db", "-f", str(config)], stderr=subprocess.DEVNULL) as process:
            try:
                _listens(found["one"])
                yield found
            finally:
                process.terminate()
                process.wait(20)

    return run


@pytest.fixture
def ports(server, ports_of):
    with ports_of(server) as found:
        yield found


def _listens(port, within_s=20):
    end = time.monotonic() + within_s
    while True:
        try:
            connected(port, "127.0.0.1").close()
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)
        else:
            return


@pytest.mark.parametrize("name", ["one", "two", "tlvs", "checked"])
def test_a_client_is_seen_with_its_own_address_and_judged_by_it(server, ports, name):
    with connected(ports[name], CLIENT) as sock:
        sock.sendall(framed(b"hello"))
        assert answer(sock) == f"{CLIENT} {sock.getsockname()[1]} hello".encode()
    with connected(ports[name], STRANGER) as sock:
        sock.sendall(framed(b"hello"))
        assert answer(sock) is None
    assert {address for address, _ in server.let_in} <= {CLIENT}


def test_haproxy_itself_is_not_believed_from_an_address_that_is_not_configured(server, ports):
    with connected(ports["stranger"], CLIENT) as sock:
        sock.sendall(framed(b"hello"))
        assert answer(sock) is None
    assert server.let_in == []


def test_a_health_check_is_the_balancers_own_connection(ports_of):
    with serving(whitelist=(f"{BALANCER}/32",)) as server, ports_of(server):
        end = time.monotonic() + 20
        while not server.let_in and time.monotonic() < end:
            time.sleep(0.05)
        assert {address for address, _ in server.let_in} == {BALANCER}
