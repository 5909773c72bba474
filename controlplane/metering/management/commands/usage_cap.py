"""`manage.py usage_cap ins-k3v9x2qa 5f0c… orders --produced-bytes 81234567 --by opal@example.com --reason "…"`.

Usage that cannot be true. The page of usage records shows boots and counters; the cap is the last one that can be true.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.accounts.selectors import operator_named
from controlplane.core.errors import SluiceError
from controlplane.metering import folding, services
from quota.contracts.usage import COUNTERS


class Command(BaseCommand):
    """Calls `services.usage_cap`."""

    help = "Believe counters of a topic and a broker's boot up to some value only, and lower what is above it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("instance")
        parser.add_argument("boot", help="as in usage records, with its generation")
        parser.add_argument("topic", help="as the tenant calls it")
        for name in COUNTERS:
            parser.add_argument(f"--{name.replace('_', '-')}", type=int, help="since the boot")
        parser.add_argument("--reason", required=True)
        parser.add_argument("--by", required=True, help="the operator who says so: an email")

    def handle(self, **options: Any) -> None:
        caps = {name: options[name] for name in COUNTERS if options[name] is not None}
        try:
            lowered = services.usage_cap(
                instance_id=options["instance"], boot=options["boot"], topic=options["topic"], caps=caps,
                reason=options["reason"], actor=operator_named(options["by"]).email,
            )  # fmt: skip
        except SluiceError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{lowered} rows lowered; what comes for them later is capped")
        if folded_to := folding.fold_get().folded_to:
            self.stdout.write(f"hours before {folded_to:%Y-%m-%d} follow when the job reconcile has run again")
