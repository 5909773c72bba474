"""Instances, and what stands in them: topics, consumer groups, routes, whitelisted addresses."""

from __future__ import annotations

import ipaddress
import logging
import re
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import TextField
from django.db.models.functions import Cast

from controlplane.accounts.scopes import ACCESS, INSTANCES
from controlplane.clusters.models import PortAllocation, PortState
from controlplane.core.errors import Unavailable
from controlplane.history.lag.known import groups_seen
from controlplane.instances.models import Route, RouteState
from controlplane.kafka import topics as kafka
from controlplane.routes.selectors import routes_shown
from controlplane.search.asking import Place
from controlplane.search.hits import Hit, page, rest, together
from controlplane.search.matching import EXACT, PREFIX, WITHIN, WORD, Best
from controlplane.search.sql import RANK, fitting
from controlplane.topics.models import TopicNote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controlplane.search.asking import Asker

LOG = logging.getLogger(__name__)
WITH_PORT = re.compile(r"(?P<host>.*:)?(?P<port>[0-9]{4,5})")
ADDRESS = re.compile(r"(?=.*[0-9])(?=.*[.:])[0-9a-f:./]+")
"""What may be an address, a block or a part of one."""
NOTES_READ = 4
"""Times as many notes are read as are asked for: the database looks through tags as the text of a list."""


def instances(asker: Asker) -> list[Hit]:
    """By id, name, both, and `host:port` of one of their listeners (or its port alone), for whoever sees listeners."""
    org, best = asker.caller.organisation.id, Best[tuple[Place, str]](asker.wanted, asker.most)
    sees = asker.caller.limits.covers(INSTANCES, changes=False)

    def hit(place: Place, where: str) -> Hit:
        shown = page("instance", org, place.pk) if sees else page("instance_names", org)
        return Hit("instance", place.pk, place.name, where, place.pk, rest("instances", place.pk), shown)

    at_address = sees or asker.caller.limits.covers(ACCESS, changes=False)
    found = dict(_at_address(asker)) if at_address else {}
    for place, address in found.items():
        best.put((place, address), EXACT)
    for place in asker.places.values():
        if place not in found:
            best.add((place, place.pk), place.name, place.pk, f"{place.name} {place.pk}")
    return [hit(place, where) for place, where in best.found]


def _at_address(asker: Asker) -> Iterator[tuple[Place, str]]:
    """Those that listen there, with the address as their clients are told it."""
    text = asker.wanted.whole
    asked = WITH_PORT.fullmatch(text)
    if asked is None:
        return
    held = PortAllocation.objects.filter(port=int(asked["port"]), state=PortState.HELD, owner__in=asker.ids)
    owners = list(held.values_list("owner", flat=True)[: asker.most + 1])
    rows = asker.rows.filter(pk__in=owners) if owners else ()
    for owner, routes in routes_shown(rows).items() if owners else ():
        shown = [each for route in routes for each in (route.bootstrap or "").split(",")]  # type: ignore[attr-defined]
        at = [each for each in shown if each.lower() == text or each.endswith(f":{text}")]
        if at and owner in asker.places:
            yield asker.places[owner], at[0]


def topics(asker: Asker) -> list[Hit]:
    """By name, as the clusters have them now, then by what people have written about them. A cluster that is away has none."""
    org, best, listed = asker.caller.organisation.id, Best[tuple[str, str]](asker.wanted, asker.most), set[str]()
    for cluster, places in asker.by_cluster(asker.running):
        try:
            names = kafka.many_names(cluster, [place.pk for place in places])
        except Unavailable as error:
            LOG.info("no topics of a cluster are found: %s", error)
            asker.is_partial = True
            continue
        listed.update(place.pk for place in places)
        best.look(names, itemgetter(1))
    found = best.found
    if asker.wanted.words and len(found) <= asker.most:
        found += [each for each in _noted(asker, listed) if each not in found]
    return [
        Hit(
            "topic", name, name, asker.places[pk].name, pk, rest("instances", pk, "topics", name), page("topic", org, pk, name)
        )
        for pk, name in found[: asker.most + 1]
    ]  # fmt: skip


def _noted(asker: Asker, listed: set[str]) -> list[tuple[str, str]]:
    """Instance and name of topics whose notes or tags the text is in, and that are there."""
    notes = TopicNote.objects.for_organisation(asker.caller.organisation).filter(instance__in=asker.ids)
    rows = fitting(notes.annotate(tags_text=Cast("tags", TextField())), asker.wanted, names=["text", "tags_text"])
    read = rows.order_by(RANK, "name", "pk").values_list("instance", "name", "text", "tags")
    found = [
        (pk, name)
        for pk, name, text, tags in read[: NOTES_READ * (asker.most + 1)]
        if pk in listed and asker.wanted.fits(" ".join((text, *tags)))
    ][: asker.most + 1]
    there: dict[str, list[str]] = {}
    for cluster, places in asker.by_cluster(asker.places[pk] for pk in {pk for pk, _ in found}):
        try:
            there |= kafka.names_listed(cluster, [place.pk for place in places])
        except Unavailable:
            asker.is_partial = True
    return [(pk, name) for pk, name in found if name in there.get(pk, ())]


def groups(asker: Asker) -> list[Hit]:
    """Those that the history has seen lately, by name."""
    org, seen = asker.caller.organisation.id, groups_seen(instance_ids=asker.running_ids, clock=asker.clock)
    found = (
        fitting(seen, asker.wanted, names=["name"]).order_by(RANK, "name", "instance").values_list("instance", "name")
    )
    return [
        Hit(
            "group", name, name, asker.name_of(pk), pk, rest("instances", pk, "groups", name), page("group", org, pk, name)
        )
        for pk, name in found[: asker.most + 1]
    ]  # fmt: skip


def routes(asker: Asker) -> list[Hit]:
    """By id, security, and the host that clients are told."""
    org = asker.caller.organisation.id
    rows = Route.objects.for_organisation(asker.caller.organisation).filter(instance__in=asker.ids)
    fits = fitting(rows.exclude(state=RouteState.REMOVED), asker.wanted, names=["key", "advertised_host", "security"])
    found = fits.order_by(RANK, "instance__name", "number").values_list(
        "instance", "key", "security", "advertised_host"
    )
    return [
        Hit(
            "route", key, key, together([asker.name_of(pk), security, host]), pk,
            rest("instances", pk, "routes", key), page("route", org, pk, key),
        )
        for pk, key, security, host in found[: asker.most + 1]
    ]  # fmt: skip


def addresses(asker: Asker) -> list[Hit]:
    """Blocks of whitelists: by a part of their text, or by an address or a block within them."""
    text = asker.wanted.whole
    if ADDRESS.fullmatch(text) is None:
        return []
    org, best = asker.caller.organisation.id, Best[tuple[str, Whose]](asker.wanted, asker.most)
    for block, whose in _whitelisted(asker):
        rank = _block_rank(text, block)
        if rank is not None:
            best.put((block, whose), rank)
    return [_block_hit(org, block, whose) for block, whose in best.found]


class Whose(NamedTuple):
    """Whose whitelist it is: an instance's, of one of its topics, or of one of its routes."""

    pk: str
    name: str
    topic: str = ""
    route: str = ""


def _block_hit(org: str, block: str, whose: Whose) -> Hit:
    pk, name, topic, route = whose
    if topic:
        url, shown = rest("instances", pk, "topics", topic, "whitelist"), page("topic_access", org, pk, topic)
    elif route:
        url, shown = rest("instances", pk, "routes", route), page("route", org, pk, route)
    else:
        url, shown = rest("instances", pk, "whitelist"), page("instance_access", org, pk)
    return Hit("address", block, block, together([name, topic, route]), pk, url, shown)


def _whitelisted(asker: Asker) -> Iterator[tuple[str, Whose]]:
    known = asker.rows.order_by("name", "pk").values_list("pk", "name", "whitelist", "topic_whitelists")
    for pk, name, whitelist, of_topics in known:
        yield from ((block, Whose(pk, name)) for block in whitelist)
        for topic, blocks in of_topics.items():
            yield from ((block, Whose(pk, name, topic)) for block in blocks)
    rows = Route.objects.for_organisation(asker.caller.organisation).filter(
        instance__in=asker.ids, whitelist__isnull=False
    )
    for pk, key, blocks in rows.exclude(state=RouteState.REMOVED).values_list("instance", "key", "whitelist"):
        yield from ((block, Whose(pk, asker.name_of(pk), route=key)) for block in blocks or ())


@lru_cache(maxsize=4096)
def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _block_rank(text: str, block: str) -> int | None:
    lower = block.lower()
    if lower in (text, f"{text}/32", f"{text}/128"):
        return EXACT
    if lower.startswith(text):
        return PREFIX
    inner, outer = _network(text), _network(block)
    if inner is not None and outer is not None and inner.version == outer.version and inner.subnet_of(outer):  # type: ignore[arg-type]
        return WORD
    return WITHIN if text in lower else None
