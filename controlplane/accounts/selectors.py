"""Who is calling, and reading keys."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Case, Q, When

from controlplane.accounts import access_keys, keys, standing
from controlplane.accounts.key_use import is_from, use_note, use_refused
from controlplane.accounts.models import AccessKey, ApiKey, ServiceAccount, User
from controlplane.accounts.scopes import BUILT_IN, MESSAGES, NO_LIMITS, Limits, both, of_role
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Forbidden, NotFound, Unauthenticated
from controlplane.core.origin import came_by, current
from controlplane.tenants import in_use
from controlplane.tenants.models import Membership, Organisation, Role

MOST_SHOWN = 100
"""Access keys on a page."""

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from controlplane.tenants.models import CustomRole


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a request acts: one person or service account, in one organisation, in one role."""

    user: User | None  # None: a service account
    organisation: Organisation
    role: Role
    is_authenticated: bool = True  # what DRF asks of `request.user`
    key: ApiKey | None = None  # None: somebody in front of the console, or a signature
    is_by_earlier_secret: bool = False  # of a key that has two: this one ends
    service_account: ServiceAccount | None = None
    custom_role: CustomRole | None = None  # in place of `role`, which is a viewer's then
    is_by_sso: bool = False  # by a key that was made in a session which an organisation's provider had begun
    page: str | None = None  # the scope of the console's page where they are; None: by REST, or in no scope

    @property
    def person(self) -> User:
        """For what only people do. Raises Forbidden for a service account."""
        if self.user is None:
            raise Forbidden("a person decides this, not a service account", code="person_needed")
        return self.user

    @property
    def limits(self) -> Limits:
        """Of the API key that was presented, and of a role of the organisation's own: what both allow.

        An earlier secret is bound to a time: it may not prolong itself.
        """
        limits = NO_LIMITS
        if self.key is not None:
            limits = self.key.limits
            is_bound = limits.is_bound or self.is_by_earlier_secret
            limits = replace(limits, is_bound=is_bound, is_of_person=self.user is not None)
        if self.custom_role is not None:
            return both(limits, of_role(self.custom_role.scopes, self.custom_role.instances))
        return both(limits, BUILT_IN[self.role]) if self.is_in_scopes else limits

    @property
    def is_in_scopes(self) -> bool:
        """Whether the role is made of scopes: one of the organisation's own, operators and billing."""
        return is_in_scopes(self.role, self.custom_role)

    @property
    def is_operator(self) -> bool:
        """An operator of the service, by what is not limited.

        A key that was made by single sign-on is none's, whatever its person has become since: one organisation's provider would
        have made it, and it would act in all.
        """
        return self.user is not None and self.user.is_staff and self.limits.is_none and not self.is_by_sso

    @property
    def actor(self) -> str:
        """The name in the audit trail."""
        return self.service_account.actor if self.service_account is not None else self.person.email

    @property
    def may_change(self) -> bool:
        """Everyone but a viewer. With a role that is made of scopes: on a page what that is about, else anything at all.

        By REST, `limits` has decided already what.
        """
        if not self.is_in_scopes:
            return self.role != Role.VIEWER
        if self.page is not None:
            return self.limits.covers(self.page, changes=True)
        return True

    def may_do(self, scope: str) -> bool:
        """Whether they may change all that a scope, or the part of one, is about, wherever they are."""
        is_viewer = self.role == Role.VIEWER and self.custom_role is None
        return not is_viewer and self.limits.has(scope)

    def may_change_in(self, scope: str) -> bool:
        """The same, where the key has the scope."""
        return self.may_change and self.limits.has(scope)

    @property
    def whose_keys(self) -> User | None:
        """Whose API keys and access keys the caller may revoke; None: everybody's, as an owner."""
        return None if self.may_manage else self.person

    @property
    def may_read_messages(self) -> bool:
        """Everyone but a viewer sees what stands in messages; viewers see where they are and how large."""
        if self.is_in_scopes:
            return self.limits.covers(MESSAGES, changes=False)
        return self.role != Role.VIEWER

    @property
    def may_manage(self) -> bool:
        """Owners decide who belongs to the organisation."""
        return self.role == Role.OWNER and self.user is not None and self.custom_role is None

    @property
    def may_manage_billing(self) -> bool:
        """Owners and billing decide what is paid for, and how: budgets and the price plan."""
        return self.may_manage or (self.role == Role.BILLING and self.custom_role is None)

    def admit(self, *, changes: bool) -> None:
        """Whether this person may act in the organisation at all, whatever their role. Raises Forbidden.

        A service account has no address to confirm and no second factor: its owners answer for it.
        """
        if self.user is None:
            return
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


def is_in_scopes(role: str, custom_role: CustomRole | None) -> bool:
    """Whether a role is made of scopes."""
    return custom_role is not None or role in BUILT_IN


def caller_in(*, user: User, organisation_id: str) -> Caller:
    """A signed-in person in one of their organisations. Raises NotFound, also for an organisation of others.

    One that is marked for deletion is found: the caller shows nothing but that (console/page.py).
    """
    membership = (
        Membership.objects.filter(organisation_id=organisation_id, user=user)
        .select_related("organisation", "custom_role")
        .first()
    )
    if membership is None:
        raise NotFound(f"no organisation {organisation_id}")
    return Caller(user, membership.organisation, Role(membership.role), custom_role=membership.custom_role)


def operator_named(email: str) -> User:
    """Who operates the service, and may sign in, by the address that a command was given. Raises NotFound."""
    user = User.objects.filter(email=email.strip().lower(), is_staff=True, is_active=True).first()
    if user is None:
        raise NotFound(f"no operator {email}")
    return user


def caller_of_key(text: str, *, clock: Clock = SYSTEM_CLOCK) -> Caller:
    """Who presents this key. Raises Unauthenticated, with one sentence for every reason but expiry; Forbidden elsewhere.

    Why a key is refused is said to whoever has all of it, and to nobody else.
    """
    refused = Unauthenticated("the API key is not valid")
    prefix = keys.prefix_of(text)
    if prefix is None:
        raise refused
    key = (
        ApiKey.objects.unscoped("the key decides the organisation")
        .select_related("user", "organisation", "service_account__custom_role")
        .filter(
            Q(user__is_active=True) | Q(service_account__deleted_at=None, service_account__isnull=False),
            prefix=prefix,
            revoked_at__isnull=True,
        )
        .first()
    )
    now = clock.now()
    is_earlier = key is not None and key.is_rotating_at(now) and keys.matches(text, key.previous_digest)
    if key is None or not (is_earlier or keys.matches(text, key.digest)):
        raise refused
    caller = _caller_with(key)
    if caller is None:
        raise refused
    caller = replace(caller, is_by_earlier_secret=is_earlier)
    if caller.service_account is not None and caller.service_account.disabled_at is not None:
        raise Unauthenticated("the service account of this API key is disabled", code="service_account_disabled")
    if key.expires_at is not None and key.expires_at <= now:
        raise Unauthenticated(f"the API key expired at {key.expires_at:%Y-%m-%d %H:%M} UTC", code="api_key_expired")
    if key.is_asleep_at(now) and key.organisation.is_in_use:  # else signing in by the provider wakes none
        raise Unauthenticated(
            "the API key was made by single sign-on: sign in by the provider of your organisation, and it is good again",
            code="sso_key_asleep",
        )
    address = current().address
    if not is_from(key, address):
        use_refused(key, address, now)
        raise Forbidden(f"this API key may not be used from {address or 'there'}", code="address_not_allowed")
    if not key.organisation.is_in_use:
        raise Unauthenticated("the organisation of this API key is being deleted", code=in_use.DELETING)
    use_note(key, address, now)
    came_by(key.id)
    return caller


def access_key_get(secret_id: str) -> SigningCaller | None:
    """Whose signatures bear this SecretId; None: nobody's. The caller is known only once a signature has been verified."""
    if not access_keys.is_secret_id(secret_id):
        return None
    now = SYSTEM_CLOCK.now()
    key = (
        AccessKey.objects.unscoped("the key decides the organisation")
        .select_related("user", "organisation")
        .filter(
            Q(sso_until=None) | Q(sso_until__gt=now),
            Q(expires_at=None) | Q(expires_at__gt=now),
            secret_id=secret_id,
            revoked_at__isnull=True,
            user__is_active=True,
            organisation__deletion_asked_at__isnull=True,
        )
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
    use_note(key, current().address, clock.now())
    came_by(key.id)


def access_key_list(*, organisation: Organisation) -> QuerySet[AccessKey]:
    """Access keys of an organisation, revoked ones too."""
    return AccessKey.objects.for_organisation(organisation).select_related("user")


def _caller_with(key: ApiKey | AccessKey) -> Caller | None:
    """None: the key's owner has left the organisation, and the key left with them."""
    if isinstance(key, ApiKey) and key.service_account is not None:
        account = key.service_account
        return Caller(
            None,
            key.organisation,
            Role(account.role),
            key=key,
            service_account=account,
            custom_role=account.custom_role,
        )
    if key.user is None:
        return None
    rows = Membership.objects.filter(organisation=key.organisation, user=key.user).select_related("custom_role")
    membership = rows.first()
    presented = key if isinstance(key, ApiKey) else None
    if membership is None or (presented is None and is_in_scopes(membership.role, membership.custom_role)):
        return None  # what is signed is not asked by address: the table of scopes says nothing of it
    return Caller(
        key.user,
        key.organisation,
        Role(membership.role),
        key=presented,
        custom_role=membership.custom_role,
        is_by_sso=key.sso_until is not None,
    )


def api_keys_of(caller: Caller) -> QuerySet[ApiKey]:
    """Keys that the caller is shown: with a role that is made of scopes those that are theirs, else all."""
    rows = api_key_list(organisation=caller.organisation)
    if not caller.is_in_scopes:
        return rows
    return rows.filter(user=caller.user, service_account=caller.service_account)


def access_keys_standing(caller: Caller, *, clock: Clock = SYSTEM_CLOCK) -> list[AccessKey]:
    """Access keys of the caller's own that were not revoked, with whatever role they were made.

    The newest first, and those that have expired last: they keep none that is good off the page.
    """
    rows = access_key_list(organisation=caller.organisation).filter(user=caller.user, revoked_at=None)
    has_expired = Case(When(expires_at__lte=clock.now(), then=1), default=0)
    return list(rows.order_by(has_expired, "-created_at", "-pk")[:MOST_SHOWN])


def api_key_list(*, organisation: Organisation) -> QuerySet[ApiKey]:
    """Keys of an organisation, revoked ones too."""
    return ApiKey.objects.for_organisation(organisation).select_related("user", "service_account")


def service_account_list(*, organisation: Organisation) -> QuerySet[ServiceAccount]:
    """Service accounts of an organisation, in the order in which they were made; without those that were deleted."""
    return ServiceAccount.objects.for_organisation(organisation).filter(deleted_at=None).select_related("custom_role")


def service_account_get(*, organisation: Organisation, service_account_id: str) -> ServiceAccount:
    """Raises NotFound, also for one that was deleted."""
    found = service_account_list(organisation=organisation).filter(pk=service_account_id).first()
    if found is None:
        raise NotFound(f"no service account {service_account_id}")
    return found
