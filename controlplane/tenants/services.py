"""Making organisations and memberships."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.accounts import services as accounts
from controlplane.core import audit, ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import AlreadyExists, Invalid
from controlplane.tenants.models import Membership, Organisation, Role

if TYPE_CHECKING:
    from controlplane.accounts.models import User

DEMO_DOMAIN = "demo.sluice.invalid"
DEMO_KEY_NAME = "demo"


@transaction.atomic
def organisation_create(*, name: str, owner: User, clock: Clock = SYSTEM_CLOCK) -> Organisation:
    """A new organisation with its first owner. Raises Invalid, AlreadyExists."""
    name = name.strip()
    if not name:
        raise Invalid.field("name", "must not be empty")
    if Organisation.objects.filter(name=name).exists():
        raise AlreadyExists(f"there is an organisation called {name}")
    organisation = Organisation.objects.create(
        id=ids.organisation_id(random.SystemRandom()), name=name, created_at=clock.now()
    )
    membership_set(organisation=organisation, user=owner, role=Role.OWNER)
    audit.record(organisation=organisation, actor=owner.email, action="organisation.create", target=organisation.id)
    return organisation


def membership_set(*, organisation: Organisation, user: User, role: Role) -> Membership:
    """Put a person into an organisation, or change the role."""
    membership, _ = Membership.objects.update_or_create(
        organisation=organisation, user=user, defaults={"role": role.value}
    )
    return membership


@transaction.atomic
def demo_tenant_ensure(*, name: str) -> tuple[Organisation, str | None]:
    """An organisation with an owner and an API key, made on the first call.

    Returns the organisation and the key's text; None instead of the text where the key was made by an earlier call
    (it is stored as a hash and cannot be shown again). Revoke the key called "demo" to be given a new one.
    """
    email = f"{name.lower().replace(' ', '-')}@{DEMO_DOMAIN}"
    owner, _ = accounts.user_ensure(email=email, password=None)
    organisation = Organisation.objects.filter(name=name).first() or organisation_create(name=name, owner=owner)
    membership_set(organisation=organisation, user=owner, role=Role.OWNER)
    if accounts.api_key_exists(organisation=organisation, user=owner, name=DEMO_KEY_NAME):
        return organisation, None
    _, text = accounts.api_key_create(organisation=organisation, user=owner, name=DEMO_KEY_NAME)
    return organisation, text
