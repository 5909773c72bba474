"""`manage.py invoices`: for operators, where there is no browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management import BaseCommand, CommandError

from controlplane.accounts.selectors import operator_named
from controlplane.billing import closing, services
from controlplane.billing.models import CreditNote, Invoice
from controlplane.billing.pricing import documents
from controlplane.billing.verification import organisation_verify
from controlplane.billing.waiting import waiting
from controlplane.clusters.services import cluster_list
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import SluiceError
from controlplane.tenants.models import Organisation

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Waiting months, waivers, closing, and the verification of every chain."""

    help = "Invoices: what waits, waiving that, closing now, verifying all."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """One word says what to do."""
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("waiting", help="which months wait, and why")
        actions.add_parser("close", help="what the closer does every ten minutes")
        actions.add_parser(
            "verify",
            help="compute every invoice once more and follow every chain, of credit notes too; 1 if any is damaged",
        )
        waive = actions.add_parser("waive", help="let invoices of a month no longer wait for metering")
        waive.add_argument("month", help="such as 2026-05")
        waive.add_argument("--instance", help="this instance's only")
        waive.add_argument("--cluster", default="", help="only of instances on this cluster")
        waive.add_argument("--actor", required=True, help="the operator who says so, for the audit trail: an email")
        waive.add_argument("--reason", required=True, help="why, for the audit trail")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        """Raises CommandError with a sentence."""
        del args
        getattr(self, f"_{action}")(options)

    def _waiting(self, options: dict[str, Any]) -> None:
        del options
        several = len(cluster_list()) > 1
        found = waiting(SYSTEM_CLOCK.now())
        if not found:
            self.stdout.write("no invoice waits")
        for each in found:
            of_cluster = f" on cluster {each.cluster}" if several else ""
            self.stdout.write(f"{each.month}{of_cluster}: {each.invoices} wait: {each.why}")
            for one in each.brokers:
                start = "the beginning" if one.start is None else f"{one.start:%Y-%m-%d %H:%M}"
                boots = f", boots {', '.join(one.boots)}" if one.boots else ""
                self.stdout.write(f"  broker {one.broker}: hours from {start} to {one.end:%Y-%m-%d %H:%M}{boots}")

    def _close(self, options: dict[str, Any]) -> None:
        del options
        self.stdout.write(_count(closing.invoices_close(), "invoice"))

    def _waive(self, options: dict[str, Any]) -> None:
        try:
            month = documents.month_of(options["month"])
        except ValueError as error:
            raise CommandError(f"month {error}") from error
        try:
            waiver = services.metering_waive(
                month=month,
                instance_id=options["instance"],
                cluster=options["cluster"],
                actor=operator_named(options["actor"]).email,
                reason=options["reason"],
            )
        except SluiceError as error:
            raise CommandError(error.detail) from error
        self.stdout.write(str(waiver))

    def _verify(self, options: dict[str, Any]) -> None:
        del options
        invoices = Invoice.objects.unscoped("operators look after every tenant's bills")
        organisations = Organisation.objects.filter(pk__in=invoices.values("organisation_id")).order_by("pk")
        differences = [
            each for organisation in organisations for each in organisation_verify(organisation=organisation)
        ]
        for each in differences:
            line = f" line {each.line}" if each.line else ""
            note = f" {each.credit_note}" if each.credit_note else ""
            self.stdout.write(f"{each.invoice}{line}{note}: {each.detail}")
        notes = CreditNote.objects.unscoped("operators look after every tenant's bills").count()
        and_notes = f" and {_count(notes, 'credit note')}" if notes else ""
        said = f"{_count(invoices.count(), 'invoice')}{and_notes} of {_count(len(organisations), 'organisation')}"
        if differences:
            raise CommandError(f"{said}: {_count(len(differences), 'difference')}")
        self.stdout.write(f"{said}: all as they were sealed")


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
