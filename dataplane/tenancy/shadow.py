"""A proposal beside what is in force: who would be cut off by it is counted, and nobody is.

A connection is judged by the proposal's whitelists when it is known whose it is, one that is open when the proposal comes; a
request by its ACLs, for each resource that it names, after what is in force has permitted it. The short cuts of Produce and Fetch
keep their permit where the proposal permits the same, so that what a connection repeats is judged once; where it does not they
are not taken, and each request is counted. So a proposal costs those whom it concerns, and an instance without one an
attribute that is None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.tenancy.whitelist import Whitelist
from quota.contracts.proposals import CONNECT, MOST_FINDINGS, Cut, Findings, Proposal, Seen

if TYPE_CHECKING:
    from collections.abc import Callable

    from quota.contracts.acls import AclOperation, ResourceType
    from quota.core.acls import AclBook

LONGEST_TEXT = 256
LOOKS_UNTIL_TOLD = 3


class Shadow:
    """Of one instance on this broker. `base` says which ACLs it was made of: with others it has to be made anew."""

    def __init__(
        self, proposal: Proposal, book: AclBook | None, findings: Findings, now_ms: Callable[[], int], base: object
    ) -> None:
        """`book` holds the ACLs that would be in force; None: the proposal is not about them."""
        self.proposal, self.book, self.findings, self.base = proposal, book, findings, base
        self._is_told, self._is_urgent, self._looks = False, True, 0
        self._now_ms = now_ms
        self._whitelist = None if proposal.whitelist is None else Whitelist(proposal.whitelist)
        self._routes = {route: Whitelist(cidrs) for route, cidrs in proposal.route_whitelists.items()}

    @property
    def is_over(self) -> bool:
        """Whether its time has come, by this broker's wall clock."""
        return self._now_ms() >= self.proposal.ends_at_ms

    def is_due(self) -> bool:
        """Asked every so often: whether to tell what was seen. Somebody new at once, numbers after LOOKS_UNTIL_TOLD times."""
        if self._is_told:
            return False
        self._looks += 1
        return self._is_urgent or self._looks >= LOOKS_UNTIL_TOLD

    def told(self, *, is_so: bool = True) -> None:
        """What was seen until now is on its way; or (not `is_so`) it has not arrived."""
        self._is_told, self._is_urgent, self._looks = is_so, False, 0

    def connected(self, principal: str, source: str, route: str) -> None:
        """Somebody is connected, and it is known who."""
        self.findings.connections += 1
        self._is_told = False
        own = self._routes.get(route)
        held = (self._whitelist is None or self._whitelist.allows(source)) and (own is None or own.allows(source))
        if not held:
            self._count(Cut(principal, source, route, CONNECT, ""))

    def permits(
        self, principal: str, source: str, operation: AclOperation, kind: ResourceType, name: str | None
    ) -> bool:
        """Whether the ACLs would permit it. `name`: the tenant's own; None: any of that kind."""
        if self.book is None:
            return True
        if name is None:
            return self.book.decide_by_type(principal, source, operation, kind).allowed
        return self.book.decide(principal, source, operation, kind, name).allowed

    def permitted(self) -> None:
        """Somebody has asked for something that he would be permitted as well."""
        self.findings.requests += 1
        self._is_told = False

    def refused(
        self, principal: str, source: str, route: str, operation: AclOperation, kind: ResourceType, name: str
    ) -> None:
        """Somebody was permitted what he would be refused."""
        self.findings.requests += 1
        self._is_told = False
        self._count(Cut(principal, source, route, operation.name, f"{kind.name}:{name}"[:LONGEST_TEXT]))

    def _count(self, cut: Cut) -> None:
        findings, now_ms = self.findings, self._now_ms()
        seen = findings.cuts.get(cut)
        if seen is not None:
            seen.count += 1
            seen.last_ms = now_ms
        elif len(findings.cuts) < MOST_FINDINGS:
            findings.cuts[cut] = Seen(1, now_ms, now_ms)
            self._is_urgent = True
        else:
            findings.left_out += 1
