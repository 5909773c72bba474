"""`manage.py taxes`: what invoices are taxed with, for operators.

    manage.py taxes                                                            # all that were ever set
    manage.py taxes set VAT 6 --from 2027-01 --actor you@example.com           # of everybody
    manage.py taxes set VAT 0 --from 2027-01 --actor … --organisation org-…    # of one: exempt

A tax counts from the beginning of a month that has not begun. What was set for an organisation goes before what is set for
everybody.
"""

from __future__ import annotations

from argparse import ArgumentParser
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.accounts.selectors import operator_named
from controlplane.billing.pricing import documents
from controlplane.billing.selectors import tax_list
from controlplane.billing.services import tax_set
from controlplane.core.errors import SluiceError
from controlplane.tenants.models import Organisation


class Command(BaseCommand):
    """List them, or set one."""

    help = "what invoices are taxed with"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """See the module."""
        actions = parser.add_subparsers(dest="action")
        setting = actions.add_parser("set", help="from a month on that has not begun")
        setting.add_argument("name", help='as invoices call it, such as "VAT"')
        setting.add_argument("percent", help="such as 6 or 13.5; 0: exempt")
        setting.add_argument("--from", dest="month", required=True, help="the first month, such as 2027-01")
        setting.add_argument("--organisation", help="of this one alone, by its id; without it: of everybody")
        setting.add_argument("--actor", required=True, help="the operator who says so, for the audit trail: an email")

    def handle(self, *args: Any, action: str | None, **options: Any) -> None:
        """Raises CommandError with a sentence."""
        del args
        if action == "set":
            self._set(options)
            return
        rows = list(tax_list())
        for row in rows:
            whose = "everybody" if row.organisation is None else f"{row.organisation.name} ({row.organisation_id})"
            self.stdout.write(
                f"{whose}: {row.name} {(row.rate * 100).normalize():f} % from {row.month} on, by {row.actor}"
            )
        if not rows:
            self.stdout.write("no tax was set: invoices have none")

    def _set(self, options: dict[str, Any]) -> None:
        try:
            month, percent = documents.month_of(options["month"]), Decimal(options["percent"])
        except InvalidOperation as error:
            raise CommandError(f"percent: {options['percent']!r} is not a number") from error
        except ValueError as error:
            raise CommandError(f"--from {error}") from error
        organisation = None
        if options["organisation"]:
            organisation = Organisation.objects.filter(pk=options["organisation"]).first()
            if organisation is None:
                raise CommandError(f"no organisation {options['organisation']}")
        try:
            actor = operator_named(options["actor"]).email
            row = tax_set(organisation=organisation, month=month, name=options["name"], percent=percent, actor=actor)
        except SluiceError as error:
            raise CommandError(error.detail) from error
        self.stdout.write(str(row))
