"""What is shown of single sign-on, and whether an organisation requires it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q

from controlplane.accounts.models import User
from controlplane.core.errors import Forbidden, NotFound
from controlplane.sso.models import SsoLink, SsoProvider
from controlplane.tenants.models import Membership, Role

if TYPE_CHECKING:
    from controlplane.accounts.selectors import Caller
    from controlplane.tenants.models import Organisation


def provider_of(organisation: Organisation) -> SsoProvider | None:
    """The one of an organisation, in force or not."""
    return SsoProvider.objects.for_organisation(organisation).first()


def provider_get(organisation: Organisation) -> SsoProvider:
    """The same. Raises NotFound where none is set."""
    row = provider_of(organisation)
    if row is None:
        raise NotFound("this organisation has no single sign-on")
    return row


def provider_in_force(organisation_id: str) -> SsoProvider | None:
    """By what a stranger has typed; None: no such organisation, or none that signs in so, as one that is being deleted."""
    rows = SsoProvider.objects.unscoped("whoever signs in is nobody yet").select_related("organisation")
    return rows.filter(pk=organisation_id, is_on=True, organisation__deletion_asked_at=None).first()


def link_of(*, organisation: Organisation, user: User) -> SsoLink | None:
    """As whom the provider knows this member."""
    provider = provider_of(organisation)
    rows = SsoLink.objects.for_organisation(organisation).filter(membership__user=user)
    return rows.filter(issuer=provider.issuer).first() if provider is not None else None


def link_standing(link_id: int, user_id: int | None) -> SsoLink | None:
    """By which a session was begun; None: it has ended, with the membership, or as the provider is not in force any more.

    Who has become an operator of the service since is out, too: an API key that they make in one organisation acts in all.
    """
    rows = SsoLink.objects.unscoped("a session says which")
    link = rows.filter(pk=link_id, membership__user=user_id, membership__user__is_staff=False).first()
    provider = provider_in_force(link.organisation_id) if link is not None else None
    return link if provider is not None and link is not None and provider.issuer == link.issuer else None


def link_held(link_id: int, user_id: int | None) -> SsoLink | None:
    """The same, and the membership is held until the transaction has ended, as by whoever ends a link: no key is missed then."""
    link = SsoLink.objects.unscoped("a session says which").filter(pk=link_id).first()
    if link is None:
        return None
    list(Membership.objects.select_for_update().filter(pk=link.membership_id).values_list("pk"))
    return link_standing(link_id, user_id)


def rule_of(organisation: Organisation) -> SsoProvider | None:
    """The provider by which members have to come; None: they need not."""
    provider = provider_of(organisation)
    return provider if provider is not None and provider.is_on and provider.is_required else None


def provider_keeping_out(caller: Caller, *, is_by_sso: bool) -> SsoProvider | None:
    """The one by which this sign-in would have to be; None: they are in."""
    provider = None if is_by_sso else rule_of(caller.organisation)
    if provider is None:
        return None
    return None if caller.may_manage and gets_in_without(caller.person, provider) else provider


def gets_in_without(owner: User, provider: SsoProvider) -> bool:
    """Whether the owner's second factor was there when single sign-on was made a rule.

    One that is younger says nothing: whoever has no more than the password sets one up, a passkey as well as an app.
    """
    since, required = owner.second_factor_at, provider.required_at
    return since is not None and required is not None and since <= required


def owners_without(provider: SsoProvider) -> list[str]:
    """Addresses of the owners who get in without the provider; where it is not required, of those who would if it were now.

    Required without a moment, as a process of the release before has written it: nobody, as `gets_in_without` says.
    """
    has_factor = Q(second_factor_at__isnull=False)
    if provider.is_required:
        if provider.required_at is None:
            return []
        has_factor = Q(second_factor_at__lte=provider.required_at)
    owners = User.objects.filter(
        has_factor,
        is_active=True,
        memberships__organisation=provider.organisation_id,
        memberships__role=Role.OWNER,
    )
    return list(owners.order_by("email").values_list("email", flat=True))


def owners_getting_in(provider: SsoProvider) -> set[str]:
    """Addresses of the owners who get in where it is required: by it, as members who are connected, or without it."""
    links = SsoLink.objects.for_organisation(provider.organisation).filter(
        issuer=provider.issuer,
        membership__role=Role.OWNER,
        membership__user__is_active=True,
        membership__user__is_staff=False,  # the provider signs no operator in
    )
    return {*owners_without(provider), *links.values_list("membership__user__email", flat=True)}


def connect_check(caller: Caller, *, is_by_sso: bool) -> None:
    """Whoever is kept out connects once, or no new member would get in; not another account, by a password. Raises Forbidden."""
    if link_of(organisation=caller.organisation, user=caller.person) is not None:
        entry_check(caller, is_by_sso=is_by_sso)


def entry_check(caller: Caller, *, is_by_sso: bool) -> None:
    """Where an organisation requires it, other sign-ins do not lead in. Raises Forbidden.

    Owners get in whose second factor was there before: else a provider that is away, or was set wrongly, locks everybody out.
    """
    provider = provider_keeping_out(caller, is_by_sso=is_by_sso)
    if provider is None:
        return
    if caller.may_manage and caller.person.second_factor_at is not None:
        raise Forbidden(
            f"{caller.organisation.name} requires its members to sign in by {provider.label}, and your second factor was set up "
            "after that: it is no way in",
            code="sso_needed",
        )
    raise Forbidden(
        f"{caller.organisation.name} requires its members to sign in by {provider.label}", code="sso_needed"
    )
