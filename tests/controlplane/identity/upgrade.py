"""A database as it was before passkeys, service accounts and roles, with people in it; and what the migrations make of it.

Run by test_upgrade.py. Tables are made as that release had them, none is taken back; rows are written by its models. Prints what
is found afterwards, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.support.django_process import set_up

BEFORE = [("accounts", "0012_sign_ups"), ("tenants", "0004_second_factor"), ("idempotency", "0001_initial")]
SSO_BEFORE = [("accounts", "0015_custom_roles"), ("tenants", "0005_custom_roles"), ("sso", "0001_initial")]
APP, COOKIE, PAPER = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", "abcdefghijklmnopqrstuvwxyz012345", "abcdabcdabcdabcd"
INSTALLATION_KEY = "k" * 40


def main(directory: Path, database_url: str) -> None:
    (directory / "secrets.json").write_text(json.dumps({"access_key_secret": INSTALLATION_KEY}))
    set_up(str(directory), database_url, makes_tables=False, SLUICE_ZOOKEEPER_ACL="off")
    import random
    from datetime import UTC, datetime, timedelta

    import pyotp
    from django.core.management import call_command
    from django.db import IntegrityError, connection, transaction
    from django.db.migrations.executor import MigrationExecutor

    from controlplane.accounts import access_keys, keys, service_accounts
    from controlplane.accounts import services as accounts
    from controlplane.accounts.identity import passkeys, second_factor
    from controlplane.accounts.identity.engine import SessionStore, stored_key
    from controlplane.accounts.models import ApiKey, Passkey, RecoveryCode, SecondFactor, User
    from controlplane.accounts.selectors import access_key_get, caller_of_key
    from controlplane.core.errors import SluiceError
    from controlplane.core.sealed import sealed
    from controlplane.sso.models import SsoProvider
    from controlplane.sso.selectors import owners_without
    from controlplane.tenants import invitations
    from controlplane.tenants.models import Membership, Organisation

    def models_at(state: list[tuple[str, str]]):  # type: ignore[no-untyped-def]
        executor = MigrationExecutor(connection)
        executor.migrate(state)
        apps = executor.loader.project_state(state).apps
        return lambda model, **members: apps.get_model(model)._base_manager.create(**members)

    now, source = datetime.now(UTC), random.SystemRandom()
    put = models_at(BEFORE)
    for pk, name in enumerate(("alice", "bob", "charlie"), start=1):
        put("accounts.User", id=pk, email=f"{name}@example.com", password="!", created_at=now, is_active=name != "charlie",
            second_factor_at=now - timedelta(days=9) if name == "alice" else None)  # fmt: skip
    for key, name in (("org-000000000001", "Mill"), ("org-000000000002", "Harbour")):
        put("tenants.Organisation", id=key, name=name, created_at=now)
        put("tenants.Membership", organisation_id=key, user_id=1, role="owner")
    put("tenants.Membership", organisation_id="org-000000000001", user_id=2, role="member")
    put("tenants.Membership", organisation_id="org-000000000001", user_id=3, role="owner")
    place = {"organisation_id": "org-000000000001", "user_id": 2, "created_at": now}
    texts = {}
    for number, (name, members) in enumerate(
        (
            ("whole", {}),
            ("limited", {"scopes": ["topics"], "instances": ["ins-aaaaaaaa"], "addresses": ["10.0.0.0/8"]}),
            ("expired", {"expires_at": now - timedelta(days=1)}),
            ("revoked", {"revoked_at": now}),
            ("rotated", {"previous_until": now + timedelta(days=1)}),
        )
    ):
        new = keys.generate(source)
        texts[name] = new.text
        if name == "rotated":
            earlier = keys.generate(source, new.prefix)
            members["previous_digest"], texts["earlier"] = earlier.digest, earlier.text
        put(
            "accounts.ApiKey",
            id=f"key-00000000000{number}",
            name=name,
            prefix=new.prefix,
            digest=new.digest,
            **place,
            **members,
        )
    secret_id = access_keys.secret_id(source)
    put("accounts.AccessKey", id="key-00000000000a", name="pair", secret_id=secret_id,
        made_with=access_keys.fingerprint(INSTALLATION_KEY), **place)  # fmt: skip
    put("accounts.SecondFactor", user_id=1, secret=sealed(SecondFactor, "secret", APP.encode(), user_id=1), last_step=1)
    for each in (PAPER, "efghefghefghefgh"):
        put("accounts.RecoveryCode", user_id=1, digest=second_factor._digest(each))
    put("accounts.Session", session_key=stored_key(COOKIE), session_data=SessionStore().encode({"_auth_user_id": "2"}),
        expire_date=now + timedelta(days=1), user_id=2, begun_at=now, seen_at=now)  # fmt: skip
    put("tenants.Invitation", id="inv-000000000001", organisation_id="org-000000000001", email="dora@example.com", role="viewer",
        digest=invitations._digest("a-token"), invited_by_id=1, created_at=now, expires_at=now + timedelta(days=7))  # fmt: skip

    put = models_at(SSO_BEFORE)
    for key, required in (("org-000000000001", True), ("org-000000000002", False)):
        secret = sealed(SsoProvider, "client_secret", b"secret", organisation_id=key)
        put("sso.SsoProvider", organisation_id=key, issuer="https://login.example.com", client_id="c", client_secret=secret,
            label="Corp", is_on=True, is_required=required, created_at=now)  # fmt: skip
    call_command("migrate", verbosity=0)

    def answer(text: str) -> list[object]:
        try:
            caller = caller_of_key(text)
        except SluiceError as error:
            return [error.code]
        return [caller.actor, caller.role, caller.limits.is_none, caller.is_by_sso, caller.may_change]

    alice, bob = User.objects.get(pk=1), User.objects.get(pk=2)
    mill = Organisation.objects.get(pk="org-000000000001")
    reason = "a test"

    def refuses(**members: object) -> bool:
        try:
            with transaction.atomic():
                ApiKey(id="key-00000000000b", organisation=mill, name="x", prefix="x" * 8, digest="x", created_at=now,
                       **members).save(force_insert=True)  # fmt: skip
        except IntegrityError:
            return True
        return False

    signer = access_key_get(secret_id)
    account = service_accounts.service_account_create(organisation=mill, by=alice, name="ci", role="member")
    made = service_accounts.service_account_key_create(
        organisation=mill, by=alice, service_account_id=account.id, name="k"
    )[1]
    found = {
        "keys": {name: answer(text) for name, text in texts.items()},
        "shown": sorted((key.name, key.state_at(now), key.sso_until) for key in ApiKey.objects.unscoped(reason)),
        "signs": signer is not None
        and [signer.caller.actor, signer.secret == access_keys.secret_of(INSTALLATION_KEY, secret_id)],
        "session": SessionStore(COOKIE).load().get("_auth_user_id"),
        "factors": [each.second_factor_at is not None for each in (alice, bob)],
        "app": second_factor.app_is_on(alice),
        "left": second_factor.recovery_left(user=alice),
        "people": sorted(User.objects.values_list("email", "is_active")),
        "members": sorted(Membership.objects.values_list("organisation_id", "user__email", "role", "custom_role")),
        "invited": invitations.invitation_find(token="a-token").email,
        "nobody's key": [refuses(), refuses(user=bob, service_account=account)],
        "service account": answer(made),
        "required": sorted(
            (row.pk, row.required_at is not None, owners_without(row)) for row in SsoProvider.objects.unscoped(reason)
        ),
    }
    second_factor.code_check(user=alice, code=pyotp.TOTP(APP).now())
    second_factor.code_check(user=alice, code=PAPER)
    found["used"] = RecoveryCode.objects.filter(user=alice, used_at=None).count()
    Passkey(
        id="pky-000000000001", user=bob, name="phone", credential_id="c", credential="c", handle="h", created_at=now
    ).save()
    with transaction.atomic():
        found["codes for a passkey"] = len(second_factor.factor_added(user=bob, now=now))
    found["a passkey"] = [passkeys.is_only_factor(user=bob), User.objects.get(pk=2).second_factor_at is not None]
    accounts.keys_revoke(user=bob)
    found["revoked"] = ApiKey.objects.unscoped(reason).filter(user=bob, revoked_at=None).count()
    print(json.dumps(found, default=str))


if __name__ == "__main__":
    os.environ["SLUICE_CONSOLE_URL"] = "https://sluice.example.com"
    main(Path(sys.argv[1]), sys.argv[2])
