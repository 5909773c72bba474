"""What a round's clients saw, against what all replicas hold at the end: anomalies by Jepsen's names. Pure.

lost            acknowledged at an offset where something else, or nothing, is now
duplicate       a record of an idempotent producer at two offsets
reordered       a producer's numbers fall within a partition
inconsistent    a reader saw something else at an offset than is there now (or somebody else saw)
foreign         a record that nobody sent
nonmonotonic    the assigning consumer's offsets did not rise
skipped         the assigning consumer passed over a record that is there
offset-back     a new assignment found a smaller offset committed than had been acknowledged before it asked
alone           acknowledged while one broker of three ran, whatever its ISR said: a single disk then had it
unseen          acknowledged, and a group or the assigning consumer never got it, with the time to
stalled         a partition acknowledged nothing for 5 s while nothing that it needs was missing
producer        a producer ended with a fatal error, or with records neither acknowledged nor refused
consumer        a consumer did not come to the end, or had its position reset
replicas        replicas that differ, have holes or do not end together
views           a broker tells clients of other leaders, epochs or ISRs than ZooKeeper holds, with nothing going on
stuck           something did not recover within a minute, or a topic could not be made or deleted

Not wrong, but told: `renumbered`, a record at two offsets that its producer sent again under a new epoch, because a
broker had told it so. librdkafka raises its epoch, for all partitions, when a request was refused as out of order behind
one that met no leader (its issue 4953); no broker can know those numbers again. A producer reports which of its epochs
ended with such an answer, and of which broker's error it speaks. Within one epoch a second copy is the broker's mistake,
and so it is under epochs of which none ended so: who invents a new one without a reason would hide every duplicate.

A client may not know the offset of what it acknowledges: librdkafka takes the answer to a later batch for one to all
before it. Then the record has to be somewhere in its partition.

A group may poll a record twice and jump back after a rebalance: it promises at least once. A refused record may be in
the log or not.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ENDS_EPOCH = ("OUT_OF_ORDER_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID")
"""Answers of brokers after which an idempotent producer has to begin a new epoch (KIP-360)."""
_EXAMPLES = 3
_SERVED_EVERY_S = 5.0


@dataclass(slots=True)
class Findings:
    """Counts by kind, with a few examples each."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    renumbered: int = 0

    def add(self, kind: str, what: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        examples = self.examples.setdefault(kind, [])
        if len(examples) < _EXAMPLES:
            examples.append(what)

    def __bool__(self) -> bool:
        return bool(self.counts)


def check(
    log: Mapping[int, Mapping[int, tuple[str, int]]],
    producers: Mapping[str, Mapping[str, Any]],
    members: Mapping[str, Mapping[str, Any]],
    assigned: Mapping[str, Mapping[str, Any]],
    findings: Findings,
    alone: Sequence[tuple[float, float]] = (),
    numbering: Mapping[int, Mapping[int, tuple[int, int]]] | None = None,
) -> None:
    """Add what is wrong; `log` is what all replicas agree on, the others are the clients' reports by name.

    `numbering`: by partition and offset, the producer id and epoch under which a record was sent.
    `alone`: when only one broker ran, and nothing may have been acknowledged.
    """
    _check_log(log, producers, findings, numbering or {})
    acknowledged: set[tuple[int, int]] = set()
    for name, report in producers.items():
        _check_producer(name, report, log, acknowledged, findings)
        for partition, number, _, when in report["acknowledged"]:
            if any(begin < when < end for begin, end in alone):
                findings.add("alone", f"{name}:{number} in partition {partition} was acknowledged by a single broker")
    for name, report in assigned.items():
        polls = [(p, offset, who, number) for p, offset, who, number in report["polls"]]
        _check_polls(name, polls, log, findings)
        _check_order(name, polls, log, findings)
        _check_end(name, report, findings)
        _check_seen(name, polls, acknowledged, findings)
    together = []
    for name, report in members.items():
        _check_polls(name, report["polls"], log, findings)
        _check_end(name, report, findings)
        together += report["polls"]
    if members:
        _check_seen("the group", together, acknowledged, findings)
        _check_commits(members.values(), findings)


def check_served(
    producers: Mapping[str, Mapping[str, Any]], served: Sequence[tuple[float, float]], findings: Findings
) -> None:
    """`served`: when every partition has to go on acknowledging, whatever was wrong."""
    times: dict[int, list[float]] = defaultdict(list)
    for report in producers.values():
        for partition, _, _, when in report["acknowledged"]:
            times[partition].append(when)
    for begin, end in served:
        for partition, found in sorted(times.items()):
            marks = [begin, *sorted(when for when in found if begin < when < end), end]
            longest = max(after - before for before, after in itertools.pairwise(marks))
            if longest > _SERVED_EVERY_S:
                findings.add("stalled", f"partition {partition} acknowledged nothing for {longest:.1f} s")


def _check_log(
    log: Mapping[int, Mapping[int, tuple[str, int]]],
    producers: Mapping[str, Mapping[str, Any]],
    findings: Findings,
    numbering: Mapping[int, Mapping[int, tuple[int, int]]],
) -> None:
    seen: dict[tuple[str, int], tuple[int, int]] = {}
    for partition, records in log.items():
        last: dict[str, int] = {}
        for offset in sorted(records):
            who, number = records[offset]
            if who not in producers or number >= producers[who]["sent"]:
                findings.add("foreign", f"{who}:{number} at {partition}/{offset}")
            elif (who, number) in seen and _was_told_to(
                producers[who], numbering, seen[who, number], (partition, offset)
            ):
                findings.renumbered += 1
            elif (who, number) in seen:
                findings.add("duplicate", f"{who}:{number} at {seen[who, number]} and {(partition, offset)}")
            elif number < last.get(who, -1):
                findings.add("reordered", f"{who}:{number} at {partition}/{offset} behind {last[who]}")
            seen.setdefault((who, number), (partition, offset))
            last[who] = max(number, last.get(who, -1))


def _was_told_to(
    report: Mapping[str, Any],
    numbering: Mapping[int, Mapping[int, tuple[int, int]]],
    one: tuple[int, int],
    other: tuple[int, int],
) -> bool:
    """Whether an epoch between the two numberings ended because a broker answered what ends one."""
    first, second = (numbering.get(partition, {}).get(offset) for partition, offset in (one, other))
    if first is None or second is None or first == second:
        return False
    earlier, later = sorted((first, second))
    told = [(producer_id, epoch) for producer_id, epoch, error in report.get("epochs_ended", ()) if error in ENDS_EPOCH]
    return any(earlier <= ended < later for ended in told)


def _check_producer(
    name: str,
    report: Mapping[str, Any],
    log: Mapping[int, Mapping[int, tuple[str, int]]],
    acknowledged: set[tuple[int, int]],
    findings: Findings,
) -> None:
    places = {record: (partition, offset) for partition in log for offset, record in log[partition].items()}
    for partition, number, offset, _ in report["acknowledged"]:
        if offset is None:
            place = places.get((name, number))
            if place is None or place[0] != partition:
                findings.add("lost", f"{name}:{number} was acknowledged in partition {partition} and is not there")
            else:
                acknowledged.add(place)
            continue
        found = log.get(partition, {}).get(offset)
        if found != (name, number):
            findings.add("lost", f"{name}:{number} was acknowledged at {partition}/{offset}, where {found} is")
        if (partition, offset) in acknowledged:
            findings.add("inconsistent", f"{partition}/{offset} was acknowledged twice")
        acknowledged.add((partition, offset))
    for error in report["fatal"]:
        findings.add("producer", f"{name}: {error}")
    if report["unanswered"]:
        findings.add("producer", f"{name}: {report['unanswered']} records were not answered at the end")


def _check_polls(
    name: str,
    polls: Iterable[Sequence[Any]],
    log: Mapping[int, Mapping[int, tuple[str, int]]],
    findings: Findings,
) -> None:
    for partition, offset, who, number in polls:
        found = log.get(partition, {}).get(offset)
        if found != (who, number):
            findings.add("inconsistent", f"{name} read {who}:{number} at {partition}/{offset}, where {found} is")


def _check_order(
    name: str,
    polls: Iterable[Sequence[Any]],
    log: Mapping[int, Mapping[int, tuple[str, int]]],
    findings: Findings,
) -> None:
    last: dict[int, int] = {}
    for partition, offset, _, _ in polls:
        before = last.get(partition, -1)
        if offset <= before:
            findings.add("nonmonotonic", f"{name}: {partition}/{offset} after {before}")
        elif any(between in log.get(partition, {}) for between in range(before + 1, offset)):
            findings.add("skipped", f"{name}: {partition}/{offset} directly after {before}")
        last[partition] = offset


def _check_end(name: str, report: Mapping[str, Any], findings: Findings) -> None:
    if not report["reached"]:
        findings.add("consumer", f"{name} did not come to the end: {dict(report['errors'])}")
    for error in report["errors"]:
        if "AUTO_OFFSET_RESET" in error or "OFFSET_OUT_OF_RANGE" in error:
            findings.add("consumer", f"{name}: {error}")


def _check_seen(
    name: str, polls: Iterable[Sequence[Any]], acknowledged: set[tuple[int, int]], findings: Findings
) -> None:
    seen = {(partition, offset) for partition, offset, _, _ in polls}
    for partition, offset in sorted(acknowledged - seen):
        findings.add("unseen", f"{name} never got {partition}/{offset}")


def _check_commits(reports: Iterable[Mapping[str, Any]], findings: Findings) -> None:
    """Merge all members' commits and look-ups by time: what was acknowledged before a look-up began is its minimum."""
    events: list[tuple[float, str, int, int]] = []
    for report in reports:
        events += [(when, "commit", partition, offset) for partition, offset, when in report["commits"]]
        events += [(when, "found", partition, offset) for partition, offset, when in report["found"]]
    committed: dict[int, int] = {}
    for _, what, partition, offset in sorted(events):
        if what == "commit":
            committed[partition] = max(offset, committed.get(partition, 0))
        elif max(offset, 0) < committed.get(partition, 0):  # below 0: none is committed
            findings.add(
                "offset-back", f"partition {partition}: {offset} was found after {committed[partition]} was committed"
            )
