"""Rows of the identity of people, for tests of other areas."""

from __future__ import annotations

from controlplane.accounts.identity import signing_up
from controlplane.accounts.models import SignUp
from controlplane.core.clock import SYSTEM_CLOCK

TOKEN = "a" * 43


def sign_up_row(email: str = "dora@example.com", organisation_name: str = "Mill") -> str:
    """Somebody has signed up and been mailed; the secret of the link."""
    now = SYSTEM_CLOCK.now()
    SignUp.objects.create(
        email=email,
        name="Dora",
        organisation_name=organisation_name,
        at=now,
        answered_at=now,
        mailed_at=now,
        digest=signing_up._digest(TOKEN),  # what the mail has, and no row
    )
    return TOKEN
