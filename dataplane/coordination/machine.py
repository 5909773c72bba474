"""What a coordinator brings to the runtime: a `Machine`, and the `Contents` that it makes for each partition.

An *entry* is one thing that is coordinated: a group. It holds the value that the state machine makes anew with each event,
and its `timers`. A value changes in two ways only: by `handle`, which proposes, and by `Contents.apply`, which believes what
is committed, in service and at load alike. So what is served and what a successor will load cannot differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dataplane.coordination.deadlines import Deadlines
    from dataplane.coordination.effects import Effect, KeyValue, SetTimer
    from dataplane.protocol.errors import ErrorCode


class Entry(Protocol):
    """One thing that is coordinated."""

    @property
    def timers(self) -> Deadlines:
        """Its own: they end with it."""
        ...


E = TypeVar("E", bound=Entry)
E_co = TypeVar("E_co", bound=Entry, covariant=True)
E_contra = TypeVar("E_contra", bound=Entry, contravariant=True)


class Contents(Protocol[E_co]):
    """All that the records of one partition add up to."""

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Believe a record. Raises DecodeError or ValueError for one that cannot be read."""
        ...

    def clear(self) -> None:
        """Know nothing again: the log is about to be replayed from its beginning."""
        ...

    def loaded(self) -> Iterable[tuple[E_co, SetTimer[Any]]]:
        """Everything was replayed: the timers that begin now."""
        ...

    def all_entries(self) -> Iterable[E_co]:
        """In order of their first records."""
        ...

    def open(self, name: str) -> E_co:
        """The entry of this name, made if there is none."""
        ...

    def drop_blank(self, name: str) -> None:
        """Forget an entry of which nothing is left. Harmless when there is none."""
        ...


C = TypeVar("C", bound=Contents[Any])
C_co = TypeVar("C_co", bound=Contents[Any], covariant=True)


class Machine(Protocol[C_co, E_contra]):
    """A state machine for entries, over the records of a topic."""

    @property
    def topic(self) -> str:
        """The internal topic that keeps the records."""
        ...

    def new_contents(self, new_timers: Callable[[], Deadlines]) -> C_co:
        """Of a partition of which nothing is known yet. Every entry takes timers of its own."""
        ...

    def name_of(self, entry: E_contra) -> str:
        """By which it is found again."""
        ...

    def owner_of(self, entry: E_contra) -> str:
        """Whose it is, as `slices` shares the loop: an instance's key; "": the cluster's own."""
        ...

    def handle(self, entry: E_contra, event: Any, now_ms: int) -> Sequence[Effect]:
        """Put the pure function's value in place of the entry's; what must follow, in order."""
        ...

    def records(self, entry: E_contra, value: Any) -> list[KeyValue]:
        """What to append for the value of a `Store`."""
        ...

    def told(self, error: ErrorCode) -> ErrorCode:
        """What the event after a `Store` says of an error of the log."""
        ...
