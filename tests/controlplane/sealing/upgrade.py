"""A database as the release before has left it, and what the migrations make of it. Run by test_migrations.py.

Tables of the present release are taken back to those before, rows are written as that release wrote them, and then the migrations
run. Prints what is found, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.support.django_process import set_up

BEFORE = [
    ("accounts", "0010_keys_of_former_members"),
    ("alarms", "0002_budget_messages"),
    ("certificates", "0001_initial"),
    ("mail", "0001_initial"),
]
HOOK, CODE, COOKIE = (
    "https://hooks.example.com/services/T0/B0/a-password",
    "k3v9x2qa8z",
    "abcdefghijklmnopqrstuvwxyz012345",
)
PRIVATE = b"-----BEGIN PRIVATE KEY-----"


def main(directory: Path, database_url: str) -> None:
    set_up(str(directory), database_url, SLUICE_ZOOKEEPER_ACL="off")
    from datetime import UTC, datetime, timedelta

    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    from controlplane.accounts import services as accounts
    from controlplane.accounts.identity import second_factor
    from controlplane.accounts.identity.engine import SessionStore
    from controlplane.alarms.delivery import secrets
    from controlplane.alarms.models import Delivery, Receiver
    from controlplane.certificates import keys
    from controlplane.certificates.models import Authority, RouteCertificate
    from controlplane.clusters import services as clusters
    from controlplane.core import operations
    from controlplane.core.sealed import opened
    from controlplane.instances import services
    from controlplane.mail.models import Mail
    from controlplane.tenants import services as tenants
    from quota.contracts.sealing import sealed
    from tests.controlplane.conftest import WANTED

    from .conftest import everything

    operations.wake = lambda _ids: None
    clusters.cluster_ensure()
    user, _ = accounts.user_ensure(email="alice@example.com", password=None)
    organisation = tenants.organisation_create(name="alice's", owner=user)
    instance, _ = services.instance_create(organisation=organisation, actor="alice@example.com", **WANTED)
    for app, name in BEFORE:
        call_command("migrate", app, name, verbosity=0)
    old = MigrationExecutor(connection).loader.project_state(BEFORE).apps

    def put(model: str, **members: object) -> None:
        old.get_model(model)._base_manager.create(**members)

    def text(secret: bytes, purpose: str) -> bytes:
        return sealed(secret, secret=settings.SECRET_KEY, purpose=purpose, nonce=os.urandom(12))

    now = datetime.now(UTC)
    place = {"organisation_id": organisation.pk, "instance_id": instance.pk}
    webhook, mailbox = "rcv-000000000001", "rcv-000000000002"
    put(
        "alarms.Receiver", id=webhook, **place, name="pager", kind="webhook", address=HOOK, created_at=now,
        secret=text(b"k" * 32, f"sluice webhook {webhook}"), previous_secret=text(b"p" * 32, f"sluice webhook {webhook}"),
        previous_until=now + timedelta(hours=1),
    )  # fmt: skip
    put(
        "alarms.Receiver", id=mailbox, **place, name="ann", kind="email", address="ann@example.com", code=CODE, created_at=now
    )  # fmt: skip
    for key, receiver, address, kind, said in (
        ("1", webhook, HOOK, "test", "a test"),
        ("2", mailbox, "ann@example.com", "confirm", f"confirm:\n\n    {CODE}\n\nor not"),
    ):
        put(
            "alarms.Delivery", id=f"dlv-{key}", **place, receiver_id=receiver, address=address, kind=kind, next_attempt_at=now,
            document={"type": "receiver.confirm", "data": {"text": said}}, created_at=now,
        )  # fmt: skip
    put("accounts.SecondFactor", user_id=user.pk, secret=text(b"GEZDGNBVGY3TQOJQ", f"sluice second factor {user.pk}"))
    put(
        "accounts.Session", session_key=COOKIE, session_data=SessionStore().encode({"_auth_user_id": str(user.pk)}),
        expire_date=now + timedelta(days=1), user_id=user.pk, begun_at=now, seen_at=now,
    )  # fmt: skip
    ends = {"not_after": now + timedelta(days=90)}
    put(
        "certificates.Authority",
        **place,
        **ends,
        certificate="c",
        key=text(PRIVATE, f"sluice control plane {instance.pk}/"),
    )
    for route, key in (("r7", text(PRIVATE, f"sluice control plane {instance.pk}/r7")), ("r8", b"")):
        put("certificates.RouteCertificate", **place, **ends, route=route, key=key)
    link = json.dumps({"subject": "s", "body": "secret-link"}).encode()
    put(
        "mail.Mail",
        id="mail-1",
        address="ann@example.com",
        sealed=text(link, "sluice mail mail-1"),
        next_attempt_at=now,
        created_at=now,
    )
    before = everything()

    call_command("migrate", verbosity=0)
    is_signed_in = SessionStore(COOKIE).load().get("_auth_user_id") == str(user.pk)
    settings.SECRET_KEY = "it is asked for no more"
    rows = {row.pk: row for row in Receiver.objects.unscoped("a test")}
    reason = "a test"
    after = everything()
    lost = Exception("it is lost")
    found = {
        "webhook": [rows[webhook].address, rows[webhook].full_address, rows[webhook].is_confirmed],
        "signs": [key.decode() for key in secrets.keys_at(rows[webhook], now)],
        "mailbox": [rows[mailbox].full_address, secrets.code_of(rows[mailbox]), rows[mailbox].is_confirmed],
        "messages": [
            [row.address, row.document["data"]["text"]] for row in Delivery.objects.unscoped(reason).order_by("pk")
        ],
        "second factor": second_factor.secret_of(user),
        "session": is_signed_in,
        "authority": keys.opened(Authority.objects.unscoped(reason).get()).decode(),
        "routes": [keys.opened(row).decode() for row in RouteCertificate.objects.unscoped(reason).order_by("route")],
        "mail": json.loads(opened(Mail.objects.get(), "sealed", lost))["body"],
        "in clear before": [each in before for each in ("a-password", CODE, COOKIE)],
        "in clear after": [each in after for each in ("a-password", CODE, COOKIE)],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
