"""`manage.py seal_webhook_secrets_anew`: after Django's secret key was replaced, before the old one is forgotten."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.alarms import upkeep


class Command(BaseCommand):
    """What the worker does every ten minutes, now."""

    help = "Seal the secrets of webhooks with the present secret key."

    def handle(self, **_options: Any) -> None:
        """Raises CommandError where some cannot be opened."""
        done, lost = upkeep.seal_anew()
        self.stdout.write(f"{done} secrets of webhooks were sealed with the present secret key.")
        if lost:
            raise CommandError(
                f"{lost} secrets cannot be opened with any secret key that is known; the log names them."
            )
