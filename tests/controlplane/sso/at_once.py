"""A control plane of its own, on a real database: many join by one invitation, and a key is rotated while a connection ends.

Run by test_at_once.py. Prints what each came to, and what there is then, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from datetime import timedelta
from pathlib import Path

from tests.support.django_process import set_up

WORKERS = 4
EMAIL = "dora@example.com"
WITHIN_S = 2.0
"""So long the connection is about to end: a rotation that does not wait for it is over by then."""


def main(directory: Path, database_url: str) -> None:
    set_up(
        str(directory),
        database_url,
        SLUICE_ZOOKEEPER_ACL="off",  # there is none
        SLUICE_SMTP="127.0.0.1:9",  # nothing is sent here
        SLUICE_EMAIL_FROM="service@sluice.example.com",
        SLUICE_CONSOLE_URL="https://sluice.example.com",
    )
    from django.db import connection, transaction

    from controlplane.accounts import services as accounts
    from controlplane.accounts.models import ApiKey, User
    from controlplane.core.clock import SYSTEM_CLOCK
    from controlplane.core.errors import SluiceError
    from controlplane.sso import services
    from controlplane.sso.models import SsoLink
    from controlplane.sso.oidc import Identity
    from controlplane.tenants import invitations
    from controlplane.tenants import services as tenants
    from controlplane.tenants.models import Membership, Role
    from tests.controlplane.sso.rows import provider_row

    olga, _ = accounts.user_ensure(email="olga@example.com", password=None)
    organisation = tenants.organisation_create(name="Quay", owner=olga)
    provider = provider_row(organisation)
    provider.is_on = True
    provider.save()
    invitation, _ = invitations.invitation_create(
        organisation=organisation, inviter=olga, email=EMAIL, role=Role.MEMBER, is_mailed=True
    )

    def told(call) -> str:
        """Empty where it went well."""
        try:
            call()
        except SluiceError as error:
            return error.code
        finally:
            connection.close()
        return ""

    start, joined = threading.Barrier(WORKERS), []

    def join(number: int) -> None:
        begun = services.Begun(organisation.pk, provider.issuer, provider.client_id, "s", "n", "v", invitation.pk)
        start.wait()
        identity = Identity(f"dora-{number}", EMAIL)
        joined.append(told(lambda: services.invited_join(asked=provider, begun=begun, identity=identity)))

    run([threading.Thread(target=join, args=(number,)) for number in range(WORKERS)])
    people = User.objects.filter(email=EMAIL).count()
    members = Membership.objects.filter(user__email=EMAIL).count()
    links = SsoLink.objects.for_organisation(organisation).count()

    dora = User.objects.get(email=EMAIL)
    until = SYSTEM_CLOCK.now() + timedelta(days=30)
    whose = {"organisation": organisation, "user": dora}
    made, _ = accounts.api_key_create(**whose, name="made by sso", sso_until=until)
    own, _ = accounts.api_key_create(**whose, name="own")
    ending, asked, rotated = threading.Event(), threading.Event(), []

    def disconnect() -> None:
        with transaction.atomic():
            services.member_disconnect(**whose)
            ending.set()
            asked.wait(WITHIN_S)
        connection.close()

    def rotate() -> None:
        ending.wait()
        rotated.append(told(lambda: accounts.api_key_rotate(**whose, key_id=own.pk, overlap=timedelta(0), by=made)))
        asked.set()

    run([threading.Thread(target=disconnect), threading.Thread(target=rotate)])
    standing = ApiKey.objects.for_organisation(organisation).get(pk=own.pk)
    print(
        json.dumps(
            {
                "joined": sorted(joined),
                "people": people,
                "members": members,
                "links": links,
                "rotated": rotated,
                "has_another_secret": standing.digest != own.digest,
            }
        )
    )


def run(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
