"""Whom a change of members, roles and keys concerns beside the thing itself: what a dry run says of it.

Everything is as it is now; it is asked once the change is known to be one that would be carried out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from controlplane.accounts.models import AccessKey, ApiKey, ServiceAccount
from controlplane.core.dry_runs import Affected, affected
from controlplane.mail import outbox
from controlplane.tenants.invitations import invitation_list
from controlplane.tenants.selectors import member_list

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.db.models import QuerySet

    from controlplane.accounts.models import User
    from controlplane.accounts.selectors import Caller
    from controlplane.tenants.models import Organisation

Touched = tuple[Affected, ...]
REVOKED = "revoked for good"
LEADS_NOWHERE = "withdrawn: the links lead nowhere"
OTHER_RIGHTS = "may do what the new role opens, from the next request on"
SIGNS_NOTHING = "sign nothing as long as they have this role"
ASKS = "is the one that asks: the next request with it would be refused"


def by_revoking(*, caller: Caller, key: ApiKey | AccessKey) -> Touched:
    """Whoever works with a key."""
    owner = _owner_of(key)
    if caller.key is not None and caller.key.pk == key.pk:
        return (*owner, *affected("api_keys", [key.pk], ASKS))
    return owner


def _owner_of(key: ApiKey | AccessKey) -> Touched:
    effect = "refused with this key from the next request on"
    if isinstance(key, ApiKey) and key.service_account is not None:
        return affected("service_accounts", [key.service_account.pk], effect)
    return affected("members", [key.user.email] if key.user is not None else [], effect)


def by_rotating(*, key_id: str, overlap_s: int) -> Touched:
    """Whoever has the present secret."""
    effect = (
        f"the present secret would be good for {overlap_s} s more"
        if overlap_s
        else "the present secret would end at once"
    )
    return affected("api_keys", [key_id], effect)


def by_another_role(*, caller: Caller, membership_id: int, stays_owner: bool, is_custom: bool) -> Touched:
    """The member's keys, and what they have invited as an owner. `is_custom`: the new role is made of scopes."""
    organisation = caller.organisation
    membership = member_list(organisation=organisation).filter(pk=membership_id).first()
    if membership is None:
        return ()
    of_pairs = SIGNS_NOTHING if is_custom else OTHER_RIGHTS
    keys = _keys_of(caller, membership.user, OTHER_RIGHTS, of_pairs)
    return keys if stays_owner else (*keys, *_invited_by(organisation, membership.user))


def by_removing(*, caller: Caller, membership_id: int) -> Touched:
    """The same of a member who leaves."""
    organisation = caller.organisation
    membership = member_list(organisation=organisation).filter(pk=membership_id).first()
    if membership is None:
        return ()
    return (*_keys_of(caller, membership.user, REVOKED, REVOKED), *_invited_by(organisation, membership.user))


def by_inviting(*, organisation: Organisation, email: str) -> Touched:
    """Who is invited, and the invitation of before."""
    before = invitation_list(organisation=organisation).filter(email=email)
    told = "is sent the link by mail" if outbox.is_on() else "can join by the link, which you send"
    return (
        *affected("people", [email], told),
        *affected("invitations", [row.pk for row in before], "withdrawn: the new one takes its place"),
    )


def by_changing_account(
    *, organisation: Organisation, service_account_id: str, changed: Collection[str], is_off: bool
) -> Touched:
    """The keys of a service account, where these members of it would be others; `is_off`: they would be refused."""
    keys = _live(ApiKey.objects.for_organisation(organisation).filter(service_account=service_account_id))
    told = affected("api_keys", keys, OTHER_RIGHTS) if {"role", "custom_role"} & set(changed) else ()
    if "disabled_at" in changed:
        return (*told, *affected("api_keys", keys, "refused while it is disabled" if is_off else "good again"))
    return told


def by_deleting_account(*, organisation: Organisation, service_account_id: str) -> Touched:
    """The keys of a service account."""
    keys = _live(ApiKey.objects.for_organisation(organisation).filter(service_account=service_account_id))
    return affected("api_keys", keys, REVOKED)


def by_changing_role(*, organisation: Organisation, role_id: str, changed: Collection[str]) -> Touched:
    """Whoever has a role of the organisation's own, where these members of it would be others."""
    if not {"scopes", "instances"} & set(changed):
        return ()
    effect = "may do what the role then opens, from the next request on"
    people = member_list(organisation=organisation).filter(custom_role=role_id).values_list("user__email", flat=True)
    accounts = ServiceAccount.objects.for_organisation(organisation).filter(custom_role=role_id, deleted_at=None)
    return (
        *affected("members", people, effect),
        *affected("service_accounts", accounts.order_by("pk").values_list("pk", flat=True), effect),
    )


def by_ending_sso(*, caller: Caller) -> Touched:
    """Keys that were made in sessions of single sign-on: they end with it."""
    made_so = {"sso_until__isnull": False}
    return _ended(
        caller,
        ApiKey.objects.for_organisation(caller.organisation).filter(**made_so),
        AccessKey.objects.for_organisation(caller.organisation).filter(**made_so),
        REVOKED,
    )


def by_deleting(*, caller: Caller) -> Touched:
    """The other members of an organisation that would be marked for deletion, all keys of it, and invitations that are open."""
    organisation = caller.organisation
    others = member_list(organisation=organisation).exclude(user=caller.person).values_list("user__email", flat=True)
    keys = _ended(
        caller,
        ApiKey.objects.for_organisation(organisation),
        AccessKey.objects.for_organisation(organisation),
        "refused from the next request on, until an owner takes the deletion back",
    )
    return (
        *affected("members", others, "cannot use it any more, until an owner takes the deletion back"),
        *keys,
        *affected("invitations", [row.pk for row in invitation_list(organisation=organisation)], LEADS_NOWHERE),
    )


def _ended(caller: Caller, keys: QuerySet[ApiKey], pairs: QuerySet[AccessKey], effect: str) -> Touched:
    """What becomes of keys; of the one that asks it is said in an entry of its own."""
    ids = _live(keys)
    asking = [each for each in ids if caller.key is not None and caller.key.pk == each]
    return (
        *affected("api_keys", [each for each in ids if each not in asking], effect),
        *affected("api_keys", asking, ASKS),
        *affected("access_keys", _live(pairs), effect),
    )


def _keys_of(caller: Caller, user: User, effect: str, of_pairs: str) -> Touched:
    """Counted only for a key with limits: it is shown no keys elsewhere either. `of_pairs`: what becomes of access keys."""
    organisation = caller.organisation
    found = (
        *affected("api_keys", _live(ApiKey.objects.for_organisation(organisation).filter(user=user)), effect),
        *affected("access_keys", _live(AccessKey.objects.for_organisation(organisation).filter(user=user)), of_pairs),
    )
    return found if caller.limits.is_none else tuple(replace(each, names=()) for each in found)


def _live(keys: QuerySet[ApiKey] | QuerySet[AccessKey]) -> list[str]:
    return list(keys.filter(revoked_at=None).order_by("pk").values_list("pk", flat=True))


def _invited_by(organisation: Organisation, user: User) -> Touched:
    """Of whoever decides no more who belongs to the organisation."""
    rows = invitation_list(organisation=organisation).filter(invited_by=user)
    return affected("invitations", [row.pk for row in rows], LEADS_NOWHERE)
