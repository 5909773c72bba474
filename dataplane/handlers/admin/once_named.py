"""Requests that change many topics: what of them may be asked of the controller, and what is refused before.

What is known of each topic lives from the first look at the request to its answer, so it is let go of with pauses: of twenty
thousand topics it would take five milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from dataplane.controller.controller import TopicOutcome
from dataplane.handlers.admin.tolls import turn_came
from dataplane.handlers.context import RequestContext
from dataplane.handlers.ownership import in_slices
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.release import released
from dataplane.records.steps import Pace, Steps, each
from dataplane.throttle.mutations import Free

_NAME_US, _OUTCOME_US = 1, 2
ASSIGNED_US = 2
"""For the replicas of one partition that the request chooses itself."""


class _Named(Protocol):
    """A topic in a request."""

    @property
    def name(self) -> str: ...


Topic = TypeVar("Topic", bound=_Named)
T = TypeVar("T")
R = TypeVar("R")
Wanted = TypeVar("Wanted", bound="Asked[Any]")


class Asked(Generic[T]):
    """The topics of one request, by name: what is asked for each (`wanted`), and why others are refused."""

    def __init__(self) -> None:
        self.wanted: dict[str, T] = {}
        self.refused: dict[str, TopicOutcome] = {}
        self.outcomes: list[TopicOutcome] = []  # of those that are wanted, in their order

    @classmethod
    def of(cls, topics: Sequence[Topic], make: Callable[[Topic], Steps[T]], cost_us: int) -> Steps[Asked[T]]:
        """What `make` makes of each topic, or why it refuses it (ApiError). A topic that is named twice is refused."""
        pace = Pace()
        times: Counter[str] = Counter()
        for topic in topics:
            if pace.over(_NAME_US):
                yield None
            times[topic.name] += 1
        asked = cls()
        for topic in topics:
            if pace.over(cost_us):
                yield None
            try:
                if times[topic.name] > 1:
                    raise ApiError(ErrorCode.INVALID_REQUEST, "the request names the topic more than once")
                asked.wanted[topic.name] = yield from make(topic)
            except ApiError as refusal:
                asked.refused[topic.name] = TopicOutcome(topic.name, refusal.code, refusal.message)
        return asked

    def refuse(self, refusal: ApiError) -> Steps[None]:
        """All that is wanted."""
        code, message = refusal.code, refusal.message
        self.outcomes = yield from each(self.wanted, lambda name: TopicOutcome(name, code, message), _OUTCOME_US)

    def released(self) -> Steps[None]:
        """Let go of all of it."""
        held: list[Any] = [self.wanted, self.refused, self.outcomes]
        self.wanted, self.refused, self.outcomes = {}, {}, []
        yield from released(held)


async def answered(
    ctx: RequestContext,
    toll: Free,
    judged: Callable[[], Steps[Wanted]],
    ask: Callable[[Wanted], Awaitable[list[TopicOutcome]]],
    tell: Callable[[Wanted], Steps[R]],
) -> R:
    """What `tell` makes of what `ask` has asked of the controller when the request's turn had come; all else is let go of."""
    asked = await in_slices(ctx, judged())
    try:
        if await turn_came(ctx, toll):
            asked = await in_slices(ctx, judged())
        asked.outcomes = await ask(asked)
    except ApiError as refusal:
        await in_slices(ctx, asked.refuse(refusal))
    finally:
        toll.decided()
    answer = await in_slices(ctx, tell(asked))
    await in_slices(ctx, asked.released())
    return answer
