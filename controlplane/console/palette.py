"""Going to a page by typing a part of its name, and to whatever `controlplane.search` finds: things, pages, and what can be done.

What is typed is looked for in names, whatever the case; every word has to be there. What somebody begins with the words of an
action (`reset offsets of billing`) offers that action for each thing that fits the rest. Nothing of it is stored anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.urls import reverse

from controlplane.accounts.scopes import (
    ALARMS,
    GROUPS,
    INSTANCES_CHANGE,
    MESSAGES,
    MESSAGES_SEND,
    TOPICS_CHANGE,
    TOPICS_DELETE,
)
from controlplane.console.places import is_open, is_open_within
from controlplane.console.wording import filled, worded
from controlplane.core.text import visible
from controlplane.instances.selectors import instance_list
from controlplane.search.kinds import BY_NAME
from controlplane.search.matching import Wanted
from controlplane.search.operators import fleet_search
from controlplane.search.selectors import search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.accounts.selectors import Caller
    from controlplane.instances.models import Instance
    from controlplane.search.selectors import Found

MOST_HITS = 8
"""Of each kind."""
MORE = "There are more: type a longer part of the name."
"""Where no page has all of them."""
LONGEST_TEXT = 100

PAGES = (
    ("instances", "instances", "Instances"),
    ("instance_new", "instances/new", "New instance"),
    ("operations", "operations", "Operations"),
    ("bills", "bills", "Bills"),
    ("statement", "statement", "Statement"),
    ("budgets", "budgets", "Budgets"),
    ("budget_new", "new-budget", "New budget"),
    ("caps", "caps", "Caps"),
    ("keys", "keys", "API keys"),
    ("roles", "roles", "Roles"),
    ("service_accounts", "service-accounts", "Service accounts"),
    ("members", "members", "Members"),
    ("organisation_sso", "sso", "Single sign-on"),
    ("organisation_audit", "audit", "Audit log"),
    ("organisation_settings", "settings", "Settings"),
    ("organisation_deletion", "deletion", "Deletion"),
)
"""Name of a page, its address, and title. A role of the organisation's own finds those that are open to it, as in the menu."""
OF_OWNERS = frozenset({"organisation_deletion"})
"""Of these, what nobody else has a use for."""
INSTANCE_PAGES = (
    ("instance", "", "Overview"),
    ("topics", "/topics", "Topics"),
    ("topic_new", "/new-topic", "New topic"),
    ("topics_configure", "/topic-configs", "Change several topics"),
    ("groups", "/groups", "Groups"),
    ("transactions", "/transactions", "Transactions"),
    ("instance_mirrors", "/mirrors", "Mirrors"),
    ("instance_loads", "/lake-loads", "Lake loads"),
    ("instance_connections", "/connections", "Connections"),
    ("instance_access", "/access", "Access"),
    ("route_new", "/new-route", "New route"),
    ("users", "/users", "Users"),
    ("acls", "/acls", "ACLs"),
    ("instance_quota", "/quota", "Quota"),
    ("throttle_rules", "/throttle-rules", "Throttle rules"),
    ("throttle_rule_new", "/new-throttle-rule", "New throttle rule"),
    ("instance_quota_report", "/quota-report", "Quota report"),
    ("alarms", "/alarms", "Alarms"),
    ("alarm_new", "/new-alarm", "New alarm"),
    ("receivers", "/receivers", "Receivers"),
    ("instance_events", "/timeline", "Events"),
    ("instance_history", "/history", "History"),
    ("instance_usage", "/usage", "Usage"),
    ("instance_bill", "/bill", "Bill"),
    ("instance_settings", "/settings", "Settings"),
    ("instance_config", "/config", "Defaults of topics"),
    ("instance_policies", "/policies", "Policies"),
    ("instance_prepaid", "/prepaid", "Months in advance"),
    ("instance_elastic", "/elastic-bandwidth", "Elastic bandwidth"),
)
"""The same of the instance whose page it is: addresses within the instance's."""


SYNONYMS = {
    "instance_new": "create buy price cost",
    "bills": "invoices costs money price plan",
    "statement": "invoices month",
    "caps": "limits most",
    "keys": "tokens secrets",
    "members": "people invitations second factor",
    "organisation_sso": "sso oidc",
    "instance": "connect bootstrap health size",
    "topics": "messages records",
    "groups": "consumers lag offsets",
    "instance_access": "whitelist routes listeners",
    "route_new": "sasl tls ssl listener",
    "acls": "permissions rights",
    "users": "passwords login",
    "instance_quota": "bandwidth throttled limit",
    "throttle_rules": "quotas limits clients",
    "receivers": "webhook e-mail notifications",
    "instance_events": "timeline log",
    "instance_history": "charts metrics prometheus",
    "instance_usage": "storage traffic",
    "instance_bill": "price cost",
    "instance_settings": "storage bandwidth partitions size resize delete",
    "instance_config": "config auto-create",
    "instance_policies": "storage disk full retention",
    "instance_prepaid": "prepaid price",
}
"""Other words by which a page is found, behind those whose titles have them, in whatever language the page is."""


@dataclass(frozen=True, slots=True)
class Action:
    """What can be done with a thing of a kind: its words, with `{name}` for the thing, and the page where it is done."""

    words: str
    kind: str
    page: str
    scope: str
    changes: bool = True

    def rest_of(self, text: str) -> str | None:
        """What is typed behind its words, in English or in the language of the page; None: they are not typed.

        A word may be typed in part; words may be left out but for the first. Nothing behind them: two have to be there.
        """
        fixed, typed = self.words.replace("{name}", "").lower().split(), text.lower().split()
        at, used = 0, 0
        for word in typed:
            behind = [number for number in range(at, len(fixed)) if fixed[number].startswith(word)]
            if not behind or (used == 0 and (behind[0] != 0 or len(word) < LEAST_LETTERS)):
                break
            at, used = behind[0] + 1, used + 1
        if used >= 2 or (used and len(typed) > used):
            return " ".join(typed[used:])
        before = filled(self.words, name="\x00").partition("\x00")[0].strip().lower()
        return text.lower()[len(before) :].strip() if before and text.lower().startswith(before) else None

    def is_for(self, caller: Caller) -> bool:
        """Whether the caller may do it."""
        return caller.may_do(self.scope) if self.changes else caller.limits.covers(self.scope, changes=False)


LEAST_LETTERS = 3
"""Of the first word of an action."""
ACTIONS = (
    Action("Reset offsets of {name}", "group", "group_reset", GROUPS),
    Action("Delete group {name}", "group", "group_delete", GROUPS),
    Action("Messages of {name}", "topic", "topic_messages", MESSAGES, changes=False),
    Action("Send a message to {name}", "topic", "topic_message_new", MESSAGES_SEND),
    Action("Delete topic {name}", "topic", "topic_delete", TOPICS_DELETE),
    Action("New topic in {name}", "instance", "topic_new", TOPICS_CHANGE),
    Action("New alarm in {name}", "instance", "alarm_new", ALARMS),
    Action("Resize {name}", "instance", "instance_settings", INSTANCES_CHANGE),
)
DOCUMENTATION = (("api_docs", "REST API", "documentation openapi reference"), ("prices", "Prices", "plans cost"))
"""Pages that are no organisation's: name, title, and other words for it."""
FLEET_PAGES = (
    ("fleet", "Fleet", "instances overview"),
    ("fleet_brokers", "Brokers", ""),
    ("fleet_clusters", "Clusters", "zookeeper zones"),
    ("fleet_heat", "Heat", "map hot"),
    ("fleet_allocation", "Allocation", "flow grants"),
    ("fleet_capacity", "Capacity and caps", "room organisations"),
    ("fleet_rebalancing", "Rebalancing", "move partitions"),
    ("fleet_jobs", "Jobs", "spark runs"),
    ("fleet_metering", "Metering", "usage differences"),
    ("fleet_quota_report", "Quota report", "days"),
    ("fleet_invoices", "Invoices that wait", "billing taxes"),
    ("fleet_credit_notes", "Give money back", "credit notes"),
)
"""The same of operators."""


@dataclass(frozen=True, slots=True)
class Hit:
    """Somewhere to go: what it is called, where it is, its address."""

    name: str
    where: str
    address: str


@dataclass(frozen=True, slots=True)
class Hits:
    """Of one kind. `more`: the address of a page with all of them, where there are others; `remark`: what they are not."""

    kind: str
    hits: list[Hit] = field(default_factory=list)
    more: str = ""
    remark: str = ""


def found(*, caller: Caller, text: str, instance_id: str = "") -> list[Hits]:
    """By kind, without kinds of which there is none and nothing to say.

    `instance_id`: of the page where somebody asks; another's is passed over.
    """
    wanted = Wanted.of(text)
    here = _here(caller, instance_id)
    things = search(
        caller=caller, wanted=wanted, kind="" if wanted.words else "instance", most=MOST_HITS, here=instance_id
    )
    kinds = [
        Hits("Pages", _pages(caller, here, wanted.words)),
        Hits("Actions", _actions(caller, text, instance_id)),
        *map(_shown, things),
    ]
    return [each for each in kinds if each.hits or each.remark]


def found_of(*, caller: Caller, wanted: Wanted, kind: str, most: int) -> list[Hits]:
    """What a page of results shows: all kinds, or one with more of it. Raises Forbidden where that is not open."""
    things = [_shown(each) for each in search(caller=caller, wanted=wanted, kind=kind, most=most)]
    places = (
        []
        if kind
        else [Hits("Pages", _pages(caller, None, wanted.words)), Hits("Actions", _actions(caller, wanted.whole, ""))]
    )
    return [each for each in (*places, *things) if each.hits or each.remark]


def found_in_fleet(*, text: str, most: int = MOST_HITS) -> list[Hits]:
    """What operators find: their pages, and things of the fleet."""
    wanted = Wanted.of(text)
    pages = _titled(
        [(name, title, others, reverse(f"console:{name}")) for name, title, others in FLEET_PAGES], wanted.words
    )
    things = fleet_search(wanted=wanted, most=most) if wanted.words else []
    kinds = [
        Hits(
            each.title,
            [Hit(visible(hit.name), visible(hit.where), hit.page) for hit in each.hits],
            each.more if each.has_more else "",
            MORE if each.has_more and not each.more else "",
        )
        for each in things
    ]
    return [each for each in (Hits("Pages", pages[: 2 * MOST_HITS]), *kinds) if each.hits]


def _here(caller: Caller, instance_id: str) -> Instance | None:
    rows = instance_list(organisation=caller.organisation, only=caller.limits.instances)
    return rows.filter(pk=instance_id).first() if instance_id else None


def _shown(each: Found) -> Hits:
    hits = [Hit(visible(hit.name), visible(hit.where), hit.page) for hit in each.hits]
    remarks = []
    if each.is_partial:
        remarks.append(
            "Not everything was looked through: a cluster is away, there are many instances, or one letter is too short for it."
        )
    elif each.kind.seen_within_s and hits:
        remarks.append("Those that were seen in the last ten minutes.")
    return Hits(each.kind.title, hits, each.more if each.has_more else "", " ".join(remarks))


def _actions(caller: Caller, text: str, instance_id: str) -> list[Hit]:
    hits: list[Hit] = []
    org = caller.organisation.id
    for action in ACTIONS:
        is_offered = action.is_for(caller) and BY_NAME[action.kind].is_open(caller)
        rest = action.rest_of(text) if is_offered else None
        if rest is None or len(hits) >= MOST_HITS:
            continue
        for each in search(caller=caller, wanted=Wanted.of(rest), kind=action.kind, most=MOST_HITS, here=instance_id):
            for hit in each.hits:
                ids = [hit.instance_id] if action.kind == "instance" else [hit.instance_id, hit.id]
                address = reverse(f"console:{action.page}", args=[org, *ids])
                hits.append(Hit(filled(action.words, name=visible(hit.name)), visible(hit.where), address))
    return hits[:MOST_HITS]


def _pages(caller: Caller, here: Instance | None, words: Sequence[str]) -> list[Hit]:
    org, limits = caller.organisation.id, caller.limits
    pages = [
        (worded(title), "", reverse(f"console:{name}", args=[org]), name)
        for name, address, title in PAGES
        if is_open(limits, address) and (caller.may_manage or name not in OF_OWNERS)
    ]
    if here is not None:
        pages = [
            *(
                (worded(title), here.name, reverse(f"console:{name}", args=[org, here.pk]), name)
                for name, rest, title in INSTANCE_PAGES
                if is_open_within(limits, rest)
            ),
            *pages,
        ]
    by_title = [page for page in pages if fits(words, page[0])]
    by_others = [page for page in pages if page not in by_title and fits(words, f"{page[0]} {_others(page[3])}")]
    documentation = _titled([(*each, reverse(f"console:{each[0]}")) for each in DOCUMENTATION], words) if words else []
    return [*(Hit(*page[:3]) for page in (*by_title, *by_others)), *documentation][:MOST_HITS]


def _titled(pages: Sequence[tuple[str, str, str, str]], words: Sequence[str]) -> list[Hit]:
    """Pages by name, title, other words and address: those whose titles have all words, then those found by others."""
    by_title = [page for page in pages if fits(words, worded(page[1]))]
    by_others = [
        page for page in pages if page not in by_title and fits(words, f"{worded(page[1])} {page[1]} {page[2]}")
    ]
    return [Hit(worded(title), "", address) for _, title, _, address in (*by_title, *by_others)]


def _others(name: str) -> str:
    """In English, and in the language of the page."""
    text = SYNONYMS.get(name, "")
    return f"{text} {worded(text)}" if text else ""


def fits(words: Sequence[str], text: str) -> bool:
    """Whether every word is in the text."""
    lower = text.lower()
    return all(word in lower for word in words)
