"""A provider is set, tested and put in force by owners; members are connected to it, and signed in by it.

====================  ==================================================================================================
set                   counts for nothing yet; what was tested before is worth nothing
an owner connects     who signs in there once, while signed in here otherwise, is linked, and that is the test
in force              by an owner, once it was tested as it is
====================  ==================================================================================================

Somebody who is invited and has no account comes in by it as well (`invited_join`): by the link of the invitation, as whoever the
organisation's own provider says has the invited address. An account that is there already is never entered on a provider's word.

What was made in a session that a provider has begun ends with what had begun it: sessions name the row that they came by, keys
that were made in one are revoked where the connection ends, or the provider, or it is put out of force.

Each change takes the lock on the organisation first, then those of the provider, of members, of links and of keys, as every
change of its members does (tenants/in_use.py): of two at once the second waits, and sees what the first has done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.db.models import F

from controlplane.accounts import joining
from controlplane.accounts import services as accounts
from controlplane.accounts.identity import letters, links
from controlplane.accounts.key_rules import SSO_LASTS
from controlplane.accounts.owners import owners_write
from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable
from controlplane.core.sealed import opened, sealed
from controlplane.core.text import name_checked
from controlplane.mail import outbox
from controlplane.sso import asking, oidc
from controlplane.sso.models import SsoLink, SsoProvider
from controlplane.sso.selectors import gets_in_without, provider_of
from controlplane.tenants import in_use
from controlplane.tenants.models import Membership, Role
from controlplane.token_issuers import installed

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from controlplane.accounts.models import User
    from controlplane.sso.oidc import Identity
    from controlplane.tenants.models import Organisation

LONGEST, LONGEST_LABEL, LONGEST_SECRET = 255, 128, 1024


@dataclass(frozen=True, slots=True)
class Begun:
    """A sign-in at the provider: what the session keeps until the person is back."""

    organisation_id: str
    issuer: str
    client_id: str
    state: str
    nonce: str
    verifier: str
    invitation_id: str = ""  # that is to be accepted


def provider_set(
    *,
    organisation: Organisation,
    actor: str,
    issuer: str,
    client_id: str,
    client_secret: str,
    label: str,
    check: Callable[[SsoProvider | None], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> SsoProvider:
    """Its document is fetched first. No `client_secret`: the one of before. `check` is told the provider of before.

    Raises Invalid, Conflict.

    Sessions that it has begun end. Keys that were made in them stay where the issuer stays: a new secret of the client is no
    reason to stop programs.
    """
    before = provider_of(organisation)
    if check is not None:
        check(before)  # before a host is asked in vain
    label = name_checked(label, field="label")
    if not installed.places():
        raise Conflict("this installation asks no providers: its operators have to list their hosts", code="sso_off")
    if not client_secret and before is None:
        raise Invalid.field("client_secret", "must not be empty")
    if not client_secret and before is not None and before.issuer != issuer:
        raise Invalid.field("client_secret", "type it again: another issuer must not be sent the one of before")
    for name, text in (("issuer", issuer), ("client_id", client_id)):
        if not 0 < len(text) <= LONGEST or not text.isascii() or not text.isprintable():
            raise Invalid.field(name, f"must be up to {LONGEST} letters, digits and signs")
    try:
        asking.endpoints_at(issuer)
    except oidc.ProviderProblem as error:
        raise Invalid.field("issuer", str(error)) from error
    secret = (
        sealed(SsoProvider, "client_secret", client_secret.encode(), organisation_id=organisation.pk)
        if client_secret or before is None
        else before.client_secret
    )
    with transaction.atomic():
        in_use.locked(organisation)
        held = SsoProvider.objects.for_organisation(organisation).select_for_update().first()
        if check is not None:
            check(held)
        row, _ = SsoProvider.objects.for_organisation(organisation).update_or_create(
            organisation=organisation,
            defaults={
                "issuer": issuer,
                "client_id": client_id,
                "client_secret": secret,
                "label": label,
                "is_on": False,
                "is_required": False,
                "required_at": None,
                "tested_at": None,
            },
            create_defaults={
                "organisation": organisation,
                "issuer": issuer,
                "client_id": client_id,
                "client_secret": secret,
                "label": label,
                "created_at": clock.now(),
            },
        )
        sessions_end(organisation)
        if held is not None and held.issuer != issuer:
            accounts.sso_keys_revoke(organisation=organisation, actor=actor, clock=clock)
        was = {} if held is None else {"issuer": held.issuer, "client_id": held.client_id, "label": held.label}
        detail = audit.changed(was, {"issuer": issuer, "client_id": client_id, "label": label})
        _audit(row, actor, "set", detail | ({"client_secret": "given"} if client_secret else {}))
    return row


@transaction.atomic
def provider_switch(
    *,
    organisation: Organisation,
    actor: str,
    is_on: bool | None = None,
    is_required: bool | None = None,
    check: Callable[[SsoProvider], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> SsoProvider:
    """In force or not, required or not; None: as it is. Out of force it is not required either. `check` is told it as it is.

    Whoever puts it out of force does not trust it, so that keys end that were made in its sessions. Raises NotFound,
    Invalid where nothing is asked for, Conflict where it was not tested as it is, cannot be required, or is being deleted.
    """
    if is_on is None and is_required is None:
        raise Invalid("nothing to change: give in_force, required or both")
    in_use.locked(organisation)
    row = SsoProvider.objects.for_organisation(organisation).select_for_update().first()
    if row is None:
        raise NotFound("this organisation has no single sign-on")
    if check is not None:
        check(row)
    if is_on and row.tested_at is None:
        raise Conflict("test it first: connect your own account", code="sso_not_tested")
    if row.is_on and is_on is False:
        sessions_end(organisation)
        accounts.sso_keys_revoke(organisation=organisation, actor=actor, clock=clock)
    before = {"is_on": row.is_on, "is_required": row.is_required}
    row.is_on = row.is_on if is_on is None else is_on
    if is_required and not row.is_on:
        raise Conflict("what is not in force cannot be required", code="sso_not_in_force")
    row.is_required = row.is_on and (row.is_required if is_required is None else is_required)
    row.required_at = (row.required_at or clock.now()) if row.is_required else None
    row.save(update_fields=["is_on", "is_required", "required_at"])
    _audit(row, actor, "switch", audit.changed(before, {"is_on": row.is_on, "is_required": row.is_required}))
    return row


@transaction.atomic
def provider_release(*, organisation: Organisation, actor: str, reason: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Operators let the members in by their passwords again, where no owner gets in any more. Owners are told by mail.

    Raises NotFound, and Conflict where it is not required.
    """
    row = SsoProvider.objects.for_organisation(organisation).select_for_update().first()
    if row is None:
        raise NotFound("this organisation has no single sign-on")
    if not row.is_required:
        raise Conflict("single sign-on is not required here", code="sso_not_required")
    row.is_required, row.required_at = False, None
    row.save(update_fields=["is_required", "required_at"])
    detail = {"reason": reason} | audit.changed({"is_required": True}, {"is_required": False})
    _audit(row, actor, "release", detail)
    letter = letters.single_sign_on_released()
    owners_write(organisation=organisation, compose=lambda _is_known: letter, at=clock.now())


@transaction.atomic
def provider_remove(
    *, organisation: Organisation, actor: str, check: Callable[[SsoProvider], None] | None = None
) -> None:
    """Nobody signs in by it any more, who has is signed out, and keys end that were made so; links go.

    `check` is told it as it is. Raises NotFound, Conflict.
    """
    in_use.locked(organisation)
    row = SsoProvider.objects.for_organisation(organisation).select_for_update().first()
    if row is None:
        raise NotFound("this organisation has no single sign-on")
    if check is not None:
        check(row)
    members = {name: getattr(row, name) for name in ("issuer", "client_id", "label", "is_on", "is_required")}
    _audit(row, actor, "remove", members)
    _members_hold(organisation)
    SsoLink.objects.for_organisation(organisation).delete()
    row.delete()
    accounts.sso_keys_revoke(organisation=organisation, actor=actor)


def way_to(provider: SsoProvider, begun: Begun, *, redirect_uri: str) -> str:
    """Where the person is sent. Raises Unavailable."""
    try:
        endpoints = asking.endpoints_at(provider.issuer)
    except oidc.ProviderProblem as error:
        raise _away(error) from error
    return oidc.authorization_url(
        endpoints,
        client_id=begun.client_id,
        redirect_uri=redirect_uri,
        state=begun.state,
        nonce=begun.nonce,
        verifier=begun.verifier,
        asks_address=bool(begun.invitation_id),
    )


def identity_found(
    provider: SsoProvider, begun: Begun, *, code: str, redirect_uri: str, clock: Clock = SYSTEM_CLOCK
) -> Identity:
    """Whom the provider names for a code. Raises Unavailable, Conflict where the provider was changed meanwhile."""
    if (provider.issuer, provider.client_id) != (begun.issuer, begun.client_id):
        raise Conflict("single sign-on was changed meanwhile: begin anew", code="sso_changed")
    lost = Unavailable("the secret of this provider cannot be read: tell the operators of the service")
    secret = opened(provider, "client_secret", lost).decode()
    try:
        endpoints = asking.endpoints_at(provider.issuer)
        token = asking.token_for(
            endpoints,
            code=code,
            redirect_uri=redirect_uri,
            verifier=begun.verifier,
            client_id=provider.client_id,
            client_secret=secret,
        )
        return oidc.identity_of(
            token,
            keys=asking.keys_at(endpoints),
            issuer=provider.issuer,
            client_id=provider.client_id,
            nonce=begun.nonce,
            now_s=clock.now().timestamp(),
        )
    except oidc.ProviderProblem as error:
        raise _away(error) from error


@transaction.atomic
def member_connect(
    *, asked: SsoProvider, user: User, begun: Begun, subject: str, clock: Clock = SYSTEM_CLOCK
) -> SsoLink:
    """This member is that subject from now on, and no other. An owner's is the test. Raises NotFound, Forbidden, Conflict.

    `asked`: the provider as it was then. What was set meanwhile was not tested. Where single sign-on is required, whoever gets in
    by it alone does not replace their connection: it would be by a password, as connecting always is.
    """
    organisation, now = asked.organisation, clock.now()
    in_use.locked(organisation)
    provider = SsoProvider.objects.for_organisation(organisation).select_for_update().first()
    membership = Membership.objects.select_for_update().filter(organisation=organisation, user=user).first()
    if provider is None or membership is None:
        raise NotFound("this organisation has no single sign-on")
    if _said(provider) != _said(asked) or (provider.issuer, provider.client_id) != (begun.issuer, begun.client_id):
        raise Conflict("single sign-on was changed meanwhile: begin anew", code="sso_changed")
    if user.is_staff:  # whoever acts as them makes keys, which are an operator's everywhere
        raise Forbidden("operators of the service do not sign in by an organisation's provider", code="sso_operator")
    before = SsoLink.objects.for_organisation(organisation).filter(membership=membership)
    is_another = before.exclude(issuer=provider.issuer, subject=subject).exists()
    if before.filter(issuer=provider.issuer).exclude(subject=subject).exists():
        _replacing_check(provider, membership, user)
    before.delete()
    if is_another:
        accounts.sso_keys_revoke(organisation=organisation, actor=user.email, user=user, clock=clock)
    link = _linked(provider, membership, subject, now)
    if membership.role == "owner":
        provider.tested_at = now
        provider.save(update_fields=["tested_at"])
    _connected(organisation, user, subject, clock)
    return link


@transaction.atomic
def invited_join(*, asked: SsoProvider, begun: Begun, identity: Identity, clock: Clock = SYSTEM_CLOCK) -> SsoLink:
    """Whoever has the link of an invitation and, as the organisation's own provider says, the invited address: what it says.

    They have a new account, without a password, which that provider signs in to this organisation. Raises NotFound (of the
    invitation as well), Forbidden, and Conflict: where there is an account with the address it is entered on no provider's word.
    """
    organisation = asked.organisation
    in_use.locked(organisation)
    provider = SsoProvider.objects.for_organisation(organisation).select_for_update().first()
    if provider is None or not provider.is_on:
        raise NotFound("this organisation has no single sign-on")
    if _said(provider) != _said(asked) or (provider.issuer, provider.client_id) != (begun.issuer, begun.client_id):
        raise Conflict("single sign-on was changed meanwhile: begin anew", code="sso_changed")
    membership = joining.join_by_provider(
        organisation=organisation, invitation_id=begun.invitation_id, address=identity.address, clock=clock
    )
    user = membership.user
    link = _linked(provider, membership, identity.subject, clock.now())
    _connected(organisation, user, identity.subject, clock)
    return link


def _replacing_check(provider: SsoProvider, membership: Membership, user: User) -> None:
    """Under the lock of both: of two connections that were begun before there was any, the first stands. Raises Forbidden."""
    is_in = membership.role == Role.OWNER and gets_in_without(user, provider)
    if provider.is_required and not is_in:
        raise Forbidden(
            f"{provider.organisation.name} requires its members to sign in by {provider.label}", code="sso_needed"
        )


def _linked(provider: SsoProvider, membership: Membership, subject: str, now: datetime) -> SsoLink:
    organisation = provider.organisation
    try:
        with transaction.atomic():
            return SsoLink.objects.for_organisation(organisation).create(
                organisation=organisation,
                membership=membership,
                issuer=provider.issuer,
                subject=subject,
                created_at=now,
            )
    except IntegrityError as error:
        raise Conflict("somebody else of this organisation is connected to that account", code="sso_taken") from error


def _connected(organisation: Organisation, user: User, subject: str, clock: Clock) -> None:
    audit.record(
        organisation=organisation,
        actor=user.email,
        action="sso.connect",
        target=user.email,
        detail={"subject": subject},
    )
    _tell(user, clock)


@transaction.atomic
def member_disconnect(*, organisation: Organisation, user: User) -> None:
    """The provider signs this member in no more; sessions that it has begun end, and keys made in them.

    Raises NotFound, Conflict.
    """
    in_use.locked(organisation)
    _members_hold(organisation, user=user)
    if not SsoLink.objects.for_organisation(organisation).filter(membership__user=user).delete()[0]:
        raise NotFound("you are not connected")
    accounts.sso_keys_revoke(organisation=organisation, actor=user.email, user=user)
    audit.record(organisation=organisation, actor=user.email, action="sso.disconnect", target=user.email)


@transaction.atomic
def member_signed_in(*, provider: SsoProvider, subject: str, clock: Clock = SYSTEM_CLOCK) -> SsoLink:
    """Whose sign-in it is; keys that were made so are good for longer. Raises Forbidden: nobody has connected that account.

    `provider`: as it was when it was asked who this is, which takes seconds. Raises Conflict where an owner has changed it since,
    or put it out of force, or the organisation is being deleted: what that has ended would begin anew.
    """
    in_use.locked(provider.organisation)
    held = SsoProvider.objects.for_organisation(provider.organisation).select_for_update().first()
    if held is None or not held.is_on or _said(held) != _said(provider):
        raise Conflict("single sign-on was changed meanwhile: begin anew", code="sso_changed")
    rows = SsoLink.objects.for_organisation(provider.organisation).select_related("membership__user")
    link = rows.filter(
        issuer=provider.issuer,
        subject=subject,
        membership__organisation=F("organisation"),
        membership__user__is_active=True,
        membership__user__is_staff=False,
    ).first()
    if link is None:
        raise Forbidden(
            "no member has connected that account: sign in by your password first, and connect it", code="sso_unknown"
        )
    now, user = clock.now(), link.membership.user
    SsoLink.objects.for_organisation(provider.organisation).filter(pk=link.pk).update(last_used_at=now)
    accounts.sso_keys_prolong(organisation=provider.organisation, user=user, until=now + SSO_LASTS)
    audit.record(organisation=provider.organisation, actor=user.email, action="sso.sign_in", target=user.email)
    return link


def sessions_end(organisation: Organisation) -> None:
    """For good, also where it is in force again soon: a session names the row that it came by, and these are new ones."""
    _members_hold(organisation)  # whoever is removed at this moment takes their link along, old or new
    rows = SsoLink.objects.for_organisation(organisation)
    links = list(rows)
    rows.delete()
    for link in links:
        link.pk = None
    rows.bulk_create(links)


def _members_hold(organisation: Organisation, **which: User) -> None:
    """Until the transaction has ended: of keys that are being made at this moment none is missed (selectors.link_held)."""
    members = Membership.objects.select_for_update().filter(organisation=organisation, **which)
    list(members.order_by("pk").values_list("pk"))


def _said(provider: SsoProvider) -> tuple[str, str, bytes]:
    return provider.issuer, provider.client_id, bytes(provider.client_secret)


def _audit(row: SsoProvider, actor: str, action: str, detail: dict[str, object]) -> None:
    audit.record(
        organisation=row.organisation, actor=actor, action=f"sso.{action}", target=row.organisation_id, detail=detail
    )


def _away(error: oidc.ProviderProblem) -> Unavailable:
    return Unavailable(f"the provider cannot be used now: {error}", code="sso_away")


def _tell(user: User, clock: Clock) -> None:
    if outbox.is_on():
        links.letter_write(
            letter=letters.single_sign_on_connected(), address=user.email, language=user.language, now=clock.now()
        )
