"""`manage.py migrate_with_copy`: migrations, after a copy of what they change. A step of `up`."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from controlplane.sealing import installed
from controlplane.stack.copying import copied


class Command(BaseCommand):
    """SQLite is copied to `backups/` of the stack's folder; PostgreSQL has tools of its own, which are named."""

    help = "Apply migrations; a SQLite database that some are for is copied first."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own shape; the keys are asked for below

    def handle(self, **options: Any) -> None:
        """Raises CommandError where there are no keys, or no copy could be made: then nothing is changed."""
        try:
            installed.demand()
        except ImproperlyConfigured as problem:
            raise CommandError(str(problem)) from None
        if self._is_due():
            self._copy()
        call_command("migrate", interactive=False, verbosity=options["verbosity"], stdout=self.stdout)

    def _is_due(self) -> bool:
        """Whether there is something to be changed, in a database that holds something."""
        executor = MigrationExecutor(connection)
        return bool(executor.loader.applied_migrations and executor.migration_plan(executor.loader.graph.leaf_nodes()))

    def _copy(self) -> None:
        if connection.vendor != "sqlite":
            self.stdout.write("This database is not copied: pg_dump makes a copy to which you can go back.")
            return
        database = Path(connection.settings_dict["NAME"])
        if not database.is_file():  # it is in memory
            return
        try:
            copy = copied(database, settings.ENVIRONMENT.stack_dir / "backups", datetime.now(UTC))
        except (OSError, sqlite3.Error) as error:
            raise CommandError(f"no copy of {database} could be made, and nothing was changed: {error}") from error
        self.stdout.write(f"The database as it was: {copy}")
