"""`manage.py seal_keys_anew`: after the cluster secret was replaced, before brokers forget the old one."""

from typing import Any

from django.core.management.base import BaseCommand

from controlplane.certificates import services


class Command(BaseCommand):
    """What the worker does every hour, now."""

    help = "Seal the private keys of routes for brokers with the present secret of the cluster."

    def handle(self, **_options: Any) -> None:
        services.renew_due()  # writes what the present secret does not open
        self.stdout.write("What brokers have of private keys is sealed with the present secret of the cluster.")
