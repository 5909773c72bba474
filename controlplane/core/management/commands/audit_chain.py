"""`manage.py audit_chain`: for operators, all organisations at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.management import BaseCommand, CommandError

from controlplane.core import audit_sealing
from controlplane.core.models import AuditChain, AuditEntry

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from controlplane.core.audit_chain import Break


@dataclass(frozen=True, slots=True)
class _Tenant:
    """Whose chain it is: organisations stand above this app."""

    pk: str


class Command(BaseCommand):
    """Chains what waits, and follows every chain from its first entry on."""

    help = "Verify the chain of every organisation's audit trail; 1 if any entry is not as it was written."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """One organisation, or all."""
        parser.add_argument("--organisation", help="the id of this one alone")

    def handle(self, *args: Any, organisation: str | None, **options: Any) -> None:
        """A line for each chain. Raises CommandError where one is broken."""
        del args, options
        known = self._organisations()
        if organisation and organisation not in known:
            raise CommandError(f"there is no audit trail of {organisation}")
        ids = [organisation] if organisation else known
        audit_sealing.extend_all()
        broken = 0
        for each in ids:
            checked, found = self._followed(each)
            broken += found is not None
            said = f"{found.detail} ({found.code})" if found else "all as they were written"
            self.stdout.write(f"{each}: {checked} entries: {said}")
        if broken:
            raise CommandError(f"{broken} of {len(ids)} audit trails are not as they were written")

    def _organisations(self) -> list[str]:
        """Those of which there are entries, or ought to be."""
        reason = "operators look after every tenant's trail"
        found = (
            model.objects.unscoped(reason).values_list("organisation_id", flat=True)
            for model in (AuditEntry, AuditChain)
        )
        return sorted({organisation_id for rows in found for organisation_id in rows.distinct()})

    def _followed(self, organisation_id: str) -> tuple[int, Break | None]:
        """How many entries were computed again, and the first that does not fit."""
        tenant = _Tenant(organisation_id)
        found = audit_sealing.verify(organisation=tenant)
        checked = found.checked
        while found.following is not None:
            found = audit_sealing.verify(organisation=tenant, after=found.following, kept_hash=found.last.hash)
            checked += found.checked
        return checked, found.broken
