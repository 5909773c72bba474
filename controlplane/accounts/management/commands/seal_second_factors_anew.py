"""`manage.py seal_second_factors_anew`: after Django's secret key was replaced, before the old one is forgotten."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.accounts.identity import second_factor


class Command(BaseCommand):
    """What the worker does every ten minutes, now."""

    help = "Seal the secrets of second factors with the present secret key."

    def handle(self, **_options: Any) -> None:
        """Raises CommandError where some cannot be opened."""
        done, lost = second_factor.secrets_seal_anew()
        self.stdout.write(f"{done} secrets of second factors were sealed with the present secret key.")
        if lost:
            raise CommandError(f"{lost} secrets cannot be opened with any secret key that is known.")
