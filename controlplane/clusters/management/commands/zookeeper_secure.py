"""`manage.py zookeeper_secure`: gives every node in ZooKeeper the ACL of the table, and says what it met."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from controlplane.clusters import zookeeper
from controlplane.core.errors import ClusterUnavailable
from controlplane.env import EnvironmentProblem
from quota.contracts.zookeeper import ROWS, Party
from quota.zookeeper.securing import Report, Wanted, walk

if TYPE_CHECKING:
    from quota.contracts.zookeeper_login import Access

_SAID_EVERY = 2_000
_NAMED = 20


class Command(BaseCommand):
    """May be interrupted, and run again: it goes on where it was."""

    help = (
        "Give every node of the cluster in ZooKeeper the ACL of the table. With --check nothing is changed, and the status "
        "is 1 where a node has another ACL."
    )
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own shape

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to do, and where."""
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--check", dest="wanted", action="store_const", const=Wanted.LOOKED_AT, default=Wanted.CLOSED)
        what.add_argument(
            "--open",
            dest="wanted",
            action="store_const",
            const=Wanted.OPEN,
            help="every node to everybody: the way back",
        )
        parser.add_argument("--hosts", help="of another cluster than ZOOKEEPER_HOSTS, with its chroot")

    def handle(self, **options: Any) -> None:
        """Raises CommandError."""
        self._said = 0
        wanted = options["wanted"]
        try:
            access = _operators()
            with zookeeper.operators_client(options["hosts"] or settings.ENVIRONMENT.zookeeper_hosts, access) as client:
                report = walk(client, wanted, self._progress)
        except (EnvironmentProblem, ClusterUnavailable) as problem:
            raise CommandError(str(problem)) from problem
        self._print(report, wanted)
        if report.refused or (wanted is Wanted.LOOKED_AT and report.different):
            raise SystemExit(1)

    def _progress(self, report: Report) -> None:
        if report.looked_at >= self._said + _SAID_EVERY:
            self._said = report.looked_at
            self.stderr.write(f"{report.looked_at:,} nodes, {report.differing:,} of them differed")

    def _print(self, report: Report, wanted: Wanted) -> None:
        changed = "not so" if wanted is Wanted.LOOKED_AT else "changed"
        self.stdout.write(f"{'nodes':>10} {changed:>10}  path")
        for row in ROWS:
            if report.nodes[row.pattern]:
                self.stdout.write(
                    f"{report.nodes[row.pattern]:>10,} {report.different[row.pattern]:>10,}  {row.pattern}"
                )
        self.stdout.write(f"{report.looked_at:>10,} {report.differing:>10,}  all")
        if wanted is Wanted.LOOKED_AT:
            self._list("their ACL is not the table's", report.examples)
        self._list("left as they are, no row of the table is about them", report.unlisted)
        self._list("ZooKeeper refuses: their ACL knows neither of our secrets", report.refused)
        if report.shared:
            self._list(
                "others share the root, which is left as it is: give the cluster a chroot of its own", report.shared
            )

    def _list(self, what: str, paths: list[str]) -> None:
        if paths:
            more = len(paths) - _NAMED
            named = ", ".join(paths[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
            self.stdout.write(f"{what}: {named}")


def _operators() -> Access:
    """Closed whatever the setting says: what this makes, and compares with, is the table's."""
    access = settings.ENVIRONMENT.zookeeper_access(Party.OPERATORS)
    if access.login_of(Party.OPERATORS) is None:
        raise CommandError(f"{settings.ENVIRONMENT.secrets_file} does not have the cluster secret")
    return replace(access, closed=True)
