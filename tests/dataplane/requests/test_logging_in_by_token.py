"""Logging in by OAUTHBEARER, frame by frame on virtual time: until when it is good, and how a client is told that it is not."""

from __future__ import annotations

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import MetadataRequest
from dataplane.protocol.messages.security import SaslAuthenticateRequest
from dataplane.security.oauthbearer import REFUSED
from dataplane.tenancy.logins import LONGEST_BY_TOKEN_MS
from quota.contracts.instance import OAUTHBEARER
from tests.dataplane.requests.logins import ALICE, BOB, ISSUER, LIFETIME_MS, NO_PLAIN_PORT, TOKEN_PORT, USERS, Cluster
from tests.simulation.cluster import INSTANCE
from tests.support.tokens import Issuer, message

OTHER = Issuer("https://other.example.com", {"one": "P-256"}, ("sluice",), "client_id", "kafka")
SENTENCE = '{"status":"invalid_token"}'


@pytest.fixture(scope="module")
def cluster():
    return Cluster()


@pytest.fixture(autouse=True)
def trusted(cluster):
    """Whatever the test before has left."""
    cluster.has_users(*USERS.items)
    cluster.trusts(ISSUER)


@pytest.fixture
def client(cluster):
    return cluster.connect(TOKEN_PORT)


def good(cluster, subject="alice", lifetime_s=60.0, **members):
    return ISSUER.token(subject, cluster.now_s, lifetime_s, **members)


def session_of(cluster):
    return next(reversed([each for each in cluster.instance.connections if each.session.route == "token"])).session


# --- in -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_token_lets_in_until_it_ends(cluster, client, version):
    answer = client.token(good(cluster), version)
    assert (answer.error_code, answer.error_message, answer.auth_bytes) == (0, "", b"")
    assert 59_000 < answer.session_lifetime_ms <= 60_000 if version else answer.session_lifetime_ms == 0
    session = session_of(cluster)
    assert (session.principal, session.mechanism, session.issuer) == ("User:alice", OAUTHBEARER, ISSUER.trusted)
    assert client.works()


def test_who_a_token_names_need_be_no_user(cluster, client):
    assert client.token(good(cluster, "nobody-we-know")).error_code == 0
    assert session_of(cluster).principal == "User:nobody-we-know"


def test_tokens_without_headers_behind_a_handshake_of_version_0(cluster, client):
    assert client.shake(OAUTHBEARER, 0).error_code == 0
    client.raw(message(good(cluster)))
    assert client.next() == b""
    assert client.works()


def test_one_that_is_good_for_ever_is_good_for_a_day(cluster, client):
    assert client.token(good(cluster, lifetime_s=1e11)).session_lifetime_ms == LONGEST_BY_TOKEN_MS


def test_a_brokers_own_limit_is_shorter():
    strict = Cluster(LIFETIME_MS)
    assert strict.connect(TOKEN_PORT).token(good(strict, lifetime_s=3_600)).session_lifetime_ms == LIFETIME_MS


# --- not in -------------------------------------------------------------------------------------------------------------


BAD = {
    "no token": lambda _now_s: "nonsense",
    "another issuer": lambda now_s: OTHER.token("alice", now_s, algorithm="ES256"),
    "an issuer that somebody else plays": lambda now_s: Issuer(keys={"one": "RSA, another"}).token("alice", now_s),
    "ended": lambda now_s: ISSUER.token("alice", now_s - 60, 60),
    "another audience": lambda now_s: ISSUER.token("alice", now_s, aud="other"),
    "nobody": lambda now_s: ISSUER.token("*", now_s),
}


@pytest.mark.parametrize("what", BAD)
def test_one_that_is_not_good_is_told_so_in_json_and_then_it_is_over(cluster, client, what):
    began = cluster.network.clock.seconds
    answer = client.token(BAD[what](cluster.now_s))
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, REFUSED, 0)
    assert cluster.network.clock.seconds - began >= 0.1
    failed = client.say(b"\x01")
    assert (failed.error_code, failed.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, SENTENCE)
    assert client.ends()


def test_whatever_is_answered_it_is_over_a_good_token_too(cluster, client):
    assert client.token("nonsense").auth_bytes == REFUSED
    assert client.say(message(good(cluster))).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert client.ends()


def test_without_headers_the_json_comes_and_then_the_end(client):
    client.shake(OAUTHBEARER, 0)
    client.raw(message("nonsense"))
    assert client.next() == REFUSED
    client.raw(b"\x01")
    assert client.next() is None


@pytest.mark.parametrize("data", [b"", b"\x01", b"\0alice\0pencil", b"n,,\x01auth=Bearer \x01\x01"])
def test_what_is_no_message_fails_without_json(client, data):
    client.shake(OAUTHBEARER)
    failed = client.say(data)
    assert failed.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert failed.error_message.endswith("invalid credentials with SASL mechanism OAUTHBEARER")
    assert client.ends()


def test_an_ordinary_request_in_place_of_the_answer_is_the_end(client):
    client.token("nonsense")
    assert client.call(MetadataRequest(topics=()), 9) is None


def test_who_does_not_answer_is_gone_after_ten_seconds(client):
    client.token("nonsense")
    client.network.run_for(10)
    assert client.is_closed


def test_in_the_clear_it_is_not_offered_unless_the_route_says_so(cluster):
    client = cluster.connect(NO_PLAIN_PORT)
    refused = client.shake(OAUTHBEARER)
    assert refused.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert OAUTHBEARER not in refused.mechanisms
    assert client.ends()


def test_a_route_for_tokens_takes_no_password(client):
    assert client.shake("PLAIN").error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert client.ends()


def test_a_failure_counts_once_and_names_whom_the_token_says():
    cluster, heard = Cluster(), []
    cluster.broker.logins.on_outcome = lambda _session, user, is_right, _why: heard.append((user, is_right))
    for token in ("nonsense", ISSUER.token("alice", cluster.now_s, aud="other")):
        client = cluster.connect(TOKEN_PORT)
        client.token(token)
        client.say(b"\x01")
    assert cluster.connect(TOKEN_PORT).token(good(cluster)).error_code == 0
    silent = cluster.connect(TOKEN_PORT)
    silent.token("nonsense")
    silent.connection.close()
    assert heard == [("", False), ("alice", False), ("alice", True), ("", False)]
    assert cluster.broker.logins.outcomes() == {INSTANCE.removeprefix("ins-"): (1, 3)}


def test_who_fails_twenty_times_is_not_heard_and_told_the_same():
    cluster = Cluster()
    for _ in range(20):
        client = cluster.connect(TOKEN_PORT)
        assert client.token(ISSUER.token("alice", cluster.now_s, aud="other")).auth_bytes == REFUSED
        client.connection.close()
    late = cluster.connect(TOKEN_PORT)
    assert late.token(good(cluster)).auth_bytes == REFUSED
    assert cluster.connect(TOKEN_PORT, source="10.0.1.8").token(good(cluster)).error_code == 0
    assert cluster.connect(TOKEN_PORT).token(good(cluster, "bob")).session_lifetime_ms > 0


# --- issuers that change --------------------------------------------------------------------------------------------------


def test_an_issuer_that_is_gone_takes_its_principals_with_it_and_nobody_else(cluster, client):
    cluster.trusts(ISSUER, OTHER)
    other, by_password = cluster.connect(TOKEN_PORT), cluster.connect()
    assert client.token(good(cluster)).error_code == 0
    claims = {"client_id": "billing", "scope": "kafka"}
    assert other.token(OTHER.token("x", cluster.now_s, algorithm="ES256", **claims)).error_code == 0
    assert by_password.plain().error_code == 0
    cluster.trusts(OTHER)
    assert client.ends(2)
    assert other.works()
    assert by_password.works()
    assert cluster.connect(TOKEN_PORT).token(good(cluster)).auth_bytes == REFUSED


@pytest.mark.parametrize(
    "changed",
    [Issuer(audiences=("kafka", "other")), Issuer(principal_claim="client_id"), Issuer(scope="kafka")],
    ids=["audiences", "claim", "scope"],
)
def test_so_does_one_of_which_something_else_is_wanted_now(cluster, client, changed):
    assert client.token(good(cluster)).error_code == 0
    cluster.trusts(changed)
    assert client.ends(2)


def test_a_key_that_was_replaced_ends_nobody_and_lets_nobody_in(cluster, client):
    old = good(cluster)
    assert client.token(old).error_code == 0
    renewed = Issuer(keys={"two": "RSA, another"})
    cluster.trusts(renewed)
    assert client.works()
    assert cluster.connect(TOKEN_PORT).token(old).auth_bytes == REFUSED
    assert cluster.connect(TOKEN_PORT).token(renewed.token("alice", cluster.now_s, kid="two")).session_lifetime_ms > 0


def test_an_issuer_that_goes_while_its_token_is_verified_lets_nobody_in(cluster, client, monkeypatch):
    client.shake(OAUTHBEARER)
    submit = cluster.broker.logins._verifying.submit

    def meanwhile(*arguments):
        job = submit(*arguments)
        cluster.trusts()
        return job

    monkeypatch.setattr(cluster.broker.logins._verifying, "submit", meanwhile)
    assert client.say(message(good(cluster))).auth_bytes == REFUSED


def test_a_user_of_the_same_name_who_is_deleted_is_somebody_else(cluster, client):
    assert client.token(good(cluster)).error_code == 0
    cluster.has_users(BOB)
    assert client.works()
    cluster.has_users(ALICE, BOB)


# --- again (KIP-368) ------------------------------------------------------------------------------------------------------


def test_when_the_token_has_ended_requests_are_the_end(cluster, client):
    client.token(good(cluster))
    client.network.run_for(58)
    assert client.works()
    client.network.run_for(3)
    assert not client.works()


def test_with_another_token_it_goes_on(cluster, client):
    client.token(good(cluster))
    for _ in range(3):
        client.network.run_for(50)
        assert client.token(good(cluster)).error_code == 0
        assert client.works()


def test_not_as_another(cluster, client):
    client.token(good(cluster))
    client.network.run_for(2)
    failed = client.token(good(cluster, "bob"))
    assert failed.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert client.ends()


def test_not_with_a_token_that_is_not_good(cluster, client):
    client.token(good(cluster))
    client.network.run_for(2)
    assert client.token(good(cluster, aud="other")).auth_bytes == REFUSED
    client.send(SaslAuthenticateRequest(b"\x01"), 2)
    client.network.run_until(lambda: client.is_closed, 5)
    assert client.is_closed
