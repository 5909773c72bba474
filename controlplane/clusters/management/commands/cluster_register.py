"""`manage.py cluster_register NAME HOSTS`: one more physical cluster, where there is no browser. A step of `up`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.clusters.models import DEFAULT_CAPACITY, PhysicalCluster
from controlplane.clusters.registering import cluster_register, hosts_problem, hosts_sorted
from controlplane.core.audit import SYSTEM
from controlplane.core.errors import SluiceError


class Command(BaseCommand):
    """Calls the service."""

    help = "Register a physical cluster: instances are placed on it from then on."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own shape

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What the service takes, and what to do where it is registered already."""
        parser.add_argument("name", help="small letters, digits and dashes; it stays")
        parser.add_argument("hosts", help="of its ZooKeeper: host:port,host:port with an optional /chroot")
        parser.add_argument(
            "--zone", action="append", default=[], dest="zones", help="where its brokers are; again for more"
        )
        parser.add_argument("--capacity", type=int, default=DEFAULT_CAPACITY, help="instances at most")
        parser.add_argument("--actor", default=SYSTEM, help="who says so, for the record: an email")
        parser.add_argument("--reason", default="", help="why, for the record")
        parser.add_argument("--if-absent", action="store_true", help="nothing, where this very cluster is registered")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError with a sentence."""
        del args
        name, hosts = options["name"], options["hosts"]
        known = PhysicalCluster.objects.filter(name=name).first()
        if options["if_absent"] and known is not None:
            if hosts_problem(hosts) is None and known.zookeeper_hosts == hosts_sorted(hosts):
                return
            raise CommandError(f"cluster {name} is registered with another ZooKeeper: {known.zookeeper_hosts}")
        try:
            made = cluster_register(
                actor=options["actor"],
                name=name,
                zookeeper_hosts=hosts,
                zones=options["zones"],
                capacity=options["capacity"],
                reason=options["reason"],
            )
        except SluiceError as error:
            raise CommandError(error.detail) from error
        self.stdout.write(f"registered: {made.name} at {made.zookeeper_hosts}")
