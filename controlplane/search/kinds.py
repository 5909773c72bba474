"""The table of kinds: what each is called, how it is looked for, and whom it is open to.

A kind is open to whoever may look at its list by REST: `route` is the list's address as controlplane/urls.py has it, and
`Limits.admit` decides. What is more than that stands in `is_for`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from controlplane.accounts import scopes
from controlplane.core.errors import Forbidden
from controlplane.history.lag.known import SEEN_S
from controlplane.search import of_access, of_books, of_instances, of_people, of_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from controlplane.accounts.selectors import Caller
    from controlplane.search.asking import Asker
    from controlplane.search.hits import Hit

_I = "instances/<id:instance_id>"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of things. `list_page`: the console's list of all of them that takes a text as `?q=`; empty: there is none."""

    name: str
    title: str
    route: str
    look: Callable[[Asker], list[Hit]]
    is_for: Callable[[Caller], bool] = lambda _caller: True
    list_page: str = ""
    seen_within_s: int | None = None  # how old what is known may be; None: it is as it is now

    def admit(self, caller: Caller) -> None:
        """Raises Forbidden where the caller may not look at these."""
        limits = caller.limits
        if self.route.startswith(_I):  # of instances that the caller knows: `Asker.rows` are these
            limits = replace(limits, instances=None)
        limits.admit(scopes.PREFIX + self.route, {}, changes=False)
        if not self.is_for(caller):
            raise Forbidden("only owners of the organisation see these")

    def is_open(self, caller: Caller) -> bool:
        """The same as a question."""
        try:
            self.admit(caller)
        except Forbidden:
            return False
        return True


def _owners(caller: Caller) -> bool:
    return caller.may_manage


KINDS = (
    Kind("instance", "Instances", "instance-names", of_instances.instances, list_page="instances"),
    Kind("topic", "Topics", f"{_I}/topics", of_instances.topics),
    Kind("group", "Groups", f"{_I}/groups", of_instances.groups, seen_within_s=SEEN_S),
    Kind("user", "Users", f"{_I}/users", of_access.users),
    Kind("acl", "ACLs", f"{_I}/acls", of_access.acls),
    Kind("route", "Routes", f"{_I}/routes", of_instances.routes),
    Kind("address", "Whitelisted addresses", f"{_I}/whitelist", of_instances.addresses),
    Kind("alarm", "Alarms", f"{_I}/alarms", of_rows.alarms),
    Kind("receiver", "Receivers", f"{_I}/receivers", of_rows.receivers),
    Kind("throttle_rule", "Throttle rules", f"{_I}/throttle-rules", of_access.rules),
    Kind("token_issuer", "Token issuers", f"{_I}/token-issuers", of_rows.token_issuers),
    Kind("lake_load", "Lake loads", f"{_I}/lake-loads", of_rows.lake_loads),
    Kind("operation", "Operations", "operations", of_books.operations, list_page="operations"),
    Kind("invoice", "Invoices", "invoices", of_books.invoices),
    Kind("credit_note", "Credit notes", "credit-notes", of_books.credit_notes),
    Kind("budget", "Budgets", "budgets", of_rows.budgets),
    Kind("month", "Months", "statement", of_books.months),
    Kind("member", "Members", "members", of_people.members),
    Kind("invitation", "Invitations", "invitations", of_people.invitations, is_for=_owners),
    Kind("role", "Roles", "roles", of_rows.roles, is_for=_owners),
    Kind("service_account", "Service accounts", "service-accounts", of_rows.service_accounts, is_for=_owners),
    Kind("api_key", "API keys", "api-keys", of_people.api_keys),
    Kind("access_key", "Access keys", "access-keys", of_people.access_keys),
)
"""In the order in which they are shown."""
BY_NAME = {kind.name: kind for kind in KINDS}
