"""`manage.py sso_release org-8zk2m4x0q1ab --by opal@example.com --reason "their provider is gone, called back"`."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.accounts.selectors import operator_named
from controlplane.core.errors import SluiceError
from controlplane.sso import services
from controlplane.tenants.operators import organisation_any


class Command(BaseCommand):
    """For an organisation whose provider is gone, and whose owners do not get in: docs/runbooks/locked-out-by-sso.md."""

    help = "Require an organisation's single sign-on no more. Its owners are told, and it stands in its audit log."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The organisation, who decides it, and why."""
        parser.add_argument("organisation")
        parser.add_argument("--by", required=True, help="the operator who decides it, for the audit log: an email")
        parser.add_argument("--reason", required=True, help="how it was made sure that an owner asks for it")

    def handle(self, **options: Any) -> None:
        """Raises CommandError."""
        try:
            actor = operator_named(options["by"]).email
            organisation = organisation_any(options["organisation"])
            services.provider_release(organisation=organisation, actor=actor, reason=options["reason"])
        except SluiceError as error:
            raise CommandError(error.detail) from error
        self.stdout.write(f"Members of {organisation.name} sign in by their passwords again, too.")
