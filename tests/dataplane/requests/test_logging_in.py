"""Logging in on a route that wants SASL, frame by frame: what is answered, what ends the connection, and what nobody holds up."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import ApiVersionsRequest, MetadataRequest
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.protocol.messages.security import SaslAuthenticateRequest
from dataplane.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from dataplane.records.batch import Record, build_batch
from dataplane.requests.introduction import MOST_BEFORE_AUTHENTICATION, UNAUTHENTICATED_FRAME_BYTES
from dataplane.tenancy import logins
from dataplane.throttle.tolls import BYTES_IN
from tests.dataplane.requests.logins import (
    BOB,
    LIFETIME_MS,
    NO_PLAIN_PORT,
    SASL_PORT,
    USERS,
    Cluster,
)
from tests.dataplane.security.clients import SHA_256, SHA_512, ScramClient
from tests.simulation.cluster import TENANT_PORT


@pytest.fixture(scope="module")
def cluster():
    return Cluster()


@pytest.fixture(scope="module")
def strict():
    """Logins last a minute."""
    return Cluster(LIFETIME_MS)


@pytest.fixture
def client(cluster):
    return cluster.connect()


def session_of(cluster, route="sasl"):
    return next(reversed([each for each in cluster.instance.connections if each.session.route == route])).session


# --- in -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
def test_scram_lets_in_under_the_users_name(cluster, client, mechanism, version):
    scram = ScramClient("alice", "pencil", mechanism)
    answer = client.scram(scram, version)
    assert (answer.error_code, answer.error_message, answer.session_lifetime_ms) == (0, "", 0)
    assert scram.is_right(answer.auth_bytes)
    session = session_of(cluster)
    assert (session.principal, session.user, session.mechanism) == ("User:alice", "alice", mechanism.value)
    assert client.works()


def test_plain_lets_in(cluster, client):
    answer = client.plain("bob", "brush")
    assert (answer.error_code, answer.auth_bytes) == (0, b"")
    assert session_of(cluster).principal == "User:bob"
    assert client.works()


def test_versions_may_be_asked_first(client):
    assert client.call(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3).error_code == 0
    assert client.plain().error_code == 0
    assert client.works()


def test_tokens_without_headers_behind_a_handshake_of_version_0(client):
    assert client.shake("PLAIN", 0).error_code == 0
    client.raw(b"\0alice\0pencil")
    assert client.next() == b""
    assert client.works()


def test_scram_without_headers(client):
    scram = ScramClient("alice", "pencil")
    assert client.shake("SCRAM-SHA-256", 0).error_code == 0
    client.raw(scram.first())
    client.raw_answer = client.next()
    client.raw(scram.final(client.raw_answer))
    assert scram.is_right(client.next())
    assert client.works()


def test_what_came_behind_is_served_when_it_is_in(client):
    client.shake("PLAIN")
    client.send(SaslAuthenticateRequest(b"\0alice\0pencil"), 2)
    client.send(MetadataRequest(topics=()), 9)
    client.network.run_until(lambda: len(client.answers) == 2, 5)
    assert not client.is_closed


def test_larger_frames_may_come_when_it_is_in(client):
    client.plain()
    names = "x" * (UNAUTHENTICATED_FRAME_BYTES + 1)
    batch = bytes(build_batch([Record(b"k", names.encode())], now_ms=1))
    data = TopicProduceData("none", (PartitionProduceData(0, batch),))
    answer = client.call(ProduceRequest(acks=1, timeout_ms=1000, topic_data=(data,)), 9)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# --- not in ---------------------------------------------------------------------------------------------------------------

GENERIC = "Authentication failed during authentication due to invalid credentials with SASL mechanism {}"


@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("nobody", "pencil"), ("bob", "pencil")])
def test_a_wrong_password_and_an_unknown_user_are_told_the_same_and_later(client, name, password):
    answer = client.plain(name, password)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == GENERIC.format("PLAIN")
    assert client.ends()


@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("nobody", "pencil")])
def test_by_scram_as_well(client, name, password):
    began = client.network.clock.seconds
    answer = client.scram(ScramClient(name, password))
    assert answer.error_message == GENERIC.format("SCRAM-SHA-256")
    assert client.network.clock.seconds - began >= 0.1
    assert client.ends()


def test_a_message_that_is_none_fails(client):
    client.shake("SCRAM-SHA-256")
    assert client.say(b"nonsense").error_message == GENERIC.format("SCRAM-SHA-256")
    assert client.ends()


def test_nobody_logs_in_for_another(client):
    client.shake("PLAIN")
    answer = client.say(b"bob\0alice\0pencil")
    assert answer.error_message == (
        "Authentication failed: Client requested an authorization id that is different from username"
    )
    assert client.ends()


def test_without_headers_a_failure_is_the_end(client):
    client.shake("PLAIN", 0)
    client.raw(b"\0alice\0wrong")
    assert client.next() is None


@pytest.mark.parametrize(("port", "offered"), [(SASL_PORT, 3), (NO_PLAIN_PORT, 2)])
def test_a_mechanism_that_is_not_offered_is_told_with_those_that_are(cluster, port, offered):
    client = cluster.connect(port)
    answer = client.shake("GSSAPI")
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")[-offered:]
    assert client.ends()


def test_plain_in_the_clear_is_not_offered_unless_the_route_says_so(cluster):
    client = cluster.connect(NO_PLAIN_PORT)
    assert client.shake("PLAIN").error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert client.ends()


@pytest.mark.parametrize("request_", [MetadataRequest(topics=()), SaslAuthenticateRequest(b"\0alice\0pencil")])
def test_anything_else_before_a_handshake_is_the_end(client, request_):
    assert client.call(request_, 2) is None


def test_anything_else_within_an_exchange_is_the_end(client):
    client.shake("SCRAM-SHA-256")
    client.say(ScramClient("alice", "pencil").first())
    assert client.call(MetadataRequest(topics=()), 9) is None


def test_a_handshake_within_an_exchange_is_the_end(client):
    client.shake("SCRAM-SHA-256")
    assert client.shake("PLAIN") is None


def test_what_came_behind_a_failure_is_not_served(client):
    client.shake("PLAIN")
    client.send(SaslAuthenticateRequest(b"\0alice\0wrong"), 2)
    for _ in range(3):
        client.send(MetadataRequest(topics=()), 9)
    client.network.run_until(lambda: client.is_closed, 5)
    assert len(client.answers) == 1


def test_a_large_frame_is_the_end(cluster, client):
    client.raw(b"x" * (UNAUTHENTICATED_FRAME_BYTES + 1))
    assert client.ends()


def test_so_many_requests_and_no_more(client):
    for _ in range(MOST_BEFORE_AUTHENTICATION + 5):
        client.send(ApiVersionsRequest(), 0)
    client.network.run_until(lambda: client.is_closed, 5)
    assert len(client.answers) <= MOST_BEFORE_AUTHENTICATION


def test_who_says_nothing_is_gone_after_ten_seconds(cluster, client):
    client.network.run_for(9.5)
    assert not client.is_closed
    client.network.run_for(1.0)
    assert client.is_closed


def test_who_is_in_is_not(cluster, client):
    client.plain()
    client.network.run_for(30)
    assert client.works()


def test_a_route_in_the_clear_has_nothing_to_log_in_to(cluster):
    client = cluster.connect(TENANT_PORT)
    answer = client.shake("PLAIN")
    assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, ())
    answer = client.say(b"\0alice\0pencil")
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.works()


# --- users who change -----------------------------------------------------------------------------------------------------


def test_a_user_who_is_deleted_is_cut_off_and_no_other(cluster):
    alice, bob = cluster.connect(), cluster.connect()
    assert alice.plain().error_code == bob.plain("bob", "brush").error_code == 0
    cluster.has_users(BOB)
    assert alice.ends(2)
    assert bob.works()
    assert cluster.connect().plain().error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    cluster.has_users(*USERS.items)
    assert cluster.connect().plain().error_code == 0


def test_a_user_who_is_deleted_within_his_exchange_is_not_let_in(cluster, client):
    scram = ScramClient("alice", "pencil")
    client.shake("SCRAM-SHA-256")
    final = scram.final(client.say(scram.first()).auth_bytes)
    cluster.has_users(BOB)
    assert client.say(final).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    cluster.has_users(*USERS.items)


# --- again (KIP-368) ------------------------------------------------------------------------------------------------------


def test_where_a_login_does_not_end_there_is_no_other(client):
    client.plain()
    client.network.run_for(2)
    assert client.shake("PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.say(b"\0alice\0pencil").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.works()


def test_the_lifetime_is_told_and_when_it_is_over_requests_are_the_end(strict):
    client = strict.connect()
    assert client.plain().session_lifetime_ms == LIFETIME_MS
    client.network.run_for(LIFETIME_MS / 1000 - 1)
    assert client.works()
    client.network.run_for(2)
    assert not client.is_closed
    assert not client.works()


def test_who_logs_in_again_stays(strict):
    client = strict.connect()
    client.plain()
    for _ in range(3):
        client.network.run_for(LIFETIME_MS / 1000 - 5)
        assert client.plain().error_code == 0
        assert client.works()


def test_it_may_come_late(strict):
    client = strict.connect()
    client.plain()
    client.network.run_for(LIFETIME_MS / 1000 + 5)
    assert client.plain().error_code == 0
    assert client.works()


def test_not_as_another(strict):
    client = strict.connect()
    client.plain()
    client.network.run_for(2)
    answer = client.plain("bob", "brush")
    assert answer.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert client.ends()


def test_not_by_another_mechanism(strict):
    client = strict.connect()
    client.plain()
    client.network.run_for(2)
    answer = client.scram(ScramClient("alice", "pencil"))
    assert answer.error_message == (
        "SASL mechanism 'SCRAM-SHA-256' requested by client is not supported for re-authentication of mechanism 'PLAIN'"
    )
    assert client.ends()


def test_not_with_a_wrong_password(strict):
    client = strict.connect()
    client.plain()
    client.network.run_for(2)
    assert "during re-authentication" in client.plain("alice", "wrong").error_message
    assert client.ends()


def test_not_twice_in_a_second(strict):
    client = strict.connect()
    client.plain()
    client.network.run_for(0.5)
    assert client.shake("PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.works()


def test_a_request_that_was_learned_is_refused_too_when_it_is_over(strict):
    client = strict.connect()
    client.plain()
    topic = CreatableTopic("orders", 1, 1)
    client.call(CreateTopicsRequest(topics=(topic,), timeout_ms=5_000), 5)
    client.network.run_for(3)
    batch = bytes(build_batch([Record(b"k", b"v")], now_ms=1))
    data = TopicProduceData("orders", (PartitionProduceData(0, batch),))
    produce = ProduceRequest(acks=1, timeout_ms=1000, topic_data=(data,))
    for _ in range(3):
        assert client.call(produce, 9).responses[0].partition_responses[0].error_code == 0
    client.network.run_for(LIFETIME_MS / 1000 + 1)
    assert client.call(produce, 9) is None


# --- who tries without end ------------------------------------------------------------------------------------------------


def test_who_guesses_is_not_heard_after_twenty_times_and_others_are():
    cluster = Cluster()
    for _ in range(20):
        assert cluster.connect().plain("alice", "wrong").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    late = cluster.connect().plain("alice", "pencil")
    assert (late.error_code, late.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, GENERIC.format("PLAIN"))
    assert cluster.connect(source="10.0.1.8").plain("alice", "pencil").error_code == 0
    assert cluster.connect().plain("bob", "brush").error_code == 0
    cluster.network.run_for(61)
    assert cluster.connect().plain("alice", "pencil").error_code == 0
    assert cluster.broker.logins.outcomes() == {"simulate": (3, 21)}


def test_connections_that_do_not_log_in_leave_half_of_the_places_and_make_room():
    cluster = Cluster(connections=10)
    idle = [cluster.connect() for _ in range(8)]
    assert [end.is_closed for end in idle] == [False] * 5 + [True] * 3
    rightful = cluster.connect(source="10.0.1.8")
    assert [end.is_closed for end in idle[:5]] == [True] + [False] * 4
    assert rightful.plain().error_code == 0
    assert rightful.works()
    assert len(cluster.instance.connections) == 5


def test_nobody_makes_room_for_one_who_cannot_be_let_in_all_the_same():
    cluster = Cluster(connections_per_address=1)
    other = cluster.connect(port=TENANT_PORT, source="10.0.1.8")
    slow = cluster.connect()
    for _ in range(3):
        assert cluster.connect(source="10.0.1.8").is_closed
        assert cluster.connect(port=TENANT_PORT, source="10.0.1.8").is_closed
    assert not slow.is_closed
    assert not other.is_closed
    assert slow.plain().error_code == 0


def test_nor_for_one_who_comes_too_soon(monkeypatch):
    cluster = Cluster(connections=10)
    idle = [cluster.connect() for _ in range(5)]
    monkeypatch.setattr(cluster.broker.gate, "admits_connection", lambda _instance: False)
    assert cluster.connect(source="10.0.1.8").is_closed
    assert [end.is_closed for end in idle] == [False] * 5


def test_what_a_stranger_announces_is_charged_to_nobody():
    cluster = Cluster()
    client = cluster.connect()
    charged = []
    bucket = SimpleNamespace(line=None, paid_at=0.0, charge=lambda units, now: charged.append(units) or 0.0)
    cluster.instance.tolls[int(ApiKey.PRODUCE)] = ((bucket, BYTES_IN),)
    client.send(ProduceRequest(acks=1, timeout_ms=1, topic_data=()), 9)
    assert client.ends()
    assert charged == []
    rightful = cluster.connect()
    rightful.plain()
    rightful.call(ProduceRequest(acks=1, timeout_ms=1, topic_data=()), 9)
    assert len(charged) == 1


def test_who_goes_while_he_waits_to_be_told_leaves_nothing():
    cluster = Cluster()
    for _ in range(3):
        client = cluster.connect()
        client.shake("PLAIN")
        client.send(SaslAuthenticateRequest(b"\0alice\0wrong"), 2)
        client.network.run_for(0.01)
        client.connection.close()
    cluster.network.run_for(5)
    assert cluster.broker.logins._waiting == {}
    assert not cluster.instance.connections
    assert cluster.connect().plain().error_code == 0


def test_so_many_wait_to_be_told_and_the_others_are_closed_on(monkeypatch):
    monkeypatch.setattr(logins, "MOST_TOLD_LATER", 2)
    cluster = Cluster()
    clients = [cluster.connect(source=f"10.0.1.{number}") for number in range(20, 25)]
    for version, client in enumerate(clients):
        client.shake("SCRAM-SHA-256", version % 2)
    for version, client in enumerate(clients):
        if version % 2:
            client.send(SaslAuthenticateRequest(b"nonsense"), 2)
        else:
            client.raw(b"nonsense")
    cluster.network.run_for(5)
    assert all(client.is_closed for client in clients)
    assert sum(len(client.answers) for client in clients) <= 2
    assert cluster.broker.logins.outcomes() == {"simulate": (0, 5)}
    assert cluster.connect().plain().error_code == 0
