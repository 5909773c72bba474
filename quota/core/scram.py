"""What a password becomes, and what proves that somebody has it: SCRAM of RFC 5802, with the hashes of RFC 7677. Pure.

::

    salted     = PBKDF2(password, salt, iterations)
    stored_key = H(HMAC(salted, "Client Key"))             kept: verifies a client's proof
    server_key = HMAC(salted, "Server Key")                kept: proves to the client that we knew it
    proof      = client_key XOR HMAC(stored_key, auth_message)

`derived` takes some milliseconds, nearly all of them in OpenSSL without the GIL: keep it off an event loop. The rest is two
HMACs. A password is the bytes of its UTF-8: Kafka's clients and tools do not normalise it (SASLprep), so neither do we.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from quota.contracts.users import Credential, ScramMechanism

HASHES: Mapping[ScramMechanism, str] = {ScramMechanism.SHA_256: "sha256", ScramMechanism.SHA_512: "sha512"}
"""By mechanism, as `hashlib` calls them."""


def derived(password: str, *, mechanism: ScramMechanism, salt: bytes, iterations: int) -> Credential:
    """What verifies a password from now on, without a time at which it ends."""
    name = HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)
    return of_salted(salted, mechanism=mechanism, salt=salt, iterations=iterations)


def of_salted(salted: bytes, *, mechanism: ScramMechanism, salt: bytes, iterations: int) -> Credential:
    """The same of a password that was salted elsewhere: Kafka's AlterUserScramCredentials sends it so."""
    name = HASHES[mechanism]
    client_key = hmac.digest(salted, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    return Credential(mechanism, salt, iterations, stored_key, hmac.digest(salted, b"Server Key", name))


def proves(credential: Credential, auth_message: bytes, proof: bytes) -> bool:
    """Whether a client's proof is that of the credential's password. Its time does not tell how nearly it was."""
    name = HASHES[credential.mechanism]
    signature = hmac.digest(credential.stored_key, auth_message, name)
    if len(proof) != len(signature):
        return False
    client_key = bytes(ours ^ theirs for ours, theirs in zip(signature, proof, strict=True))
    return hmac.compare_digest(hashlib.new(name, client_key).digest(), credential.stored_key)


def is_password(credential: Credential, password: str) -> bool:
    """Whether this is the credential's password: what PLAIN asks. Takes as long as `derived`."""
    again = derived(password, mechanism=credential.mechanism, salt=credential.salt, iterations=credential.iterations)
    return hmac.compare_digest(again.stored_key, credential.stored_key)


def server_signature(credential: Credential, auth_message: bytes) -> bytes:
    """What shows the client that the server knows its password too."""
    return hmac.digest(credential.server_key, auth_message, HASHES[credential.mechanism])
