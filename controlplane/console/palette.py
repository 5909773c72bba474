"""Going to a page by typing a part of its name: pages, instances, topics, groups of the organisation whose pages these are.

What is typed is looked for in names, whatever the case; every word has to be there. Topics are the cluster's names (one look at
ZooKeeper), groups those that the history has seen lately: no cluster is asked about any of them. Of an organisation with many
instances the topics and groups of MOST_INSTANCES are looked through, those of the page's own instance first.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.urls import reverse

from controlplane.accounts.scopes import TOPICS
from controlplane.console.places import is_open, is_open_within
from controlplane.console.wording import worded
from controlplane.core.errors import Unavailable
from controlplane.history.lag.known import groups_named
from controlplane.instances.models import Instance, InstanceState
from controlplane.instances.selectors import instance_list, instances_by_cluster
from controlplane.kafka import topics

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from controlplane.accounts.selectors import Caller

LOG = logging.getLogger(__name__)
MOST_HITS = 8
"""Of each kind."""
MOST_INSTANCES = 50
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
class Hit:
    """Somewhere to go: what it is called, where it is, its address."""

    name: str
    where: str
    address: str


@dataclass(frozen=True, slots=True)
class Hits:
    """Of one kind."""

    kind: str
    hits: list[Hit] = field(default_factory=list)


def found(*, caller: Caller, text: str, instance_id: str = "") -> list[Hits]:
    """By kind, without kinds of which there is none. `instance_id`: of the page where somebody asks; another's is passed over."""
    words = text.lower().split()
    rows = instance_list(organisation=caller.organisation, only=caller.limits.instances).order_by("name", "pk")
    here = rows.filter(pk=instance_id).first() if instance_id else None
    kinds = [
        Hits("Pages", _pages(caller, here, words)),
        Hits("Instances", _instances(caller, rows, words)),
        *(_within(caller, here, rows, words) if words and caller.limits.covers(TOPICS, changes=False) else ()),
    ]
    return [each for each in kinds if each.hits]


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
    return [Hit(*page[:3]) for page in (*by_title, *by_others)][:MOST_HITS]


def _others(name: str) -> str:
    """In English, and in the language of the page."""
    text = SYNONYMS.get(name, "")
    return f"{text} {worded(text)}" if text else ""


def _instances(caller: Caller, rows: Iterable[Instance], words: Sequence[str]) -> list[Hit]:
    hits = []
    for instance in rows:
        if fits(words, f"{instance.name} {instance.pk}"):
            address = reverse("console:instance", args=[caller.organisation.id, instance.pk])
            hits.append(Hit(instance.name, instance.pk, address))
        if len(hits) == MOST_HITS:
            break
    return hits


def _within(caller: Caller, here: Instance | None, rows: Iterable[Instance], words: Sequence[str]) -> tuple[Hits, Hits]:
    """Topics and groups."""
    running = [instance for instance in rows if instance.state == InstanceState.RUNNING]
    running.sort(key=lambda instance: here is None or instance.pk != here.pk)
    looked = {instance.pk: instance for instance in running[:MOST_INSTANCES]}
    org = caller.organisation.id
    of_topics = [
        Hit(name, looked[pk].name, reverse("console:topic", args=[org, pk, name]))
        for pk, name in _topics(looked, words)
    ]
    # The longest word finds the fewest rows; the others are looked for among these.
    longest = max(words, key=len)
    named = groups_named(instance_ids=list(looked), text=longest, most=10 * MOST_HITS)
    of_groups = [
        Hit(name, looked[pk].name, reverse("console:group", args=[org, pk, name]))
        for pk, name in named
        if fits(words, name)
    ]
    return Hits("Topics", of_topics), Hits("Groups", of_groups[:MOST_HITS])


def _topics(looked: dict[str, Instance], words: Sequence[str]) -> list[tuple[str, str]]:
    """Instance and name, in the order of instances. A cluster that is away has none now."""
    listed: dict[str, list[str]] = {}
    for cluster, instances in instances_by_cluster(looked.values()):
        try:
            listed |= topics.names_listed(cluster.address, [instance.pk for instance in instances])
        except Unavailable as error:
            LOG.info("no topics of cluster %s are found: %s", cluster, error)
    found_ = [(pk, name) for pk in looked for name in listed.get(pk, ()) if fits(words, name)]
    return found_[:MOST_HITS]


def fits(words: Sequence[str], text: str) -> bool:
    """Whether every word is in the text."""
    lower = text.lower()
    return all(word in lower for word in words)
