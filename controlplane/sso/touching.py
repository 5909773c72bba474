"""Whom a change of single sign-on concerns beside the provider: what a dry run says of it (see accounts/touching.py).

Everything is as it is now; `changed` are the members of the provider, as REST shows it, that would be others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.accounts.touching import Touched, by_ending_sso
from controlplane.core.dry_runs import affected
from controlplane.sso.models import SsoLink
from controlplane.sso.selectors import owners_without, provider_of
from controlplane.tenants.selectors import member_list

if TYPE_CHECKING:
    from collections.abc import Collection

    from controlplane.accounts.selectors import Caller
    from controlplane.sso.models import SsoProvider

SIGNED_OUT = "signed out where the provider has signed them in"
NOT_CONNECTED = "connected to the provider no more, and signed out where it has signed them in"
BY_IT_ALONE = "get into the console by the provider alone"


def by_setting(*, caller: Caller, changed: Collection[str]) -> Touched:
    """By another one in its place. Keys and connections stay where the issuer stays."""
    provider = provider_of(caller.organisation)
    if provider is None:
        return ()
    return by_removing(caller=caller) if "issuer" in changed else _signed_out(provider)


def by_switching(*, caller: Caller, changed: Collection[str]) -> Touched:
    """By putting it in force or out of force, and by requiring it or not."""
    provider = provider_of(caller.organisation)
    if provider is None:
        return ()
    if provider.is_on and "in_force" in changed:
        return (*by_ending_sso(caller=caller), *_signed_out(provider))
    if not provider.is_required and "required" in changed:
        members = member_list(organisation=caller.organisation).exclude(user__email__in=owners_without(provider))
        return affected("members", members.values_list("user__email", flat=True), BY_IT_ALONE)
    return ()


def by_removing(*, caller: Caller) -> Touched:
    """By having none any more."""
    provider = provider_of(caller.organisation)
    if provider is None:
        return ()
    return (*by_ending_sso(caller=caller), *affected("members", _connected(provider), NOT_CONNECTED))


def _signed_out(provider: SsoProvider) -> Touched:
    """One that is not in force has signed nobody in."""
    return affected("members", _connected(provider), SIGNED_OUT) if provider.is_on else ()


def _connected(provider: SsoProvider) -> list[str]:
    """Addresses of those whom it signs in."""
    links = SsoLink.objects.for_organisation(provider.organisation).filter(issuer=provider.issuer)
    return list(links.order_by("membership__user__email").values_list("membership__user__email", flat=True))
