"""What operators ask of the controller about very many partitions: some at a time, and in steps between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from dataplane.records.steps import Pace, Steps, grouped, taken_out

Key = tuple[str, int]
"""Topic and partition."""
AT_ONCE = 500
"""Partitions that the controller is asked about at once: one to three milliseconds of its work."""
_KEY_US, _ROW_US = 1, 2
A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")


def keys_of(topics: Iterable[tuple[str, Sequence[int]]]) -> Steps[list[Key]]:
    """The partitions that are named, each once, in their order."""
    pace, keys = Pace(), dict[Key, None]()
    for topic, indexes in topics:
        for index in indexes:
            keys[topic, index] = None
            if pace.over(_KEY_US):
                yield None
    return list(keys)


def by_topic(
    outcomes: Mapping[Key, T], row: Callable[[int, T], R], result: Callable[[str, tuple[R, ...]], A]
) -> Steps[tuple[A, ...]]:
    """What came of each partition, as its row of an answer, in the result of its topic."""
    pace, topics = Pace(), dict[str, list[R]]()
    for (topic, index), outcome in outcomes.items():
        topics.setdefault(topic, []).append(row(index, outcome))
        if pace.over(_ROW_US):
            yield None
    return (yield from grouped(taken_out(topics), result, _ROW_US, pace))
