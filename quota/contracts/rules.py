"""Throttle rules: limits inside an instance, for topics, clients and consumer groups, at ``/sluice/rules/<id>``.

::

    {"version": 4, "items": [
        {"id": "rule-8zk2m4x0", "kind": "topic", "produce_bytes_per_s": 1048576, "consume_bytes_per_s": null,
         "topics": ["orders"]},
        {"id": "rule-x0q1ab7c", "kind": "client", "produce_bytes_per_s": 2097152, "consume_bytes_per_s": null,
         "users": ["alice"], "clients": [null]}]}

The tenant's AdminClient and the control plane both write them, by compare-and-set; `version` counts these writes apart from
the generation of the spec, which is the control plane's alone. A spec of version 1 has them as its member "rules".

========  ==============================================================================================================
topic     what is produced to, or consumed from, these topics
client    what these clients move. Of users and client ids, one may be left out: then it does not matter. Where several
          rules fit a client, only the nearest holds, in Kafka's order (`quota.core.matching`)
group     what the members of these consumer groups consume, beside what holds for them as clients
========  ==============================================================================================================

A limit holds for the whole cluster and for all that a rule names *together*. A name of null is "each that no nearer rule
names", and then each has the limit for itself. A limit of null is none. Names are the tenant's own.

The master divides a rule's limit as it does an instance's: in reports and grants it is one more row
(`quota.contracts.rows`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MOST_RULES = 100
MOST_NAMES = 1_000
"""Of all rules together."""
LARGEST_RULES = 900_000
"""Bytes of the document: it is a node of ZooKeeper, and one character of a name can take 12."""
MOST_ENTITIES = 1_000
"""Of client rules: users times client ids. A rule of 499 of each names 998, and every broker would look up 249,001."""
LONGEST_NAME = 255
_MOST_BYTES_OF_A_CHARACTER, _SURELY_SMALL = 12, LARGEST_RULES // 2
"""Few names have to be written out to know that they fit: the rest of the document is far below the other half."""
USER, CLIENT_ID = "user", "client-id"
"""The kinds of names that make up an entity, as Kafka calls them."""

Entity = tuple[tuple[str, str | None], ...]
"""Whom a client rule is for, as Kafka says it: (kind, name), user first. A name of None is "each"."""


class RuleKind(StrEnum):
    """What a rule counts."""

    TOPIC = "topic"
    CLIENT = "client"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class ThrottleRule:
    """One rule; the file's text says what its members mean."""

    id: str
    kind: RuleKind
    produce_bytes_per_s: int | None
    consume_bytes_per_s: int | None
    topics: tuple[str, ...] = ()
    users: tuple[str | None, ...] = ()
    clients: tuple[str | None, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def is_each(self) -> bool:
        """Whether everybody whom it fits has the limit for himself."""
        return None in self.users or None in self.clients

    @property
    def entity_count(self) -> int:
        """How many `entities` there are, without making them."""
        return len(self.users or (...,)) * len(self.clients or (...,)) if self.kind is RuleKind.CLIENT else 0

    def entities(self) -> Iterator[Entity]:
        """Whom a client rule names."""
        for user in self.users or (...,):
            for client in self.clients or (...,):
                parts = ((USER, user), (CLIENT_ID, client))
                yield tuple((kind, name) for kind, name in parts if name is not ...)

    def document(self) -> dict[str, Any]:
        """For JSON; without the lists that are not of its kind."""
        lists = {"topics": self.topics, "users": self.users, "clients": self.clients, "groups": self.groups}
        return {
            "id": self.id,
            "kind": self.kind.value,
            "produce_bytes_per_s": self.produce_bytes_per_s,
            "consume_bytes_per_s": self.consume_bytes_per_s,
            **{name: list(names) for name, names in lists.items() if names},
        }


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All rules of an instance."""

    version: int = 0
    items: tuple[ThrottleRule, ...] = ()

    def changed(self, items: Sequence[ThrottleRule]) -> RuleSet:
        """What to write in place of this one."""
        return RuleSet(self.version + 1, tuple(items))

    def document(self) -> dict[str, Any]:
        return {"version": self.version, "items": [rule.document() for rule in self.items]}

    def to_json(self) -> bytes:
        """The document of their node."""
        return json.dumps(self.document(), sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> RuleSet:
        """Raises KeyError, TypeError, ValueError. Rules of a kind that is not known (of a newer writer) are left out."""
        items = [item for item in document["items"] if item["kind"] in tuple(RuleKind)]
        return cls(document["version"], tuple(_rule(item) for item in items))


def rules_problem(rules: Sequence[ThrottleRule]) -> str | None:
    """Why these cannot stand together, in a sentence; None: they can."""
    if len(rules) > MOST_RULES:
        return f"an instance may have {MOST_RULES} throttle rules"
    names = [name for rule in rules for name in (*rule.topics, *rule.users, *rule.clients, *rule.groups)]
    if len(names) > MOST_NAMES:
        return f"the throttle rules of an instance may name {MOST_NAMES} topics, clients and groups, not {len(names)}"
    if any(name is not None and not 0 < len(name) <= LONGEST_NAME for name in names):
        return f"a name has 1 to {LONGEST_NAME} characters"
    if sum(len(name or "") for name in names) * _MOST_BYTES_OF_A_CHARACTER > _SURELY_SMALL:
        size = len(RuleSet(2**63, tuple(rules)).to_json())
        if size > LARGEST_RULES:
            return f"the throttle rules of an instance may take {LARGEST_RULES} bytes, not {size}"
    pairs = sum(rule.entity_count for rule in rules)
    if pairs > MOST_ENTITIES:
        return (
            f"the client rules of an instance may name {MOST_ENTITIES} pairs of a user and a client id, not {pairs}: a "
            "rule names each of its users with each of its clients"
        )
    taken: set[Entity] = set()
    for rule in rules:
        problem = _rule_problem(rule)
        if problem:
            return problem
        for named in _named(rule):
            if named in taken:
                text = " and ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in named)
                return f"{text} has a throttle rule already"
            taken.add(named)
    return None


def _rule_problem(rule: ThrottleRule) -> str | None:
    limits = (rule.produce_bytes_per_s, rule.consume_bytes_per_s)
    if limits == (None, None):
        return "a throttle rule limits producing, consuming or both"
    if any(limit is not None and limit < 1 for limit in limits):
        return "a limit is at least 1 byte/s"
    clients = rule.users or rule.clients
    if rule.kind is RuleKind.TOPIC and (not rule.topics or clients or rule.groups):
        return "a topic rule names topics, and nothing else"
    if rule.kind is RuleKind.CLIENT and (not clients or rule.topics or rule.groups):
        return "a client rule names users, clients or both, and nothing else"
    if rule.kind is RuleKind.GROUP and (not rule.groups or rule.topics or clients):
        return "a group rule names consumer groups, and nothing else"
    if rule.kind is RuleKind.GROUP and rule.produce_bytes_per_s is not None:
        return "a group rule limits consuming: groups do not produce"
    if any(None in names and len(names) > 1 for names in (rule.users, rule.clients)):
        return "a rule for each user or client names no others"
    return None


def _named(rule: ThrottleRule) -> Iterator[Entity]:
    if rule.kind is RuleKind.CLIENT:
        yield from rule.entities()
    for name in (*rule.topics, *rule.groups):
        yield ((rule.kind.value, name),)


def _rule(item: dict[str, Any]) -> ThrottleRule:
    return ThrottleRule(
        id=_name(item["id"]),
        kind=RuleKind(item["kind"]),
        produce_bytes_per_s=_limit(item["produce_bytes_per_s"]),
        consume_bytes_per_s=_limit(item["consume_bytes_per_s"]),
        topics=tuple(_name(name) for name in item.get("topics", ())),
        users=tuple(None if name is None else _name(name) for name in item.get("users", ())),
        clients=tuple(None if name is None else _name(name) for name in item.get("clients", ())),
        groups=tuple(_name(name) for name in item.get("groups", ())),
    )


def _name(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a rule's name must be a string, not {value!r}")
    return value


def _limit(value: object) -> int | None:
    if value is not None and (type(value) is not int or value < 1):
        raise ValueError(f"a rule's limit must be null or a whole number of 1 or more, not {value!r}")
    return value
