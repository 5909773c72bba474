"""Whatever a client says of itself: an exchange of any mechanism by itself, or on a connection to a broker on virtual time.

An input is a byte that says which (`one_input`), and messages, each behind its length (two bytes). In them ``<nonce>`` stands for
what the server said of nonces, ``<proof>`` for alice's right proof of everything before it, ``<token>`` for a good token of hers,
``<signed …>`` for one with these claims. On a connection a message begins with a byte that says what it is: see
`_on_a_connection`.

What must hold: there is one kind of error; nobody is verified but alice, and only by what has her password or a token of hers; on
behalf of nobody else; and with the nonce of this exchange. On a connection: no exception leaves a callback or is logged as an
error, and nobody who has shown neither has an ordinary request answered.

    python tests/fuzz/fuzz_sasl.py CORPUS… [libFuzzer's options]      run by tests.fuzz
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import re
import sys
import zlib
from pathlib import Path

import atheris
from jwt import PyJWS

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(
    include=[
        "dataplane.security",
        "dataplane.tenancy.logins",
        "dataplane.handlers.discovery.sasl",
        "dataplane.requests",
    ]
):
    from dataplane.security.attempts import MOST_DELAY_S
    from dataplane.security.exchange import Proof, SaslError, Verified
    from dataplane.security.known import KnownUsers
    from dataplane.security.oauthbearer import OauthBearer
    from dataplane.security.plain import Plain
    from dataplane.security.scram import Scram
    from tests.dataplane.requests.logins import ISSUER, SASL_PORT, TOKEN_PORT, Cluster

from dataplane.protocol.messages.discovery import ApiVersionsRequest, MetadataRequest
from dataplane.protocol.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from quota.contracts.instance import OAUTHBEARER
from quota.contracts.users import User
from tests.dataplane.security.clients import SECRET, SHA_256, SHA_512, credential, users
from tests.fuzz import planted
from tests.fuzz.bounded import bounded
from tests.support.tokens import message as bearing
from tests.support.tokens import private_key

PASSWORD = "pencil"
KNOWN = KnownUsers(users(User("alice", (credential(PASSWORD), credential(PASSWORD, SHA_512, b"t" * 24)))), SECRET)
SALTED = {
    hash_: hashlib.pbkdf2_hmac(hash_, PASSWORD.encode(), salt, 4096)
    for hash_, salt in (("sha256", b"s" * 24), ("sha512", b"t" * 24))
}
"""On a connection, alice's salt is the same by both hashes: her proofs by the second one are wrong there, and only refused."""
NONCE, ORDINARY = b"n" * 18, b"\0\0\0\x63"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN", OAUTHBEARER)
GOOD = ISSUER.token("alice", 0, 1e11).encode()
"""Good for longer than any run lasts, on virtual time too. Its issuer has signed nothing else but what `signed` has it sign."""
SIGNED = re.compile(rb"<signed ([^>]*)>")
ANEW_AFTER = 300
MOST_MESSAGES = 8


class _Errors(logging.Handler):
    """What is logged as an error is one."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(logging.Formatter().format(record))


errors = _Errors()
logging.getLogger().addHandler(errors)
clusters: list[Cluster] = []
played: list[bytes] = []


def one_input(data: bytes) -> None:
    """One input of the fuzzer."""
    if not data:
        return
    kind, messages = data[0] % 4, _messages(data[1:])
    if kind == 3:
        _on_a_connection(messages, TOKEN_PORT if data[0] & 4 else SASL_PORT)
    elif data[0] & 4:
        _token(messages)
    elif kind == 2:
        _plain(messages)
    else:
        _scram(messages, kind)


def _messages(data: bytes) -> list[bytes]:
    found, position = [], 0
    while position + 2 <= len(data) and len(found) < MOST_MESSAGES:
        size = int.from_bytes(data[position : position + 2])
        found.append(data[position + 2 : position + 2 + size])
        position += 2 + size
    return found


# --- an exchange by itself ------------------------------------------------------------------------------------------------


def _plain(messages: list[bytes]) -> None:
    for message in messages[:1]:
        try:
            proof = Plain(KNOWN).take(message)
        except SaslError:
            continue
        authzid, name, password = message.split(b"\0")
        assert authzid in (b"", name)
        assert proof.user.encode() == name
        assert (proof.verify(0) is not None) == ((name, password.rstrip(b"\0")) == (b"alice", PASSWORD.encode()))


def _token(messages: list[bytes]) -> None:
    exchange = OauthBearer({ISSUER.name: ISSUER.trusted})
    for number, said in enumerate(messages[:2]):
        try:
            proof = exchange.take(with_tokens(said))
        except SaslError:
            continue
        assert number == 0, "a second message was taken"
        verified = proof.verify(0)
        if isinstance(verified, Verified):
            assert b"<token>" in said or b"<signed " in said
            assert proof.user == "alice" or b"<signed " in said
            assert b"<signed " in said or said.split(b"\x01")[0][2:] in (b",", b"a=alice,"), said
            assert verified.expires_ms is not None
            assert verified.expires_ms > 0


def with_tokens(message: bytes) -> bytes:
    """With what stands for tokens."""
    return SIGNED.sub(lambda found: signed(found[1]), message.replace(b"<token>", GOOD))


def signed(payload: bytes) -> bytes:
    """Whatever these bytes are, signed by the issuer: what is behind a right signature may be anything, too."""
    return PyJWS().encode(payload, private_key("RSA"), "RS256", {"kid": "one"}).encode()


def _scram(messages: list[bytes], kind: int) -> None:
    if len(messages) < 2:
        return
    mechanism, hash_ = ((SHA_256, "sha256"), (SHA_512, "sha512"))[kind]
    scram = Scram(mechanism, KNOWN, NONCE, 0)
    first = messages[0]
    try:
        answer = scram.take(first)
        assert isinstance(answer, bytes)
        final = filled(messages[1], first, answer, hash_)
        proof = scram.take(final)
    except SaslError:
        return
    assert isinstance(proof, Proof)
    authzid, name = first.split(b",")[1:3]
    said = name[2:].replace(b"=2C", b",").replace(b"=3D", b"=")
    assert proof.user.encode() == said
    assert authzid[2:].replace(b"=2C", b",").replace(b"=3D", b"=") in (b"", said), authzid
    nonce = dict(part.split(b"=", 1) for part in final.split(b","))[b"r"]
    assert nonce.endswith(answer.split(b",")[0][2:]), nonce
    if proof.verify(0) is not None:
        assert proof.user == "alice"
        assert b"<proof>" in messages[1]


def filled(message: bytes, first: bytes, answer: bytes, hash_: str) -> bytes:
    """With what stands for a nonce and a proof."""
    message = message.replace(b"<nonce>", answer.split(b",")[0][2:])
    if b"<proof>" not in message:
        return message
    bare = first.split(b",", 2)[-1]
    without = message.partition(b",p=")[0]
    client_key = hmac.digest(SALTED[hash_], b"Client Key", hash_)
    stored_key = hashlib.new(hash_, client_key).digest()
    signature = hmac.digest(stored_key, b",".join((bare, answer, without)), hash_)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return message.replace(b"<proof>", base64.b64encode(proof))


# --- on a connection ------------------------------------------------------------------------------------------------------


def _on_a_connection(messages: list[bytes], port: int) -> None:
    """Kinds of messages, by the low bits of the first byte: a handshake, a token with and without a header, two requests.

    With bit 7 the next message comes at once behind it.
    """
    if not clusters or len(played) >= ANEW_AFTER:
        clusters[:] = [Cluster()]
        played.clear()
    cluster = clusters[0]
    played.append(b"")
    end = cluster.connect(port)
    first, shown = b"", False
    for message in messages:
        if end.is_closed or not message:
            break
        kind, body = message[0] & 7, message[1:]
        if kind == 0:
            version, mechanism = message[0] >> 3 & 1, body.decode(errors="replace")
            if body[:1] and body[0] < len(MECHANISMS):
                mechanism = MECHANISMS[body[0]]
            end.send(SaslHandshakeRequest(mechanism), version)
        elif kind in (1, 2):
            challenge = next((each for each in reversed(end.answers) if b"r=" in each and b",s=" in each), b"")
            challenge = challenge[challenge.find(b"r=") :].split(b"\0")[0]
            token = with_tokens(filled(body, first, challenge, "sha256") if challenge else body)
            first = first or body
            shown = (
                shown or b"<proof>" in body or PASSWORD.encode() in body or b"<token>" in body or b"<signed " in body
            )
            if kind == 1:
                end.send(SaslAuthenticateRequest(token), message[0] >> 3 & 1)
            else:
                end.raw(token)
        elif kind == 3:
            end.send(ApiVersionsRequest(), 0)
        else:
            end.send(MetadataRequest(topics=()), 9, int.from_bytes(ORDINARY))
        if not message[0] & 128:
            cluster.network.run_for(0.3)
    cluster.network.run_for(2 * MOST_DELAY_S + 1.0)  # a token is refused, and what comes behind it has failed
    assert shown or not any(answer.startswith(ORDINARY) for answer in end.answers), end.answers
    if not end.is_closed:
        end.connection.close()
    cluster.network.run_for(0.1)
    assert not errors.texts, errors.texts[0]
    assert not cluster.instance.connections, "a connection that is gone is still counted"


def write_seeds(folder: Path) -> None:
    """The first corpus."""
    first, final = b"n,,n=alice,r=abcdefgh", b"c=biws,r=<nonce>,p=<proof>"
    made = [(kind, (first, final)) for kind in (0, 1)]
    made += [(0, (b"n,a=bob,n=alice,r=abc", b"c=bixhPWJvYiw=,r=<nonce>,p=<proof>"))]
    made += [(0, (b"y,a=a=2Cb,n=a=2Cb,r=abc,x=y", b"c=eSxhPWE9MkNiLA==,r=abc<nonce>,x=y,p=<proof>"))]
    made += [(0, (b"p=tls-unique,,n=alice,r=abc", final)), (0, (b"n,,m=x,n=alice,r=abc", final))]
    made += [(2, (token,)) for token in (b"\0alice\0pencil", b"bob\0alice\0pencil", b"\0alice\0", b"\0nobody\0pencil")]
    shake = [bytes((8 * version,)) + bytes((mechanism,)) for version in (0, 1) for mechanism in (0, 1, 2)]
    for version, token in ((1, 1), (0, 2)):
        scram, plain = shake[3 * version], shake[3 * version + 2]
        said = bytes((token,))
        made += [(3, (b"\3", scram, said + first, said + final, b"\4"))]
        made += [(3, (plain, said + b"\0alice\0pencil", b"\4")), (3, (plain, said + b"\0alice\0wrong", b"\4"))]
        made += [(3, (plain, bytes((token | 128,)) + b"\0alice\0pencil", b"\x84", b"\x84"))]
        made += [(3, (plain, bytes((token | 128,)) + b"\0alice\0wrong", b"\x84", scram))]
    made += [(3, (b"\4",)), (3, (b"\1" + first,)), (3, (shake[3], shake[3])), (3, (b"\x08GSSAPI", b"\4"))]
    token, refused = bearing("<token>"), bearing("eyJhbGciOiJub25lIn0.e30.e30")
    claims = ISSUER.claims("alice", 0, 1e11)
    made += [
        (4, (each, b"\x01"))
        for each in (token, bearing("<token>", "n,a=alice,"), bearing("<token>", "n,a=bob,"), refused)
    ]
    made += [(4, (bearing("<token>", host="kafka.example.com", port="9092"),))]
    made += [
        (4, (bearing(f"<signed {json.dumps({**claims, **other})}>"),))
        for other in (
            {},
            {"exp": 1},
            {"aud": ["x", "kafka"]},
            {"sub": "*"},
            {"nbf": 1e300},
            {"iss": "x"},
            {"scp": ["a"]},
        )
    ]
    made += [(7, (b"\x08\x03", b"\1" + each, b"\1\x01", b"\4")) for each in (token, refused)]
    made += [(7, (b"\0\x03", b"\2" + each, b"\2\x01", b"\4")) for each in (token, refused)]
    made += [(7, (b"\x08\x03", b"\x81" + each, b"\x84")) for each in (token, refused)]
    for kind, messages in made:
        data = bytes((kind,)) + b"".join(len(message).to_bytes(2) + message for message in messages)
        (folder / f"{zlib.crc32(data):08x}").write_bytes(data)


if __name__ == "__main__":
    planted.take(sys.argv)
    atheris.Setup(sys.argv, bounded(one_input))
    atheris.Fuzz()
