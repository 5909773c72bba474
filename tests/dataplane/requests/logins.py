"""A broker on virtual time with a route that wants SASL, and a client's end of a connection to it."""

from __future__ import annotations

import struct
from dataclasses import replace

from dataplane.protocol.api import APIS
from dataplane.protocol.headers import decode_response, encode_request
from dataplane.protocol.messages.discovery import MetadataRequest
from dataplane.protocol.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from dataplane.protocol.schema import message_info
from quota.contracts.instance import OAUTHBEARER, Endpoint, Limits, Route
from quota.contracts.token_issuers import TokenIssuerSet
from quota.contracts.users import User, UserSet
from tests.dataplane.security.clients import SHA_512, credential
from tests.simulation.cluster import INSTANCE, SETTINGS, SimulatedCluster
from tests.support.tokens import BY_TOKEN, Issuer, message

HOST = "10.0.0.1"
SASL_PORT, NO_PLAIN_PORT, TOKEN_PORT = 9200, 9201, 9202
ISSUER = Issuer()
ALICE = User("alice", (credential("pencil"), credential("pencil", SHA_512)))
BOB = User("bob", (credential("brush"),))
USERS = UserSet(1, (ALICE, BOB))
LIFETIME_MS = 60_000


class Cluster:
    """One broker and one instance, with a route in the clear, one for passwords, one without PLAIN, and one for tokens."""

    def __init__(self, lifetime_ms=0, **limits):
        settings = replace(
            SETTINGS,
            default_replication_factor=1,
            offsets_topic_replication_factor=1,
            transaction_state_log_replication_factor=1,
            connections_max_reauth_ms=lifetime_ms,
        )
        self.simulated = SimulatedCluster(seed=3, brokers=1, settings=settings)
        self.network = self.simulated.network
        self.simulated.until(self.simulated.up)
        self.instance = self.broker.registry.get(INSTANCE)
        spec = self.instance.spec
        mechanisms = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
        sasl = Route("sasl", at(SASL_PORT), "sasl_plaintext", mechanisms, allow_plain_in_clear=True)
        clear = Route("no-plain", at(NO_PLAIN_PORT), "sasl_plaintext", (*mechanisms, OAUTHBEARER))
        token = Route("token", at(TOKEN_PORT), **BY_TOKEN)
        self.spec = replace(
            spec,
            generation=2,
            routes=(*spec.routes, sasl, clear, token),
            users=USERS,
            token_issuers=ISSUER.trusted_set(),
            limits=Limits(None, None, None, None, **limits),
        )
        self.apply(self.spec)

    @property
    def broker(self):
        return self.simulated.brokers[1]

    def apply(self, spec):
        self.broker.registry.apply(spec)

    def has_users(self, *users):
        """These from now on: a version later, in whichever order tests come."""
        held = self.broker.registry.get(self.spec.id).spec.users
        self.apply(replace(self.spec, users=held.changed(users)))

    def trusts(self, *issuers):
        """Tokens of these from now on, likewise."""
        held = self.broker.registry.get(self.spec.id).spec.token_issuers or TokenIssuerSet()
        self.apply(replace(self.spec, token_issuers=held.changed([issuer.trusted for issuer in issuers])))

    @property
    def now_s(self):
        """Of the wall's clock."""
        return self.network.clock.now_ms() / 1000

    def connect(self, port=SASL_PORT, source="10.0.1.9"):
        return End(self.network, port, source)


def at(port):
    return {1: Endpoint((HOST, port), (HOST, port))}


class End:
    """A client's end of a connection."""

    def __init__(self, network, port, source):
        self.network, self.answers, self.closed_because = network, [], None
        self.connection = None
        network.loop(source).connect(HOST, port, self._opened, self.closed)
        network.run_until(lambda: self.connection is not None or self.is_closed, 5)
        network.run_for(0.05)  # for the other end to take it or not

    def _opened(self, connection):
        self.connection = connection
        return self

    def frame(self, frame):
        self.answers.append(bytes(frame))

    def closed(self, reason):
        self.closed_because = reason

    @property
    def is_closed(self):
        return self.closed_because is not None

    def send(self, request, version, correlation_id=7):
        api = APIS[message_info(type(request)).api_key]
        self.connection.send([encode_request(api, version, correlation_id, "client", request)])

    def raw(self, token):
        self.connection.send([struct.pack(">i", len(token)) + token])

    def next(self, within_s=5.0):
        """The next frame; None: the connection ends without."""
        self.network.run_until(lambda: self.answers or self.is_closed, within_s)
        return self.answers.pop(0) if self.answers else None

    def call(self, request, version, within_s=5.0):
        self.send(request, version)
        frame = self.next(within_s)
        return None if frame is None else decode_response(APIS[message_info(type(request)).api_key], version, frame)[1]

    def shake(self, mechanism, version=1):
        return self.call(SaslHandshakeRequest(mechanism), version)

    def say(self, token, version=2, within_s=5.0):
        return self.call(SaslAuthenticateRequest(token), version, within_s)

    def plain(self, name="alice", password="pencil"):
        assert self.shake("PLAIN").error_code == 0
        return self.say(f"\0{name}\0{password}".encode())

    def scram(self, client, version=2):
        assert self.shake(client.mechanism.value).error_code == 0
        first = self.say(client.first(), version)
        if first is None or first.error_code:
            return first
        return self.say(client.final(first.auth_bytes), version)

    def token(self, token, version=2):
        """Log in by a token: the answer to the handshake's one message."""
        assert self.shake(OAUTHBEARER).error_code == 0
        return self.say(message(token), version)

    def works(self):
        """Whether an ordinary request is answered."""
        return self.call(MetadataRequest(topics=()), 9) is not None

    def ends(self, within_s=5.0):
        if not self.is_closed:
            self.network.run_until(lambda: self.is_closed, within_s)
        return not self.answers
