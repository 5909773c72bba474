"""People and organisations together: signing up with an organisation, joining one by a link, the tenants of the demo."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.accounts import custom_roles, standing
from controlplane.accounts import services as accounts
from controlplane.accounts.identity import addresses, letters, links, signing_up
from controlplane.accounts.models import ApiKey, User
from controlplane.core.addresses import is_own
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Forbidden, Invalid, LimitReached
from controlplane.core.text import name_checked
from controlplane.mail import outbox
from controlplane.tenants import in_use, invitations
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Invitation, Membership, Organisation, Role

if TYPE_CHECKING:
    from collections.abc import Callable

MAILED_OF_ORGANISATION, MAILED_TO_ADDRESS = (20, timedelta(hours=1)), (5, timedelta(hours=24))
"""So many invitations by e-mail, in this time."""
DEMO_DOMAIN = "demo.sluice.invalid"
DEMO_KEY_NAME = "demo"


@transaction.atomic
def sign_up(
    *, email: str, password: str, name: str, organisation_name: str, language: str = "en"
) -> tuple[User, Organisation]:
    """A person with an organisation of their own, at once: where the service can write to nobody.

    Whoever signs up learns whether there is an account with the address. Raises Invalid, AlreadyExists (the organisation's name).
    """
    organisation_name = name_checked(organisation_name, field="organisation_name")
    user = accounts.user_sign_up(email=email, password=password, name=name, language=language)
    return user, tenants.organisation_create(name=organisation_name, owner=user)


def sign_up_here_check(*, address: str) -> None:
    """Whether who asks from this address may have an account at once. Raises Forbidden.

    Where no mail is sent, signing up tells whether there is an account with an address. So it is for the network that the
    installation stands in, and not for strangers: whoever comes from elsewhere is refused before anything is looked up, and so is
    whoever comes from what is no address.
    Where callers are behind a proxy that is not to be believed (`SLUICE_TLS` is off), the proxy's address is all there is.
    """
    try:
        is_near = not address or is_own(address)  # none: a socket that is no network's
    except ValueError:
        is_near = False
    if not is_near:
        raise Forbidden(
            "this installation sends no e-mail: its operators have to name a mail server before anybody can sign up from here",
            code="mail_off",
        )


@transaction.atomic
def sign_up_confirm(
    *,
    token: str,
    password: str,
    name: str,
    organisation_name: str = "",
    language: str = "en",
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[User, Organisation | None]:
    """The same by the link of a mail, where the service sends any; no organisation for whoever is invited into one.

    Raises NotFound, Invalid, AlreadyExists; the link is good then as before.
    """
    asked = signing_up.use(token=token, clock=clock)
    user = accounts.user_sign_up(
        email=asked.email, password=password, name=name, is_verified=True, language=language, clock=clock
    )
    if not asked.organisation_name:
        return user, None
    organisation_name = name_checked(organisation_name, field="organisation_name")
    return user, tenants.organisation_create(name=organisation_name, owner=user, clock=clock)


@transaction.atomic
def invite(
    *,
    organisation: Organisation,
    inviter: User,
    email: str,
    role: str | None = None,
    custom_role: str | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[Invitation, str]:
    """An invitation, as `role` or with a role of the organisation's own, by its id.

    It goes to the address by e-mail where the service sends any; else the token, for the inviter to send.

    Raises Invalid, NotFound, Conflict, LimitReached.
    """
    if (role is None) == (custom_role is None) or (role is not None and role not in Role.values):
        raise Invalid.field("role", f"must be one of {', '.join(Role.values)}; or custom_role the id of a role")
    own = None
    if custom_role is not None:
        own = custom_roles.custom_role_get(organisation=organisation, role_id=custom_role)
    is_mailed = outbox.is_on()
    if is_mailed:
        _sending_check(organisation, email.strip().lower(), clock)
    invitation, token = invitations.invitation_create(
        organisation=organisation,
        inviter=inviter,
        email=email,
        role=Role(role) if role is not None else Role.VIEWER,
        custom_role=own,
        is_mailed=is_mailed,
        language=inviter.language,
        clock=clock,
    )
    if not is_mailed:
        return invitation, token
    letter = letters.invitation(
        link=links.address_of("console:invitation", token), days=invitations.VALID_FOR.days, inviter=inviter.email
    )
    # To whoever has an account, in their own language: the mail alone shows it, and it goes to nobody else.
    theirs = User.objects.filter(email=invitation.email).values_list("language", flat=True).first()
    links.letter_write(letter=letter, address=invitation.email, language=theirs or invitation.language, now=clock.now())
    return invitation, ""


def _sending_check(organisation: Organisation, email: str, clock: Clock) -> None:
    sent = Invitation.objects.unscoped("an address is nobody's own").filter(is_mailed=True)
    for rows, (most, lately) in (
        (sent.filter(organisation=organisation), MAILED_OF_ORGANISATION),
        (sent.filter(email=email), MAILED_TO_ADDRESS),
    ):
        if rows.filter(created_at__gt=clock.now() - lately).count() >= most:
            raise LimitReached("too many invitations were sent lately: try again later", code="too_many_mails")


@transaction.atomic
def invitation_accept(*, token: str, user: User, clock: Clock = SYSTEM_CLOCK) -> Membership:
    """A person who has signed up joins by a link. Raises NotFound, Conflict where it was made for another address."""
    invitation = invitations.invitation_use(token=token, clock=clock)
    if user.email != invitation.email:
        raise Conflict("this invitation is for another address than the one you signed in with", code="another_address")
    if invitation.is_mailed:
        addresses.verified(user=user, now=clock.now())
    standing.change_check(user)
    return _joined(invitation, user)


def _joined(invitation: Invitation, user: User) -> Membership:
    return tenants.member_add(
        organisation=invitation.organisation,
        actor=user.email,
        user=user,
        role=Role(invitation.role),
        custom_role=invitation.custom_role,
    )


def is_proof(invitation: Invitation) -> bool:
    """Whether its link is enough for an account: it was mailed to the address, or the service can write to nobody.

    One that an owner was shown and has sent says nothing about who reads the address, and whoever has it may not learn whether
    there is an account.
    """
    return invitation.is_mailed or not outbox.is_on()


def may_join_by_provider(invitation: Invitation) -> bool:
    """Whether an account that is made without a password can be given one: by a mail to the address alone.

    Where none is sent, whoever has joined so would be out for good with the organisation's provider.
    """
    return invitation.is_mailed and outbox.is_on()


@transaction.atomic
def sign_up_invited(
    *, token: str, password: str, name: str, language: str = "en", clock: Clock = SYSTEM_CLOCK
) -> tuple[User, Organisation]:
    """A new person of the invited address, in the organisation of the invitation. Raises NotFound, Invalid, Forbidden."""
    invitation = invitations.invitation_find(token=token, clock=clock)
    if not is_proof(invitation):
        raise Forbidden("sign up by the link that is mailed to the address", code="address_not_confirmed")
    user = accounts.user_sign_up(
        email=invitation.email,
        password=password,
        name=name,
        is_verified=invitation.is_mailed,
        language=language,
        clock=clock,
    )
    return user, invitation_accept(token=token, user=user, clock=clock).organisation


@transaction.atomic
def join_by_provider(
    *, organisation: Organisation, invitation_id: str, address: str | None, clock: Clock = SYSTEM_CLOCK
) -> Membership:
    """A new person without a password, in the organisation of the invitation, by the organisation's own provider.

    `address`: what that provider says of them, and has verified. Whoever is here has had the link of the invitation in their
    browser: the address alone is what any provider says. Raises NotFound, Forbidden (of a link that was not mailed, too), and
    Conflict where there is an account.
    """
    invitation = invitations.invitation_use_by_id(organisation=organisation, invitation_id=invitation_id, clock=clock)
    if address is None or address != invitation.email:
        raise Forbidden(
            "the provider does not say that you have the address which was invited, and that it was verified",
            code="sso_other_address",
        )
    if not may_join_by_provider(invitation):
        raise Forbidden(
            "by a link that was not mailed to you nobody joins by a provider: choose a password on the page of the invitation",
            code="address_not_confirmed",
        )
    user = accounts.user_invited(
        email=invitation.email, is_verified=invitation.is_mailed, language=invitation.language, clock=clock
    )
    return _joined(invitation, user)


@transaction.atomic
def member_remove(
    *,
    organisation: Organisation,
    by: User,
    membership_id: int,
    with_key: ApiKey | None = None,
    check: Callable[[Membership], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Take a person out and revoke their keys of this organisation, for good: coming back makes none of them work again.

    `with_key`: the API key that asks. Who was an owner when the request began, and is none any more, takes nobody out: least of
    all who has just taken the role from them. `check` is told the member as they are.

    Raises NotFound, Forbidden, Unauthenticated, Conflict for the last owner.
    """
    accounts.owner_lock(organisation=organisation, user=by, with_key=with_key)
    membership = tenants.member_remove(
        organisation=organisation, actor=by.email, membership_id=membership_id, check=check
    )
    accounts.member_keys_revoke(organisation=organisation, actor=by.email, user=membership.user, clock=clock)


@transaction.atomic
def invitation_withdraw(
    *,
    organisation: Organisation,
    by: User,
    invitation_id: str,
    with_key: ApiKey | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Invitation:
    """End an invitation, as whoever owns the organisation still. `with_key`: the API key that asks.

    Raises NotFound, Forbidden, Unauthenticated, Conflict where it was accepted.
    """
    accounts.owner_lock(organisation=organisation, user=by, with_key=with_key)
    return invitations.invitation_withdraw(
        organisation=organisation, actor=by.email, invitation_id=invitation_id, clock=clock
    )


@transaction.atomic
def demo_tenant_ensure(*, name: str) -> tuple[Organisation, str | None]:
    """An organisation with an owner and an API key, made on the first call.

    Returns the organisation and the key's text; None instead of the text where the key was made by an earlier call
    (it is stored as a hash and cannot be shown again). Revoke the key called "demo" to be given a new one.

    Raises Conflict where the organisation is being deleted.
    """
    email = f"{name.lower().replace(' ', '-')}@{DEMO_DOMAIN}"
    owner, _ = accounts.user_ensure(email=email, password=None)
    organisation = Organisation.objects.filter(name=name, deleted_at=None).first() or tenants.organisation_create(
        name=name, owner=owner
    )
    in_use.locked(organisation)
    tenants.membership_set(organisation=organisation, user=owner, role=Role.OWNER)
    if accounts.api_key_exists(organisation=organisation, user=owner, name=DEMO_KEY_NAME):
        return organisation, None
    _, text = accounts.api_key_create(organisation=organisation, user=owner, name=DEMO_KEY_NAME)
    return organisation, text
