"""Which address of REST a page of the console stands for: what opens both is one table, accounts/scopes.py. Pure.

Most addresses of the console are called as those of REST are, and need no line here. A page of a tenant that is in no line and
has no address of REST by its name is closed to roles of an organisation's own, as it is to keys with scopes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from controlplane.accounts.scopes import PREFIX, part_of, scope_of
from controlplane.core.errors import Forbidden

if TYPE_CHECKING:
    from controlplane.accounts.scopes import Limits

ORGANISATION = "<id:organisation_id>/"
_I = "instances/<id:instance_id>"
_T = f"{_I}/topics/<str:topic>"
STANDS_FOR = (
    ("instances/new", "instances"),
    ("instances/estimate", "instances"),
    ("palette", "instances"),  # what it finds is left out where the role does not reach it
    (f"{_I}/timeline", f"{_I}/events"),
    (f"{_I}/new-alarm", f"{_I}/alarms"),
    (f"{_I}/access", f"{_I}/whitelist"),
    (f"{_I}/user-password", f"{_I}/users"),
    (f"{_I}/user-deletion", f"{_I}/users"),
    (f"{_I}/new-acl", f"{_I}/acls"),
    (f"{_I}/new-acls", f"{_I}/acls"),
    (f"{_I}/acl-rules", f"{_I}/acls"),
    (f"{_I}/acl-deletion", f"{_I}/acls"),
    (f"{_I}/bill/topics", f"{_I}/cost/topics"),
    (f"{_I}/bill/users", f"{_I}/cost/users"),
    (f"{_I}/new-route", f"{_I}/routes"),
    (f"{_I}/ca.pem", f"{_I}/ca"),
    (f"{_I}/new-topic", f"{_I}/topics"),
    (f"{_T}/talkers", f"{_I}/talkers"),
    (f"{_T}/access", f"{_T}/whitelist"),
    (f"{_I}/group-new", f"{_I}/groups"),
    (f"{_I}/group-offsets", f"{_I}/groups"),
    (f"{_I}/group-topics", f"{_I}/groups"),
    (f"{_I}/group-deletion", f"{_I}/groups"),
    (f"{_I}/group-members", f"{_I}/groups"),
    (f"{_I}/new-lake-load", f"{_I}/lake-loads"),
    (f"{_I}/transaction-end", f"{_I}/transactions"),
    ("bills", "invoices"),
    ("new-budget", "budgets"),
    ("keys", "api-keys"),
    ("settings", "organisations/<id:organisation_id>"),
    ("deletion", "organisations/<id:organisation_id>/deletion"),
)
"""Beginnings of addresses, without the organisation: the first that fits decides."""
DELETING = {f"{_I}/delete": _I, f"{_T}/delete": _T}
"""Pages that do what DELETE at an address does whose POST or PATCH takes another part of the scope."""
CHANGES_STAND_FOR = ((f"{_I}/acl-rules", _I), (f"{_I}/audit", _I), *DELETING.items())
"""What the first two change is the instance's configuration, which `Limits.admit_config` looks at besides."""
FIRST = (
    ("instances", "instances"),
    ("operations", "operations"),
    ("bills", "bills"),
    ("organisation_audit", "audit"),
    ("members", "members"),
    ("instance_names", "instance-names"),
)
"""Where somebody comes to, by what they may look at: name of a page, and its address. Their own keys are open to everybody."""


MENU = (
    ("instances", "instances"),
    ("instance_names", "instance-names"),
    ("operations", "operations"),
    ("bills", "bills"),
    ("caps", "caps"),
    ("keys", "keys"),
    ("service_accounts", "service-accounts"),
    ("roles", "roles"),
    ("members", "members"),
    ("organisation_audit", "audit"),
    ("organisation_settings", "settings"),
)
"""What the menu leads to, in its order: name of a page, and its address."""
OF_INSTANCE = (
    ("instance", "", "Overview"),
    ("topics", "/topics", "Topics"),
    ("groups", "/groups", "Groups"),
    ("transactions", "/transactions", "Transactions"),
    ("instance_mirrors", "/mirrors", "Mirrors"),
    ("instance_loads", "/lake-loads", "Lake loads"),
    ("instance_connections", "/connections", "Connections"),
    ("instance_access", "/access", "Access"),
    ("users", "/users", "Users"),
    ("acls", "/acls", "ACLs"),
    ("instance_audit", "/audit", "Audit"),
    ("instance_quota", "/quota", "Quota"),
    ("throttle_rules", "/throttle-rules", "Throttle rules"),
    ("alarms", "/alarms", "Alarms"),
    ("instance_events", "/timeline", "Events"),
    ("instance_history", "/history", "History"),
    ("instance_usage", "/usage", "Usage"),
    ("instance_bill", "/bill", "Bill"),
    ("instance_settings", "/settings", "Settings"),
)
"""Pages of an instance: name, address within the instance's, and title."""


def menu_of(limits: Limits) -> frozenset[str]:
    """Names of pages that the menu leads to: those that are open. Who sees instances needs no list of their names."""
    found = {name for name, address in MENU if is_open(limits, address)}
    return frozenset(found - {"instance_names"} if "instances" in found else found)


def tabs_of(limits: Limits) -> frozenset[str]:
    """Names of pages of an instance that are open, whichever instance it is."""
    return frozenset(name for name, rest, _ in OF_INSTANCE if is_open_within(limits, rest))


def pages_open(limits: Limits) -> list[tuple[str, str]]:
    """The same: their names for `{% url %}`, and titles."""
    tabs = tabs_of(limits)
    return [(f"console:{name}", title) for name, _, title in OF_INSTANCE if name in tabs]


def is_open(limits: Limits, address: str) -> bool:
    """Whether a page may be looked at."""
    try:
        limits.admit(rest_of(address, changes=False), {}, changes=False)
    except Forbidden:
        return False
    return True


def is_open_within(limits: Limits, rest: str) -> bool:
    """The same of a page of an instance, of those that somebody sees: `rest` is its address within the instance's."""
    return is_open(replace(limits, instances=None), f"{_I}{rest}")


def rest_of(route: str, *, changes: bool) -> str:
    """The address of REST, as urls.py writes it, that a page of a tenant stands for."""
    text = route.removeprefix(ORGANISATION)
    for page, address in (*(CHANGES_STAND_FOR if changes else ()), *STANDS_FOR):
        if text == page or text.startswith(f"{page}/"):
            return PREFIX + address + text.removeprefix(page)
    return PREFIX + text


def deletes(route: str) -> bool:
    """Whether what the page of a tenant changes is what a DELETE does."""
    return route.removeprefix(ORGANISATION) in DELETING


def scope_of_page(route: str) -> str | None:
    """The scope of what it changes, or the part of one."""
    text = rest_of(route, changes=True).removeprefix(PREFIX)
    return part_of(text, scope_of(text), deletes=deletes(route))


def first_page(limits: Limits) -> str:
    """The name of the page of an organisation that somebody comes to who has named none."""
    return next((name for name, address in FIRST if is_open(limits, address)), "keys")
