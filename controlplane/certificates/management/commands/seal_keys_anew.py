"""`manage.py seal_keys_anew`: after the cluster secret or Django's secret key was replaced, before the old one is forgotten."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.certificates import services


class Command(BaseCommand):
    """What the worker does every hour, now."""

    help = "Seal the private keys of certificates with the present secrets, in the database and for brokers."

    def handle(self, **_options: Any) -> None:
        """Raises CommandError where some cannot be opened."""
        done, lost = services.seal_anew()
        services.renew_due()  # writes for brokers what the cluster's present secret does not open
        self.stdout.write(f"{done} private keys in the database were sealed with the present secret key.")
        if lost:
            raise CommandError(
                f"{lost} private keys cannot be opened with any secret key that is known; the log names them."
            )
