"""Lag in seconds while records come and are read: what REST says beside the records' own timestamps.

Somebody produces to three partitions all the time and a consumer commits all the time, in each partition another number of
seconds behind. One of the three falls back in the middle of it: so what is stale differs from what is true. What is true at a
moment is known here of every record and every commit (`Truth`), and each answer is within a second of it:

* of the group alone: while it was asked;
* of the history, by ten seconds and by minutes: at some moment of the minute, since a minute's figure stands for the tens in
  which there was no look (docs/subsystems/history.md), or of the next, as a round may take so long;
* of the list: at some moment of the last minutes, as the schema says. It is held to what was true then, not to what is true now.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import urlencode

import pytest
from confluent_kafka import TopicPartition

from controlplane.history.latest import LAG_FRESH_S
from tests.integration.clients import Sender, consumer
from tests.integration.whole_stack import WholeStack
from tests.support.evidence import kept, moment
from tests.support.ports import free_block
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(900)]

TOPIC, GROUP, PARTITIONS = "orders", "billing", 3
BEHIND_S = (2.0, 5.0, 9.0)
"""How far the group is behind in each partition."""
FALLEN_BACK_S = 35.0
"""And in the last one later."""
EACH_S, COMMIT_S, ASK_S = 0.2, 0.5, 3.0
WITHIN_S = 1.0
ROUND_S = 60
"""A round of all groups may take so long after the beginning of its minute."""


@dataclass
class Truth:
    """What is known here: the timestamps of records by partition and offset, and the commits in their order."""

    stamps: list[list[float]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    commits: list[tuple[float, float, list[int]]] = field(default_factory=list)  # begun, acknowledged, offsets

    def ages(self, begin: float, end: float) -> tuple[float, float] | None:
        """The least and the largest age of the oldest record that was not read, over a time; None: not known of all of it.

        While a commit is under way either offset may be the one that counts.
        """
        commits = list(self.commits)
        if not commits or begin < commits[0][1]:
            return None
        ages = []
        for number, (begun, _, offsets) in enumerate(commits):
            ended = commits[number + 1][1] if number + 1 < len(commits) else end
            first, last = max(begin, begun), min(end, ended)
            if first > last:
                continue
            oldest = min(self.stamps[partition][offset] for partition, offset in enumerate(offsets))
            ages += [first - oldest, last - oldest]
        return min(ages), max(ages)

    def is_near(self, value: float, begin: float, end: float) -> bool:
        """Within WITHIN_S of what was true at some moment of a time."""
        least, most = self.ages(begin, end) or (value, value)
        return least - WITHIN_S <= value <= most + WITHIN_S


@dataclass
class Going:
    """Who produces and consumes meanwhile."""

    truth: Truth
    behind_s: list[float]
    ended: threading.Event = field(default_factory=threading.Event)

    def go(self, bought) -> None:
        """Until `ended`."""
        sender = Sender(bought, linger_ms=0)
        produced = committed = 0.0
        with consumer(bought, GROUP) as reader:
            reader.subscribe([TOPIC])
            while not self.ended.is_set():
                now = time.time()
                if now - produced >= EACH_S:
                    produced = now
                    for partition in range(PARTITIONS):
                        sender.send(TOPIC, b"an order", partition=partition)
                for message in reader.consume(100, 0.05):
                    if message.error() is not None:
                        assert message.error().retriable(), message.error()
                        continue
                    stamps = self.truth.stamps[message.partition()]
                    assert message.offset() == len(stamps)
                    stamps.append(message.timestamp()[1] / 1000)
                if now - committed >= COMMIT_S:
                    committed = now
                    self._commit(reader)
        sender.flush()
        assert sender.refused == []

    def _commit(self, reader) -> None:
        """In each partition up to the records that are as old as it is behind; never back, and never to its end."""
        now, before = time.time(), self.truth.commits[-1][2] if self.truth.commits else [0] * PARTITIONS
        offsets = [
            max(before[partition], bisect_right(stamps, now - self.behind_s[partition]))
            for partition, stamps in enumerate(self.truth.stamps)
        ]
        if any(offset >= len(stamps) for offset, stamps in zip(offsets, self.truth.stamps, strict=True)):
            return
        reader.commit(
            offsets=[TopicPartition(TOPIC, partition, offset) for partition, offset in enumerate(offsets)],
            asynchronous=False,
        )
        self.truth.commits.append((now, time.time(), offsets))


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    whole = WholeStack(tmp_path_factory.mktemp("lag"), free_block(2000))
    try:
        whole.start()
        yield whole
    finally:
        whole.stop()


@contextmanager
def going_on(bought, truth):
    """Producing and consuming, which must not fail."""
    going = Going(truth, list(BEHIND_S))
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(going.go, bought)
        try:
            wait_for(lambda: done.done() or truth.commits, 60, "the first commit")
            yield going
        finally:
            going.ended.set()
        done.result(60)


def asked(api, bought, seconds, found):
    """For so long the group alone and the list, each with when it was asked: (what, begun, ended, value)."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        begun = time.time()
        alone = api.call("GET", f"/instances/{bought.id}/groups/{GROUP}")["lag_seconds"]
        between = time.time()
        (listed,) = api.call("GET", f"/instances/{bought.id}/groups?sort=-lag_seconds")["items"]
        found += [("group", begun, between, alone), ("list", between, time.time(), listed["lag_seconds"])]
        time.sleep(ASK_S)


def steps_of(api, bought, begun, step_s):
    """What the history has from then on, by the beginning of each step: those of which it knows anything."""
    span = {"from": datetime.fromtimestamp(begun, UTC).isoformat(), "to": datetime.now(UTC).isoformat(), "step": step_s}
    answer = api.call("GET", f"/instances/{bought.id}/groups/{GROUP}/history?{urlencode(span)}")
    assert answer["step_s"] == step_s
    return {
        datetime.fromisoformat(each["time"]).timestamp(): each["lag_seconds"]
        for each in answer["items"]
        if each["lag_seconds"] is not None
    }


def test_group_list_and_history_are_within_a_second_of_the_records_timestamps(stack):
    api, truth, found = stack.api(), Truth(), []
    bought = api.running("in seconds")
    api.topic(bought, TOPIC, PARTITIONS)
    with going_on(bought, truth) as going:
        begun = time.time()
        asked(api, bought, 90, found)
        going.behind_s[-1] = FALLEN_BACK_S
        asked(api, bought, FALLEN_BACK_S - BEHIND_S[-1], found)
        fallen = time.time()
        asked(api, bought, LAG_FRESH_S + ROUND_S, found)  # so that a list of before it fell back is wrong at the end
        tens, minutes = (steps_of(api, bought, begun, step_s) for step_s in (10, 60))
        ended = time.time()
    alone = [each for each in found if each[0] == "group" and each[3] is not None]
    listed = [each for each in found if each[0] == "list" and each[3] is not None]
    wrong = [each for each in alone if not truth.is_near(each[3], each[1], each[2])]
    wrong += [each for each in listed if not truth.is_near(each[3], each[1] - LAG_FRESH_S - ROUND_S, each[2])]
    for step_s, steps in (("10 s", tens), ("60 s", minutes)):
        wrong += [
            (step_s, at, at, value)
            for at, value in steps.items()
            if not truth.is_near(value, at // 60 * 60, min(at // 60 * 60 + 2 * ROUND_S, ended))
        ]
    counts = {"group": len(alone), "list": len(listed), "tens": len(tens), "minutes": len(minutes), "wrong": len(wrong)}
    print(counts)
    kept("lag", {"within_s": WITHIN_S, "at": moment(), "answers": counts})
    assert wrong == []
    assert len(alone) >= 0.9 * len(found) / 2  # a broker that is slow to answer for a moment leaves an age unknown
    assert max(each[3] for each in alone) > FALLEN_BACK_S - WITHIN_S
    assert listed[-1][3] > FALLEN_BACK_S - 2 * WITHIN_S
    assert sum(at >= fallen for at in tens) >= 6
    assert sum(at >= begun for at in minutes) >= 3
