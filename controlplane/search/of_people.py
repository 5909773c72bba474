"""Members, invitations, and keys by their names and the part of them that is no secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.accounts.selectors import access_key_list, api_keys_of
from controlplane.search.hits import Hit, page, rest, together
from controlplane.search.matching import Wanted
from controlplane.search.sql import RANK, fitting
from controlplane.tenants.invitations import invitation_list
from controlplane.tenants.selectors import member_list

if TYPE_CHECKING:
    from controlplane.search.asking import Asker

REVOKED = "revoked"
MARK = "slc_"


def members(asker: Asker) -> list[Hit]:
    """By address and name."""
    org = asker.caller.organisation
    rows = fitting(member_list(organisation=org), asker.wanted, names=["user__email", "user__name"])
    found = rows.order_by(RANK, "user__email").values_list(
        "pk", "user__email", "user__name", "role", "custom_role__name"
    )
    shown = page("members", org.id)
    return [
        Hit("member", str(pk), email, together([name, own or role]), "", rest("members", str(pk)), shown)
        for pk, email, name, role, own in found[: asker.most + 1]
    ]


def invitations(asker: Asker) -> list[Hit]:
    """Those that are open, by address. The caller has asked whether they may be seen."""
    org = asker.caller.organisation
    rows = fitting(invitation_list(organisation=org), asker.wanted, names=["email"])
    found = rows.order_by(RANK, "email").values_list("pk", "email", "role", "custom_role__name")
    shown = page("members", org.id)
    return [
        Hit("invitation", pk, email, own or role, "", rest("invitations"), shown)
        for pk, email, role, own in found[: asker.most + 1]
    ]


def api_keys(asker: Asker) -> list[Hit]:
    """By name, id, and the beginning that lists show (`slc_` and eight letters)."""
    org = asker.caller.organisation
    wanted = Wanted.of(asker.wanted.whole.removeprefix(MARK).removesuffix("_…")) if asker.wanted.words else asker.wanted
    rows = fitting(api_keys_of(asker.caller), wanted, names=["name", "prefix", "id"])
    found = rows.order_by(RANK, "revoked_at", "name", "pk").values_list("pk", "name", "prefix", "revoked_at")
    shown = page("keys", org.id)
    return [
        Hit(
            "api_key",
            pk,
            name,
            together([f"{MARK}{prefix}_…", REVOKED if ended else ""]),
            "",
            rest("api-keys", pk),
            shown,
        )
        for pk, name, prefix, ended in found[: asker.most + 1]
    ]


def access_keys(asker: Asker) -> list[Hit]:
    """By name, id, and SecretId, which is no secret."""
    org = asker.caller.organisation
    rows = fitting(access_key_list(organisation=org), asker.wanted, names=["name", "secret_id", "id"])
    found = rows.order_by(RANK, "revoked_at", "name", "pk").values_list("pk", "name", "secret_id", "revoked_at")
    shown = page("keys", org.id)
    return [
        Hit("access_key", pk, name, together([secret_id, REVOKED if ended else ""]), "", rest("access-keys"), shown)
        for pk, name, secret_id, ended in found[: asker.most + 1]
    ]
