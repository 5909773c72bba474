"""Which throttle rule holds for a client, and for a topic.

Of all client rules that fit, the nearest holds alone, in Kafka's order: a user with a client id before a user, a user
before a client id, and names before "each". So a client that is named is not subject to what is meant for everybody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quota.contracts.rules import CLIENT_ID, USER, Entity, RuleKind, ThrottleRule


class Match(NamedTuple):
    """A rule, and under which names its flow is counted: none where all whom it names share it."""

    rule: ThrottleRule
    names: tuple[str, ...]


class RuleBook:
    """The rules of one instance, to be asked."""

    def __init__(self, rules: Sequence[ThrottleRule]) -> None:
        self.topics = {topic: rule for rule in rules if rule.kind is RuleKind.TOPIC for topic in rule.topics}
        self._clients = {entity: rule for rule in rules if rule.kind is RuleKind.CLIENT for entity in rule.entities()}

    @property
    def has_clients(self) -> bool:
        """Whether there are client rules at all."""
        return bool(self._clients)

    def of_client(self, user: str, client_id: str) -> Match | None:
        """The rule that holds for a client."""
        for entity in _nearest_first(user, client_id):
            rule = self._clients.get(entity)
            if rule is not None:
                own = {USER: user, CLIENT_ID: client_id}
                return Match(rule, tuple(own[kind] for kind, _ in entity) if rule.is_each else ())
        return None


def _nearest_first(user: str, client_id: str) -> tuple[Entity, ...]:
    return (
        ((USER, user), (CLIENT_ID, client_id)),
        ((USER, user), (CLIENT_ID, None)),
        ((USER, user),),
        ((USER, None), (CLIENT_ID, client_id)),
        ((USER, None), (CLIENT_ID, None)),
        ((USER, None),),
        ((CLIENT_ID, client_id),),
        ((CLIENT_ID, None),),
    )
