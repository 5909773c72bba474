"""Requests that change many topics: what of them may be asked of the controller, and what is refused before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from dataplane.controller.controller import TopicOutcome
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.records.steps import Steps

_NAMES_PER_STEP = 512


class _Named(Protocol):
    """A topic in a request."""

    @property
    def name(self) -> str: ...


Topic = TypeVar("Topic", bound=_Named)
T = TypeVar("T")


def asked_and_refused(
    topics: Sequence[Topic], make: Callable[[Topic], T], per_step: int
) -> Steps[tuple[dict[str, T], dict[str, TopicOutcome]]]:
    """What `make` makes of each topic, by name, and why it refuses others (ApiError). A topic that is named twice is refused."""
    times: Counter[str] = Counter()
    for first in range(0, len(topics), _NAMES_PER_STEP):
        times.update(topic.name for topic in topics[first : first + _NAMES_PER_STEP])
        yield None
    asked: dict[str, T] = {}
    refused: dict[str, TopicOutcome] = {}
    for place, topic in enumerate(topics, 1):
        if place % per_step == 0:
            yield None
        try:
            if times[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the request names the topic more than once")
            asked[topic.name] = make(topic)
        except ApiError as refusal:
            refused[topic.name] = TopicOutcome(topic.name, refusal.code, refusal.message)
    return asked, refused
