"""What a state machine asks of the runtime after an event. Plain values: a test compares a list of them.

A *token* stands for a request that waits for its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

Result_co = TypeVar("Result_co", covariant=True)
Value_co = TypeVar("Value_co", covariant=True)
Work_co = TypeVar("Work_co", covariant=True)
Event_co = TypeVar("Event_co", covariant=True)
Effect_co = TypeVar("Effect_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Reply(Generic[Result_co]):
    """Answer the request that the token stands for."""

    token: int
    result: Result_co


@dataclass(frozen=True, slots=True)
class Store(Generic[Value_co, Event_co]):
    """Append a record. Once committed or failed, `then` happens: an event (a dataclass) whose `error` is filled in.

    `not_appended` happens in its place where the log has certainly not got the record (`errors.BEFORE_APPEND`); None: `then`.
    """

    value: Value_co
    then: Event_co
    not_appended: Event_co | None = None


@dataclass(frozen=True, slots=True)
class SetTimer(Generic[Event_co]):
    """Let an event happen after a delay. A timer of the same name is replaced; or, `unless_running`, stays as it is."""

    name: str
    delay_ms: int
    event: Event_co
    unless_running: bool = False


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Harmless when there is none."""

    name: str


@dataclass(frozen=True, slots=True)
class Gradually(Generic[Effect_co]):
    """Answers and timers of many, in order, but in as many turns as it takes. What follows from later events may come between."""

    effects: Callable[[], Iterator[Effect_co]]


class Producer(NamedTuple):
    """In whose open transaction records are appended."""

    id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Begin(Generic[Work_co]):
    """Let the coordinator begin what takes long and goes beyond its log. It says by an event what has become of that."""

    work: Work_co


KeyValue = tuple[bytes, bytes | None]
"""Of a record, as it is appended and replayed. Without a value: what the key names is no more."""
OfOne = Reply[Any] | SetTimer[Any] | CancelTimer
Effect = OfOne | Store[Any, Any] | Gradually[OfOne] | Begin[Any]
