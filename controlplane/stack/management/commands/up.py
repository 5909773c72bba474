"""`manage.py up --port 20000 --clusters 1`: the whole stack on this machine, until ctrl-C."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from controlplane.stack.layout import DEFAULT_BASE
from controlplane.stack.run import run


class Command(BaseCommand):
    """Parses its options and calls `run`."""

    help = "Run ZooKeeper, Redis, brokers, masters, web server, worker and beat on this machine until ctrl-C."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own shape; migrate and web check

    def add_arguments(self, parser: ArgumentParser) -> None:
        """PORT and CLUSTERS of the stack, and a folder other than the usual one."""
        parser.add_argument("--port", type=int, default=DEFAULT_BASE, help="first of the 2,000 ports it uses")
        parser.add_argument("--clusters", type=int, default=1, help="physical clusters, up to three")
        parser.add_argument("--directory", type=Path, help="folder for data, logs and stack.json")

    def handle(self, **options: Any) -> None:
        sys.exit(run(options["port"], options["directory"], options["clusters"]))
