"""Which client and topic moved most on a broker while somebody waited there, and the sentence that says so. Pure.

A witness is what brokers say of an instance at one moment, cut down to those that move most, as a document::

    {"brokers": {"2": {"produce": {"most": [["orders-loader", "10.0.0.5", "orders", 9542041]], "total": 10485760},
                       "consume": {"most": [], "total": 0},
                       "requests": {"most": [["orders-loader", "10.0.0.5", "", 420]], "total": 500}}}}

Rows are client id, address, topic (of requests none) and how much a second, the busiest first; `total` is what all together
move on that broker. Bytes are of records as they are stored, so they are somewhat less than what a limit counts. Rates are
means over the last half minute to two minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controlplane.remedies.merging import Remedy
from quota.contracts.instance import MIB
from quota.contracts.rows import Unit
from quota.contracts.rules import RuleKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from controlplane.kafka.connection_bytes import Answer
    from controlplane.remedies.merging import Why
    from quota.contracts.rules import ThrottleRule

MOST = 10
"""Rows of each kind that are kept of a broker: a rule may be about one that is not the busiest."""
REQUESTS = "requests"
Row = tuple[str, str, str, float]


@dataclass(frozen=True, slots=True)
class Who:
    """Who moved most. `unit`: what `per_s` counts, bytes or requests."""

    broker: int
    direction: str
    unit: str
    client_id: str  # empty: it does not say one
    address: str
    topic: str  # empty: of requests, which are not counted by topic
    per_s: int
    all_per_s: int  # of all clients on that broker

    @property
    def sentence(self) -> str:
        """In plain words."""
        who = f"Client {self.client_id}" if self.client_id else "A client without an id"
        if self.unit == REQUESTS:
            return f"{who} ({self.address}) sent {self.per_s} of {self.all_per_s} requests/s that came to broker {self.broker}."
        part, whole = f"{self.per_s / MIB:.2f}", f"{self.all_per_s / MIB:.2f}"
        if self.direction == "produce":
            return (
                f"{who} ({self.address}) wrote {part} of {whole} MiB/s that were written on broker {self.broker}, "
                f"into {self.topic}."
            )
        return f"{who} ({self.address}) read {part} of {whole} MiB/s that were read on broker {self.broker}, from {self.topic}."


def witness_of(answers: Mapping[int, Answer]) -> dict[str, Any]:
    """The document, from what each broker says."""
    return {"brokers": {str(broker): _broker(answer) for broker, answer in sorted(answers.items())}}


def _broker(answer: Answer) -> dict[str, Any]:
    produced: list[Row] = []
    consumed: list[Row] = []
    for row in answer.talkers:
        whose = (row.client_id, row.address, row.topic)
        produced.append((*whose, _per_s(row.produced_bytes, row.window_ms)))
        consumed.append((*whose, _per_s(row.consumed_bytes, row.window_ms)))
    asked: dict[tuple[str, str, str], float] = {}
    for connection in answer.connections:  # a client may have several to one broker
        client = (connection.client_id, connection.address, "")
        asked[client] = asked.get(client, 0.0) + _per_s(connection.requests, connection.window_ms)
    rests = answer.other_talkers
    return {
        "produce": _most(produced, rests.in_bytes_per_s),
        "consume": _most(consumed, rests.out_bytes_per_s),
        REQUESTS: _most([(*client, per_s) for client, per_s in asked.items()], answer.other_connections.requests_per_s),
    }


def _most(rows: Iterable[Row], others_per_s: int) -> dict[str, Any]:
    busy = sorted((row for row in rows if row[3] > 0), key=lambda row: (-row[3], *row[:3]))
    total = sum(row[3] for row in busy) + others_per_s
    return {"most": [[*row[:3], round(row[3])] for row in busy[:MOST]], "total": round(total)}


def _per_s(amount: int, window_ms: int) -> float:
    return amount * 1000 / max(1, window_ms)


def who_of(why: Why, witness: Mapping[str, Any], rules: Sequence[ThrottleRule] | None) -> Who | None:
    """Of the broker where most was waited; None: nobody is known, or a rule made wait of which the witness cannot tell.

    `rules`: as they are now; None: they are not known.
    """
    if why.broker is None or why.remedy in (Remedy.STORAGE, Remedy.NONE):
        return None
    broker = witness["brokers"].get(str(why.broker), {})
    kind = why.direction if why.worst.row.unit is Unit.BYTES else REQUESTS
    found = broker.get(kind)
    concerned = _concerned(why, rules)
    if found is None or concerned is None:
        return None
    for client_id, address, topic, per_s in found["most"]:
        if per_s > 0 and concerned(client_id, topic):
            unit = REQUESTS if kind == REQUESTS else "bytes"
            return Who(why.broker, why.direction, unit, client_id, address, topic, per_s, found["total"])
    return None


def _concerned(why: Why, rules: Sequence[ThrottleRule] | None) -> Callable[[str, str], bool] | None:
    """Whether a client and a topic are those that the limit is about; None: a witness knows neither users nor groups."""
    if not why.rule_id:
        return lambda _client, _topic: True
    rule = next((each for each in rules or () if each.id == why.rule_id), None)
    if rule is None or rule.kind is RuleKind.GROUP:
        return None
    if rule.kind is RuleKind.TOPIC:
        topics = rule.topics
        return lambda _client, topic: topic in topics
    if rule.users or not rule.clients:
        return None
    names = set(why.worst.row.client) or {name for name in rule.clients if name is not None}
    return (lambda client, _topic: client in names) if names else None
