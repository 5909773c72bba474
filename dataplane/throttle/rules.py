"""The throttle rules of one instance on this broker: the buckets of `quota.agent`, and whom each concerns.

A rule is enforced by what it owes at the moment, whoever ran up the debt, so that more connections are no way around it:

produce   the request is taken in and charged; the next one that a rule concerns, on any connection, waits until the
          debt is paid. A client's rule is told in the answer (`throttle_time_ms`), as the instance's limit is. A topic's
          is not: clients that obey would hold what they have for all other topics of this broker as well
consume   a client's fetch waits likewise, and brings what the rate gives in about a second. While a topic owes, its
          partitions bring nothing and the others of the fetch all they have. A fetch does not say its group: it is of
          the group that a client of this id and address has joined, as coordinators tell all brokers through the master

A rule for each has a flow per client, made when the client is first seen and dropped when it has been quiet. They are
bounded: further clients share one flow, or whoever makes up a new client id for every connection would have no limit
and every broker a table without end.

Instances without rules have none of this: `Instance.rules` is None, and that is all that is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from dataplane.doors import Clock
from dataplane.throttle.debt_queue import most_owing, owed_s
from quota.agent.agent import Agent
from quota.contracts.namespace import InstanceNames
from quota.contracts.rows import Row
from quota.contracts.rules import RuleSet, ThrottleRule
from quota.core.bucket import TokenBucket
from quota.core.matching import Match, RuleBook

MOST_CLIENTS = 1_000
"""Of rules for each, on one broker and in one instance, that have a flow of their own."""
QUIET_S = 60.0
"""A client that sends nothing for so long, and owes nothing, gives up its flow."""

_USER_PREFIX = "User:"


class Client(Protocol):
    """Who sends a request (`tenancy.session.Session`)."""

    principal: str
    peer: str  # the address, without the port


class RuleFlow(NamedTuple):
    """The two buckets of a rule, or of one client of a rule for each."""

    produce: TokenBucket
    consume: TokenBucket


class RuleRow(NamedTuple):
    """What a row of a report is about: physical topics and groups; no topics: all of the instance."""

    key: str
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class InstanceRules:
    """See the file's text. `leaders` is what this broker leads of the instance, and what all brokers lead."""

    def __init__(self, agent: Agent, clock: Clock, instance: str, names: InstanceNames) -> None:
        self._agent, self._clock = agent, clock
        self._instance, self._names = instance, names
        self.leaders = (0, 0)
        self.version = 0
        self._book = RuleBook(())
        self._flows: dict[str, RuleFlow] = {}  # by key
        self._wholes: dict[str, RuleFlow] = {}  # of rules as a whole, by id
        self._topics: dict[str, RuleFlow] = {}  # by physical name
        self._groups: dict[str, RuleFlow] = {}  # by key
        self._rows: dict[str, RuleRow] = {}  # by key of a rule
        self._clients: dict[str, float] = {}  # keys of single clients: when last seen

    # --- what the spec says -------------------------------------------------------------------------------------------

    def configure(self, rules: RuleSet) -> None:
        """Take these; flows that stay keep what they owe."""
        self.version, self._book = rules.version, RuleBook(rules.items)
        wanted = {Row(self._instance, rule.id).key: rule for rule in rules.items}
        for key in [key for key in self._flows if key not in wanted]:
            self._remove(key)
        for key, rule in wanted.items():
            self._add(key, rule)
        self._wholes = {rule.id: self._flows[key] for key, rule in wanted.items()}
        self._rows = {key: self._row(key, rule) for key, rule in wanted.items()}
        self._topics = {topic: self._flows[key] for key, row in self._rows.items() for topic in row.topics}
        self._groups = {key: self._flows[key] for key, row in self._rows.items() if row.groups}

    def close(self) -> None:
        """There are none any more."""
        self.configure(RuleSet())

    def _add(self, key: str, rule: ThrottleRule) -> RuleFlow:
        self._agent.configure(key, rule.produce_bytes_per_s, rule.consume_bytes_per_s, self._clock.monotonic())
        produce, consume = self._agent.bucket(key, "produce"), self._agent.bucket(key, "consume")
        assert produce is not None
        assert consume is not None
        flow = self._flows[key] = RuleFlow(produce, consume)
        return flow

    def _remove(self, key: str) -> None:
        for bucket in self._flows.pop(key):
            bucket.set_rate(None, self._clock.monotonic())  # those who wait for a rule that is gone are let go
        self._clients.pop(key, None)
        self._agent.remove(key)

    # --- what the master is told --------------------------------------------------------------------------------------

    def _row(self, key: str, rule: ThrottleRule) -> RuleRow:
        topics, groups = map(self._names.topic_in, rule.topics), map(self._names.group_in, rule.groups)
        return RuleRow(key, tuple(topics), tuple(groups))

    def rows(self) -> Iterator[RuleRow]:
        """Of every flow."""
        now = self._clock.monotonic()
        for key, seen in list(self._clients.items()):
            if now - seen > QUIET_S and not any(owed_s(bucket, now) for bucket in self._flows[key]):
                self._remove(key)
        for key in self._flows:
            yield self._rows.get(key) or RuleRow(key)

    # --- what a request meets -----------------------------------------------------------------------------------------

    def concerns(self, topic: str) -> bool:
        """Whether a request for this one topic could be subject to a rule."""
        return self._book.has_clients or bool(self._groups) or topic in self._topics

    def produce_debt(self, session: Client, client_id: str | None, topics: Iterable[str]) -> TokenBucket | None:
        """What a request to these topics has to wait for."""
        now = self._clock.monotonic()
        client = self._client(session, client_id, now)
        flows = [] if client is None else [client]
        flows += [self._topics[topic] for topic in topics if topic in self._topics]
        return most_owing((flow.produce for flow in flows), now)

    def charge_produce(
        self, session: Client, client_id: str | None, size: int, topics: Iterable[tuple[str, int]]
    ) -> float:
        """Charge a request, and to topics what is theirs of it; the seconds that the client is told to wait."""
        now = self._clock.monotonic()
        for flow, part in self._parts(topics):
            flow.produce.charge(part, now)
        client = self._client(session, client_id, now)
        return client.produce.charge(size, now) if client is not None else 0.0

    def fetch_debt(self, session: Client, client_id: str | None) -> TokenBucket | None:
        """What a client's fetch has to wait for."""
        now = self._clock.monotonic()
        return most_owing((flow.consume for flow in self._fetch_flows(session, client_id, now)), now)

    def fetch_bytes(self, session: Client, client_id: str | None, window_s: float) -> int | None:
        """The most that a client's fetch should bring; None: no limit."""
        flows = self._fetch_flows(session, client_id, self._clock.monotonic())
        allowed = [flow.consume.fetch_bytes(window_s) for flow in flows]
        return min((each for each in allowed if each is not None), default=None)

    def topic_fetch_bytes(self, topic: str, window_s: float) -> int | None:
        """The most that a fetch should bring of a topic; 0 while it owes. None: no limit."""
        flow = self._topics.get(topic)
        allowed = flow.consume.fetch_bytes(window_s) if flow is not None else None
        if allowed is None:
            return None
        return max(allowed, 1) if not self.topic_fetch_delay(topic) else 0

    def topic_fetch_delay(self, topic: str) -> float:
        """The seconds until a topic owes nothing."""
        return owed_s(self._topics[topic].consume, self._clock.monotonic())

    def charge_consume(
        self, session: Client, client_id: str | None, size: int, topics: Iterable[tuple[str, int]]
    ) -> float:
        """Charge an answer, and to topics what is theirs of it; the seconds that the client is told to wait."""
        now = self._clock.monotonic()
        for flow, part in self._parts(topics):
            flow.consume.charge(part, now)
        flows = self._fetch_flows(session, client_id, now)
        return max((flow.consume.charge(size, now) for flow in flows), default=0.0)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _parts(self, topics: Iterable[tuple[str, int]]) -> Iterator[tuple[RuleFlow, int]]:
        """Of the topics that have a rule, with the bytes that are theirs."""
        for topic, part in topics:
            flow = self._topics.get(topic)
            if flow is not None:
                yield flow, part

    def _fetch_flows(self, session: Client, client_id: str | None, now: float) -> list[RuleFlow]:
        """Those of the client, and of the group that it is a member of."""
        client = self._client(session, client_id, now)
        flows = [] if client is None else [client]
        for key, flow in self._groups.items():
            if self._agent.is_member(key, client_id or "", session.peer):
                flows.append(flow)
                break
        return flows

    def _client(self, session: Client, client_id: str | None, now: float) -> RuleFlow | None:
        if not self._book.has_clients:
            return None
        match = self._book.of_client(session.principal.removeprefix(_USER_PREFIX), client_id or "")
        if match is None:
            return None
        return self._own_flow(match, now) if match.names else self._wholes[match.rule.id]

    def _own_flow(self, match: Match, now: float) -> RuleFlow:
        key = Row(self._instance, match.rule.id).of_client(match.names).key
        flow = self._flows.get(key)
        if flow is None:
            if len(self._clients) >= MOST_CLIENTS:
                return self._wholes[match.rule.id]
            flow = self._add(key, match.rule)
            self._agent.set_leaders(key, *self.leaders, now)
        self._clients[key] = now
        return flow
