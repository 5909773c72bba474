"""What verifies the password of a user, and what takes its place for somebody who does not exist.

A stranger who tries names must not learn which there are. So a name without a credential has one all the same: its salt and
keys follow from the name by a secret of the cluster's, and so are the same on every broker and every time; their lengths and
the iterations are those of one of the instance's users. It is answered and verified with the same work, and no password fits.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import NamedTuple

from quota.contracts.users import DEFAULT_ITERATIONS, SALT_BYTES, Credential, ScramMechanism, User
from quota.core.scram import HASHES

_MECHANISMS = tuple(ScramMechanism)
_DIGEST_BYTES = {mechanism: hashlib.new(HASHES[mechanism]).digest_size for mechanism in ScramMechanism}


class _Shape(NamedTuple):
    """What can be seen of a credential from outside."""

    mechanism: ScramMechanism
    salt_bytes: int
    iterations: int


class KnownUsers:
    """The users of an instance, as its exchanges ask for them. `secret` is at least 16 bytes that clients do not know."""

    def __init__(self, users: Mapping[str, User], secret: bytes) -> None:
        self.users, self._secret = users, secret
        self._shapes: dict[ScramMechanism, list[_Shape]] | None = None  # of the users' present credentials

    def of(self, name: str, mechanism: ScramMechanism, now_ms: int) -> tuple[Credential, ...]:
        """What verifies this user by this mechanism now: at least one, the present one first. All have one salt."""
        imagined = self._imagined(name, mechanism)  # needed or not: it takes as long for everybody
        return self._good(name, mechanism, now_ms) or (imagined,)

    def of_any(self, name: str, now_ms: int) -> tuple[Credential, ...]:
        """The same by whatever mechanism the user has: for a password that is sent as it is."""
        imagined = self._imagined(name, None)
        for mechanism in _MECHANISMS:
            found = self._good(name, mechanism, now_ms)
            if found:
                return found
        return (imagined,)

    def _good(self, name: str, mechanism: ScramMechanism, now_ms: int) -> tuple[Credential, ...]:
        user = self.users.get(name)
        if user is None:
            return ()
        return tuple(one for one in user.of(mechanism) if one.until_ms is None or now_ms < one.until_ms)

    def _imagined(self, name: str, mechanism: ScramMechanism | None) -> Credential:
        """As one of those that there are, always the same one for a name while they are."""
        shapes = self._seen_outside()
        models = shapes[mechanism] if mechanism is not None else next(filter(None, shapes.values()), [])
        number = int.from_bytes(self._bytes("model", name, 8))
        model = (
            models[number % len(models)]
            if models
            else _Shape(mechanism or _MECHANISMS[0], SALT_BYTES, DEFAULT_ITERATIONS)
        )
        size = _DIGEST_BYTES[model.mechanism]
        return Credential(
            model.mechanism,
            self._bytes(f"salt {model.mechanism}", name, model.salt_bytes),
            model.iterations,
            self._bytes("stored", name, size),
            self._bytes("server", name, size),
        )

    def _seen_outside(self) -> dict[ScramMechanism, list[_Shape]]:
        """Found once: a millisecond for the most users that there can be."""
        if self._shapes is None:
            self._shapes = {mechanism: [] for mechanism in _MECHANISMS}
            for user in self.users.values():
                for one in user.credentials:
                    if one.until_ms is None:
                        self._shapes[one.mechanism].append(_Shape(one.mechanism, len(one.salt), one.iterations))
        return self._shapes

    def _bytes(self, purpose: str, name: str, size: int) -> bytes:
        seed = hmac.digest(self._secret, f"{purpose}\0{name}".encode(), "sha256")
        return hashlib.shake_256(seed).digest(size)
