"""Who is calling, and reading keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings

from controlplane.accounts import access_keys, keys, standing
from controlplane.accounts.models import AccessKey, ApiKey, User
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import NotFound, Unauthenticated
from controlplane.core.origin import came_by
from controlplane.tenants.models import Membership, Organisation, Role

if TYPE_CHECKING:
    from django.db.models import QuerySet

LAST_USED_PRECISION = timedelta(minutes=1)
"""How old `last_used_at` may be: writing it on every request would make every read a write."""


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a request acts: one person, in one organisation, in one role."""

    user: User
    organisation: Organisation
    role: Role
    is_authenticated: bool = True  # what DRF asks of `request.user`

    @property
    def actor(self) -> str:
        """The name in the audit trail."""
        return self.user.email

    @property
    def may_change(self) -> bool:
        """Everyone but a viewer."""
        return self.role != Role.VIEWER

    @property
    def whose_keys(self) -> User | None:
        """Whose API keys and access keys the caller may revoke; None: everybody's, as an owner."""
        return None if self.role == Role.OWNER else self.user

    @property
    def may_read_messages(self) -> bool:
        """Everyone but a viewer sees what stands in messages; viewers see where they are and how large."""
        return self.role != Role.VIEWER

    @property
    def may_manage(self) -> bool:
        """Owners decide who belongs to the organisation."""
        return self.role == Role.OWNER

    def admit(self, *, changes: bool) -> None:
        """Whether this person may act in the organisation at all, whatever their role. Raises Forbidden."""
        standing.member_check(self.user, self.organisation)
        if changes:
            standing.change_check(self.user)

    def place(self, instance_id: str) -> dict[str, Any]:
        """What a service that changes an instance is told of it: whose it is, and who asks."""
        return {"organisation": self.organisation, "actor": self.actor, "instance_id": instance_id}


@dataclass(frozen=True, slots=True)
class SigningCaller:
    """Who would be calling, if the signature is made with `secret`."""

    key: AccessKey
    caller: Caller
    secret: str = field(repr=False)


def caller_in(*, user: User, organisation_id: str) -> Caller:
    """A signed-in person in one of their organisations. Raises NotFound, also for an organisation of others."""
    membership = (
        Membership.objects.filter(organisation_id=organisation_id, user=user).select_related("organisation").first()
    )
    if membership is None:
        raise NotFound(f"no organisation {organisation_id}")
    return Caller(user, membership.organisation, Role(membership.role))


def caller_of_key(text: str, *, clock: Clock = SYSTEM_CLOCK) -> Caller:
    """Who presents this key. Raises Unauthenticated, with one sentence for every reason."""
    refused = Unauthenticated("the API key is not valid")
    prefix = keys.prefix_of(text)
    if prefix is None:
        raise refused
    key = (
        ApiKey.objects.unscoped("the key decides the organisation")
        .select_related("user", "organisation")
        .filter(prefix=prefix, revoked_at__isnull=True, user__is_active=True)
        .first()
    )
    if key is None or not keys.matches(text, key.digest):
        raise refused
    caller = _caller_with(key)
    if caller is None:
        raise refused
    _note_use(key, clock)
    came_by(key.id)
    return caller


def access_key_get(secret_id: str) -> SigningCaller | None:
    """Whose signatures bear this SecretId; None: nobody's. The caller is known only once a signature has been verified."""
    if not access_keys.is_secret_id(secret_id):
        return None
    key = (
        AccessKey.objects.unscoped("the key decides the organisation")
        .select_related("user", "organisation")
        .filter(secret_id=secret_id, revoked_at__isnull=True, user__is_active=True)
        .first()
    )
    caller = key and _caller_with(key)
    installed = access_keys.installation_keys(settings.ENVIRONMENT.secret("access_key_secret"))
    made_with = key and next((each for each in installed if access_keys.fingerprint(each) == key.made_with), None)
    if not (key and caller and made_with):
        return None
    return SigningCaller(key, caller, access_keys.secret_of(made_with, key.secret_id))


def access_key_used(key: AccessKey, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """A signature by it was right."""
    _note_use(key, clock)
    came_by(key.id)


def access_key_list(*, organisation: Organisation) -> QuerySet[AccessKey]:
    """Access keys of an organisation, revoked ones too."""
    return AccessKey.objects.for_organisation(organisation).select_related("user")


def _caller_with(key: ApiKey | AccessKey) -> Caller | None:
    """None: the key's owner has left the organisation, and the key left with them."""
    membership = Membership.objects.filter(organisation=key.organisation, user=key.user).first()
    return Caller(key.user, key.organisation, Role(membership.role)) if membership else None


def _note_use(key: ApiKey | AccessKey, clock: Clock) -> None:
    now = clock.now()
    if key.last_used_at is None or now - key.last_used_at > LAST_USED_PRECISION:
        type(key).objects.for_organisation(key.organisation).filter(pk=key.pk).update(last_used_at=now)


def api_key_list(*, organisation: Organisation) -> QuerySet[ApiKey]:
    """Keys of an organisation, revoked ones too."""
    return ApiKey.objects.for_organisation(organisation).select_related("user")
