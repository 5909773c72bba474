"""What AlterUserScramCredentials makes of an instance's users, as Kafka 3.9 judges it. Pure.

Each user of a request by himself: with one thing wrong of his, nothing of him is altered, and he is told one error. What can
be said without looking at the users is said once (`planned`); the rest against the users as they are (`UserDraft.alter`).
An upsertion replaces whatever there was of its mechanism, a password that was still good for a while included.

Refusals are values: each of a request's twenty thousand users may be refused, and an exception that was raised keeps the
frames in which it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dataplane.protocol.errors import ErrorCode
from quota.contracts.items import item_bytes, joined_items, read_items, size_of_items
from quota.contracts.users import (
    LARGEST_USERS,
    LEAST_ITERATIONS,
    MOST_ITERATIONS,
    MOST_USERS,
    Credential,
    ScramMechanism,
    User,
    user_name_problem,
)
from quota.core.scram import of_salted
from quota.steps import Steps

MECHANISMS = {1: ScramMechanism.SHA_256, 2: ScramMechanism.SHA_512}
"""By Kafka's codes."""
LONGEST_SALT = 256
_DIGEST_BYTES = {ScramMechanism.SHA_256: 32, ScramMechanism.SHA_512: 64}
_PER_STEP = 5


class Refusal(NamedTuple):
    """Why nothing of a user is altered."""

    code: ErrorCode
    message: str


_NAMELESS = Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
_UNKNOWN_MECHANISM = Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
_TWICE = Refusal(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
_NOT_THERE = Refusal(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
_TOO_MANY = Refusal(ErrorCode.POLICY_VIOLATION, f"an instance may have {MOST_USERS} users, and has them")
_TOO_LARGE = Refusal(ErrorCode.POLICY_VIOLATION, f"the users of an instance may take {LARGEST_USERS} bytes")


class Deletion(NamedTuple):
    """Take a user's credential away."""

    user: str
    mechanism: int


class Upsertion(NamedTuple):
    """Give a user a credential, in place of the one he has."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


@dataclass(slots=True)
class Plan:
    """What shall become of one user's credentials; `refusal`: nothing, for this reason."""

    deleted: tuple[ScramMechanism, ...] = ()
    upserted: tuple[Credential, ...] = ()
    refusal: Refusal | None = None

    @property
    def mechanisms(self) -> tuple[ScramMechanism, ...]:
        """All that it is about."""
        return (*self.deleted, *(each.mechanism for each in self.upserted))


def planned(alterations: Sequence[Deletion | Upsertion]) -> Steps[dict[str, Plan]]:
    """By user, in the order in which they are named first."""
    plans: dict[str, Plan] = {}
    for place, alteration in enumerate(alterations, 1):
        if place % _PER_STEP == 0:
            yield None
        plan = plans.setdefault(alteration.user, Plan())
        refusal = _refusal(alteration)
        if refusal is not None:
            plan.refusal = refusal  # the last one, as in Kafka, before what is named twice
            continue
        mechanism = MECHANISMS[alteration.mechanism]
        if mechanism in plan.mechanisms:
            plan.refusal = plan.refusal or _TWICE
        elif isinstance(alteration, Deletion):
            plan.deleted += (mechanism,)
        else:
            credential = of_salted(
                alteration.salted_password, mechanism=mechanism, salt=alteration.salt, iterations=alteration.iterations
            )
            plan.upserted += (credential,)
    return plans


def _refusal(alteration: Deletion | Upsertion) -> Refusal | None:
    if not alteration.user:
        return _NAMELESS
    if alteration.mechanism not in MECHANISMS:
        return _UNKNOWN_MECHANISM
    if isinstance(alteration, Deletion):
        return None
    problem = _problem(alteration)
    return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, problem) if problem else None


def _problem(upsertion: Upsertion) -> str | None:
    if upsertion.iterations < LEAST_ITERATIONS:
        return "Too few iterations"
    if upsertion.iterations > MOST_ITERATIONS:
        return "Too many iterations"
    if not 0 < len(upsertion.salt) <= LONGEST_SALT:
        return f"a salt has 1 to {LONGEST_SALT} bytes"
    mechanism = MECHANISMS[upsertion.mechanism]
    if len(upsertion.salted_password) != _DIGEST_BYTES[mechanism]:
        return f"a password salted for {mechanism} has {_DIGEST_BYTES[mechanism]} bytes"
    return user_name_problem(upsertion.user)


class UserDraft:
    """The users of an instance while a request alters them. Begins with what stands in their node."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._users: dict[str, User] = {}
        self._items: dict[str, bytes] = {}
        self._size = 0  # of the items
        self._is_changed = False

    @classmethod
    def of(cls, data: bytes | None) -> Steps[UserDraft]:
        """None: there are none yet. Raises ValueError, KeyError, TypeError: the node is not legible."""
        version, users = (0, []) if data is None else (yield from read_items(data, User.from_document))
        draft = cls(version)
        for place, user in enumerate(users, 1):
            if place % _PER_STEP == 0:
                yield None
            draft._put(user)
        return draft

    @property
    def version(self) -> int:
        """Of the users as they are now."""
        return self._version + self._is_changed

    def alter(self, name: str, plan: Plan) -> Refusal | None:
        """One user; where it is refused, nothing is changed."""
        if plan.refusal is not None:
            return plan.refusal
        before = self._users.get(name)
        credentials = () if before is None else before.credentials
        if not {one.mechanism for one in credentials}.issuperset(plan.deleted):
            return _NOT_THERE
        kept = tuple(one for one in credentials if one.mechanism not in plan.mechanisms)
        refusal = self._replace(before, User(name, (*kept, *plan.upserted)))
        if refusal is None:
            self._is_changed = True
        return refusal

    def _replace(self, before: User | None, user: User) -> Refusal | None:
        if before is not None:
            self._drop(user.name)
        if not user.credentials:
            return None
        if len(self._users) >= MOST_USERS:
            return _TOO_MANY
        self._put(user)
        if size_of_items(len(self._items), self._size) > LARGEST_USERS:
            self._drop(user.name)
            if before is not None:
                self._put(before)
            return _TOO_LARGE
        return None

    def written(self) -> bytes | None:
        """What shall stand in their node; None: what stands there."""
        return (
            joined_items(self.version, [self._items[name] for name in sorted(self._items)])
            if self._is_changed
            else None
        )

    def _put(self, user: User) -> None:
        self._users[user.name] = user
        item = self._items[user.name] = item_bytes(user.document())
        self._size += len(item)

    def _drop(self, name: str) -> None:
        del self._users[name]
        self._size -= len(self._items.pop(name))
