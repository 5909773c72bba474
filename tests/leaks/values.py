"""What is put into a field: something that B has (`foreign`), and of the same length something that nobody has (`absent`).

Names and ids that exist end with letters of which another choice exists nowhere. Where a group would be kept follows from its
name, so that an absent one is looked for that A is sent to the same broker with: otherwise the two answers could not be equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from dataplane.cluster.metadata import OFFSETS_TOPIC
from tests.leaks.asking import batch
from tests.leaks.client import Client
from tests.leaks.kinds import Kind
from tests.leaks.planting import PASSWORD, Facts, coordinator_of, endings

ENDING = 4
_NEVER_GIVEN = 2**40
"""A producer id far beyond those that were given."""


@dataclass(frozen=True)
class Pair:
    """`name` says what the foreign one is."""

    name: str
    foreign: Any
    absent: Any
    low: int = 0  # version of the request


class Values:
    """Of each kind, as A may know them."""

    def __init__(self, asker: Client, own: Facts, others: Facts) -> None:
        self._asker, self._own, self._others = asker, own, others
        self._made: dict[Kind, tuple[Pair, ...]] = {}

    def of(self, kind: Kind) -> tuple[Pair, ...]:
        """None of a kind of which there is nothing foreign here."""
        if kind not in self._made:
            self._made[kind] = tuple(self._pairs(kind))
        return self._made[kind]

    def _pairs(self, kind: Kind) -> Iterator[Pair]:
        b = self._others
        if kind in (Kind.TOPIC, Kind.GROUP, Kind.TRANSACTIONAL_ID):
            yield from self._names(kind)
        elif kind is Kind.TOPIC_ID:
            for name, topic_id in b.topics.items():
                yield Pair(
                    f"the id of B's {'own' if name == b.topic else 'shared'} topic", topic_id, _other_id(topic_id)
                )
        elif kind in (Kind.BROKER, Kind.BROKER_NAME):
            hidden = [broker for broker in b.brokers if broker not in self._own.brokers]
            nowhere = max(b.brokers) + 4
            for broker in hidden[:1]:
                as_text = kind is Kind.BROKER_NAME
                yield Pair("a broker of B's alone", *((str(broker), str(nowhere)) if as_text else (broker, nowhere)))
        elif kind is Kind.PRODUCER_ID:
            yield Pair("B's producer id", b.producer_id, _NEVER_GIVEN)
        elif kind is Kind.RECORDS:
            yield Pair("a batch of B's producer", batch(3, b.producer_id), batch(3, _NEVER_GIVEN), low=3)
        elif kind is Kind.FETCH_SESSION:
            yield Pair("B's session", b.session_id, b.session_id ^ 0x5A5A5A5A)
        elif kind is Kind.DIRECTORY:
            yield Pair("an id that B has of something", b.topics[b.topic], _other_id(b.topics[b.topic]))
        else:
            yield from self._texts(kind)

    def _texts(self, kind: Kind) -> Iterator[Pair]:
        b = self._others
        known = {
            Kind.MEMBER: b.member_id,
            Kind.GROUP_INSTANCE: b.instance_id,
            Kind.CLUSTER: b.cluster_id,
            Kind.USER: b.user,
            Kind.PRINCIPAL: b.principal,
            Kind.HOST: b.acl_host,
            Kind.ACL_RESOURCE: b.acl_resource,
            Kind.QUOTA_USER: b.quota_user,
            Kind.QUOTA_CLIENT: b.quota_client,
            Kind.QUOTA_ADDRESS: b.acl_host,
        }
        if kind is Kind.LOGIN:
            yield Pair("B's user with its password", *(_login(user) for user in (b.user, absent_of(b.user))))
        elif kind is Kind.ACL_RESOURCE:
            yield Pair("a resource of B's ACL", known[kind], absent_of(known[kind]))
            yield Pair("B's topic", b.topic, absent_of(b.topic))
        else:
            yield Pair(f"B's {kind.value}", known[kind], absent_of(known[kind]))

    def _names(self, kind: Kind) -> Iterator[Pair]:
        own, b = self._own, self._others
        name = {Kind.TOPIC: b.topic, Kind.GROUP: b.group, Kind.TRANSACTIONAL_ID: b.transactional_id}[kind]
        mine = {Kind.TOPIC: own.topic, Kind.GROUP: own.group, Kind.TRANSACTIONAL_ID: own.transactional_id}[kind]
        yield self._name(kind, "B's name", name)
        if b.key is not None:
            yield self._name(kind, "B's physical name", f"{b.key}.{name}")
        if own.key is not None:
            yield self._name(kind, "A's physical name", f"{own.key}.{mine}")
        if kind is Kind.TOPIC:
            yield Pair("a topic of the cluster's", OFFSETS_TOPIC, "__consumer_offsetz")

    def _name(self, kind: Kind, said: str, foreign: str) -> Pair:
        if kind not in _KEPT:
            return Pair(said, foreign, absent_of(foreign))
        keeper, key_type = coordinator_of(self._asker, foreign, _KEPT[kind]), _KEPT[kind]
        absent = next(n for n in others_of(foreign) if coordinator_of(self._asker, n, key_type) == keeper)
        return Pair(said, foreign, absent)


_KEPT = {Kind.GROUP: 0, Kind.TRANSACTIONAL_ID: 1}
"""Kinds whose names have a coordinator, and how FindCoordinator calls them."""


def absent_of(text: str) -> str:
    """One of the same length."""
    return next(iter(others_of(text)))


def others_of(text: str) -> Iterator[str]:
    """The same with another ending. Of an address another address, of an id another id."""
    if text[-1].isdigit() or len(text) <= ENDING:
        last = text[-1]
        return iter([text[:-1] + ("1" if last != "1" else "2")])
    if text[-ENDING:].isalpha():
        return (text[:-ENDING] + "z" + ending[1:] for ending in endings())
    return iter([text[:-1] + ("a" if text[-1] != "a" else "b")])


def _other_id(topic_id: UUID) -> UUID:
    return UUID(int=topic_id.int ^ 0x5A5A5A5A)


def _login(user: str) -> bytes:
    return f"\0{user}\0{PASSWORD}".encode()
