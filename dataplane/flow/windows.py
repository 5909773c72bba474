"""Requests of instances, ten seconds at a time, for the reports to the flow master (`quota.contracts.requests`).

With the first report after a window's end, what every instance has counted is taken: counts that came in the milliseconds until
then are in it as well, and none is in two. Windows are kept for a minute, so that another master, or one that was away, hears
of them: the first report of a connection begins to tell all that is kept, the others go on. No report has more than `MOST_TOLD`
texts and not many more bytes than `MOST_TOLD_BYTES`, and what is taken is taken in pieces, so no turn of the loop is long;
instances at rest cost a look each in ten seconds, at two sums. What flowed meanwhile is told with it: the difference of two
sums of the agent's, so that all windows together have every byte once, also where a report is given up while it is made. So is
what each topic moved (`metering.moved`), of the topics of an instance that moved most (`quota.contracts.topics_moved`); where
very many instances are busy, fewer of each are named, so that reports stay as long as they are.

The oldest is told first, so each report can say up to where nothing is missing: nobody takes a window before all brokers have
told all of it, however long that takes after a connection was lost.

Where the clock is set back, what was counted goes on, and windows that are still to come by it are forgotten: they would be taken
for the newest, and those that follow for too old to be kept.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from quota.agent.agent import NOTHING_CARRIED, Carried
from quota.contracts.requests import MOST_TEXT, WINDOW_S, RequestCounts, Told
from quota.contracts.topics_moved import MOST_NAMED, MOST_NAMED_BYTES, TopicsMoved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dataplane.flow.loop_times import LoopTimes
    from dataplane.metering.moved import MovedTopics
    from dataplane.tenancy.instance import Instance
    from quota.steps import Steps

KEPT = 6
"""Windows."""
MOST_TOLD = 500
"""Texts of about a kilobyte in one report: a broker with 5,000 busy instances tells all of a window before it has the next."""
MOST_TOLD_BYTES = 2**20
"""A master takes a report of 8 MiB, and closes the connection of one that sends more."""
MOST_TOPIC_BYTES = 2 * 2**20
"""Of topics in the texts of one window: six windows are kept, here and by the master, and a report a second tells one in time."""
_TAKEN_PER_STEP, _LOOKED_AT_PER_STEP = 10, 100
_TOPICS_PER_STEP, _TOPICS_AS_ONE = 200, 20
_MOST_GATHERED = 2 * MOST_NAMED
_MS = 1000


class RequestWindows:
    """Of one broker. `now_ms` is the wall's clock; `carried`: what has flowed of an instance, by its id; None: not counted.

    `times` hears what is taken of each instance, also of those at rest.
    """

    def __init__(
        self,
        instances: Callable[[], Iterable[Instance]],
        now_ms: Callable[[], int],
        carried: Callable[[str], Carried] | None = None,
        times: LoopTimes | None = None,
        topics: MovedTopics | None = None,
    ) -> None:
        self._instances, self._now_ms, self._carried = instances, now_ms, carried
        self._times, self._topics = times, topics
        self._gathered: dict[str, TopicsMoved] = {}  # of the window that is being taken, by instance id
        self._left: dict[str, TopicsMoved] = {}  # of reports that were given up: no window has had it yet
        self._told_of: dict[str, Carried] = {}  # the sums up to which windows have told
        self._begins = self._present()
        self._kept: dict[int, dict[str, str]] = {}  # texts by when their window began, and by instance id
        self._untold: deque[tuple[int, str]] = deque()  # in the order of windows

    def report_steps(self, *, is_whole: bool) -> Steps[Told]:
        """What the next report tells. `is_whole`: it is the first of a connection."""
        present = self._present()
        if present > self._begins:
            yield from self._take()
        elif present < self._begins:
            self._kept = {at: texts for at, texts in self._kept.items() if at < present}
            self._forget_untold()
        self._begins = present
        if is_whole:
            self._untold = deque((at, name) for at, texts in sorted(self._kept.items()) for name in texts)
        told: dict[str, dict[int, str]] = {}
        texts = size = 0
        while self._untold and texts < MOST_TOLD and size < MOST_TOLD_BYTES:
            at, name = self._untold.popleft()
            text = self._kept.get(at, {}).get(name)
            if text is not None:  # it was not forgotten meanwhile
                told.setdefault(name, {})[at] = text
                texts, size = texts + 1, size + len(text)
        return Told(told, self._untold[0][0] if self._untold else present)

    def _take(self) -> Steps[None]:
        begins, self._begins = self._begins, self._present()
        texts = self._kept.setdefault(begins, {})
        for old in [at for at in self._kept if at <= begins - KEPT * WINDOW_S]:
            del self._kept[old]
        if len(self._untold) > KEPT * MOST_TOLD * WINDOW_S:
            self._forget_untold()
        yield from self._gather_topics()
        instances = list(self._instances())
        self._forget_sums(instances)
        most_bytes = min(MOST_NAMED_BYTES, MOST_TOPIC_BYTES // max(1, len(self._gathered), len(self._left)))
        taken = looked_at = 0
        for instance in instances:
            name = instance.spec.id
            counts = self._with_carried(name, instance.figures.take())
            if self._times is not None:
                self._times.note(name, instance.names.key, counts)
            if self._topics is not None:
                counts = self._with_topics(name, counts, most_bytes)
            if counts is not None:
                text = counts.to_text()
                if len(text) <= MOST_TEXT:  # the report as a whole would be refused; nobody has come near it
                    texts[name] = text
                    self._untold.append((begins, name))
                taken += 1 if counts.topics is None else 1 + len(counts.topics.names) // _TOPICS_AS_ONE
            looked_at += 1
            if taken >= _TAKEN_PER_STEP or looked_at == _LOOKED_AT_PER_STEP:
                taken = looked_at = 0
                yield
        if self._times is not None:
            self._times.close(begins, {instance.names.key for instance in instances})
        self._gathered.clear()  # of instances that are gone
        self._left.clear()

    def _gather_topics(self) -> Steps[None]:
        """What topics moved, by instance. What has been gathered stays, if the report is given up here: the next one tells it."""
        if self._topics is None:
            return
        yield from self._leave_gathered()
        left = len(self._topics)  # those that are put on the list meanwhile come next time
        while True:
            touched: dict[str, TopicsMoved] = {}
            for moved in self._topics.take(min(_TOPICS_PER_STEP, left)):  # also of none: it hears that somebody asks
                ours = self._gathered.get(moved.instance)
                if ours is None:
                    ours = self._gathered[moved.instance] = TopicsMoved()
                ours.count(moved.topic, moved.produced, moved.consumed, moved.records)
                touched[moved.instance] = ours
            for ours in touched.values():
                if len(ours.names) > _MOST_GATHERED:
                    ours.shorten()  # each topic comes once: none of those with most is among the others
                    yield
            left -= _TOPICS_PER_STEP
            if left <= 0:
                return
            yield

    def _leave_gathered(self) -> Steps[None]:
        """Of a report that was given up: to what others have left, in which a topic may be named, or among the others."""
        while self._gathered:
            name, gathered = self._gathered.popitem()
            left = self._left.get(name)
            if left is None:
                self._left[name] = gathered
                continue
            left.add(gathered)
            if len(left.names) > _MOST_GATHERED:
                left.shorten()
            yield

    def _with_topics(self, name: str, counts: RequestCounts | None, most_bytes: int) -> RequestCounts | None:
        """With what topics moved: also of an instance of which nothing else is to be told."""
        moved, left = self._gathered.pop(name, None), self._left.pop(name, None)
        if left is not None:
            if moved is not None:
                left.add(moved)
            moved = left
        if counts is None:
            if moved is None:
                return None
            counts = RequestCounts()
            counts.carried_windows = int(self._carried is not None)
        if moved is not None:
            moved.shorten(MOST_NAMED, most_bytes)
        counts.topics = moved or TopicsMoved()
        return counts

    def _with_carried(self, name: str, counts: RequestCounts | None) -> RequestCounts | None:
        """With the bytes since it was asked last. What was refused after it was paid for makes a sum smaller for a moment."""
        if self._carried is None:
            return counts
        found, before = self._carried(name), self._told_of.get(name, NOTHING_CARRIED)
        if counts is None and found == before:
            return None
        number, produced, consumed = found
        was_produced, was_consumed = before[1:] if number == before.number else (0, 0)
        produced, consumed = max(produced, was_produced), max(consumed, was_consumed)
        if produced or consumed:
            self._told_of[name] = Carried(number, produced, consumed)
        if counts is None:
            if (produced, consumed) == (was_produced, was_consumed):
                return None
            counts = RequestCounts()  # of what waits for an answer, or was paid for later
        counts.produced_bytes, counts.consumed_bytes = produced - was_produced, consumed - was_consumed
        counts.carried_windows = 1
        return counts

    def _forget_sums(self, instances: list[Instance]) -> None:
        """Of instances that are gone. The others' stay, however far a report gets: without them all would be told again."""
        if len(self._told_of) > len(instances):
            names = {instance.spec.id for instance in instances}
            self._told_of = {name: sums for name, sums in self._told_of.items() if name in names}

    def _forget_untold(self) -> None:
        """Of windows that are not kept."""
        self._untold = deque(each for each in self._untold if each[0] in self._kept)

    def _present(self) -> int:
        """When the present window began."""
        now_s = self._now_ms() // _MS
        return now_s - now_s % WINDOW_S
