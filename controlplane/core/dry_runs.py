"""What a change would do, found out by making it and taking it back.

A dry run goes the way of the change itself, so that it is refused as the change would be. It ends by taking back all that was
written; what waits for the commit (the wake-up of a worker) never happens. Outside of the database that is true of the cluster's
tree alone (`clusters.zookeeper.tree`): a service that changes something elsewhere, such as topics of Kafka, is not called in one.

While the change stands, its rows are locked, and a cluster may take seconds to answer. So who compares looks before the change as
well, within `rehearsing`: what was asked of a cluster by then is remembered (`once`), and the look afterwards asks nobody.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import transaction

from controlplane.core.errors import SluiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
    from decimal import Decimal

Answer = TypeVar("Answer")
MOST_NAMED = 50
"""Of those whom a change touches."""


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
class Outlook:
    """What a change would do. Members have the names that the API gives them, those within others dotted paths."""

    changes: Mapping[str, tuple[object, object]]  # member -> (before, after); None: it is not there
    price: PriceChange | None = None  # None: it has no price
    problems: tuple[
        str, ...
    ] = ()  # sentences about what would be lost or refused later; the change is carried out all the same
    affected: tuple[Affected, ...] = ()


class Store:
    """What stands in a dry run for a store that is no database: it keeps what is written, and nobody else sees it."""

    def fork(self) -> Store:
        """The same to read; what is written to it is not seen here."""
        raise NotImplementedError


_scratch: ContextVar[dict[object, Any] | None] = ContextVar("scratch", default=None)


@contextmanager
def rehearsing() -> Iterator[None]:
    """A dry run: what is asked of a cluster is remembered until its end."""
    before = _scratch.set({})
    try:
        yield
    finally:
        _scratch.reset(before)


@contextmanager
def taken_back() -> Iterator[None]:
    """A transaction whose writes are taken back at its end, those to a cluster's tree as well.

    Within a dry run it knows what has been asked, and leaves nothing to what follows.
    """
    outer = _scratch.get() or {}
    before = _scratch.set({about: each.fork() if isinstance(each, Store) else each for about, each in outer.items()})
    try:
        with transaction.atomic():
            yield
            transaction.set_rollback(True)
    finally:
        _scratch.reset(before)


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
