"""`manage.py lake_runner`: runs the loads that tenants have set up, until SIGTERM."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.loads import installed, runner


class Command(BaseCommand):
    """The process."""

    help = "Runs loads of topics into a lake: what is due by its schedule, and what somebody has asked for."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Until SIGTERM or SIGINT."""
        absent = installed.absence()
        if absent:
            raise CommandError(absent)
        logging.basicConfig(
            level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr
        )
        over = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: over.set())
        runner.work(runner.Runner(submit=runner.submit_words()), over)
