"""A way in for whoever is kept out by others' tries: a link by mail makes one more browser a known one.

Strangers can use up the tries that an account has in browsers where nobody has signed in before (`accounts/attempts.py`). Whoever
reads the mail of the account is no stranger: the browser in which they open the link has tries of its own. The link is enough
for nothing else: the password is asked for after it, and a code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.accounts.identity import addresses, door, links
from controlplane.accounts.identity.trail import record_everywhere
from controlplane.accounts.models import DoorKind, LinkPurpose
from controlplane.core.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from controlplane.accounts.models import MailedLink, User


def browser_ask(*, email: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """A link goes to the address if it is an account's; the caller does not learn it. Raises Unsupported."""
    addresses.mail_needed()
    door.note_write(kind=DoorKind.BROWSER, email=email, clock=clock)


def browser_find(*, token: str, clock: Clock = SYSTEM_CLOCK) -> MailedLink:
    """The link, looked at. Raises NotFound."""
    return links.link_find(token=token, purposes=(LinkPurpose.BROWSER,), now=clock.now())


@transaction.atomic
def browser_use(*, token: str, clock: Clock = SYSTEM_CLOCK) -> User:
    """Whose browser it is from now on: nobody is signed in. Of two at once, one. Raises NotFound."""
    link = browser_find(token=token, clock=clock)
    links.link_use(link=link, now=clock.now())
    record_everywhere(link.user, "account.browser_known")
    return link.user
