"""`manage.py second_factor_off ann@example.com --by opal@example.com --reason "showed her passport"`."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.accounts.identity import second_factor, sessions
from controlplane.accounts.models import User
from controlplane.accounts.selectors import operator_named
from controlplane.core.errors import SluiceError


class Command(BaseCommand):
    """For somebody who has lost phone and recovery codes: docs/runbooks/lost-second-factor.md."""

    help = "Switch off the second factor of an account. Its sessions end, and its organisations have it in their audit logs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The account, who decides it, and why."""
        parser.add_argument("email")
        parser.add_argument("--by", required=True, help="the operator who decides it, for the audit log: an email")
        parser.add_argument("--reason", required=True, help="how it was made sure that it is the person")

    def handle(self, **options: Any) -> None:
        """Raises CommandError."""
        user = User.objects.filter(email=options["email"].strip().lower()).first()
        if user is None:
            raise CommandError(f"there is no account {options['email']}")
        try:
            actor = operator_named(options["by"]).email
            second_factor.second_factor_remove(user=user, actor=actor, reason=options["reason"])
        except SluiceError as error:
            raise CommandError(error.detail) from error
        sessions.sessions_end(user=user, but=None)
        self.stdout.write(f"{user.email} signs in by the password alone now. All their sessions have ended.")
