"""`manage.py usage_fold`: fold days that are due, now and to the end; with what keeps the next one from it.

`--although-different-to 2026-11-18`: fold days up to this one as the database has them, although their raw records say something
else and cannot be put right (docs/runbooks/usage-differs.md).
"""

from __future__ import annotations

import math
from argparse import ArgumentParser
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand

from controlplane.metering import folding


class Command(BaseCommand):
    """Calls `folding.days_fold`."""

    help = "Fold days of usage that are over into instance-hours and topic-days, and delete rows that nobody needs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--although-different-to", type=date.fromisoformat, metavar="DAY")

    def handle(self, **options: Any) -> None:
        days = folding.days_fold(until_s=math.inf, although_different=options["although_different_to"])
        found = folding.fold_get()
        to = "nothing is folded" if found.folded_to is None else f"folded up to {found.folded_to:%Y-%m-%d}"
        kept = f", {found.kept} rows kept" if found.kept is not None else ""
        self.stdout.write(f"{days} days folded; {to}{kept}" + (f"; {found.reason}" if found.reason else ""))
