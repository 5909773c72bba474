"""What an account lacks to act in organisations: the one rule for the console, REST and the vendor's API.

Whoever has signed up since the service can write to people confirms their address first. Until then they look around in their
organisations as viewers do, and change nothing: they buy no instance, make no key, invite nobody, found no second organisation.
Accounts of before keep what they could do: a program must not stop because operators have named a mail server.

An organisation may demand a second factor of its members. Whoever has none reaches nothing of it, by API keys neither, until
they have set one up on the page of their account.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.core.errors import Forbidden
from controlplane.mail import outbox

if TYPE_CHECKING:
    from controlplane.accounts.models import User
    from controlplane.tenants.models import Organisation


def is_unconfirmed(user: User) -> bool:
    """Whether the person has to confirm their address before they change anything."""
    return bool(user.must_confirm_email and user.email_verified_at is None and outbox.is_on())


def member_check(user: User, organisation: Organisation) -> None:
    """Before anything of an organisation is shown. Raises Forbidden."""
    if organisation.second_factor_demanded and user.second_factor_at is None:
        raise Forbidden(
            f"the organisation {organisation.name} requires its members to have a second factor: set one up in your account",
            code="second_factor_needed",
        )


def change_check(user: User) -> None:
    """Before anything is changed in an organisation. Raises Forbidden."""
    if is_unconfirmed(user):
        raise Forbidden(
            f"confirm your e-mail address first: a link was sent to {user.email}", code="address_not_confirmed"
        )
