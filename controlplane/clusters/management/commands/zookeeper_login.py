"""`manage.py zookeeper_login operators`: what a party says to ZooKeeper, scheme `digest`."""

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from controlplane.env import EnvironmentProblem
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import document_given


class Command(BaseCommand):
    """Prints it, and nothing else."""

    help = "Print a party's login at ZooKeeper, user:password, or what a secrets file holds in place of the cluster's secret."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own shape

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The party."""
        parser.add_argument("party", choices=[party.value for party in Party])
        parser.add_argument("--file", action="store_true", help="the member `zookeeper` of a secrets file, as JSON")

    def handle(self, **options: Any) -> None:
        """Raises CommandError."""
        environment, party = settings.ENVIRONMENT, Party(options["party"])
        keys = environment.keys()
        if options["file"]:
            if not keys.secret:
                raise CommandError(f"{environment.secrets_file} does not have the cluster secret")
            self.stdout.write(json.dumps({"zookeeper": document_given((keys.secret, *keys.accepted), party)}, indent=2))
            return
        try:
            access = environment.zookeeper_access(party)
        except EnvironmentProblem as problem:
            raise CommandError(str(problem)) from problem
        said = access.login_of(party)
        if said is None:
            raise CommandError(f"{environment.secrets_file} has neither the cluster secret nor this login")
        self.stdout.write(said)
