"""`manage.py demo_tenants --port 20000`: admin and demo tenants of a stack whose web server answers. A step of `up`."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from controlplane.accounts import services as accounts
from controlplane.accounts.joining import DEMO_KEY_NAME, demo_tenant_ensure
from controlplane.accounts.models import ApiKey
from controlplane.stack import demo
from controlplane.stack.config import ensure_secrets, write_private_json
from controlplane.stack.layout import DEFAULT_BASE, Layout
from controlplane.stack.report import ADMIN_EMAIL
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Role


class Command(BaseCommand):
    """Calls services for accounts, then the API for the rest."""

    help = "Make the admin and the demo tenants, or find them."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own shape

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=DEFAULT_BASE, help="base port of the stack")

    def handle(self, **options: Any) -> None:
        """Make or find everything, and write demo.json."""
        layout = Layout.of(options["port"], settings.ENVIRONMENT.stack_dir)
        secrets = ensure_secrets(layout.secrets_file)
        admin, _ = accounts.admin_ensure(email=ADMIN_EMAIL, password=secrets["admin_password"])
        for tenant in demo.TENANTS:
            key = _new_key(tenant.name, known=tenant.name in secrets["api_keys"])
            if key:
                secrets["api_keys"][tenant.name] = key
                write_private_json(layout.secrets_file, secrets)
            # Whoever tries the stack signs in to the console as admin, and finds the demo tenants in its switcher.
            organisation, _ = demo_tenant_ensure(name=tenant.name)
            tenants.membership_set(organisation=organisation, user=admin, role=Role.OWNER)
        try:
            found = demo.ensure_all(layout, secrets["api_keys"])
        except demo.DemoError as error:
            raise CommandError(str(error)) from error
        write_private_json(layout.demo_file, {"tenants": found})


def _new_key(name: str, *, known: bool) -> str | None:
    """The text of a key made now. One whose text an interrupted run lost is revoked and made again."""
    organisation, key = demo_tenant_ensure(name=name)
    if key or known:
        return key
    for lost in ApiKey.objects.for_organisation(organisation).filter(name=DEMO_KEY_NAME, revoked_at=None):
        accounts.api_key_revoke(organisation=organisation, actor="make up", key_id=lost.id)
    return demo_tenant_ensure(name=name)[1]
