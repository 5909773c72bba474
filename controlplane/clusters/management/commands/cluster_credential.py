"""`manage.py cluster_credential operator`: what an identity says to brokers and masters."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from quota.contracts.identity import identity_of


class Command(BaseCommand):
    """Prints it, and nothing else."""

    help = "Print the credential of an identity of the cluster: broker-N, master-N, controlplane, metering, operator, monitoring."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own shape

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The identity."""
        parser.add_argument("identity")

    def handle(self, **options: Any) -> None:
        """Raises CommandError."""
        identity = identity_of(options["identity"])
        if identity is None:
            raise CommandError(f"{options['identity']} is no identity")
        credential = settings.ENVIRONMENT.keys().own(identity)
        if credential is None:
            raise CommandError(
                f"{settings.ENVIRONMENT.secrets_file} has neither the cluster secret nor this credential"
            )
        self.stdout.write(credential)
