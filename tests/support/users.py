"""Users of an instance for tests, and a route by which they log in."""

from __future__ import annotations

from dataclasses import replace

from quota.contracts.users import SALT_BYTES, Credential, ScramMechanism, User, UserSet
from quota.core.scram import derived

LOGS_IN = {
    "security": "sasl_plaintext",
    "mechanisms": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    "allow_plain_in_clear": True,
}
"""Members of a route in the clear on which everybody has to log in."""


def user(name: str, password: str, *, before: str | None = None, until_ms: int = 0) -> User:
    """One with credentials of both mechanisms; and with a password before this one, good until then."""
    credentials: list[Credential] = []
    for mechanism in ScramMechanism:
        salt = f"{name} {mechanism}".encode().ljust(
            SALT_BYTES, b"."
        )  # librdkafka 2.0 takes none whose base64 is padded
        credentials.append(derived(password, mechanism=mechanism, salt=salt, iterations=4_096))
        if before is not None:
            earlier = derived(before, mechanism=mechanism, salt=salt, iterations=4_096)
            credentials.append(replace(earlier, until_ms=until_ms))
    return User(name, tuple(credentials))


USERS = UserSet(1, (user("alice", "pencil"), user("bob", "brush, =")))
