"""Mails about an instance to the owners of its organisation, in the transaction of what they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.accounts.identity.links import address_of
from controlplane.accounts.owners import owners_write
from controlplane.instances import letters
from controlplane.instances.models import SpecChange, SpecChangeKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from controlplane.instances.models import Instance
    from controlplane.mail.letter import Letter


def owners_tell(instance: Instance, compose: Callable[[letters.About], Letter], at: datetime) -> None:
    """One mail to each owner: what `compose` makes of what may be said of the instance."""
    link = address_of("console:instance", instance.organisation_id, instance.id)

    def composed(is_known: bool) -> Letter:
        return compose(letters.About(instance.id, instance.name if is_known else "", link))

    owners_write(organisation=instance.organisation, compose=composed, at=at)


def destroyed_tell(instance: Instance, at: datetime) -> None:
    """That it is gone; what never was open held nothing that anybody would miss."""
    rows = SpecChange.objects.unscoped("the operation names its target")
    if rows.filter(instance=instance, kind=SpecChangeKind.OPENED).exists():
        owners_tell(instance, lambda about: letters.destroyed(about, at=at), at)
