"""Accounts and API keys are made and ended here."""

from __future__ import annotations

import random
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q

from controlplane.accounts import access_keys, key_rules, keys
from controlplane.accounts.identity import links, second_factor
from controlplane.accounts.identity.trail import record_everywhere
from controlplane.accounts.models import AccessKey, ApiKey, LinkPurpose, User
from controlplane.accounts.scopes import BUILT_IN
from controlplane.core import audit, ids, wording
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, FieldProblem, Forbidden, Invalid, NotFound, Unauthenticated, Unsupported
from controlplane.core.text import name_checked
from controlplane.mail import outbox
from controlplane.tenants import in_use
from controlplane.tenants.models import Membership, Role

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from controlplane.tenants.models import Organisation

Key = TypeVar("Key", ApiKey, AccessKey)


def user_ensure(*, email: str, password: str | None, name: str = "") -> tuple[User, bool]:
    """A person of this email; True beside it if made now. The password of one who exists stays as it is."""
    user = User.objects.filter(email=email.lower()).first()
    if user:
        return user, False
    return User.objects.create_user(email, password, name=name), True


def user_sign_up(
    *,
    email: str,
    password: str,
    name: str = "",
    is_verified: bool = False,
    language: str = "en",
    clock: Clock = SYSTEM_CLOCK,
) -> User:
    """A new person who chose a password. Raises Invalid beside `email` or `password`.

    `language`: of the mails to them, as of the page on which they sign up.

    To be called where nothing is told to strangers by that: for whoever reads the address (`is_verified`), or where the service
    can write to nobody. Else it is identity/signing_up.py's.
    """
    email = email.strip().lower()
    name = name_checked(name, may_be_empty=True)
    taken = Invalid.field("email", "there is an account with this address; sign in instead")
    if User.objects.filter(email=email).exists():
        raise taken
    password_checked(password, User(email=email, name=name))
    known = {"must_confirm_email": outbox.is_on(), "email_verified_at": clock.now() if is_verified else None}
    try:
        with transaction.atomic():
            return User.objects.create_user(email, password, name=name, language=language, **known)
    except IntegrityError as error:  # whoever clicks twice signs up twice at once
        raise taken from error


def user_invited(*, email: str, is_verified: bool, language: str = "en", clock: Clock = SYSTEM_CLOCK) -> User:
    """A new person without a password: an organisation's provider signs them in. Raises Conflict where there is an account.

    To be called for whoever has the link of an invitation: nobody else learns from it who has an account.
    """
    taken = Conflict(
        "there is an account with this address: sign in to it, join, and connect it to the provider then",
        code="account_exists",
    )
    if User.objects.filter(email=email).exists():
        raise taken
    known = {"must_confirm_email": outbox.is_on(), "email_verified_at": clock.now() if is_verified else None}
    try:
        with transaction.atomic():
            return User.objects.create_user(email, None, language=language, **known)
    except IntegrityError as error:
        raise taken from error


def user_rename(*, user: User, name: str) -> None:
    """What a person is called; empty: by the address. Raises Invalid."""
    user.name = name_checked(name, may_be_empty=True)
    user.save(update_fields=["name"])


def user_language_set(*, user: User, language: str) -> None:
    """In which language mails to a person are written: one of the service's, or English."""
    user.language = wording.known(language)
    user.save(update_fields=["language"])


def signed_in(*, user: User, **detail: Any) -> None:
    """Somebody has signed in to the console: each of their organisations has it in its audit trail. `detail`: by what."""
    record_everywhere(user, "account.sign_in", **detail)


def sign_in_failed(*, user: User, step: str) -> None:
    """The password was right, and what was asked for after it was not."""
    record_everywhere(user, "account.sign_in_failed", step=step)


def password_checked(password: str, user: User) -> None:
    """Whether it will do for this person. Raises Invalid beside `password`."""
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid(
            "the password will not do", errors=[FieldProblem("password", text) for text in error.messages]
        ) from error


@transaction.atomic
def admin_ensure(*, email: str, password: str) -> tuple[User, bool]:
    """An operator with this password, whatever it was before; True beside it if made now.

    Who becomes one leaves keys, second factors and mailed links behind: they were made for an account that reached its own
    organisations, some in sessions of those organisations' providers, and an operator's reach all.
    """
    user = User.objects.filter(email=email.lower()).first()
    if user is None:
        return User.objects.create_superuser(email, password), True
    if not (user.is_superuser and user.check_password(password)):
        is_promoted = not user.is_staff
        user.is_staff = user.is_superuser = user.is_active = True
        user.set_password(password)  # sessions end with it
        user.save()
        if is_promoted:
            _left_behind(user)
    return user, False


def _left_behind(user: User, clock: Clock = SYSTEM_CLOCK) -> None:
    keys_revoke(user=user, clock=clock)
    links.links_end(user=user, purposes=tuple(LinkPurpose), now=clock.now())
    if user.second_factor_at is not None:
        second_factor.second_factor_remove(user=user, actor="system", reason="operator of the service from now on")


def api_key_exists(*, organisation: Organisation, user: User, name: str) -> bool:
    """Whether this person has a key of this name that is not revoked."""
    keys_of_user = ApiKey.objects.for_organisation(organisation).filter(user=user, name=name)
    return keys_of_user.filter(revoked_at__isnull=True).exists()


@transaction.atomic
def api_key_create(
    *,
    organisation: Organisation,
    user: User,
    name: str,
    scopes: Sequence[str] | None = None,
    instances: Sequence[str] | None = None,
    addresses: Sequence[str] | None = None,
    expires_at: datetime | None = None,
    by: ApiKey | None = None,
    sso_until: datetime | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[ApiKey, str]:
    """A new key, and its text: the only time that it can be seen. None: no limit of this kind.

    `by` is the key that asks for it, if one does. `sso_until`: an organisation's provider has begun the session that asks; a key
    that was made so makes such keys. Of `instances` none is looked up: an id that is not the organisation's opens nothing.
    Raises Invalid, Forbidden, Unauthenticated.
    """
    name = name_checked(name)
    _keys_may_be_made(organisation, user, by)
    limits = {"scopes": scopes, "instances": instances, "addresses": addresses, "expires_at": expires_at}
    whose = {"organisation": organisation, "user": user, "sso_until": _sso_until(by, sso_until)}
    return api_key_save(whose=whose, actor=user.email, name=name, limits=limits, now=clock.now())


def api_key_save(
    *, whose: dict[str, Any], actor: str, name: str, limits: dict[str, Any], now: datetime
) -> tuple[ApiKey, str]:
    """The row of a new key, and its text; who may make it has been asked. `whose`: members of the row. Raises Invalid."""
    wanted = key_rules.checked(**limits, now=now)
    expires_at = wanted["expires_at"]
    source = random.SystemRandom()
    new = keys.generate(source)
    is_near = expires_at is not None and expires_at - now <= key_rules.TOLD_BEFORE
    key = ApiKey(
        id=ids.api_key_id(source),
        **whose,
        name=name,
        prefix=new.prefix,
        digest=new.digest,
        created_at=now,
        expiry_told_at=now if is_near else None,
        **wanted,
    )
    key.save(force_insert=True)
    detail = {member: value for member, value in key_rules.shown(key).items() if value is not None}
    if key.service_account is not None:
        detail["service_account"] = key.service_account.id
    if key.sso_until is not None:
        detail["single_sign_on"] = True
    audit.record(organisation=key.organisation, actor=actor, action="api_key.create", target=key.id, detail=detail)
    return key, new.text


def _sso_until(by: ApiKey | None, sso_until: datetime | None) -> datetime | None:
    """Of what the session or the key makes that asks."""
    return sso_until if by is None else by.sso_until


def _keys_may_be_made(organisation: Organisation, user: User, by: ApiKey | None) -> None:
    """Nobody removes this person, or revokes all of their keys, until the new one is there to be revoked with the others."""
    if Membership.objects.select_for_update().filter(organisation=organisation, user=user).first() is None:
        raise Forbidden("only members of an organisation have keys of it")
    key_is_good(organisation, by)


def key_is_good(organisation: Organisation, by: ApiKey | None) -> None:
    """Whether the key that asks, if one does, was not revoked since it was looked at. Raises Unauthenticated."""
    if by is None:
        return
    rows = ApiKey.objects.for_organisation(organisation)
    if not rows.filter(pk=by.pk, revoked_at__isnull=True).exists():
        raise Unauthenticated("the API key is not valid")


@transaction.atomic
def api_key_rotate(
    *,
    organisation: Organisation,
    user: User,
    key_id: str,
    overlap: timedelta,
    by: ApiKey | None = None,
    sso_until: datetime | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[ApiKey, str]:
    """Another secret for a key of one's own, or as an owner of a service account's, and its text: the only time that it is seen.

    The secret of before is good for `overlap` more; none: it ends at once, and so does one that has still been good from an
    earlier rotation. `by` is the key that asks for it, if one does. `sso_until`: an organisation's provider has begun the session
    that asks: from then on a person's key is as one that was made so, since whoever sits there has the new secret.

    Raises NotFound, Forbidden, Invalid, Conflict, Unauthenticated.
    """
    now = clock.now()
    rows = ApiKey.objects.for_organisation(organisation).filter(pk=key_id)
    key = rows.first()
    if key is None:
        raise NotFound(f"no API key {key_id}")
    if key.service_account_id is not None:
        owner_check(
            organisation=organisation, user=user
        )  # before the key is locked, as whoever deletes the account does
        key_is_good(organisation, by)
    elif key.user_id != user.pk:
        raise Forbidden("a key is rotated by the person whose key it is; owners may revoke it")
    else:
        _keys_may_be_made(organisation, user, by)
    # Looked at after a lock: whoever revokes keys of this person misses no secret that one of them was asking for.
    key = rows.select_for_update().get()
    key_rules.rotation_check(key, overlap, now)
    new = keys.generate(random.SystemRandom(), key.prefix)
    key.previous_digest, key.previous_until = (key.digest, now + overlap) if overlap else ("", None)
    key.digest = new.digest
    detail: dict[str, Any] = {"previous_until": key.previous_until.isoformat() if key.previous_until else None}
    until = _sso_until(by, sso_until) if key.service_account_id is None else None
    if until is not None:
        detail |= {"single_sign_on": True} if key.sso_until is None else {}
        key.sso_until = until
    key.save(update_fields=["digest", "previous_digest", "previous_until", "sso_until"])
    audit.record(organisation=organisation, actor=user.email, action="api_key.rotate", target=key.id, detail=detail)
    return key, new.text


def owner_check(*, organisation: Organisation, user: User) -> None:
    """Whether the person owns the organisation, and goes on to until the transaction has ended. Raises Forbidden."""
    owners = Membership.objects.select_for_update().filter(organisation=organisation, role=Role.OWNER)
    if owners.filter(user=user).first() is None:
        raise Forbidden("only owners of the organisation decide this")


def owner_lock(*, organisation: Organisation, user: User, with_key: ApiKey | None) -> None:
    """One change of an organisation's roles and service accounts at a time, by whoever owns it still. Raises Forbidden.

    `with_key`: the API key that asks. Raises Unauthenticated where it was revoked meanwhile, Conflict where the organisation was
    marked for deletion.
    """
    in_use.locked(organisation)
    owner_check(organisation=organisation, user=user)
    key_is_good(organisation, with_key)


@transaction.atomic
def api_key_revoke(
    *, organisation: Organisation, actor: str, key_id: str, only_of: User | None = None, clock: Clock = SYSTEM_CLOCK
) -> None:
    """End a key, from the next request on. Revoking twice is once. `only_of`: if it is this person's.

    Raises NotFound, Forbidden.
    """
    rows = ApiKey.objects.for_organisation(organisation).filter(pk=key_id)
    key = _may_revoke(rows.select_related("user", "service_account").first(), f"no API key {key_id}", only_of)
    if rows.filter(revoked_at__isnull=True).update(revoked_at=clock.now()):
        detail = {member: value for member, value in key_rules.shown(key).items() if value is not None}
        detail["owner"] = key.owner_name
        audit.record(organisation=organisation, actor=actor, action="api_key.revoke", target=key_id, detail=detail)


def _may_revoke(key: Key | None, unknown: str, only_of: User | None) -> Key:
    if key is None:
        raise NotFound(unknown)
    if only_of is not None and key.user_id != only_of.pk:
        raise Forbidden("only owners revoke keys of other people")
    return key


@transaction.atomic
def keys_revoke(*, user: User, clock: Clock = SYSTEM_CLOCK) -> None:
    """All API keys and access keys of a person, in every organisation."""
    # Locked, so that none is made meanwhile; in one order, so that two who do so do not wait for each other.
    memberships = user.memberships.select_for_update(of=("self",)).select_related("organisation").order_by("pk")
    for membership in memberships:
        member_keys_revoke(organisation=membership.organisation, actor=user.email, user=user, clock=clock)


@transaction.atomic
def member_keys_revoke(*, organisation: Organisation, actor: str, user: User, clock: Clock = SYSTEM_CLOCK) -> None:
    """All API keys and access keys of a person in one organisation."""
    for key in ApiKey.objects.for_organisation(organisation).filter(user=user, revoked_at=None):
        api_key_revoke(organisation=organisation, actor=actor, key_id=key.pk, clock=clock)
    for pair in AccessKey.objects.for_organisation(organisation).filter(user=user, revoked_at=None):
        access_key_revoke(organisation=organisation, actor=actor, key_id=pair.pk, clock=clock)


@transaction.atomic
def sso_keys_prolong(*, organisation: Organisation, user: User, until: datetime) -> None:
    """The organisation's provider has signed the person in again: keys that were made so are good until then."""
    for rows in (ApiKey.objects.for_organisation(organisation), AccessKey.objects.for_organisation(organisation)):
        rows.filter(user=user, revoked_at=None, sso_until__isnull=False).update(sso_until=until)


@transaction.atomic
def sso_keys_revoke(
    *, organisation: Organisation, actor: str, user: User | None = None, clock: Clock = SYSTEM_CLOCK
) -> int:
    """Keys that were made in sessions of single sign-on end with what had begun those; how many. `user`: this person's alone.

    The caller has ended what such keys are made by, in this transaction: then none is missed that is being made at that moment.
    """
    whose = {} if user is None else {"user": user}
    made_so = {"revoked_at": None, "sso_until__isnull": False, **whose}
    ended = list(ApiKey.objects.for_organisation(organisation).filter(**made_so).values_list("pk", flat=True))
    for key_id in ended:
        api_key_revoke(organisation=organisation, actor=actor, key_id=key_id, clock=clock)
    pairs = list(AccessKey.objects.for_organisation(organisation).filter(**made_so).values_list("pk", flat=True))
    for key_id in pairs:
        access_key_revoke(organisation=organisation, actor=actor, key_id=key_id, clock=clock)
    return len(ended) + len(pairs)


@transaction.atomic
def organisation_keys_revoke(*, organisation: Organisation, actor: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """All API keys and access keys of an organisation, those of service accounts too."""
    # Whoever makes a key has locked their membership: none is made meanwhile.
    list(Membership.objects.select_for_update().filter(organisation=organisation).order_by("pk").values_list("pk"))
    for key in ApiKey.objects.for_organisation(organisation).filter(revoked_at=None):
        api_key_revoke(organisation=organisation, actor=actor, key_id=key.pk, clock=clock)
    for pair in AccessKey.objects.for_organisation(organisation).filter(revoked_at=None):
        access_key_revoke(organisation=organisation, actor=actor, key_id=pair.pk, clock=clock)


@transaction.atomic
def access_key_create(
    *,
    organisation: Organisation,
    user: User,
    name: str,
    by: ApiKey | None = None,
    expires_at: datetime | timedelta | None = key_rules.ACCESS_KEY_LIFE,
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[AccessKey, str]:
    """A new access key, and its secret, which is shown this one time; `by` is the API key that asks for it, if one does.

    `expires_at`: a moment, or so long after now; None: never.

    Raises Invalid, Unsupported, Forbidden, Unauthenticated.
    """
    name, now = name_checked(name), clock.now()
    until = now + expires_at if isinstance(expires_at, timedelta) else key_rules.expiry_checked(expires_at, now)
    _keys_may_be_made(organisation, user, by)
    in_scopes = Q(custom_role__isnull=False) | Q(role__in=BUILT_IN)
    if Membership.objects.filter(in_scopes, organisation=organisation, user=user).exists():
        raise Forbidden("access keys are for the roles owner, member and viewer", code="not_in_role")
    installed = access_keys.installation_keys(settings.ENVIRONMENT.secret("access_key_secret"))
    if not installed:
        raise Unsupported("this installation has no key to make access keys with", code="access_keys_not_set_up")
    source = random.SystemRandom()
    key = AccessKey(
        id=ids.api_key_id(source),
        organisation=organisation,
        user=user,
        name=name,
        secret_id=access_keys.secret_id(source),
        made_with=access_keys.fingerprint(installed[0]),
        sso_until=_sso_until(by, None),
        expires_at=until,
        created_at=now,
    )
    key.save(force_insert=True)
    detail: dict[str, Any] = {"name": key.name, "secret_id": key.secret_id}
    detail["expires_at"] = until and until.astimezone(UTC).isoformat()
    detail |= {} if key.sso_until is None else {"single_sign_on": True}
    audit.record(organisation=organisation, actor=user.email, action="access_key.create", target=key.id, detail=detail)
    return key, access_keys.secret_of(installed[0], key.secret_id)


@transaction.atomic
def access_key_revoke(
    *, organisation: Organisation, actor: str, key_id: str, only_of: User | None = None, clock: Clock = SYSTEM_CLOCK
) -> None:
    """End an access key, from the next request on. Revoking twice is once. `only_of`: if it is this person's.

    Raises NotFound, Forbidden.
    """
    rows = AccessKey.objects.for_organisation(organisation).filter(pk=key_id)
    key = _may_revoke(rows.select_related("user").first(), f"no access key {key_id}", only_of)
    if rows.filter(revoked_at__isnull=True).update(revoked_at=clock.now()):
        detail = {"name": key.name, "secret_id": key.secret_id, "owner": key.user.email}
        audit.record(organisation=organisation, actor=actor, action="access_key.revoke", target=key_id, detail=detail)
