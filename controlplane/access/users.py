"""Changing the users of an instance. The request itself writes them to ZooKeeper: they are in force within 2 s.

A password becomes verifiers at once (`quota.core.scram`) and is kept nowhere. One that we made is in the answer of the call
that made it, and never again.

**Rotation.** A new password with `keep_previous_s` leaves the one before it good for that long, so that clients can be given
the new one after another. Both need one salt (`quota.contracts.users`), so the new one takes that of the old. Without it, the
salt is new, and whoever logs in with the old password from then on is refused.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from controlplane.access import records
from controlplane.access.acls import acls_delete
from controlplane.access.passwords import password_checked, password_generated
from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import AlreadyExists, Conflict, Invalid, LimitReached, NotFound, Unavailable
from controlplane.instances.spec import config_of
from quota.contracts.users import (
    DEFAULT_ITERATIONS,
    MOST_USERS,
    SALT_BYTES,
    Credential,
    ScramMechanism,
    User,
    user_name_problem,
    users_problem,
)
from quota.core.acl_filters import AclFilter
from quota.core.explain_access import USER
from quota.core.scram import derived, is_password

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

LONGEST_KEEP_S = 30 * 86_400
EVERY_MECHANISM = tuple(ScramMechanism)


def user_create(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    name: str,
    password: str | None = None,
    mechanisms: Sequence[str] = EVERY_MECHANISM,
    source: random.Random | None = None,
) -> tuple[User, str | None]:
    """A new user, and his password if it was made here (None was given).

    Raises NotFound, Invalid, AlreadyExists, LimitReached, Conflict, ClusterUnavailable.
    """
    problem = user_name_problem(name)
    if problem:
        raise Invalid.field("name", problem)
    wanted = _mechanisms(mechanisms)
    source = source or random.SystemRandom()
    text = password_generated(source) if password is None else password_checked(password)
    user = User(name, tuple(_fresh(text, mechanism, source) for mechanism in wanted))

    def decide(users: Sequence[User]) -> Sequence[User]:
        if any(present.name == name for present in users):
            raise AlreadyExists(f"there is a user {name}", code="user_exists")
        return _checked((*users, user))

    records.users_write(organisation, instance_id, decide)
    detail: dict[str, object] = {"mechanisms": [mechanism.value for mechanism in wanted], "generated": password is None}
    _audit(organisation, actor, "user.create", instance_id, name, detail)
    return user, text if password is None else None


def user_password_set(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    name: str,
    password: str | None = None,
    keep_previous_s: int = 0,
    present: str | None = None,
    clock: Clock = SYSTEM_CLOCK,
    source: random.Random | None = None,
) -> tuple[User, str | None]:
    """Another password by the same mechanisms, and the password if it was made here (None was given).

    That of before stays good for `keep_previous_s`; one from before that does not. Who says what the `present` one is has
    to be right. Raises NotFound, Invalid, Conflict, ClusterUnavailable.
    """
    if not 0 <= keep_previous_s <= LONGEST_KEEP_S:
        raise Invalid.field("keep_previous_s", f"must be at least 0 and at most {LONGEST_KEEP_S}")
    source = source or random.SystemRandom()
    text = password_generated(source) if password is None else password_checked(password)
    until = clock.now() + timedelta(seconds=keep_previous_s)
    until_ms = int(until.timestamp() * 1000)
    found: list[User] = []

    def decide(users: Sequence[User]) -> Sequence[User]:
        before = user_of(users, name)
        presents = [one for one in before.credentials if one.until_ms is None]
        if present is not None and not any(is_password(one, present) for one in presents):
            raise Invalid.field("present", "is not the present password")
        if keep_previous_s:
            rotated = (_rotated(text, one, until_ms) for one in presents)
            after = User(name, tuple(one for pair in rotated for one in pair))
        else:
            after = User(name, tuple(_fresh(text, one.mechanism, source) for one in presents))
        found[:] = [after]
        return _checked([after if user is before else user for user in users])

    records.users_write(organisation, instance_id, decide)
    detail: dict[str, object] = {"keep_previous_s": keep_previous_s, "generated": password is None}
    _audit(organisation, actor, "user.password", instance_id, name, detail)
    return found[0], text if password is None else None


@dataclass(frozen=True, slots=True)
class Deleted:
    """What became of a user's rights when he was deleted: whoever is given his name later has what is left."""

    acls_deleted: int
    acls_left: int | None  # that name him; None: it could not be seen
    is_super_user: bool  # by the instance's config, which is not changed


def user_delete(
    *, organisation: Organisation, actor: str, instance_id: str, name: str, with_acls: bool = False
) -> Deleted:
    """Nobody logs in by this name any more.

    ACLs that name him stay, as in Kafka, where principals and users know nothing of each other; `with_acls`: they go as well,
    behind him. Who asks for that again finishes what was broken off. Raises NotFound, Conflict, ClusterUnavailable.
    """
    is_there = False
    mechanisms: list[str] = []

    def decide(users: Sequence[User]) -> Sequence[User]:
        nonlocal is_there
        left = [user for user in users if user.name != name]
        is_there = len(left) < len(users)
        theirs = (one.mechanism.value for user in users if user.name == name for one in user.credentials)
        mechanisms[:] = sorted(set(theirs))
        if not is_there and not with_acls:
            raise NotFound(f"no user {name}")
        return left

    instance = records.users_write(organisation, instance_id, decide)
    if is_there:
        detail: dict[str, object] = {"mechanisms": mechanisms} | ({"with_acls": with_acls} if with_acls else {})
        _audit(organisation, actor, "user.delete", instance_id, name, detail)
    theirs = naming(name)
    gone = 0
    if with_acls:
        gone = len(acls_delete(organisation=organisation, actor=actor, instance_id=instance_id, wanted=theirs))
    if not is_there and not gone:
        raise NotFound(f"no user {name}")
    super_users = config_of(instance.config)["super_users"]
    return Deleted(gone, 0 if with_acls else _acls_left(instance, theirs), f"{USER}{name}" in super_users)


def naming(name: str) -> AclFilter:
    """What takes the ACLs that name a user."""
    return AclFilter(principal=f"{USER}{name}")


def _acls_left(instance: Instance, theirs: AclFilter) -> int | None:
    try:
        return sum(map(theirs.takes, records.acls_read(instance)))
    except (Conflict, Unavailable):  # he is deleted all the same
        return None


def user_of(users: Sequence[User], name: str) -> User:
    """One of several. Raises NotFound."""
    for user in users:
        if user.name == name:
            return user
    raise NotFound(f"no user {name}")


def _mechanisms(names: Sequence[str]) -> list[ScramMechanism]:
    known = [mechanism.value for mechanism in ScramMechanism]
    if not names or any(name not in known for name in names):
        raise Invalid.field("mechanisms", f"must be one or both of {', '.join(known)}")
    return sorted({ScramMechanism(name) for name in names})


def _fresh(password: str, mechanism: ScramMechanism, source: random.Random) -> Credential:
    salt = source.randbytes(SALT_BYTES)
    return derived(password, mechanism=mechanism, salt=salt, iterations=DEFAULT_ITERATIONS)


def _rotated(password: str, present: Credential, until_ms: int) -> tuple[Credential, Credential]:
    after = derived(password, mechanism=present.mechanism, salt=present.salt, iterations=present.iterations)
    return after, replace(present, until_ms=until_ms)


def _checked(users: Sequence[User]) -> Sequence[User]:
    problem = users_problem(users)
    if problem:
        raise LimitReached(problem, code="too_many_users" if len(users) > MOST_USERS else "too_large")
    return users


def _audit(
    organisation: Organisation, actor: str, action: str, instance_id: str, name: str, detail: dict[str, object]
) -> None:
    audit.record(organisation=organisation, actor=actor, action=action, target=f"{instance_id}/{name}", detail=detail)
