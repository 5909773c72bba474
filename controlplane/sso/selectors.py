"""What is shown of single sign-on, and whether an organisation requires it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.core.errors import Forbidden, NotFound
from controlplane.sso.models import SsoLink, SsoProvider

if TYPE_CHECKING:
    from controlplane.accounts.models import User
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


def provider_keeping_out(caller: Caller, *, is_by_sso: bool) -> SsoProvider | None:
    """The one by which this sign-in would have to be; None: they are in."""
    if is_by_sso or (caller.may_manage and caller.person.second_factor_at is not None):
        return None
    provider = provider_of(caller.organisation)
    return provider if provider is not None and provider.is_on and provider.is_required else None


def connect_check(caller: Caller, *, is_by_sso: bool) -> None:
    """Whoever is kept out connects once, or no new member would get in; not another account, by a password. Raises Forbidden."""
    if link_of(organisation=caller.organisation, user=caller.person) is not None:
        entry_check(caller, is_by_sso=is_by_sso)


def entry_check(caller: Caller, *, is_by_sso: bool) -> None:
    """Where an organisation requires it, other sign-ins do not lead in. Raises Forbidden.

    Owners with a second factor get in: else a provider that is away, or was set wrongly, locks everybody out.
    """
    provider = provider_keeping_out(caller, is_by_sso=is_by_sso)
    if provider is not None:
        raise Forbidden(
            f"{caller.organisation.name} requires its members to sign in by {provider.label}", code="sso_needed"
        )
