"""`manage.py words`: catalogues beside what the console shows, and what is missing in them. `--check` changes nothing."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.console import catalogue


class Command(BaseCommand):
    """Writes controlplane/locale anew from templates and code; fails while a translation is missing or does not fit."""

    help = "Brings the catalogues of translations up to date, and says what is missing in them."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """One option."""
        parser.add_argument("--check", action="store_true", help="change nothing")

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        """Each language in turn."""
        del args, options
        faults = 0
        for path in catalogue.catalogues():
            found = catalogue.read(path)
            lines = [f"no longer shown: {text}" for text in catalogue.superfluous(found)] if check else []
            if not check:
                found = catalogue.renewed(found)
                catalogue.write(path, found)
            lines += [f"not translated: {text}" for text in catalogue.missing(found)]
            lines += [f"other values or markup than the text: {text}" for text in catalogue.unlike(found)]
            faults += len(lines)
            self.stdout.write("\n".join([f"{found.locale}: {len(found)} texts", *lines]))
        if faults:
            raise CommandError(f"{faults} to be looked at in controlplane/locale")
