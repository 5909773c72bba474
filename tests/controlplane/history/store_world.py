"""Some hours of history that a test may ask of the database and of a metrics store: figures of every kind, with gaps."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from controlplane.history import services
from controlplane.history.models import Hour, Minute, RequestHour, RequestMark, RequestMinute, RequestSample, StoredSpan
from controlplane.history.requests import sampling
from controlplane.history.requests.brokers import broker_history_get, brokers_get, cluster_broker_moved_get
from controlplane.history.requests.selectors import requests_get, rows_of
from controlplane.history.requests.topics import topic_moved_get
from controlplane.history.selectors import history_get, moment_at
from controlplane.history.store import client, writing
from quota.contracts.requests import RequestCounts
from quota.contracts.topics_moved import TopicsMoved

from .conftest import MIB, counts_of, keep, move, sample

CHUNK_S = 300
ROWS = (Minute, Hour, RequestMinute, RequestHour)


class World:
    """One instance of which something is known, and another of the same cluster."""

    def __init__(self, instance, clock, settings, seed=7):
        self.instance, self.clock, self.settings = instance, clock, settings
        self.random = Random(seed)
        self.began = self.at = int(clock.now().timestamp())
        self.mark = sampling.mark_name(instance.cluster_id)
        RequestMark.objects.update_or_create(name=self.mark, defaults={"taken": self.at - 10, "rolled": self.at})

    def stored_in(self, url, **others):
        """From now on METRICS_URL says so; empty: in the database."""
        client.AWAY.forget()
        self.settings.ENVIRONMENT = replace(self.settings.ENVIRONMENT, metrics_url=url, **others)

    def passes(self, seconds, *, busy=True):
        """So much time, with samples and windows, rolled up as the worker does, though five minutes at a time."""
        until = self.at + seconds
        while self.at < until:
            start = self.at
            keep(
                self._sample(at, name)
                for at in range(start, start + CHUNK_S, 10)
                for name in (self.instance.pk, "ins-another1")
                if self.random.random() > 0.05
            )
            rows = [row for at in range(start, start + CHUNK_S, 10) for row in self._windows(at) if busy]
            RequestSample.objects.bulk_create(rows)
            sampling._rolled_up(sorted({row.instance for row in rows}), start, start + CHUNK_S)
            self.at = start + CHUNK_S
            RequestMark.objects.filter(name=self.mark).update(taken=self.at - 10, rolled=self.at)
            move(self.clock, self.at + 5)
            services.roll_up(clock=self.clock)

    def writes(self):
        """As the task does; how many moments that were."""
        client.AWAY.forget()
        return writing.write(clock=self.clock)

    def forgets(self):
        """The database has nothing of what was written."""
        for level in writing.LEVELS:
            for span in StoredSpan.objects.filter(name=level.name):
                level.model.objects.filter(at__gte=span.at, at__lt=span.until).delete()
                StoredSpan.objects.filter(pk=span.pk).update(purged=span.until)

    def answers(self):
        """What is asked by pages and REST, over times and steps of many kinds."""
        client.AWAY.forget()
        now = int(self.clock.now().timestamp())
        asked = [(now - 3 * 3600 - 600, now, 60), (now - 5 * 3600, now, 1200), (now - 5 * 3600, now - 1800, 420),
                 (self.began, now, 86_400), (now - 20 * 86_400, now, None), (now - 40 * 86_400, now, 86_400)]  # fmt: skip
        return [self._answer(*each) for each in asked]

    def _answer(self, start, end, step_s):
        question = {
            "instance": self.instance, "start": moment_at(start), "end": moment_at(end), "step_s": step_s,
            "clock": self.clock,
        }  # fmt: skip
        whole, requests = history_get(**question), requests_get(**question)
        topics = [topic_moved_get(**question, name=name) for name in ("orders", "events", "none")]
        of_broker = cluster_broker_moved_get(
            **{name: value for name, value in question.items() if name != "instance"},
            cluster=self.instance.cluster, broker=1,
        )  # fmt: skip
        found = [whole, *topics, of_broker]
        return {
            "complete": all(each.is_complete for each in (*found, requests)),
            "gaps": whole.gaps,
            "series": [(each.metric.name, each.values, each.maxima) for one in found for each in one.series],
            "requests": [row.as_json() for row in rows_of(requests)],
            "known": [step and (step.seconds, step.counts.to_text()) for step in requests.steps],
        }

    def of_brokers(self):
        """What the instance asked of each broker."""
        now = int(self.clock.now().timestamp())
        times = {"start": moment_at(now - 4 * 3600), "end": moment_at(now)}
        rows = brokers_get(instance=self.instance, step_s=600, **times)
        one = broker_history_get(
            instance=self.instance,
            broker=1,
            step_s=600,
            clock=self.clock,
            **times,
        )
        return rows, [(each.metric.name, each.values) for each in one.series]

    def _sample(self, at, name):
        number = self.random.randrange
        limit = None if at // 1200 % 3 == 0 else 5 * MIB + number(3)
        return sample(
            at, name, produce_bytes_per_s=number(MIB), consume_bytes_per_s=number(MIB), connections=number(20),
            storage_used_bytes=10**12 + number(10**9), produce_limit_bytes_per_s=limit, produce_allocated_bytes_per_s=limit,
        )  # fmt: skip

    def _windows(self, at):
        if self.random.random() < 0.2:
            return []
        both = []
        for _ in range(2):
            counts = counts_of(self.random.randrange(1, 5), took_us=self.random.randrange(10, 10**6), waited_us=5)
            counts.add(counts_of(2, api="Fetch", errors={"NOT_LEADER_OR_FOLLOWER": 1}))
            counts.carried_windows = 1
            counts.produced_bytes, counts.consumed_bytes = self.random.randrange(MIB), self.random.randrange(MIB)
            counts.topics = TopicsMoved()
            for name in self.random.sample(["orders", "events", "others"], 2):
                records = self.random.choice([None, *range(9)]) if name == "events" else self.random.randrange(9)
                sizes = self.random.randrange(1, 9999), self.random.randrange(9999)
                counts.topics.count(name, *sizes, records)
            if at // 600 % 4 == 0:
                counts.topics.shorten(1)
            both.append(RequestCounts.from_text(counts.to_text()))
        by = sampling.by_broker.text_of({1: both[0], 2: both[1]})
        ours = sampling._row(self.instance.pk, at, both, by if at // 1800 % 5 else None)
        theirs = sampling._row("ins-another1", at, both)
        of_broker = RequestSample(
            instance=sampling.broker_name(self.instance.cluster_id, 1), at=at, windows=1, counts=both[0].to_text()
        )
        return [ours, theirs, of_broker]


@pytest.fixture
def world(instance, at_noon, settings):
    """It is noon; METRICS_URL says nothing yet."""
    return World(instance, at_noon, settings)


def alike(one, other, share=0.01):
    """Whether two answers are the same but for so much of each figure."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name], share) for name in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(
            alike(mine, theirs, share) for mine, theirs in zip(one, other, strict=True)
        )
    if isinstance(one, (int, float)) and isinstance(other, (int, float)) and not isinstance(one, bool):
        return abs(one - other) <= share * max(abs(one), abs(other))
    return one == other
