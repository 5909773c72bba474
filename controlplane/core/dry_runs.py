"""What a change would do, found out by making it and taking it back.

A dry run goes the way of the change itself, so that it is refused as the change would be. It ends by taking back all that was
written; what waits for the commit (the wake-up of a worker) never happens, and what is to stay is written after that (`stays`).
Outside of the database that is true of the cluster's
tree alone (`clusters.zookeeper.tree`): a service that changes something elsewhere, such as topics of Kafka, is not called in one.

While the change stands, its rows are locked, and a cluster may take seconds to answer. So who compares looks before the change as
well, within `rehearsing`: what was asked of a cluster by then is remembered (`once`), and the look afterwards asks nobody.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import transaction

from controlplane.core.errors import SluiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
    from decimal import Decimal

Answer = TypeVar("Answer")
MOST_NAMED = 50
"""Of those whom a change touches."""
MOST_SHOWN = 80
"""Characters of a value in a sentence of a plan."""


@dataclass(frozen=True, slots=True)
class PriceChange:
    """Of what is changed; None: it is not there before, or afterwards."""

    per_month_before: Decimal | None
    per_month_after: Decimal | None
    currency: str
    at_once: Decimal | None = None  # charged in advance by the change, or paid back (negative); None: nothing is


@dataclass(frozen=True, slots=True)
class Affected:
    """Whom or what a change touches beside the thing itself."""

    who: str  # of what kind, in the plural: "api_keys"
    count: int
    names: tuple[str, ...]  # ids, addresses or names, by which they are found; MOST_NAMED of them at most
    effect: str  # what becomes of them, in a few words


def affected(who: str, names: Iterable[str], effect: str) -> tuple[Affected, ...]:
    """One entry; none where there is nobody."""
    found = tuple(names)
    return (Affected(who, len(found), found[:MOST_NAMED], effect),) if found else ()


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One thing that a call would do, in its turn."""

    name: str  # the same for the same thing: of an operation's step that step's
    detail: str  # for people


@dataclass(frozen=True, slots=True)
class Begun:
    """An operation that a change would begin."""

    kind: str
    steps: tuple[str, ...]  # their names


@dataclass(slots=True)
class Rehearsal:
    """What a change began while it stood, and what is to be written once it has been taken back."""

    begun: list[Begun] = field(default_factory=list)
    afterwards: list[Callable[[], object]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Moving:
    """What brokers would copy between each other, and how long they would take for it."""

    size_bytes: int = 0
    seconds: int | None = None  # None: as long as the operation usually takes


NOTHING_MOVES = Moving()


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a change would do. Members have the names that the API gives them, those within others dotted paths."""

    changes: Mapping[str, tuple[object, object]]  # member -> (before, after); None: it is not there
    price: PriceChange | None = None  # None: it has no price
    problems: tuple[
        str, ...
    ] = ()  # sentences about what would be lost or refused later; the change is carried out all the same
    affected: tuple[Affected, ...] = ()
    begun: tuple[Begun, ...] = ()  # operations, which do the work after the call
    moving: Moving = NOTHING_MOVES
    otherwise: tuple[PlanStep, ...] = ()  # what it does where neither an operation nor a change of members tells

    @property
    def plan(self) -> tuple[PlanStep, ...]:
        """The steps of the operations that it would begin; without one, a step for each thing that changes. In order."""
        if self.begun:
            return tuple(step for operation in self.begun for step in _of_operation(operation))
        if self.changes:
            return tuple(_of_changes(self.changes))
        touched = (PlanStep(each.who, f"{each.count} {each.who}: {each.effect}") for each in self.affected)
        return tuple(touched) or self.otherwise


def _of_operation(operation: Begun) -> Iterator[PlanStep]:
    for number, name in enumerate(operation.steps, start=1):
        yield PlanStep(name, f"{name}: step {number} of {len(operation.steps)} of the operation {operation.kind}")


def _of_changes(changes: Mapping[str, tuple[object, object]]) -> Iterator[PlanStep]:
    """What is made or deleted is one step; members of what there is are one each."""
    before, after = ({name: pair[at] for name, pair in changes.items() if pair[at] is not None} for at in (0, 1))
    if not before and after:
        yield PlanStep("create", f"create it with {_said(after)}")
    elif not after and before:
        yield PlanStep("delete", f"delete it, with {_said(before)}")
    else:
        for name, (was, becomes) in changes.items():
            yield PlanStep(name, f"change {name} from {_shown(was)} to {_shown(becomes)}")


def _said(members: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {_shown(value)}" for name, value in members.items())


def _shown(value: object) -> str:
    """A value in a sentence: not all of one that is long."""
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


class Store:
    """What stands in a dry run for a store that is no database: it keeps what is written, and nobody else sees it."""

    def fork(self) -> Store:
        """The same to read; what is written to it is not seen here."""
        raise NotImplementedError


_scratch: ContextVar[dict[object, Any] | None] = ContextVar("scratch", default=None)
_rehearsal: ContextVar[Rehearsal | None] = ContextVar("rehearsal", default=None)


@contextmanager
def rehearsing() -> Iterator[None]:
    """A dry run: what is asked of a cluster is remembered until its end."""
    before = _scratch.set({})
    try:
        yield
    finally:
        _scratch.reset(before)


@contextmanager
def taken_back() -> Iterator[Rehearsal]:
    """A transaction whose writes are taken back at its end, those to a cluster's tree as well. It says what was begun in it.

    Within a dry run it knows what has been asked, and leaves nothing to what follows.
    """
    outer = _scratch.get() or {}
    before = _scratch.set({about: each.fork() if isinstance(each, Store) else each for about, each in outer.items()})
    rehearsal = Rehearsal()
    around = _rehearsal.set(rehearsal)
    try:
        with transaction.atomic():
            yield rehearsal
            transaction.set_rollback(True)
    finally:
        _rehearsal.reset(around)
        _scratch.reset(before)
        for write in rehearsal.afterwards:
            stays(write)


def stays(write: Callable[[], object]) -> None:
    """Write something that is so whatever becomes of the change, such as that somebody has looked: not what is taken back.

    In a dry run it is written when the change has been taken back, or was refused.
    """
    rehearsal = _rehearsal.get()
    if rehearsal is None:
        write()
    else:
        rehearsal.afterwards.append(write)


def note_begun(operation: Begun) -> None:
    """An operation was begun: a dry run tells of it, since nobody will find it."""
    rehearsal = _rehearsal.get()
    if rehearsal is not None:
        rehearsal.begun.append(operation)


def scratch() -> dict[object, Any] | None:
    """Where doors to other stores keep what is written until it is taken back; None: what is written stays."""
    return _scratch.get()


def once(about: Hashable, ask: Callable[[], Answer]) -> Answer:
    """The answer; in a dry run the one that was given before, if there was one. `about` names who asks as well.

    A refusal is remembered, too: who is away is not waited for twice.
    """
    kept = _scratch.get()
    if kept is None:
        return ask()
    if about not in kept:
        try:
            kept[about] = ask(), None
        except SluiceError as error:
            kept[about] = None, error
    answer, refused = kept[about]
    if refused is not None:
        raise refused
    found: Answer = answer
    return found


def flat(document: Mapping[str, object]) -> dict[str, object]:
    """Members of members under dotted names; an empty one stays as it is."""
    found: dict[str, object] = {}
    for name, value in document.items():
        if isinstance(value, dict) and value:
            found |= {f"{name}.{inner}": each for inner, each in flat(value).items()}
        else:
            found[name] = value
    return found


def differences(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, tuple[object, object]]:
    """Members that are not the same in both, in the order of `after`; one that is missing is None."""
    names = dict.fromkeys([*after, *before])
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}
