"""How many steps retention is to be shortened by, and what that costs whom. Pure: what is asked is handed in.

A plan begins with what was seen of an instance: what topics keep, what their partitions hold, where groups would read on.
For a number of steps it asks from which offset records would be kept; about eight such questions find the fewest by which
anything goes. Topics that groups have still to read are left out where the policy spares them, and so are those of which a
leader has gone since: of them nobody knows what would go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from controlplane.core.errors import ClusterUnavailable
from controlplane.policies import rules
from controlplane.policies.rules import MINUTE_MS, Extent, Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from controlplane.policies.rules import Loss, Place, Rule

    Cuts = Mapping[Place, int | None]
    Asked = Callable[[Mapping[Place, int]], Cuts]
    """(a retention in ms of each partition) -> the first offset that it keeps."""
    Measured = Callable[[Collection[Place]], Mapping[Place, int]]

MOST_NAMED = 5
MOST_ROUNDS = 20
"""Topics that groups have still to read, or that have lost a leader, are left out, and what remains is looked at again."""
NOTHING_TO_SHORTEN = "no topic deletes by age and keeps records for longer than the floor of {floor}"
NOTHING_GOES = "all records are younger than the floor of {floor}: shorter retention deletes nothing"
ALL_UNREAD = "what could go has still to be read by groups, and is spared (topics: {names})"
NO_LEADERS = "the leaders of the partitions do not answer"


@dataclass(frozen=True, slots=True)
class Seen:
    """Of one instance: what topics keep, what their partitions hold, where groups would read on."""

    kept: Mapping[str, Kept] = field(default_factory=dict)
    extents: Mapping[Place, Extent] = field(default_factory=dict)
    committed: Mapping[str, Mapping[Place, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """A topic's retention as it is and as it shall be, in ms. `own_ms`: what is set for the topic now, None: nothing."""

    own_ms: int | None
    before_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What shortening comes to. Where `problem` says why it comes to nothing, there are no topics."""

    steps: int = 0
    topics: Mapping[str, Step] = field(default_factory=dict)
    records: int = 0  # that go at most
    losses: tuple[Loss, ...] = ()
    spared: tuple[str, ...] = ()  # topics that stay as they are, since groups have still to read what would go
    problem: str = ""

    @property
    def lost(self) -> int:
        """Records that groups lose, each counted once for each group."""
        return sum(loss.records for loss in self.losses)


def plan_of(there: Seen, rule: Rule, ask: Asked, measure: Measured = lambda _places: {}) -> Plan:
    """Pure but for what is asked; `measure` is asked about partitions of which groups would lose something.

    Raises ClusterUnavailable where of no topic every leader answers.
    """
    search, left = _Search(there, rule, ask), set(there.kept)
    floor = rules.duration_text(search.floor_ms)
    if not left:
        return Plan(problem=NOTHING_TO_SHORTEN.format(floor=floor))
    spared: set[str] = set()
    for _ in range(MOST_ROUNDS):
        steps = search.first(left)
        if search.unsaid & left:  # nobody knows what of these would go, and who has not read it
            left -= search.unsaid
            continue
        if steps is None:
            break
        stuck = {loss.topic for loss in search.losses(left, steps)} if rule.spare_unread else set()
        if not stuck:
            return search.plan(left, steps, spared, measure)
        spared |= stuck
        left -= stuck
    if spared:
        return Plan(problem=ALL_UNREAD.format(names=some(sorted(spared))), spared=tuple(sorted(spared)))
    if not left:
        raise ClusterUnavailable(NO_LEADERS)
    return Plan(problem=NOTHING_GOES.format(floor=floor))


class _Search:
    """For the number of steps: what each would cut off. A number is asked about once, of all topics."""

    def __init__(self, there: Seen, rule: Rule, ask: Asked) -> None:
        self.there = there
        self.rule = rule
        self.floor_ms = rule.floor_minutes * MINUTE_MS
        self.unsaid: set[str] = set()  # topics of which not every leader has answered every question
        self._ask = ask
        self._cuts: dict[int, Cuts] = {}

    def first(self, left: Collection[str]) -> int | None:
        """The fewest steps by which something of these topics goes; None: not even the floor does it."""
        kept = [self.there.kept[name] for name in left]
        most = rules.most_steps(kept, step_percent=self.rule.step_percent, floor_ms=self.floor_ms)
        return rules.first_that_frees(most, lambda steps: bool(rules.goes(self._extents(left), self.cuts(steps))))

    def cuts(self, steps: int) -> Cuts:
        """Of every partition; one whose leader has gone since is missing."""
        if steps not in self._cuts:
            retentions = {place: self._shorter(place[0], steps) for place in self.there.extents}
            self._cuts[steps] = self._ask(retentions)
            self.unsaid.update(place[0] for place in retentions if place not in self._cuts[steps])
        return self._cuts[steps]

    def losses(self, left: Collection[str], steps: int, sizes: Mapping[Place, int] | None = None) -> list[Loss]:
        """Of these topics."""
        return rules.losses(self.there.committed, self._extents(left), self.cuts(steps), sizes)

    def plan(self, left: Collection[str], steps: int, spared: Collection[str], measure: Measured) -> Plan:
        """These topics by so many steps."""
        lost = self.losses(left, steps)
        if lost:
            of = {loss.topic for loss in lost}
            lost = self.losses(left, steps, measure([place for place in self.there.extents if place[0] in of]))
        kept = {name: self.there.kept[name] for name in sorted(left)}
        return Plan(
            steps,
            {name: Step(each.own_ms, each.retention_ms, self._shorter(name, steps)) for name, each in kept.items()},
            sum(rules.goes(self._extents(left), self.cuts(steps)).values()),
            tuple(lost),
            tuple(sorted(spared)),
        )

    def _shorter(self, name: str, steps: int) -> int:
        retention_ms = self.there.kept[name].retention_ms
        return rules.shortened(retention_ms, steps=steps, step_percent=self.rule.step_percent, floor_ms=self.floor_ms)

    def _extents(self, left: Collection[str]) -> dict[Place, Extent]:
        return {place: extent for place, extent in self.there.extents.items() if place[0] in left}


def some(names: Sequence[str]) -> str:
    """The first few, for a sentence."""
    shown = ", ".join(names[:MOST_NAMED])
    return f"{shown}, … ({len(names)})" if len(names) > MOST_NAMED else shown


def losers(losses: Sequence[Loss]) -> str:
    """``billing (orders: 300), audit (orders: 20)``, the first few."""
    return some([f"{loss.group} ({loss.topic}: {loss.records:,})" for loss in losses])
