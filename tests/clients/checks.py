"""What is asked of a client on a row: the jobs of each check, and what an answer has to be. Pure.

What counts as the right error is in the client's own words, which name Kafka's error in its own way: an exception's name, a
code, a sentence. A client may also say it in its log; programs hand that over with the rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.clients.rows import Row

EXCHANGE, DENIED, STRANGER, REAUTHENTICATION = CHECKS = ("exchange", "denied", "stranger", "reauthentication")
RECORDS = 300
LIMIT_S = 20.0
"""For one thing that goes right, or is refused."""
SLACK_S = 20.0
"""For a program to start, and of a busy machine."""
LIFETIMES = 3.2
"""For so many lifetimes of a login records are sent: three logins more on each connection, two of which are asked for."""
UNREADABLE, READ_ONLY, THEIR_GROUP = "secret", "archive", "theirs"
"""A topic without any right, one that may be read only, a group without any right."""

NO_TOPIC = re.compile(r"topic.{0,3}authori[sz]ation|not authori[sz]ed to access (this )?topic", re.IGNORECASE)
NO_GROUP = re.compile(r"group.{0,3}authori[sz]ation|not authori[sz]ed to access (this )?group", re.IGNORECASE)
NO_LOGIN = re.compile(r"authentication|invalid credentials", re.IGNORECASE)
NO_TLS = re.compile(r"certificate|handshake|\bx509\b|\bssl\b|\btls\b", re.IGNORECASE)


@dataclass(frozen=True)
class Job:
    """One line for a program. `refusal`: what it has to say, where it has to fail."""

    check: str
    name: str
    do: str
    topic: str
    group: str = ""
    access: str = "right"  # of `instance.ACCESS`: with whose password and certificate
    refusal: re.Pattern[str] | None = None
    records: int = 0
    seconds: float = 0.0
    limit_s: float = LIMIT_S


@dataclass(frozen=True)
class Answer:
    """What a program said to a job, and the seconds until it did."""

    ok: bool
    words: str
    seconds: float
    sent: int = 0
    received: int = 0
    distinct: int = 0

    @classmethod
    def from_document(cls, document: dict[str, Any], seconds: float) -> Answer:
        numbers = {name: int(document.get(name, 0)) for name in ("sent", "received", "distinct")}
        return cls(bool(document["ok"]), str(document["words"]), seconds, **numbers)


@dataclass
class Finding:
    """Of one check of a cell. `outcome`: pass, fail, not supported."""

    check: str
    outcome: str = "pass"
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)  # by job: when and what the client said of its errors

    def blame(self, problem: str) -> None:
        self.outcome = "fail"
        self.problems.append(problem)


def jobs(row: Row, *, number: int, lifetime_ms: int, wanted: tuple[str, ...] = CHECKS) -> list[Job]:
    """What is asked of a client on a row, in its order; topics and groups are named after `number`."""
    orders, steady, readers = f"orders-{number}", f"orders-{number}-steady", f"readers-{number}"
    found = [Job(EXCHANGE, "exchange", "exchange", orders, readers, records=RECORDS, limit_s=2 * LIMIT_S)]
    if row.wants_sasl:
        seconds = LIFETIMES * lifetime_ms / 1000
        found.append(Job(REAUTHENTICATION, "steady", "steady", steady, seconds=seconds, limit_s=seconds + LIMIT_S))
    found += [
        Job(DENIED, "a topic without a right", "produce", UNREADABLE, refusal=NO_TOPIC),
        Job(DENIED, "a topic to read only", "produce", READ_ONLY, refusal=NO_TOPIC),
        Job(DENIED, "a group without a right", "consume", orders, THEIR_GROUP, refusal=NO_GROUP),
    ]
    if row.wants_sasl:
        found.append(Job(STRANGER, "a wrong password", "produce", orders, access="wrong password", refusal=NO_LOGIN))
    if row.wants_tls:
        found.append(Job(STRANGER, "a server of another CA", "produce", orders, access="wrong ca", refusal=NO_TLS))
    if row.shows_certificate:
        found += [
            Job(STRANGER, "no certificate", "produce", orders, access="no certificate", refusal=NO_TLS),
            Job(STRANGER, "a certificate of another CA", "produce", orders, access="foreign", refusal=NO_TLS),
        ]
    return [job for job in found if job.check in wanted]


def problem_of(job: Job, answer: Answer | None, *, is_vague: bool = False) -> str | None:
    """What is wrong with an answer as far as that can be seen without asking the brokers; None: nothing.

    `is_vague`: the client is known not to say why it is refused; it has to end all the same.
    """
    if answer is None:
        return f"{job.name}: it has not ended"
    if answer.seconds > job.limit_s + SLACK_S:
        return f"{job.name}: it took {answer.seconds:.0f} s"
    if job.refusal is not None:
        if answer.ok:
            return f"{job.name}: it was let in"
        if not is_vague and not job.refusal.search(answer.words):
            return f"{job.name}: it said {answer.words!r}"
        return None
    if not answer.ok:
        return f"{job.name}: {answer.words!r}"
    if job.do == "exchange" and not answer.sent == answer.received == answer.distinct == job.records:
        return f"{job.name}: of {job.records} sent {answer.sent}, read {answer.received}, different {answer.distinct}"
    return None


def problem_of_log(values: list[bytes], sent: int) -> str | None:
    """What is wrong with the values that a log holds, of which v0, v1, … v(sent-1) were acknowledged; None: nothing."""
    numbers = [int(value[1:]) for value in values]
    lost = sorted(set(range(sent)) - set(numbers))
    doubled = len(numbers) - len(set(numbers))
    if lost or doubled or len(numbers) != sent:
        return f"of {sent} records {len(lost)} are lost ({lost[:3]}) and {doubled} doubled; the log has {len(numbers)}"
    return None


def problem_of_keys(by_partition: dict[int, list[tuple[bytes, bytes]]]) -> str | None:
    """Each key is in one partition, and its values stand in the order in which they were sent."""
    places: dict[bytes, tuple[int, int]] = {}
    for partition, records in by_partition.items():
        for key, value in records:
            before = places.get(key)
            if before is not None and (before[0] != partition or before[1] >= int(value[1:])):
                return f"key {key!r}: {value!r} of partition {partition} after {before}"
            places[key] = (partition, int(value[1:]))
    return None
