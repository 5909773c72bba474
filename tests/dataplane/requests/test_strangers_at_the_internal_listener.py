"""Who opens connections to the internal listener without end keeps out nobody who can log in, and holds little."""

from __future__ import annotations

import pytest

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import decode_response, encode_request
from dataplane.protocol.messages.discovery import MetadataRequest
from dataplane.protocol.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from dataplane.protocol.schema import message_info
from dataplane.requests.introduction import AUTHENTICATION_WITHIN_S
from dataplane.security.strangers import MOST, MOST_OF_A_SOURCE
from quota.contracts.identity import OPERATOR
from tests.simulation.cluster import INTERNAL_PORT, SimulatedCluster

HOST = "10.0.0.1"


@pytest.fixture
def cluster():
    made = SimulatedCluster(seed=5, brokers=1)
    made.until(made.up)
    return made


class End:
    """A client's end of a connection to the internal listener."""

    def __init__(self, cluster, source):
        self.network, self.answers, self.is_closed = cluster.network, [], False
        self.connection = None
        self.network.loop(source).connect(HOST, INTERNAL_PORT, self._opened, self.closed)

    def _opened(self, connection):
        self.connection = connection
        return self

    def frame(self, frame):
        self.answers.append(bytes(frame))

    def closed(self, _reason):
        self.is_closed = True

    def call(self, request, version):
        """The answer; None: the connection has ended."""
        api = APIS[message_info(type(request)).api_key]
        self.network.run_until(lambda: self.connection is not None, 5)
        self.connection.send([encode_request(api, version, 7, "client", request)])
        self.network.run_until(lambda: self.answers or self.is_closed, 30)
        return decode_response(api, version, self.answers.pop())[1] if self.answers else None

    def log_in(self, secret):
        self.call(SaslHandshakeRequest("PLAIN"), 1)
        return self.call(SaslAuthenticateRequest(b"\0operator\0" + secret.encode()), 2)


def strangers(cluster):
    return cluster.brokers[1].admission.strangers


def secret(cluster):
    return cluster.brokers[1].config.keys.own(OPERATOR)


def flooded(cluster, sources, count, made):
    """As many connections more, all at once."""
    made += [End(cluster, sources[n % len(sources)]) for n in range(count)]


@pytest.mark.parametrize("sources", [["10.9.0.1"], [f"10.9.0.{n}" for n in range(1, 40)]], ids=["one", "many"])
def test_a_broker_gets_in_while_thousands_are_opened_that_say_nothing(cluster, sources):
    made = []
    flooded(cluster, sources, 3_000, made)
    cluster.network.run_for(0.5)
    most = min(MOST, len(sources) * MOST_OF_A_SOURCE)
    assert most - 10 < len(strangers(cluster)) <= most  # the broker's own connections to itself were among them
    broker = End(cluster, "10.0.0.2")
    flooded(cluster, sources, MOST // 2, made)  # and while it logs in
    assert broker.log_in(secret(cluster)).error_code == 0
    flooded(cluster, sources, 2 * MOST, made)
    cluster.network.run_for(AUTHENTICATION_WITHIN_S + 1)
    assert broker.call(MetadataRequest(), 12) is not None
    assert len(strangers(cluster)) == 0
    assert all(each.is_closed for each in made)


def test_one_of_the_same_address_as_the_flood_gets_in_too(cluster):
    made = []
    flooded(cluster, ["10.9.0.1"], 1_000, made)
    cluster.network.run_for(0.5)
    assert End(cluster, "10.9.0.1").log_in(secret(cluster)).error_code == 0


def test_a_wrong_secret_is_told_after_a_while_and_counted_and_the_connection_ends(cluster):
    waited = []
    for _ in range(4):
        end = End(cluster, "10.9.0.1")
        began = cluster.network.clock.seconds
        answer = end.log_in("a guess")
        waited.append(cluster.network.clock.seconds - began)
        assert answer.error_code == 58
        cluster.network.run_for(0.1)
        assert end.is_closed
    assert waited[0] > 0.1
    assert waited[3] > 0.8
    load = cluster.brokers[1].facts.take_load()
    assert load.failed_logins == {"": 4}
    began = cluster.network.clock.seconds
    assert (
        End(cluster, "10.9.0.1").log_in(secret(cluster)).error_code == 0
    )  # nobody is refused unheard, nor kept waiting
    assert cluster.network.clock.seconds - began < 0.1


def test_guesses_that_are_sent_at_once_are_told_one_after_the_other(cluster):
    end = End(cluster, "10.9.0.1")
    end.call(SaslHandshakeRequest("PLAIN"), 1)
    api = APIS[ApiKey.SASL_AUTHENTICATE]
    said = [b"\0operator\0guess", b"\0operator\0" + secret(cluster).encode()]
    end.connection.send(
        [encode_request(api, 2, n, "client", SaslAuthenticateRequest(one)) for n, one in enumerate(said)]
    )
    cluster.network.run_for(5)
    assert len(end.answers) == 1
    assert decode_response(api, 2, end.answers[0])[1].error_code == 58
    assert end.is_closed


def test_a_frame_of_more_than_64_kib_ends_a_connection_that_has_not_logged_in(cluster):
    for size, ends in ((64 * 2**10, False), (64 * 2**10 + 1, True)):
        end = End(cluster, "10.9.0.1")
        cluster.network.run_until(lambda end=end: end.connection is not None, 5)
        end.connection.send([size.to_bytes(4)])
        cluster.network.run_for(1)
        assert end.is_closed == ends
