"""Users, ACLs and throttle rules, read from ZooKeeper: no database has them.

A node may have a megabyte, and somebody types a letter every tenth of a second. So at most MOST_LOOKED instances are looked
at, the one where somebody is first, a few at a time, and no more once MOST_BYTES have been read; the answer says that it is
not all. A node that has not every word of the text is not decoded. Of a user nothing but the name leaves this file: what is
read beside it verifies passwords.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeVar

from controlplane.clusters import zookeeper
from controlplane.core.errors import Unavailable
from controlplane.search.asking import Place
from controlplane.search.hits import Hit, page, rest, together
from controlplane.search.matching import Best
from quota.contracts.apart import acls_from_json, acls_path, rules_from_json, rules_path, users_from_json, users_path
from quota.contracts.instance import ContractError, UnreadAccessError
from quota.contracts.rules import ThrottleRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from controlplane.search.asking import Asker

Thing = TypeVar("Thing")

MOST_LOOKED = 20
"""Instances."""
MOST_NAMES = 3
"""Of a rule, which may have a thousand."""
AT_ONCE = 5
MOST_BYTES = 1 << 20
LEAST_LETTERS = 2
"""Of a text for which ZooKeeper is asked: one letter is in every name."""


def users(asker: Asker) -> list[Hit]:
    """By name."""
    org, best = asker.caller.organisation.id, Best[tuple[Place, str]](asker.wanted, asker.most)
    for place, data in _nodes(asker, users_path):
        for name in _read(asker, data, lambda node: [user.name for user in users_from_json(node).items]):
            best.add((place, name), name)
    return [
        Hit(
            "user", name, name, place.name, place.pk,
            rest("instances", place.pk, "users", name), page("users", org, place.pk, q=name),
        )
        for place, name in best.found
    ]  # fmt: skip


def acls(asker: Asker) -> list[Hit]:
    """By principal, operation, and what they are about, in one line."""
    org, best = asker.caller.organisation.id, Best[tuple[Place, str, str]](asker.wanted, asker.most)
    for place, data in _nodes(asker, acls_path):
        for acl in _read(asker, data, lambda node: list(acls_from_json(node).items)):
            of, about = acl.principal, acl.resource_name
            line = f"{of} {acl.permission.name} {acl.operation.name} {acl.resource_type.name} {about}"
            best.add((place, line, about), line, about, of, of.partition(":")[2])
    return [
        Hit(
            "acl", line, line, place.name, place.pk,
            rest("instances", place.pk, "acls"), page("acls", org, place.pk, q=about),
        )
        for place, line, about in best.found
    ]  # fmt: skip


def rules(asker: Asker) -> list[Hit]:
    """Throttle rules, by id and by what they name."""
    org, best = asker.caller.organisation.id, Best[tuple[Place, ThrottleRule]](asker.wanted, asker.most)
    for place, data in _nodes(asker, rules_path):
        for rule in _read(asker, data, lambda node: list(rules_from_json(node).items)):
            best.add((place, rule), rule.id, *_named(rule))
    return [
        Hit(
            "throttle_rule", rule.id, rule.id, together([place.name, rule.kind, ", ".join(_named(rule)[:MOST_NAMES])]), place.pk,
            rest("instances", place.pk, "throttle-rules", rule.id), page("throttle_rule", org, place.pk, rule.id),
        )
        for place, rule in best.found
    ]  # fmt: skip


def _named(rule: ThrottleRule) -> list[str]:
    """Every name in it; of users and clients not the word for each."""
    return [name for name in (*rule.topics, *rule.users, *rule.clients, *rule.groups) if name is not None]


def _nodes(asker: Asker, path: Callable[[str], str]) -> Iterator[tuple[Place, bytes]]:
    if len(asker.wanted.whole) < LEAST_LETTERS:
        asker.is_partial = True
        return
    running, read = asker.running, 0
    asker.is_partial = len(running) > MOST_LOOKED
    for cluster, places in asker.by_cluster(running[:MOST_LOOKED]):
        for first in range(0, len(places), AT_ONCE):
            if read >= MOST_BYTES:
                asker.is_partial = True
                return
            some = places[first : first + AT_ONCE]
            try:
                nodes = zookeeper.tree(cluster).get_many([path(place.pk) for place in some])
            except Unavailable:
                asker.is_partial = True
                break
            found = [(place, node[0]) for place, node in zip(some, nodes, strict=True) if node is not None]
            read += sum(len(data) for _, data in found)
            yield from found


def _read(asker: Asker, data: bytes, decode: Callable[[bytes], list[Thing]]) -> list[Thing]:
    lower = data.lower()
    plain = [word for word in asker.wanted.words if word.isascii()]  # of others JSON has one code for each case
    if not all(_as_json(word) in lower for word in plain):
        return []
    try:
        return decode(data)
    except (UnreadAccessError, ContractError):  # its own page says so
        asker.is_partial = True
        return []


def _as_json(word: str) -> bytes:
    return json.dumps(word)[1:-1].encode().lower()
